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

/// tensor_from, on a device: the given one; else a tensor stays where it is, and all other objects
/// go to the default device.
Tensor tensor_on(nb::handle object, const Asked& asked, DeviceOption device);

/// The elements in the CPU's memory: the tensor itself, or a copy without a history. Waits for a
/// device without the interpreter's lock.
Tensor on_cpu(const Tensor& x);
/// The only element. Waits for a device without the interpreter's lock.
Scalar item_of(const Tensor& x);
/// The elements in another dtype on another device; x itself where it has both, unless `copy`.
Tensor moved(const Tensor& x, DType dtype, Device device, bool copy = false);

/// A Device or its name. DTypeError for any other object, ValueError for the name of no device;
/// `who` opens the message. The device need not be available.
Device device_named(nb::handle source, const char* who);

/// An argument `device`: None, a Device or its name. It is read when the function runs, so that
/// errors start with the function's name.
struct DeviceArg {
  nb::handle source;
  /// Empty for None. ValueError for a device that is not available.
  DeviceOption in(const char* who) const;
};

// Slots of the type baregrad.Tensor: the buffer protocol.
int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void tensor_releasebuffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace baregrad::python

namespace nanobind::detail {

/// None is accepted everywhere, as it is for std::optional.
template <>
struct has_arg_defaults<baregrad::python::DeviceArg> : std::true_type {};

template <>
struct type_caster<baregrad::python::DeviceArg> {
  NB_TYPE_CASTER(baregrad::python::DeviceArg, const_name("baregrad._core.Device | str | None"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    value.source = source;
    return true;
  }
};

}  // namespace nanobind::detail
