// The methods of baregrad.Tensor, by kind. Where functions of the array API and methods of PyTorch
// with the same name differ, a method follows PyTorch: max(dim), std, squeeze, nonzero.
#pragma once

#include <nanobind/nanobind.h>

#include "baregrad/tensor.h"
#include "bindings.h"
#include "casters.h"

namespace baregrad::python {

using TensorClass = nb::class_<Tensor>;
/// The object a method was called on, for methods that return it.
using Self = nb::typed<nb::object, Tensor>;

void bind_elementwise_methods(TensorClass& tensor);
void bind_reduction_methods(TensorClass& tensor);
void bind_shape_methods(TensorClass& tensor);
void bind_picking_methods(TensorClass& tensor);
void bind_grad_methods(nb::module_& m, TensorClass& tensor);
void bind_copy_methods(nb::module_& m, TensorClass& tensor);

}  // namespace baregrad::python
