#pragma once
#include "baregrad/activation.h"
