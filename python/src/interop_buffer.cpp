// Python's buffer protocol. Input: bytes, bytearray, array.array, memoryview and NumPy arrays.
// Output: tensors.
#include <algorithm>
#include <array>
#include <memory>

#include "baregrad/ops.h"
#include "casters.h"
#include "core/message.h"
#include "errors.h"
#include "interop_foreign.h"
#include "python_owner.h"

namespace baregrad::python {
namespace {

// ---- Export of tensors

/// The codes of Python's struct module, in the order of DType. bfloat16 has none.
constexpr const char* kLong = sizeof(long) == 8 ? "l" : "q";
constexpr const char* kULong = sizeof(long) == 8 ? "L" : "Q";
constexpr std::array<const char*, kNumDTypes> kFormats = {
    "?", "b", "h", "i", kLong, "B", "H", "I", kULong, "e", nullptr, "f", "d"};

/// Owns the data of a view while it is in use.
struct Export {
  Tensor tensor;
  std::array<Py_ssize_t, kMaxDims> shape;
  std::array<Py_ssize_t, kMaxDims> strides;  // bytes
};

bool is_column_major(const Tensor& x) noexcept {
  Layout turned = x.layout();
  std::reverse(turned.shape.begin(), turned.shape.end());
  std::reverse(turned.strides.begin(), turned.strides.end());
  return turned.is_contiguous();
}

/// Throws when the flags ask for an element order that the tensor does not have.
void check_order(const Tensor& x, int flags) {
  const auto wants = [flags](int flag) { return (flags & flag) == flag; };
  const bool rows = x.is_contiguous();
  bool fits = true;
  if (wants(PyBUF_C_CONTIGUOUS) || !wants(PyBUF_STRIDES)) {
    fits = rows;
  } else if (wants(PyBUF_F_CONTIGUOUS)) {
    fits = is_column_major(x);
  } else if (wants(PyBUF_ANY_CONTIGUOUS)) {
    fits = rows || is_column_major(x);
  }
  if (fits) return;
  throw nb::buffer_error(message("buffer: ", describe(x), " with strides ", to_string(x.strides()),
                                 " does not lie in the order asked for: use x.contiguous()")
                             .c_str());
}

void fill_view(PyObject* self, const Tensor& x, int flags, Py_buffer* view) {
  if (!x.device().is_cpu()) {
    throw nb::buffer_error(message("buffer: ", describe(x), " is on ", to_string(x.device()),
                                   ", whose memory Python cannot read: use x.cpu()")
                               .c_str());
  }
  if (x.requires_grad()) {
    throw nb::buffer_error(
        message("buffer: ", describe(x), " requires a gradient: use x.detach()").c_str());
  }
  const char* format = kFormats[static_cast<std::size_t>(x.dtype())];
  if (format == nullptr) {
    throw nb::buffer_error(
        "buffer: the protocol has no code for bfloat16: use DLPack or x.numpy()");
  }
  check_order(x, flags);
  // Keeps these elements alive, even if x gets others.
  auto exported = std::make_unique<Export>(Export{x.detach(), {}, {}});
  const auto width = static_cast<Py_ssize_t>(itemsize(x.dtype()));
  for (int i = 0; i < x.ndim(); ++i) {
    exported->shape[static_cast<std::size_t>(i)] = x.shape()[i];
    exported->strides[static_cast<std::size_t>(i)] = x.strides()[i] * width;
  }
  const bool has_shape = (flags & PyBUF_ND) == PyBUF_ND;
  const bool has_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  view->buf = x.data_ptr();
  view->len = static_cast<Py_ssize_t>(x.nbytes());
  view->readonly = 0;
  view->itemsize = width;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  view->ndim = has_shape ? x.ndim() : 1;
  view->shape = has_shape ? exported->shape.data() : nullptr;
  view->strides = has_strides ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = Py_NewRef(self);
}

// ---- Import

/// The kind of a one-element format, and whether its byte order is swapped. The width is that of
/// the buffer: some exporters (ctypes) use standard codes for native widths.
struct Format {
  char kind = 0;  // 0: not a number that a tensor can hold
  bool swapped = false;
};

Format parse_format(const char* text) noexcept {
  if (text == nullptr) return {'u', false};
  Format out;
  if (*text == '>' || *text == '!') out.swapped = true;
  if (*text == '@' || *text == '=' || *text == '<' || *text == '>' || *text == '!') ++text;
  const char code = *text;
  if (code == 0 || text[1] != 0) return {};
  switch (code) {
    case '?':
      out.kind = 'b';
      break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      out.kind = 'i';
      break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      out.kind = 'u';
      break;
    case 'e':
    case 'f':
    case 'd':
      out.kind = 'f';
      break;
    default:
      break;
  }
  return out;
}

std::optional<DType> dtype_of_view(const Py_buffer& view, Format& format) noexcept {
  format = parse_format(view.format);
  if (format.kind == 0) return std::nullopt;
  const auto width = static_cast<std::size_t>(view.itemsize);
  if (width == 1) format.swapped = false;
  return dtype_of_kind(format.kind, width);
}

}  // namespace

int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  const Tensor* x = tensor_in(self);
  if (x == nullptr || !x->defined()) {
    PyErr_SetString(PyExc_BufferError, "buffer: this tensor was never initialised");
    return -1;
  }
  try {
    fill_view(self, *x, flags, view);
    return 0;
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
  } catch (...) {
    set_python_error();
  }
  return -1;
}

void tensor_releasebuffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Export*>(view->internal);
}

ForeignArray from_buffer(nb::handle object, const char* who) {
  // The memoryview owns the buffer and releases it when it is destroyed.
  nb::object memory = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!memory.is_valid()) throw nb::python_error();
  const Py_buffer& view = *PyMemoryView_GET_BUFFER(memory.ptr());
  Format format;
  const std::optional<DType> dtype = dtype_of_view(view, format);
  if (!dtype) {
    throw DTypeError(message(who, ": no dtype for the buffer of ", type_text(object),
                             " with format '", view.format, "' and ", view.itemsize,
                             " bytes per element"));
  }
  if (view.suboffsets != nullptr) {
    throw ValueError(message(who, ": the buffer of ", type_text(object), " is not one block"));
  }
  ForeignArray out;
  out.data = view.buf;
  out.dtype = *dtype;
  out.read_only = view.readonly != 0;
  out.swapped = format.swapped;
  for (int i = 0; i < view.ndim; ++i) {
    out.shape.push_back(view.shape[i]);
    out.strides.push_back(view.strides[i]);
  }
  out.release = [owner = PythonOwner(std::move(memory))](void*) {};
  return out;
}

bool buffer_scalar(PyObject* object, Scalar& value, DType& dtype) {
  if (PyObject_CheckBuffer(object) == 0) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  Format format;
  const std::optional<DType> found = dtype_of_view(view, format);
  const bool fits = view.ndim == 0 && found && !format.swapped;
  if (fits) {
    dtype = *found;
    value = load_scalar(view.buf, dtype);
  }
  PyBuffer_Release(&view);
  return fits;
}

}  // namespace baregrad::python
