// Nested Python sequences as tensors. One walk collects the numbers and checks that the nesting is
// regular; then the dtype is known and the numbers are stored.
#include <algorithm>
#include <string>
#include <vector>

#include "baregrad/ops.h"
#include "call.h"
#include "casters.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/rename.h"
#include "core/visit.h"
#include "interop_foreign.h"

namespace baregrad::python {
namespace {

/// Python's integers are unbounded: whether one fits is known only with the dtype.
bool fits(const Scalar& value, DType dtype) noexcept {
  if (!is_integer(dtype) || value.kind() == Scalar::Kind::Float) return true;
  const int bits = static_cast<int>(8 * itemsize(dtype)) - (is_signed_int(dtype) ? 1 : 0);
  const std::uint64_t highest = ~std::uint64_t{0} >> (64 - bits);
  if (value.kind() == Scalar::Kind::UInt) return value.to_uint64() <= highest;
  const std::int64_t number = value.to_int64();
  if (number >= 0) return static_cast<std::uint64_t>(number) <= highest;
  return is_signed_int(dtype) && number >= -static_cast<std::int64_t>(highest) - 1;
}

/// "[0][2]", or "" at the top.
std::string place(const Dims& path) {
  std::string out;
  for (const std::int64_t i : path) out += "[" + std::to_string(i) + "]";
  return out;
}

[[noreturn]] void throw_overflow(const char* who, const std::string& number, DType dtype) {
  PyErr_SetString(PyExc_OverflowError, message(who, ": ", number, " does not fit ", name(dtype),
                                               ": ask for a wider dtype, such as uint64 or float64")
                                           .c_str());
  throw nb::python_error();
}

std::string text_of(const Scalar& integer) {
  return integer.kind() == Scalar::Kind::UInt ? std::to_string(integer.to_uint64())
                                              : std::to_string(integer.to_int64());
}

void store(const Scalar& value, DType dtype, void* out, const char* who) {
  if (!fits(value, dtype)) throw_overflow(who, text_of(value), dtype);
  store_scalar(value, dtype, out, who);
}

/// An integer beyond 64 bits is kept as the nearest float, which only floats may use.
struct Number {
  Scalar value;
  bool beyond = false;
};

Number integer_from(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return {Scalar(static_cast<std::int64_t>(value))};
  if (overflow > 0) {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred() == nullptr) return {Scalar(static_cast<std::uint64_t>(wide))};
    PyErr_Clear();
  }
  const double rounded = PyLong_AsDouble(object);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return {Scalar(rounded), true};
}

bool plain_number(PyObject* object, Number& out) {
  if (PyFloat_CheckExact(object)) {
    out = {Scalar(PyFloat_AS_DOUBLE(object))};
  } else if (PyBool_Check(object)) {
    out = {Scalar(object == Py_True)};
  } else if (PyLong_Check(object)) {
    out = integer_from(object);
  } else {
    return false;
  }
  return true;
}

class SequenceReader {
 public:
  explicit SequenceReader(const Asked& asked) : asked_(asked) {}

  Tensor read(PyObject* sequence) {
    walk(sequence);
    const DType dtype = asked_.dtype ? *asked_.dtype : common_dtype();
    if (!beyond_.empty() && !is_floating(dtype)) throw_overflow(asked_.who, beyond_, dtype);
    return pieces_.empty() ? filled(dtype) : stacked(dtype);
  }

 private:
  /// An array or tensor among the elements, and which of them it is.
  struct Piece {
    std::size_t position;
    Tensor tensor;
  };

  void walk(PyObject* sequence) {
    // Any other sequence is read once, into a list.
    nb::object items = nb::borrow(sequence);
    if (!PyList_Check(sequence) && !PyTuple_Check(sequence)) {
      items = nb::steal(PySequence_List(sequence));
      if (!items.is_valid()) throw nb::python_error();
    }
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
    enter(size);
    path_.push_back(0);
    for (Py_ssize_t i = 0; i < size; ++i) {
      path_.back() = i;
      // An element's methods may have changed the list.
      if (PySequence_Fast_GET_SIZE(items.ptr()) != size) throw changed();
      visit(PySequence_Fast_GET_ITEM(items.ptr(), i));
    }
    path_.erase(path_.size() - 1);
  }

  void visit(PyObject* item) {
    Number number;
    if (plain_number(item, number)) return add(number, item);
    const nb::object held = nb::borrow(item);
    if (PyList_Check(item) || PyTuple_Check(item)) return walk(item);
    visit_other(held);
  }

  void visit_other(const nb::object& item) {
    if (const Tensor* tensor = tensor_in(item.ptr())) return add_tensor(*tensor);
    Scalar value;
    DType dtype{};
    if (!is_text(item.ptr())) {
      if (buffer_scalar(item.ptr(), value, dtype)) return add_strong(value, dtype);
      if (auto array = foreign_array(item, asked_.who)) {
        return add_tensor(adopt(std::move(*array), {asked_.who}));
      }
      if (is_sequence(item.ptr())) return walk(item.ptr());
      if (number_from(item.ptr(), value)) return add({value}, item.ptr());
    }
    throw DTypeError(message(asked_.who, ": ", type_text(item), " at ", place(path_),
                             " is no number, tensor or sequence of them"));
  }

  static bool is_text(PyObject* object) noexcept {
    return PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object);
  }

  /// All lists of a depth have the length of the first one.
  void enter(Py_ssize_t size) {
    const int depth = path_.size();
    if (depth < shape_.size()) {
      if (shape_[depth] != size) throw ragged(size);
    } else if (!values_.empty()) {
      throw misplaced("a sequence", "a number or an array");
    } else if (depth == kMaxDims) {
      throw ShapeError(message(asked_.who, ": the sequence is nested deeper than ", kMaxDims,
                               " levels, or holds itself"));
    } else {
      shape_.push_back(size);
    }
  }

  void add(const Number& number, PyObject* object) {
    add_leaf(number.value, Dims());
    if (number.beyond) {
      // str() of a subclass may run code that drops the caller's reference.
      if (beyond_.empty()) beyond_ = shown(nb::borrow(object));
      saw(Scalar::Kind::Int);
    } else {
      saw(number.value.kind());
    }
  }

  void saw(Scalar::Kind kind) noexcept { kinds_ |= 1u << static_cast<unsigned>(kind); }
  bool has_seen(Scalar::Kind kind) const noexcept {
    return (kinds_ >> static_cast<unsigned>(kind) & 1u) != 0;
  }

  void add_strong(const Scalar& value, DType dtype) {
    add_leaf(value, Dims());
    strong_ = strong_ ? promote(*strong_, dtype) : dtype;
  }

  void add_tensor(const Tensor& tensor) {
    if (!tensor.defined()) throw ValueError(message(asked_.who, ": an undefined tensor"));
    if (tensor.ndim() == 0 && !tensor.requires_grad()) {
      return add_strong(tensor.item(), tensor.dtype());
    }
    add_leaf(Scalar(), tensor.shape());
    strong_ = strong_ ? promote(*strong_, tensor.dtype()) : tensor.dtype();
    pieces_.push_back({values_.size() - 1, tensor});
  }

  void add_leaf(const Scalar& value, const Dims& shape) {
    if (values_.empty()) {
      inner_ = shape;
      values_.reserve(expected_count());
    } else if (!(inner_ == shape)) {
      throw ShapeError(message(asked_.who, ": ragged: the element at ", place(path_), " has shape ",
                               to_string(shape), ", those before it ", to_string(inner_)));
    }
    if (path_.size() != shape_.size()) throw misplaced("a number or an array", "a sequence");
    values_.push_back(value);
  }

  /// The product of the first length at each depth. Later lists may break it, hence the bound.
  std::size_t expected_count() const noexcept {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    std::int64_t count = 1;
    for (const std::int64_t size : shape_) count = std::min(size, kMost) * std::min(count, kMost);
    return static_cast<std::size_t>(std::min(count, kMost));
  }

  ShapeError ragged(Py_ssize_t size) const {
    return ShapeError(message(asked_.who, ": ragged: the sequence at ", place(path_), " has ", size,
                              " elements, those before it at this depth have ",
                              shape_[path_.size()]));
  }
  ShapeError misplaced(const char* found, const char* before) const {
    return ShapeError(message(asked_.who, ": ragged: ", found, " at ", place(path_), ", where ",
                              before, " stood before"));
  }
  ValueError changed() const {
    return ValueError(message(asked_.who, ": the sequence changed its length while it was read"));
  }

  DType common_dtype() const {
    const bool seen_bool = has_seen(Scalar::Kind::Bool);
    const bool seen_int = has_seen(Scalar::Kind::Int) || has_seen(Scalar::Kind::UInt);
    const bool seen_float = has_seen(Scalar::Kind::Float);
    if (strong_) {
      DType dtype = *strong_;
      if (seen_bool) dtype = weak_dtype(Scalar(true), dtype);
      if (seen_int) dtype = weak_dtype(Scalar(0), dtype);
      if (seen_float) dtype = weak_dtype(Scalar(0.0), dtype);
      return dtype;
    }
    if (seen_float) return kDefaultFloat;
    if (seen_int) return DType::Int64;
    return seen_bool ? DType::Bool : kDefaultFloat;
  }

  Tensor filled(DType dtype) const {
    Tensor out = Tensor::allocate(shape_, dtype, asked_.who);
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      T* at = static_cast<T*>(out.data_ptr());
      for (const Scalar& value : values_) {
        if constexpr (is_floating(dtype_of<T>)) {
          *at++ = static_cast<T>(value.to_double());
        } else {
          store(value, dtype_of<T>, at++, asked_.who);
        }
      }
    });
    return out;
  }

  /// Uses public ops, so that gradients flow to the tensors in the sequence.
  Tensor stacked(DType dtype) const {
    std::vector<Tensor> parts(values_.size());
    std::int64_t work = 0;
    for (const Piece& piece : pieces_) {
      parts[piece.position] = piece.tensor;
      work += piece.tensor.numel();
    }
    // Plain numbers go to the device of the tensors beside them.
    const Device device = pieces_.front().tensor.device();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].defined()) continue;
      parts[i] = Tensor::allocate({}, dtype, asked_.who);
      store(values_[i], dtype, parts[i].data_ptr(), asked_.who);
      parts[i] = to_device(parts[i], device);
    }
    Dims shape = shape_;
    for (const std::int64_t size : inner_) shape.push_back(size);
    return unlocked(work, [&] {
      for (Tensor& part : parts) part = astype(part, dtype, false);
      return in_name_of(asked_.who, [&] { return reshape(stack(parts), shape); });
    });
  }

  const Asked& asked_;
  Dims path_;   // the current position
  Dims shape_;  // of the nested sequences
  Dims inner_;  // shape of every element: [] for numbers
  std::vector<Scalar> values_;
  std::vector<Piece> pieces_;
  std::optional<DType> strong_;  // dtype of arrays and tensors; plain numbers adapt to it
  unsigned kinds_ = 0;           // of plain numbers: one bit per Scalar::Kind
  std::string beyond_;           // the first integer beyond 64 bits
};

}  // namespace

bool is_sequence(PyObject* object) noexcept {
  if (PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) return true;
  if (PyUnicode_Check(object) || PyDict_Check(object) || PyType_Check(object)) return false;
  return PySequence_Check(object) != 0;
}

Tensor from_sequence(nb::handle sequence, const Asked& asked) {
  return SequenceReader(asked).read(sequence.ptr());
}

Tensor from_number(nb::handle object, const Asked& asked) {
  Number number;
  if (!plain_number(object.ptr(), number) && !number_from(object.ptr(), number.value)) {
    throw DTypeError(
        message(asked.who, ": ", type_text(object), " is no number, array or sequence of them"));
  }
  const bool is_int = number.beyond || number.value.kind() == Scalar::Kind::UInt;
  const DType dtype = asked.dtype.value_or(is_int ? DType::Int64 : default_dtype(number.value));
  if (number.beyond && !is_floating(dtype)) {
    throw_overflow(asked.who, shown(object), dtype);
  }
  Tensor out = Tensor::allocate({}, dtype, asked.who);
  store(number.value, dtype, out.data_ptr(), asked.who);
  return out;
}

}  // namespace baregrad::python
