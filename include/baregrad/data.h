// Data for training: datasets, the loader, file readers and well-known data sets.
#pragma once

#include "baregrad/data_files.h"
#include "baregrad/data_loader.h"
#include "baregrad/data_sets.h"
#include "baregrad/dataset.h"
