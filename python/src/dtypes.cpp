// Data types, and conversions that all bindings use.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "bindings.h"
#include "casters.h"

namespace baregrad::python {
namespace {

/// A dtype in Python: an object compared by identity.
struct DTypeObject {
  DType dtype;
};

std::array<PyObject*, kNumDTypes> g_dtypes{};

std::optional<DType> dtype_named(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// The name of a NumPy dtype, or of a NumPy scalar type ("float32").
std::optional<DType> foreign_dtype(PyObject* object) {
  for (const char* attribute : {"name", "__name__"}) {
    const nb::object found = nb::getattr(object, attribute, nb::none());
    if (nb::isinstance<nb::str>(found)) {
      const std::string_view text = nb::cast<std::string_view>(found);
      return dtype_named(text == "bool_" ? "bool" : text);
    }
  }
  return std::nullopt;
}

/// NumPy's bool is not a subclass of Python's, and has __float__: it would be taken for a float.
bool is_numpy_bool(PyObject* object) {
  const std::string_view type = Py_TYPE(object)->tp_name;
  return type == "numpy.bool" || type == "numpy.bool_";
}

/// NumPy's complex numbers have __float__ too, which drops the imaginary part with a warning.
bool is_complex(PyObject* object) {
  const std::string_view type = Py_TYPE(object)->tp_name;
  return PyComplex_Check(object) || type.starts_with("numpy.complex") ||
         type == "numpy.clongdouble";
}

}  // namespace

PyObject* dtype_object(DType dtype) noexcept { return g_dtypes[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_from(PyObject* object) {
  if (nb::isinstance<DTypeObject>(object)) return nb::inst_ptr<DTypeObject>(object)->dtype;
  if (object == Py_None) return std::nullopt;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDefaultFloat;
  if (PyUnicode_Check(object)) return dtype_named(nb::cast<std::string_view>(nb::handle(object)));
  return foreign_dtype(object);
}

bool number_from(PyObject* object, Scalar& out) {
  if (PyFloat_Check(object)) {
    out = Scalar(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (PyBool_Check(object)) {
    out = Scalar(object == Py_True);
    return true;
  }
  nb::object held;
  if (!PyLong_Check(object)) {
    // NumPy's scalars. Tensors do not count as numbers here, although they can be converted.
    if (PyObject_TypeCheck(object, g_tensor_type) || PySequence_Check(object)) return false;
    if (is_complex(object)) return false;
    if (is_numpy_bool(object)) {
      out = Scalar(PyObject_IsTrue(object) == 1);
      return true;
    }
    if (PyIndex_Check(object)) {
      held = nb::steal(PyNumber_Index(object));
      if (!held.is_valid()) throw nb::python_error();
      object = held.ptr();
    } else if (Py_TYPE(object)->tp_as_number != nullptr &&
               Py_TYPE(object)->tp_as_number->nb_float != nullptr) {
      const double value = PyFloat_AsDouble(object);
      if (value == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
      }
      out = Scalar(value);
      return true;
    } else {
      return false;
    }
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) {
    out = Scalar(static_cast<std::int64_t>(value));
    return true;
  }
  const unsigned long long wide = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  out = Scalar(static_cast<std::uint64_t>(wide));
  return true;
}

bool dims_from(PyObject* object, Dims& out) {
  out.clear();
  const auto append = [&out](PyObject* item) {
    if (!PyIndex_Check(item) || PyBool_Check(item)) return false;
    const Py_ssize_t value = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    out.push_back(value);
    return true;
  };
  if (PyTuple_Check(object) || PyList_Check(object)) {
    // Not PySequence_Fast_ITEMS: __index__ of an item may change the list.
    for (Py_ssize_t i = 0;; ++i) {
      const Py_ssize_t size = PySequence_Size(object);
      if (size < 0) throw nb::python_error();  // a subclass whose __len__ raised
      if (i >= size) break;
      const nb::object item = nb::steal(PySequence_GetItem(object, i));
      if (!item.is_valid()) throw nb::python_error();
      if (!append(item.ptr())) return false;
    }
    return true;
  }
  return append(object);
}

bool offset_from(PyObject* object, Offset& out) {
  if (!PyIndex_Check(object) || PyBool_Check(object)) return false;
  const nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  // Half of the range, so that adding a size does not overflow.
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  out.value = overflow == 0 ? std::clamp<std::int64_t>(value, -kFar, kFar) : overflow * kFar;
  return true;
}

void bind_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "DType",
                          "The type of a tensor's elements: baregrad.float32 and others.")
      .def_prop_ro("name", [](const DTypeObject& d) { return std::string(name(d.dtype)); })
      .def_prop_ro(
          "itemsize", [](const DTypeObject& d) { return itemsize(d.dtype); },
          "Bytes of one element.")
      .def("__repr__",
           [](const DTypeObject& d) { return "baregrad." + std::string(name(d.dtype)); })
      .def("__hash__", [](const DTypeObject& d) { return static_cast<Py_hash_t>(d.dtype); })
      // Pickled by name, so that unpickling and copying give the same object.
      .def("__reduce__", [](const DTypeObject& d) { return std::string(name(d.dtype)); });
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const nb::object object = nb::cast(DTypeObject{dtype});
    g_dtypes[static_cast<std::size_t>(i)] = nb::object(object).release().ptr();
    m.attr(std::string(name(dtype)).c_str()) = object;
  }
}

}  // namespace baregrad::python
