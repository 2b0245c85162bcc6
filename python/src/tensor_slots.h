// The operators of baregrad.Tensor, as slots of its type.
#pragma once

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"

namespace baregrad::python {

PyType_Slot* tensor_slots() noexcept;
/// The tensor inside; a TypeError where __init__ never ran.
const Tensor& initialised(PyObject* object);
/// A tensor or a number; false when it is neither, which leaves an operator to the other side.
bool operand_from(PyObject* object, Operand& out);
/// Takes more than some ten microseconds.
bool is_long_product(const Tensor& a, const Tensor& b) noexcept;

}  // namespace baregrad::python
