// Layers, losses and first weights, with PyTorch's names, semantics and defaults.
#pragma once

#include "baregrad/nn/activations.h"
#include "baregrad/nn/attention.h"
#include "baregrad/nn/conv.h"
#include "baregrad/nn/init.h"
#include "baregrad/nn/layers.h"
#include "baregrad/nn/losses.h"
#include "baregrad/nn/module.h"
#include "baregrad/nn/norm.h"
#include "baregrad/nn/recurrent.h"
