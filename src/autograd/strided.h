// Gradients through a view given by its layout alone, whatever chain of views it came from.
#pragma once

#include "baregrad/layout.h"
#include "baregrad/tensor.h"

namespace baregrad::autograd {

/// Zeros of base's shape with g added at the elements that `view` sees.
Tensor embedded(const Tensor& g, const Layout& view, const Layout& base);
/// The elements of g, which has base's shape, that `view` sees.
Tensor region(const Tensor& g, const Layout& view, const Layout& base);
/// g with the elements that `view` sees set to zero.
Tensor without_region(const Tensor& g, const Layout& view, const Layout& base);

}  // namespace baregrad::autograd
