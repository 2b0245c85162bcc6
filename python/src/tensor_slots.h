// The operators of baregrad.Tensor as type slots.
#pragma once

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"

namespace baregrad::python {

PyType_Slot* tensor_slots() noexcept;

// ---- tensor_collect.cpp
/// For Python's garbage collector: the hooks, and contexts of Functions, that only this object
/// keeps alive.
int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept;
int clear_tensor(PyObject* self) noexcept;
/// The same for nn.Parameter.
PyType_Slot* parameter_slots() noexcept;
/// The tensor inside; a TypeError where __init__ never ran.
const Tensor& initialised(PyObject* object);
/// Reads a tensor or a number. False when it is neither: the operator then returns NotImplemented.
bool operand_from(PyObject* object, Operand& out);
/// Whether the product takes more than some ten microseconds.
bool is_long_product(const Tensor& a, const Tensor& b) noexcept;

}  // namespace baregrad::python
