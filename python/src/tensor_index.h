// x[...] as slots of the type.
#pragma once

#include <nanobind/nanobind.h>

namespace baregrad::python {

PyObject* tensor_get_item(PyObject* self, PyObject* key) noexcept;
/// A null value is `del x[key]`, which is refused.
int tensor_set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;
/// Size of the first axis; -1 with a TypeError for a 0-d tensor.
Py_ssize_t tensor_length(PyObject* self) noexcept;
PyObject* tensor_iterator(PyObject* self) noexcept;
int tensor_contains(PyObject* self, PyObject* value) noexcept;

}  // namespace baregrad::python
