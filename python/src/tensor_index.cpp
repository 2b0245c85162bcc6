// x[...]: converts Python's index to the engine's. Integers and slices, by far the most frequent,
// become views directly; all other forms follow NumPy's rules in the engine.
#include "tensor_index.h"

#include <optional>
#include <string>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "errors.h"
#include "interop.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

/// IndexError for integers beyond 64 bits; an error of __index__ is passed on.
std::int64_t position_from(PyObject* object) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

Slice slice_from(PyObject* object) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(object, &start, &stop, &step) < 0) throw nb::python_error();
  return {start, stop, step};
}

bool is_whole(PyObject* slice) noexcept {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  return s->start == Py_None && s->stop == Py_None && s->step == Py_None;
}

[[noreturn]] void throw_no_index(PyObject* object) {
  PyErr_Format(PyExc_IndexError,
               "index: only integers, slices, ..., None, and integer or bool tensors, arrays and "
               "lists can be indices, not %s",
               Py_TYPE(object)->tp_name);
  throw nb::python_error();
}

/// Lists, NumPy arrays and bools. An empty list has no dtype: it selects nothing.
Index array_index(PyObject* object) {
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyFloat_Check(object) ||
      PyDict_Check(object)) {
    throw_no_index(object);
  }
  nb::object held = nb::borrow(object);
  // Tuples within tuples and ranges are sequences of positions too.
  if (PyTuple_Check(object) || PyRange_Check(object)) {
    held = nb::steal(PySequence_List(object));
    if (!held.is_valid()) throw nb::python_error();
  }
  const Tensor tensor = tensor_from(held, {"index"});
  if (tensor.numel() == 0 && is_floating(tensor.dtype()) && PyList_Check(held.ptr())) {
    return astype(tensor, DType::Int64);
  }
  if (is_floating(tensor.dtype())) {
    throw IndexError("index: " + describe(tensor) + " is no index: integers and bools are");
  }
  return tensor;
}

Index index_from(PyObject* object) {
  if (PyLong_CheckExact(object)) return position_from(object);
  if (PySlice_Check(object)) return slice_from(object);
  if (object == Py_None) return NewAxis{};
  if (object == Py_Ellipsis) return Ellipsis{};
  if (const Tensor* tensor = tensor_in(object)) return *tensor;
  if (PyBool_Check(object)) return Tensor::scalar(object == Py_True);
  // NumPy's arrays have __index__ too; its integers are not sequences.
  if (PyIndex_Check(object) && !PySequence_Check(object)) return position_from(object);
  return array_index(object);
}

std::vector<Index> indices_from(PyObject* key) {
  std::vector<Index> out;
  if (!PyTuple_Check(key)) {
    out.push_back(index_from(key));
    return out;
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(key);
  out.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) out.push_back(index_from(PyTuple_GET_ITEM(key, i)));
  return out;
}

bool in_range(std::int64_t position, std::int64_t size) noexcept {
  return position >= -size && position < size;
}

/// x[key] where key is an integer or a slice for axis `axis`, which is advanced by a slice. False
/// for other keys, and out of range: the general path raises the error.
bool pick(Tensor& x, int& axis, PyObject* key) {
  if (axis >= x.ndim()) return false;
  if (PyLong_CheckExact(key)) {
    const std::int64_t position = position_from(key);
    if (!in_range(position, x.shape()[axis])) return false;
    x = select(x, axis, position);
    return true;
  }
  if (!PySlice_Check(key)) return false;
  if (!is_whole(key)) x = slice(x, axis, slice_from(key));
  ++axis;
  return true;
}

std::optional<Tensor> pick_simple(const Tensor& x, PyObject* key) {
  Tensor out = x;
  int axis = 0;
  if (!PyTuple_Check(key)) {
    if (!pick(out, axis, key)) return std::nullopt;
  } else {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      if (!pick(out, axis, PyTuple_GET_ITEM(key, i))) return std::nullopt;
    }
  }
  // Only full slices: the result is still a new view.
  if (out.is_same(x)) out = alias(x);
  return out;
}

bool has_tensor(const std::vector<Index>& indices) {
  for (const Index& index : indices) {
    if (std::holds_alternative<Tensor>(index.value())) return true;
  }
  return false;
}

/// A list or an array to be written into x. Python floats are converted to x's dtype directly.
Tensor source_from(PyObject* value, const Tensor& x) {
  Asked asked{"index_put"};
  const bool list = PyList_Check(value) || PyTuple_Check(value);
  if (list && is_floating(x.dtype())) asked.dtype = x.dtype();
  return tensor_on(value, asked, x.device());
}

/// x[key] = number where key consists of integers and slices. A float for an integer tensor takes
/// the general path; this one would truncate it.
bool put_simple(const Tensor& x, PyObject* key, const Scalar& number) {
  if (number.kind() == Scalar::Kind::Float && !is_floating(x.dtype())) return false;
  const std::optional<Tensor> part = pick_simple(x, key);
  if (part) unlocked(part->numel(), [&] { fill_(*part, number); });
  return part.has_value();
}

void put(const Tensor& x, PyObject* key, PyObject* value) {
  Scalar number;
  const bool is_number = number_from(value, number);
  if (is_number && put_simple(x, key, number)) return;
  const std::vector<Index> indices = indices_from(key);
  if (const Tensor* tensor = tensor_in(value)) {
    const Tensor source = *tensor;
    unlocked(x.numel() + source.numel(), [&] { index_put_(x, indices, source); });
  } else if (is_number) {
    unlocked(x.numel(), [&] { index_put_(x, indices, number); });
  } else {
    const Tensor source = source_from(value, x);
    unlocked(x.numel() + source.numel(), [&] { index_put_(x, indices, source); });
  }
}

/// Iterates over the slices along the first axis.
struct TensorIterator {
  Tensor tensor;
  std::int64_t next = 0;
};

}  // namespace

PyObject* tensor_get_item(PyObject* self, PyObject* key) noexcept {
  try {
    // Holds its own handle: __index__ of a key may drop the caller's.
    const Tensor x = initialised(self);
    if (std::optional<Tensor> simple = pick_simple(x, key)) return wrap(std::move(*simple));
    const std::vector<Index> indices = indices_from(key);
    if (!has_tensor(indices)) return wrap(index(x, indices));
    return wrap(unlocked(x.numel(), [&] { return index(x, indices); }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int tensor_set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
  try {
    const Tensor x = initialised(self);
    if (value == nullptr) nb::raise_type_error("elements of a tensor cannot be deleted");
    put(x, key, value);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

Py_ssize_t tensor_length(PyObject* self) noexcept {
  try {
    const Tensor& x = initialised(self);
    if (x.ndim() == 0) nb::raise_type_error("len() of a 0-d tensor");
    return x.shape()[0];
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* tensor_iterator(PyObject* self) noexcept {
  try {
    const Tensor& x = initialised(self);
    if (x.ndim() == 0) nb::raise_type_error("iteration over a 0-d tensor");
    return nb::cast(TensorIterator{x}).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int tensor_contains(PyObject* self, PyObject* value) noexcept {
  try {
    const Tensor x = initialised(self);
    Operand wanted(0);
    if (!operand_from(value, wanted)) {
      nb::raise_type_error("in: a tensor contains numbers, not %s", Py_TYPE(value)->tp_name);
    }
    return unlocked(work_of(x, wanted), [&] { return any(equal(x, wanted)).item<bool>(); }) ? 1 : 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void bind_tensor_iterator(nb::module_& m) {
  nb::class_<TensorIterator>(m, "_TensorIterator")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", [](TensorIterator& it) {
        if (it.next >= it.tensor.shape()[0]) throw nb::stop_iteration();
        return select(it.tensor, 0, it.next++);
      });
}

}  // namespace baregrad::python
