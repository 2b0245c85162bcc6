// Conversion of objects to tensors: the order in which the protocols are tried, and the methods
// through which other libraries read a tensor.
#include "interop.h"

#include "call.h"
#include "casters.h"
#include "core/message.h"
#include "interop_foreign.h"
#include "text.h"

namespace baregrad::python {
namespace {

Tensor from_tensor(const Tensor& x, const Asked& asked) {
  const DType dtype = asked.dtype.value_or(x.dtype());
  if (dtype != x.dtype() && asked.copy == false) {
    throw ValueError(message(asked.who, ": copy=False, but ", describe(x),
                             " has to be copied to become ", name(dtype)));
  }
  const bool copies = asked.copy.value_or(false);
  if (dtype == x.dtype() && !copies) return x;
  return unlocked(x.numel(), [&] { return astype(x, dtype, copies); });
}

bool is_plain_number(PyObject* object) noexcept {
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object);
}

bool has_interface(nb::handle object) { return nb::hasattr(object, "__array_interface__"); }

/// The elements of an object with a buffer. Some arrays (of bfloat16) have one and refuse to export
/// it.
ForeignArray from_buffer_or_interface(nb::handle object, const char* who) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return from_array_interface(object, who);
  try {
    return from_buffer(object, who);
  } catch (nb::python_error& e) {
    // The three errors that NumPy raises for a dtype without a buffer format.
    const bool refused =
        e.matches(PyExc_BufferError) || e.matches(PyExc_ValueError) || e.matches(PyExc_TypeError);
    if (!refused || !has_interface(object)) throw;
  }
  return from_array_interface(object, who);
}

/// NumPy shows what it cannot take by its repr, which has no end for lists nested too deep.
nb::object numpy_dtype(nb::handle dtype) {
  try {
    return nb::module_::import_("numpy").attr("dtype")(dtype);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_RecursionError)) throw;
    throw DTypeError(message("__array__: ", type_text(dtype), " is no dtype"));
  }
}

/// __array__(dtype=None, copy=None), as NumPy calls it.
nb::object numpy_array(const Tensor& x, nb::handle dtype, std::optional<bool> copy) {
  const nb::object array = to_numpy(x);
  const nb::object wanted = dtype.is_none() ? nb::none() : numpy_dtype(dtype);
  if (!wanted.is_none() && !array.attr("dtype").equal(wanted)) {
    if (copy == false) {
      throw ValueError(message("__array__: copy=False, but ", describe(x),
                               " has to be copied to become another dtype"));
    }
    return array.attr("astype")(wanted);
  }
  return copy.value_or(false) ? nb::object(array.attr("copy")()) : array;
}

}  // namespace

std::optional<ForeignArray> foreign_array(nb::handle object, const char* who) {
  // A class has the attributes of its instances, but no elements.
  if (PyType_Check(object.ptr())) return std::nullopt;
  if (PyObject_CheckBuffer(object.ptr()) != 0 || has_interface(object)) {
    return from_buffer_or_interface(object, who);
  }
  if (nb::hasattr(object, "__dlpack__")) return from_dlpack(object, who);
  if (!nb::hasattr(object, "__array__")) return std::nullopt;
  const nb::object array = object.attr("__array__")();
  if (PyObject_CheckBuffer(array.ptr()) == 0 && !has_interface(array)) {
    throw DTypeError(message(who, ": __array__ of ", type_text(object), " gave ", type_text(array),
                             ", not an array"));
  }
  return from_buffer_or_interface(array, who);
}

Tensor tensor_from(nb::handle object, const Asked& asked) {
  PyObject* source = object.ptr();
  if (const Tensor* tensor = tensor_in(source)) return from_tensor(*tensor, asked);
  const bool is_list = PyList_Check(source) || PyTuple_Check(source);
  if (!is_list && !is_plain_number(source)) {
    if (auto array = foreign_array(object, asked.who)) return adopt(std::move(*array), asked);
  }
  if (asked.copy == false) {
    throw ValueError(message(asked.who, ": copy=False, but the elements of ", type_text(object),
                             " have to be copied"));
  }
  return is_sequence(source) ? from_sequence(object, asked) : from_number(object, asked);
}

Tensor tensor_on(nb::handle object, const Asked& asked, DeviceOption device) {
  const Tensor* given = tensor_in(object.ptr());
  const Device here = given != nullptr ? given->device() : Device();
  const Device there = device.value_or(given != nullptr ? here : default_device());
  if (there == here && given != nullptr) return from_tensor(*given, asked);
  Asked first = asked;
  if (there != here) {
    if (asked.copy == false) {
      throw ValueError(message(asked.who, ": copy=False, but the elements have to be copied from ",
                               to_string(here), " to ", to_string(there)));
    }
    first.copy = {};  // the copy to the device is the only one
  }
  const Tensor x = tensor_from(object, first);
  // A list of tensors of a device is there already.
  return !device && !x.device().is_cpu() ? x : moved(x, x.dtype(), there);
}

void bind_interop() {
  auto tensor = nb::borrow<nb::class_<Tensor>>(reinterpret_cast<PyObject*>(g_tensor_type));
  tensor
      .def("numpy", &to_numpy, nb::sig("def numpy(self) -> typing.Any"),
           R"(A NumPy array on the same memory: writes to one are visible in the other.

>>> bg.ones((2,)).numpy()
array([1., 1.], dtype=float32))")
      .def("__array__", &numpy_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "typing.Any"),
           "Called by numpy.asarray(x): an array on the same memory, unless a copy is requested.")
      .def_prop_ro("__array_interface__", &array_interface,
                   nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"),
                   "NumPy's description of the memory: pointer, shape, strides and type.")
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: None = None, max_version: tuple[int, int] | "
                   "None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = "
                   "None) -> typing.Any"),
           "A DLPack capsule on the same memory, for from_dlpack of any library.")
      .def("__dlpack_device__", &dlpack_device,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
           "Type and index of the device by DLPack's numbers; (1, 0) is the CPU.");
}

}  // namespace baregrad::python
