// DLPack: capsules that pass memory from one array library to another, once.
#include <array>
#include <memory>

#include "baregrad/ops.h"
#include "call.h"
#include "casters.h"
#include "core/checked.h"
#include "core/message.h"
#include "dlpack.h"
#include "interop_foreign.h"

namespace baregrad::python {
namespace {

using dlpack::Legacy;
using dlpack::Versioned;

template <class... Parts>
nb::builtin_exception refused(const Parts&... parts) {
  return nb::buffer_error(message(parts...).c_str());
}

// ---- Export

dlpack::DataType type_of(DType dtype) noexcept {
  const auto bits = static_cast<std::uint8_t>(8 * itemsize(dtype));
  if (dtype == DType::BFloat16) return {dlpack::kBfloat, bits, 1};
  if (is_bool(dtype)) return {dlpack::kBool, bits, 1};
  if (is_floating(dtype)) return {dlpack::kFloat, bits, 1};
  return {is_signed_int(dtype) ? dlpack::kInt : dlpack::kUInt, bits, 1};
}

/// The exported structure, with the tensor that it keeps alive.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::array<std::int64_t, kMaxDims> shape{};
  std::array<std::int64_t, kMaxDims> strides{};
};

template <class Managed>
void delete_export(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

/// A capsule that was never consumed still owns its contents.
template <class Managed>
void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::kName) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
nb::object make_capsule(const Tensor& x, std::uint64_t flags) {
  auto out = std::make_unique<Exported<Managed>>();
  out->tensor = x.detach();  // keeps these elements alive, even if x gets others
  std::copy_n(x.shape().begin(), x.ndim(), out->shape.begin());
  std::copy_n(x.strides().begin(), x.ndim(), out->strides.begin());
  Managed& managed = out->managed;
  managed.array = {x.data_ptr(),      {dlpack::kCpu, 0},   x.ndim(), type_of(x.dtype()),
                   out->shape.data(), out->strides.data(), 0};
  managed.context = out.get();
  managed.deleter = &delete_export<Managed>;
  if constexpr (std::is_same_v<Managed, Versioned>) {
    managed.version = dlpack::kVersion;
    managed.flags = flags;
  }
  nb::object capsule =
      nb::steal(PyCapsule_New(&managed, Managed::kName, &destroy_capsule<Managed>));
  if (!capsule.is_valid()) throw nb::python_error();
  static_cast<void>(out.release());
  return capsule;
}

/// The first of a pair of integers, (major, minor) or (type, id).
std::int64_t first_of_pair(nb::handle pair, const char* what) {
  Dims numbers;
  if (!dims_from(pair.ptr(), numbers) || numbers.size() != 2) {
    throw DTypeError(message("__dlpack__: ", what, " is a pair of integers"));
  }
  return numbers[0];
}

// ---- Import

std::optional<DType> dtype_of_code(const dlpack::DataType& type) noexcept {
  if (type.lanes != 1 || type.bits % 8 != 0) return std::nullopt;
  const std::size_t width = type.bits / 8;
  switch (type.code) {
    case dlpack::kInt:
      return dtype_of_kind('i', width);
    case dlpack::kUInt:
      return dtype_of_kind('u', width);
    case dlpack::kFloat:
      return dtype_of_kind('f', width);
    case dlpack::kBool:
      return dtype_of_kind('b', width);
    case dlpack::kBfloat:
      return width == 2 ? std::optional(DType::BFloat16) : std::nullopt;
    default:
      return std::nullopt;
  }
}

void check_header(const dlpack::Array& array, const char* who) {
  if (array.device.type != dlpack::kCpu) {
    throw refused(who, ": the memory is on a device of type ", array.device.type,
                  "; only the CPU's (1) can be shared");
  }
  if (array.ndim < 0 || array.ndim > kMaxDims || (array.ndim > 0 && array.shape == nullptr)) {
    throw refused(who, ": ", array.ndim, " axes, or a shape that is missing");
  }
}

ForeignArray describe_array(const dlpack::Array& array, const char* who) {
  check_header(array, who);
  const std::optional<DType> dtype = dtype_of_code(array.dtype);
  if (!dtype) {
    throw refused(who, ": no dtype for elements of code ", static_cast<int>(array.dtype.code), ", ",
                  static_cast<int>(array.dtype.bits), " bits and ", array.dtype.lanes, " lanes");
  }
  ForeignArray out;
  out.dtype = *dtype;
  for (int i = 0; i < array.ndim; ++i) out.shape.push_back(array.shape[i]);
  const std::int64_t numel = checked_numel(out.shape, *dtype, who);
  if (numel > 0 && array.data == nullptr) throw refused(who, ": a null pointer to elements");
  if (array.strides == nullptr) out.strides = contiguous_strides(out.shape);
  const auto width = static_cast<std::int64_t>(itemsize(*dtype));
  for (int i = 0; i < array.ndim; ++i) {
    if (array.strides != nullptr) out.strides.push_back(array.strides[i]);
    out.strides[i] = numel > 0 ? checked_mul(out.strides[i], width, who) : 0;
  }
  if (numel > 0) out.data = static_cast<char*>(array.data) + array.byte_offset;
  return out;
}

void check_version(const Legacy&, const char*) noexcept {}
void check_version(const Versioned& managed, const char* who) {
  if (managed.version.major == dlpack::kVersion.major) return;
  throw refused(who, ": a capsule of DLPack ", managed.version.major, ".", managed.version.minor,
                "; version 1 is understood");
}

bool is_read_only(const Legacy&) noexcept { return false; }
bool is_read_only(const Versioned& managed) noexcept {
  return (managed.flags & dlpack::kReadOnly) != 0;
}

/// All checks come before the capsule is consumed: a refused capsule still owns its memory.
template <class Managed>
ForeignArray take(PyObject* capsule, const char* who) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
  if (managed == nullptr) throw nb::python_error();
  check_version(*managed, who);
  ForeignArray out = describe_array(managed->array, who);
  out.read_only = is_read_only(*managed);
  // Empty until the capsule is renamed; then it owns the memory.
  const auto owner =
      std::make_shared<std::unique_ptr<Managed, void (*)(Managed*)>>(nullptr, [](Managed* taken) {
        if (taken->deleter != nullptr) taken->deleter(taken);
      });
  out.release = [owner](void*) {};
  if (PyCapsule_SetName(capsule, Managed::kUsedName) != 0) throw nb::python_error();
  owner->reset(managed);
  return out;
}

ForeignArray from_capsule(PyObject* capsule, const char* who) {
  if (PyCapsule_IsValid(capsule, Versioned::kName) != 0) return take<Versioned>(capsule, who);
  if (PyCapsule_IsValid(capsule, Legacy::kName) != 0) return take<Legacy>(capsule, who);
  const char* found = PyCapsule_GetName(capsule);
  PyErr_Clear();
  throw refused(who, ": a capsule named '", found != nullptr ? found : "", "' is no tensor to take",
                " (\"used_\" says that somebody did already)");
}

bool is_on_cpu(nb::handle object, bool copies_across, const char* who) {
  const nb::object device = object.attr("__dlpack_device__")();
  const std::int64_t type = first_of_pair(device, "the result of __dlpack_device__");
  if (type == dlpack::kCpu || copies_across) return type == dlpack::kCpu;
  throw refused(who, ": ", type_text(object), " is on a device of type ", type,
                "; only the CPU's (1) can be shared: copy it there first, or use device='cpu'");
}

nb::object ask_for_capsule(nb::handle object, std::optional<bool> copy, bool copies_across) {
  const nb::object method = object.attr("__dlpack__");
  nb::dict how;
  how["max_version"] = nb::make_tuple(dlpack::kVersion.major, dlpack::kVersion.minor);
  // If a copy is wanted, it is made here, once. The producer only needs to know that no copy is
  // allowed.
  if (copy == false) how["copy"] = false;
  if (copies_across) {
    how["dl_device"] = nb::make_tuple(static_cast<int>(dlpack::kCpu), 0);
    return method(**how);
  }
  try {
    return method(**how);
  } catch (nb::python_error& e) {
    // Producers from before version 1 know neither argument.
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return method();
}

}  // namespace

ForeignArray from_dlpack(nb::handle object, const char* who, std::optional<bool> copy,
                         bool copies_across) {
  if (PyCapsule_CheckExact(object.ptr()) != 0) return from_capsule(object.ptr(), who);
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__")) {
    throw DTypeError(message(who, ": ", type_text(object),
                             " has no __dlpack__ and __dlpack_device__: use asarray"));
  }
  const bool is_here = is_on_cpu(object, copies_across, who);
  const nb::object capsule = ask_for_capsule(object, copy, !is_here);
  if (PyCapsule_CheckExact(capsule.ptr()) == 0) {
    throw DTypeError(message(who, ": __dlpack__ of ", type_text(object), " gave ",
                             type_text(capsule), ", not a capsule"));
  }
  return from_capsule(capsule.ptr(), who);
}

nb::tuple dlpack_device(const Tensor& x) {
  const Device device = x.device();
  const int type = device.is_cpu()                   ? dlpack::kCpu
                   : device.type == DeviceType::Cuda ? dlpack::kCuda
                                                     : dlpack::kExtension;
  return nb::make_tuple(type, static_cast<int>(device.index));
}

nb::object to_dlpack(const Tensor& x, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, std::optional<bool> copy) {
  if (!stream.is_none()) throw ValueError("__dlpack__: on the CPU there is no stream but None");
  if (!dl_device.is_none() && first_of_pair(dl_device, "dl_device") != dlpack::kCpu) {
    throw refused("__dlpack__: ", describe(x), " can only go to the CPU, dl_device=(1, 0)");
  }
  if (x.requires_grad()) {
    throw refused("__dlpack__: ", describe(x), " requires a gradient: use x.detach()");
  }
  const bool moves = !x.device().is_cpu();
  if (moves && dl_device.is_none()) {
    throw refused("__dlpack__: ", describe(x), " is on ", to_string(x.device()),
                  ", whose memory is not shared: use x.cpu(), or ask for a copy with "
                  "dl_device=(1, 0)");
  }
  if (moves && copy == false) {
    throw refused("__dlpack__: copy=False, but ", describe(x), " has to be copied from ",
                  to_string(x.device()));
  }
  const bool copies = moves || copy.value_or(false);
  const Tensor out = copies ? moved(x, x.dtype(), Device(), true) : x;
  const bool versioned = !max_version.is_none() && first_of_pair(max_version, "max_version") >= 1;
  return versioned ? make_capsule<Versioned>(out, copies ? dlpack::kIsCopied : 0)
                   : make_capsule<Legacy>(out, 0);
}

}  // namespace baregrad::python
