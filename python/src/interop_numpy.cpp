// NumPy: its array interface in both directions, and arrays on a tensor's memory. The module numpy
// is imported only when a NumPy array is asked for.
#include <bit>
#include <string>
#include <string_view>

#include "baregrad/ops.h"
#include "casters.h"
#include "core/checked.h"
#include "core/message.h"
#include "interop_foreign.h"
#include "python_owner.h"

namespace baregrad::python {
namespace {

constexpr bool kLittle = std::endian::native == std::endian::little;

/// "<f4": order, kind and width.
std::string typestr_of(DType dtype) {
  const std::size_t width = itemsize(dtype);
  const char order = width == 1 ? '|' : kLittle ? '<' : '>';
  return message(order, kind_of(dtype), width);
}

/// ml_dtypes' bfloat16 appears in the interface as two opaque bytes; only the dtype's name tells.
bool is_bfloat16(nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object text = nb::getattr(dtype, "name", nb::none());
  return PyUnicode_Check(text.ptr()) != 0 &&
         PyUnicode_CompareWithASCIIString(text.ptr(), "bfloat16") == 0;
}

std::optional<DType> parse_typestr(std::string_view text, nb::handle object, bool& swapped) {
  if (text.size() != 3) return std::nullopt;
  swapped = text[0] == (kLittle ? '>' : '<');
  if (text.substr(1) == "V2") {
    return is_bfloat16(object) ? std::optional(DType::BFloat16) : std::nullopt;
  }
  return dtype_of_kind(text[1], static_cast<std::size_t>(text[2] - '0'));
}

/// Reads the interface's dictionary. Any object may define it, so every entry is checked.
class Interface {
 public:
  Interface(nb::handle object, const char* who) : object_(object), who_(who) {
    const nb::object found = object.attr("__array_interface__");
    if (PyDict_Check(found.ptr()) == 0) throw wrong("__array_interface__", "is no dictionary");
    entries_ = nb::borrow<nb::dict>(found);
  }

  ForeignArray read() {
    ForeignArray out;
    read_dtype(out);
    out.shape = integers("shape", needed("shape"));
    for (const std::int64_t size : out.shape) {
      if (size < 0) throw wrong("shape", "has a negative size");
    }
    const std::int64_t numel = checked_numel(out.shape, out.dtype, who_);
    read_strides(out);
    if (!optional("mask").is_none()) throw wrong("mask", "cannot be kept by a tensor");
    read_data(out, numel);
    return out;
  }

 private:
  ValueError wrong(const char* key, const char* what) const {
    return ValueError(
        message(who_, ": '", key, "' in the array interface of ", type_text(object_), " ", what));
  }

  nb::object optional(const char* key) const {
    const nb::str text(key);
    PyObject* found = PyDict_GetItemWithError(entries_.ptr(), text.ptr());
    if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    return found == nullptr ? nb::none() : nb::borrow(found);
  }
  nb::object needed(const char* key) const {
    nb::object found = optional(key);
    if (found.is_none()) throw wrong(key, "is missing");
    return found;
  }

  Dims integers(const char* key, const nb::object& value) const {
    Dims out;
    if (PyTuple_Check(value.ptr()) == 0 || !dims_from(value.ptr(), out)) {
      throw wrong(key, "is no tuple of integers");
    }
    return out;
  }

  void read_dtype(ForeignArray& out) const {
    const nb::object text = needed("typestr");
    if (!nb::isinstance<nb::str>(text)) throw wrong("typestr", "is no string");
    const auto code = nb::cast<std::string_view>(text);
    const std::optional<DType> dtype = parse_typestr(code, object_, out.swapped);
    if (!dtype) {
      throw DTypeError(
          message(who_, ": no dtype for '", code, "', which ", type_text(object_), " holds"));
    }
    out.dtype = *dtype;
  }

  void read_strides(ForeignArray& out) const {
    const nb::object value = optional("strides");
    if (!value.is_none()) {
      out.strides = integers("strides", value);
      if (out.strides.size() != out.shape.size()) throw wrong("strides", "is not as long as shape");
      return;
    }
    out.strides = contiguous_strides(out.shape);
    const auto width = static_cast<std::int64_t>(itemsize(out.dtype));
    for (std::int64_t& stride : out.strides) stride *= width;
  }

  void read_data(ForeignArray& out, std::int64_t numel) {
    const nb::object data = needed("data");
    if (PyTuple_Check(data.ptr()) == 0) return read_buffer(out, data, numel);
    if (PyTuple_GET_SIZE(data.ptr()) != 2) throw wrong("data", "is no pair");
    out.data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data.ptr(), 0));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    const int read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data.ptr(), 1));
    if (read_only < 0) throw nb::python_error();
    if (out.data == nullptr && numel > 0) throw wrong("data", "is a null pointer");
    out.read_only = read_only != 0;
    out.release = [owner = PythonOwner(nb::borrow(object_))](void*) {};
  }

  /// The data may also be an object with a buffer. Then its length is known.
  void read_buffer(ForeignArray& out, const nb::object& data, std::int64_t numel) const {
    ForeignArray whole = from_buffer(data, who_);
    if (!Layout{whole.shape, element_strides(whole)}.is_contiguous()) {
      throw wrong("data", "is a buffer with gaps");
    }
    const nb::object start = optional("offset");
    const std::int64_t offset = start.is_none() ? 0 : nb::cast<std::int64_t>(start);
    const std::int64_t bytes = checked_numel(whole.shape, whole.dtype, who_) *
                               static_cast<std::int64_t>(itemsize(whole.dtype));
    std::int64_t low = offset;
    std::int64_t high = checked_add(offset, static_cast<std::int64_t>(itemsize(out.dtype)), who_);
    for (int i = 0; numel > 0 && i < out.shape.size(); ++i) {
      const std::int64_t reach = checked_mul(out.shape[i] - 1, out.strides[i], who_);
      std::int64_t& end = reach < 0 ? low : high;
      end = checked_add(end, reach, who_);
    }
    if (numel > 0 && (low < 0 || high > bytes)) throw wrong("data", "is too short for the shape");
    out.data = static_cast<char*>(whole.data) + (numel > 0 ? offset : 0);
    out.read_only = whole.read_only;
    out.release = std::move(whole.release);
  }

  static Dims element_strides(const ForeignArray& array) {
    Dims out = array.strides;
    for (std::int64_t& stride : out) stride /= static_cast<std::int64_t>(itemsize(array.dtype));
    return out;
  }

  nb::handle object_;
  const char* who_;
  nb::dict entries_;
};

/// numpy.asarray of the tensor. The function is kept for the life of the process, because the
/// lookup takes longer than the call. Not a static initialiser: an import may release the lock.
nb::object shared_array(Tensor&& x) {
  static PyObject* asarray = nullptr;
  if (asarray == nullptr) {
    asarray = nb::object(nb::module_::import_("numpy").attr("asarray")).release().ptr();
  }
  return nb::handle(asarray)(nb::steal(wrap(std::move(x))));
}

/// NumPy supports bfloat16 only through the package ml_dtypes: the bits are shared, then
/// reinterpreted.
nb::object bfloat16_array(const Tensor& x) {
  nb::object dtype;
  try {
    dtype = nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError)) throw;
    throw DTypeError(message("numpy: ", describe(x),
                             " needs the package ml_dtypes, which gives NumPy a bfloat16; or "
                             "convert first: x.to(baregrad.float32).numpy()"));
  }
  return shared_array(Tensor::view_of(x.storage(), DType::UInt16, x.layout(), "numpy"))
      .attr("view")(dtype);
}

}  // namespace

ForeignArray from_array_interface(nb::handle object, const char* who) {
  return Interface(object, who).read();
}

nb::dict array_interface(const Tensor& x) {
  // AttributeError makes the caller fall back to __array__, which supports these cases.
  if (x.requires_grad() || x.dtype() == DType::BFloat16 || !x.device().is_cpu()) {
    throw nb::attribute_error("__array_interface__");
  }
  Dims strides = x.strides();
  for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(itemsize(x.dtype()));
  nb::dict out;
  out["shape"] = nb::cast(x.shape());
  out["typestr"] = typestr_of(x.dtype());
  out["data"] = nb::make_tuple(nb::steal(PyLong_FromVoidPtr(x.data_ptr())), false);
  out["strides"] = nb::cast(strides);
  out["version"] = 3;
  return out;
}

nb::object to_numpy(const Tensor& x) {
  if (!x.device().is_cpu()) {
    throw DTypeError(message("numpy: ", describe(x), " is on ", to_string(x.device()),
                             ", whose memory NumPy cannot read: copy it with x.cpu() first"));
  }
  require_no_grad(x, "numpy");
  if (x.dtype() == DType::BFloat16) return bfloat16_array(x);
  return shared_array(x.detach());
}

}  // namespace baregrad::python
