// Memory shared with other libraries, in both directions, and values read from Python objects.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"
#include "bindings.h"

namespace baregrad::python {

/// Options of the conversion to a tensor. `who` opens error messages.
struct Asked {
  const char* who = "asarray";
  DTypeOption dtype = {};
  /// Unset: copy only where sharing is impossible. False: refuse instead.
  std::optional<bool> copy = {};
};

/// Converts any object to a tensor: a tensor (itself, with its history), memory of other libraries
/// (shared if its strides allow this and it is writable), numbers, and nested sequences of all of
/// these.
Tensor tensor_from(nb::handle object, const Asked& asked = {});

/// A NumPy array that shares the tensor's memory. Throws GradError for a tensor that requires a
/// gradient.
nb::object to_numpy(const Tensor& x);

/// "cpu" or None. The conversion of any other argument is a ValueError.
struct Device {};

// Slots of the type baregrad.Tensor: the buffer protocol.
int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void tensor_releasebuffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace baregrad::python

namespace nanobind::detail {

template <>
struct type_caster<baregrad::python::Device> {
  NB_TYPE_CASTER(baregrad::python::Device, const_name("str"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (source.is_none()) return true;
    if (PyUnicode_Check(source.ptr()) != 0 &&
        PyUnicode_CompareWithASCIIString(source.ptr(), "cpu") == 0) {
      return true;
    }
    // The repr of an object that is not text may take very long, or fail.
    const handle shown = PyUnicode_Check(source.ptr()) != 0 ? source : source.type();
    PyErr_Format(PyExc_ValueError, "device: the only device is \"cpu\", got %R", shown.ptr());
    throw python_error();
  }
};

}  // namespace nanobind::detail
