// Conversions of the engine's small types: numbers, shapes, axes, dtypes and operands. Include it
// in every file of bindings, so that all use the same casters.
#pragma once

#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"
#include "containers.h"
#include "text.h"

namespace baregrad::python {

namespace nb = nanobind;

/// The type object of baregrad.Tensor; set by bind_tensor.
extern PyTypeObject* g_tensor_type;

/// The tensor inside, or nullptr when `object` is not a tensor (or its __init__ never ran).
inline const Tensor* tensor_in(PyObject* object) noexcept {
  if (!PyObject_TypeCheck(object, g_tensor_type) || !nb::inst_ready(object)) return nullptr;
  return nb::inst_ptr<Tensor>(object);
}
/// A new reference to a Python tensor. This is the fast path of all operators.
PyObject* wrap(Tensor&& tensor);

/// False, without a Python error, when `object` is not a number. Throws for an integer beyond 64
/// bits.
bool number_from(PyObject* object, Scalar& out);
/// Accepts dtype objects, their names, Python's bool, int and float, and NumPy's dtypes.
std::optional<DType> dtype_from(PyObject* object);
/// baregrad.float32 and so on: one object each, for the life of the process. Borrowed.
PyObject* dtype_object(DType dtype) noexcept;
/// An integer or a sequence of integers. A bool is refused: x.sum(True) is a mistake.
bool dims_from(PyObject* object, Dims& out);

/// The number of a diagonal: an integer of any size. Values beyond 64 bits saturate.
struct Offset {
  std::int64_t value = 0;
};
bool offset_from(PyObject* object, Offset& out);

}  // namespace baregrad::python

namespace nanobind::detail {

template <>
struct type_caster<baregrad::Scalar> {
  NB_TYPE_CASTER(baregrad::Scalar, const_name("bool | int | float"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return baregrad::python::number_from(source.ptr(), value);
  }
  static handle from_cpp(const baregrad::Scalar& scalar, rv_policy, cleanup_list*) noexcept {
    switch (scalar.kind()) {
      case baregrad::Scalar::Kind::Bool:
        return PyBool_FromLong(scalar.to_bool() ? 1 : 0);
      case baregrad::Scalar::Kind::Int:
        return PyLong_FromLongLong(scalar.to_int64());
      case baregrad::Scalar::Kind::UInt:
        return PyLong_FromUnsignedLongLong(scalar.to_uint64());
      case baregrad::Scalar::Kind::Float:
        break;
    }
    return PyFloat_FromDouble(scalar.to_double());
  }
};

/// As nanobind's, but a bool is not an integer.
template <>
struct type_caster<std::int64_t> {
  NB_TYPE_CASTER(std::int64_t, const_name("int"))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    if (PyBool_Check(source.ptr())) return false;
    make_caster<long long> number;
    if (!number.from_python(source, flags, cleanup)) return false;
    value = number.value;
    return true;
  }
  static handle from_cpp(std::int64_t number, rv_policy, cleanup_list*) noexcept {
    return PyLong_FromLongLong(number);
  }
};

template <>
struct type_caster<baregrad::python::Offset> {
  NB_TYPE_CASTER(baregrad::python::Offset, const_name("int"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return baregrad::python::offset_from(source.ptr(), value);
  }
  static handle from_cpp(const baregrad::python::Offset& offset, rv_policy,
                         cleanup_list*) noexcept {
    return PyLong_FromLongLong(offset.value);
  }
};

template <>
struct type_caster<baregrad::DType> {
  NB_TYPE_CASTER(baregrad::DType,
                 io_name("baregrad._core.DType | str | type", "baregrad._core.DType"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    const auto dtype = baregrad::python::dtype_from(source.ptr());
    if (dtype) value = *dtype;
    return dtype.has_value();
  }
  static handle from_cpp(baregrad::DType dtype, rv_policy, cleanup_list*) noexcept {
    return handle(baregrad::python::dtype_object(dtype)).inc_ref();
  }
};

template <>
struct type_caster<baregrad::Dims> {
  NB_TYPE_CASTER(baregrad::Dims, io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return baregrad::python::dims_from(source.ptr(), value);
  }
  static handle from_cpp(const baregrad::Dims& dims, rv_policy, cleanup_list*) noexcept {
    PyObject* tuple = PyTuple_New(dims.size());
    if (tuple == nullptr) return {};
    for (int i = 0; i < dims.size(); ++i) {
      PyObject* item = PyLong_FromLongLong(dims[i]);
      if (item == nullptr) {
        Py_DECREF(tuple);
        return {};
      }
      PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
  }
};

/// None means all axes.
template <>
struct type_caster<baregrad::Axes> {
  NB_TYPE_CASTER(baregrad::Axes, const_name("int | collections.abc.Sequence[int] | None"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (source.is_none()) return true;  // the default value
    baregrad::Dims axes;
    if (!baregrad::python::dims_from(source.ptr(), axes)) return false;
    value = baregrad::Axes(axes);
    return true;
  }
  static handle from_cpp(const baregrad::Axes&, rv_policy, cleanup_list*) noexcept { return {}; }
};

/// A tensor, borrowed for the length of the call, or a number.
template <>
struct type_caster<baregrad::Operand> {
  static constexpr auto Name = const_name("baregrad._core.Tensor | bool | int | float");
  template <typename T>
  using Cast = baregrad::Operand&;
  template <typename T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (const baregrad::Tensor* tensor = baregrad::python::tensor_in(source.ptr())) {
      value = baregrad::Operand(*tensor);
      return true;
    }
    baregrad::Scalar number;
    if (!baregrad::python::number_from(source.ptr(), number)) return false;
    value = baregrad::Operand(number);
    return true;
  }
  explicit operator baregrad::Operand*() { return &value; }
  explicit operator baregrad::Operand&() { return value; }

  baregrad::Operand value{0};
};

}  // namespace nanobind::detail
