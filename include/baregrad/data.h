// Data for training: datasets, the loader, file readers, and the sets everybody starts with.
#pragma once

#include "baregrad/data_files.h"
#include "baregrad/data_loader.h"
#include "baregrad/data_sets.h"
#include "baregrad/dataset.h"
