// Operators of baregrad.Tensor as type slots: Python calls them directly, which makes small ops
// cheap.
#include "tensor_slots.h"

#include <cstring>

#include "baregrad/ops.h"
#include "call.h"
#include "casters.h"
#include "core/history.h"
#include "errors.h"
#include "interop.h"
#include "tensor_index.h"

namespace baregrad::python {
namespace {

using Binary = Tensor (*)(const Operand&, const Operand&);
using Unary = Tensor (*)(const Tensor&);
using InPlace = const Tensor& (*)(const Tensor&, const Operand&);

PyObject* not_implemented() noexcept { return Py_NewRef(Py_NotImplemented); }

bool is_numpy_array(PyObject* object) noexcept {
  return std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") == 0;
}

/// An operand is neither a tensor nor a number. The other operand may support the operator. NumPy's
/// arrays do not (see __array_ufunc__), and Python's own error message would be misleading.
PyObject* refused(PyObject* a, PyObject* b) noexcept {
  if (!is_numpy_array(a) && !is_numpy_array(b)) return not_implemented();
  PyErr_Format(PyExc_TypeError,
               "unsupported operands %s and %s: arrays are not converted on the way; "
               "use baregrad.asarray(array) or tensor.numpy()",
               Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name);
  return nullptr;
}

PyObject* call_binary(Binary op, PyObject* a, PyObject* b) noexcept {
  try {
    Operand x(0);
    Operand y(0);
    if (!operand_from(a, x) || !operand_from(b, y)) return refused(a, b);
    return wrap(unlocked(work_of(x, y), [&] { return op(x, y); }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <Binary op>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return call_binary(op, a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? call_binary(&pow, a, b) : not_implemented();
}

PyObject* matrix_product(PyObject* a, PyObject* b) noexcept {
  const Tensor* x = tensor_in(a);
  const Tensor* y = tensor_in(b);
  if (x == nullptr || y == nullptr) return refused(a, b);
  try {
    return wrap(unlocked_if(is_long_product(*x, *y), [&] { return matmul(*x, *y); }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* call_unary(Unary op, PyObject* a) noexcept {
  try {
    const Tensor& x = initialised(a);
    return wrap(unlocked(x.numel(), [&] { return op(x); }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <Unary op>
PyObject* unary(PyObject* a) noexcept {
  return call_unary(op, a);
}

PyObject* call_in_place(InPlace op, PyObject* a, PyObject* b) noexcept {
  const Tensor* x = tensor_in(a);
  if (x == nullptr) return not_implemented();
  try {
    Operand y(0);
    if (!operand_from(b, y)) return refused(a, b);
    unlocked(work_of(*x, y), [&] { op(*x, y); });
    return Py_NewRef(a);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <InPlace op>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  return call_in_place(op, a, b);
}

PyObject* in_place_power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? call_in_place(&pow_, a, b) : not_implemented();
}

PyObject* compare(PyObject* a, PyObject* b, int how) noexcept {
  switch (how) {
    case Py_LT:
      return call_binary(&less, a, b);
    case Py_LE:
      return call_binary(&less_equal, a, b);
    case Py_EQ:
      return call_binary(&equal, a, b);
    case Py_NE:
      return call_binary(&not_equal, a, b);
    case Py_GT:
      return call_binary(&greater, a, b);
    default:
      return call_binary(&greater_equal, a, b);
  }
}

/// The only element.
template <class Convert>
PyObject* element(PyObject* a, Convert convert) noexcept {
  try {
    const Tensor& x = initialised(a);
    return convert(x, item_of(x));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int truth(PyObject* a) noexcept {
  try {
    return item_of(initialised(a)).to_bool() ? 1 : 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* as_float(PyObject* a) noexcept {
  return element(a,
                 [](const Tensor&, const Scalar& s) { return PyFloat_FromDouble(s.to_double()); });
}

PyObject* integer(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Float:
      return PyLong_FromDouble(s.to_double());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(s.to_uint64());
    default:
      return PyLong_FromLongLong(s.to_int64());
  }
}

PyObject* as_int(PyObject* a) noexcept {
  return element(a, [](const Tensor&, const Scalar& s) { return integer(s); });
}

PyObject* as_index(PyObject* a) noexcept {
  return element(a, [](const Tensor& x, const Scalar& s) -> PyObject* {
    if (s.kind() == Scalar::Kind::Float || s.kind() == Scalar::Kind::Bool) {
      PyErr_Format(PyExc_TypeError, "only integer tensors can be an index, got %s",
                   describe(x).c_str());
      return nullptr;
    }
    return integer(s);
  });
}

template <class F>
void* slot(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

/// A hash of the tensor's identity, not of its elements: two handles of one tensor have the same
/// hash.
Py_hash_t hash(PyObject* a) noexcept {
  try {
    const auto address = reinterpret_cast<std::uintptr_t>(History::identity(initialised(a)));
    // The low bits of an address are zero.
    const auto mixed = static_cast<Py_hash_t>((address >> 4) | (address << 60));
    return mixed == -1 ? -2 : mixed;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace

const Tensor& initialised(PyObject* object) {
  const Tensor* tensor = tensor_in(object);
  if (tensor == nullptr) nb::raise_type_error("this tensor was never initialised");
  return *tensor;
}

bool operand_from(PyObject* object, Operand& out) {
  if (const Tensor* tensor = tensor_in(object)) {
    out = Operand(*tensor);
    return true;
  }
  Scalar number;
  if (!number_from(object, number)) return false;
  out = Operand(number);
  return true;
}

bool is_long_product(const Tensor& a, const Tensor& b) noexcept {
  // The number of multiply-adds is at most numel(a) times the last size of b.
  const std::int64_t columns = b.ndim() > 1 ? b.shape().back() : 1;
  constexpr std::int64_t kLongProduct = 64 * 64 * 64;
  return a.numel() > kLongProduct || b.numel() > kLongProduct || a.numel() * columns > kLongProduct;
}

namespace {
// Initialised at load: a function-local static would have a lock.
PyType_Slot g_tensor_slots[] = {{Py_nb_add, slot(&binary<&add>)},
                                {Py_nb_subtract, slot(&binary<&subtract>)},
                                {Py_nb_multiply, slot(&binary<&multiply>)},
                                {Py_nb_true_divide, slot(&binary<&divide>)},
                                {Py_nb_floor_divide, slot(&binary<&floor_divide>)},
                                {Py_nb_remainder, slot(&binary<&remainder>)},
                                {Py_nb_power, slot(&power)},
                                {Py_nb_and, slot(&binary<&bitwise_and>)},
                                {Py_nb_or, slot(&binary<&bitwise_or>)},
                                {Py_nb_xor, slot(&binary<&bitwise_xor>)},
                                {Py_nb_lshift, slot(&binary<&bitwise_left_shift>)},
                                {Py_nb_rshift, slot(&binary<&bitwise_right_shift>)},
                                {Py_nb_matrix_multiply, slot(&matrix_product)},
                                {Py_nb_inplace_add, slot(&in_place<&add_>)},
                                {Py_nb_inplace_subtract, slot(&in_place<&subtract_>)},
                                {Py_nb_inplace_multiply, slot(&in_place<&multiply_>)},
                                {Py_nb_inplace_true_divide, slot(&in_place<&divide_>)},
                                {Py_nb_inplace_floor_divide, slot(&in_place<&floor_divide_>)},
                                {Py_nb_inplace_remainder, slot(&in_place<&remainder_>)},
                                {Py_nb_inplace_power, slot(&in_place_power)},
                                {Py_nb_inplace_and, slot(&in_place<&bitwise_and_>)},
                                {Py_nb_inplace_or, slot(&in_place<&bitwise_or_>)},
                                {Py_nb_inplace_xor, slot(&in_place<&bitwise_xor_>)},
                                {Py_nb_inplace_lshift, slot(&in_place<&bitwise_left_shift_>)},
                                {Py_nb_inplace_rshift, slot(&in_place<&bitwise_right_shift_>)},
                                {Py_nb_negative, slot(&unary<&negative>)},
                                {Py_nb_positive, slot(&unary<&positive>)},
                                {Py_nb_absolute, slot(&unary<&abs>)},
                                {Py_nb_invert, slot(&unary<&bitwise_invert>)},
                                {Py_nb_bool, slot(&truth)},
                                {Py_nb_int, slot(&as_int)},
                                {Py_nb_float, slot(&as_float)},
                                {Py_nb_index, slot(&as_index)},
                                {Py_tp_richcompare, slot(&compare)},
                                {Py_bf_getbuffer, slot(&tensor_getbuffer)},
                                {Py_bf_releasebuffer, slot(&tensor_releasebuffer)},
                                {Py_tp_hash, slot(&hash)},
                                {Py_tp_traverse, slot(&traverse_tensor)},
                                {Py_tp_clear, slot(&clear_tensor)},
                                {Py_tp_iter, slot(&tensor_iterator)},
                                {Py_mp_subscript, slot(&tensor_get_item)},
                                {Py_mp_ass_subscript, slot(&tensor_set_item)},
                                {Py_mp_length, slot(&tensor_length)},
                                {Py_sq_contains, slot(&tensor_contains)},
                                {0, nullptr}};
}  // namespace

PyType_Slot* tensor_slots() noexcept { return g_tensor_slots; }

}  // namespace baregrad::python
