// The whole public interface.
#pragma once

#include "baregrad/allocator.h"
#include "baregrad/autograd.h"
#include "baregrad/dims.h"
#include "baregrad/dtype.h"
#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "baregrad/graph.h"
#include "baregrad/graph_node.h"
#include "baregrad/half.h"
#include "baregrad/indexing.h"
#include "baregrad/layout.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "baregrad/print.h"
#include "baregrad/profile.h"
#include "baregrad/scalar.h"
#include "baregrad/storage.h"
#include "baregrad/tensor.h"

namespace bg = baregrad;
