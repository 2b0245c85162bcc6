// Tensors as text, in PyTorch's format.
#pragma once

#include <string>
#include <string_view>

#include "baregrad/tensor.h"
#include "bindings.h"

namespace baregrad::python {

/// "tensor([1., 2.], requires_grad=True)"; `type_name` stands before the bracket.
std::string repr(const Tensor& tensor, std::string_view type_name = "tensor");
/// An HTML table, for notebooks.
std::string repr_html(const Tensor& tensor);

}  // namespace baregrad::python
