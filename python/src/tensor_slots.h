// The operators of baregrad.Tensor, as slots of its type.
#pragma once

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"

namespace baregrad::python {

PyType_Slot* tensor_slots() noexcept;

// ---- tensor_collect.cpp
/// For Python's collector: the hooks, and contexts of Functions, that only this object keeps.
int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept;
int clear_tensor(PyObject* self) noexcept;
/// The same for nn.Parameter.
PyType_Slot* parameter_slots() noexcept;
/// The tensor inside; a TypeError where __init__ never ran.
const Tensor& initialised(PyObject* object);
/// A tensor or a number; false when it is neither, which leaves an operator to the other side.
bool operand_from(PyObject* object, Operand& out);
/// Takes more than some ten microseconds.
bool is_long_product(const Tensor& a, const Tensor& b) noexcept;

}  // namespace baregrad::python
