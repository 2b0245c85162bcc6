// Data type functions of the array API, and its inspection of the namespace.
#include <cmath>
#include <string>
#include <string_view>
#include <variant>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"
#include "interop.h"

namespace baregrad::python {
namespace {

/// The dtype itself, or that of a tensor.
DType dtype_of_either(nb::handle object, const char* who) {
  if (const Tensor* tensor = tensor_in(object.ptr())) return tensor->dtype();
  if (const auto dtype = dtype_from(object.ptr())) return *dtype;
  throw DTypeError(message(who, ": wanted a dtype or a tensor, got ", type_shown(object)));
}

int bits_of(DType dtype) { return static_cast<int>(8 * itemsize(dtype)); }

struct FloatInfo {
  DType dtype;

  /// Stored bits of the fraction.
  int fraction_bits() const {
    switch (dtype) {
      case DType::Float16:
        return 10;
      case DType::BFloat16:
        return 7;
      case DType::Float32:
        return 23;
      default:
        return 52;
    }
  }
  /// The greatest exponent of two. The least exponent of a normal number is 1 minus this.
  int greatest_exponent() const { return (1 << (bits_of(dtype) - fraction_bits() - 2)) - 1; }
  double eps() const { return std::ldexp(1.0, -fraction_bits()); }
  double max() const { return std::ldexp(2.0 - eps(), greatest_exponent()); }
  double smallest_normal() const { return std::ldexp(1.0, 1 - greatest_exponent()); }
};

struct IntInfo {
  DType dtype;

  Scalar max() const {
    const int bits = bits_of(dtype);
    if (is_unsigned_int(dtype)) return ~std::uint64_t{0} >> (64 - bits);
    return static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  }
  Scalar min() const { return is_unsigned_int(dtype) ? std::int64_t{0} : -1 - max().to_int64(); }
};

FloatInfo float_info(nb::handle type) {
  const DType dtype = dtype_of_either(type, "finfo");
  if (!is_floating(dtype)) {
    throw DTypeError(
        message("finfo: ", name(dtype), " is no floating dtype; iinfo is for integers"));
  }
  return {dtype};
}

IntInfo int_info(nb::handle type) {
  const DType dtype = dtype_of_either(type, "iinfo");
  if (!is_integer(dtype)) {
    throw DTypeError(message("iinfo: ", name(dtype), " is no integer dtype; finfo is for floats"));
  }
  return {dtype};
}

void bind_info(nb::module_& m) {
  nb::class_<FloatInfo>(m, "FloatInfo", "What finfo gives: the limits of a floating dtype.")
      .def_prop_ro("bits", [](const FloatInfo& f) { return bits_of(f.dtype); })
      .def_prop_ro("eps", &FloatInfo::eps, "The step from 1 to the next number.")
      .def_prop_ro("max", &FloatInfo::max)
      .def_prop_ro("min", [](const FloatInfo& f) { return -f.max(); })
      .def_prop_ro("smallest_normal", &FloatInfo::smallest_normal)
      .def_prop_ro("dtype", [](const FloatInfo& f) { return f.dtype; });
  nb::class_<IntInfo>(m, "IntInfo", "What iinfo gives: the limits of an integer dtype.")
      .def_prop_ro("bits", [](const IntInfo& i) { return bits_of(i.dtype); })
      .def_prop_ro("max", &IntInfo::max)
      .def_prop_ro("min", &IntInfo::min)
      .def_prop_ro("dtype", [](const IntInfo& i) { return i.dtype; });
  m.def("finfo", &float_info, nb::arg(), nb::sig("def finfo(type: DType | Tensor, /) -> FloatInfo"),
        documented("finfo", "Limits of a floating dtype: bits, eps, max, min, smallest_normal.")
            .c_str());
  m.def("iinfo", &int_info, nb::arg(), nb::sig("def iinfo(type: DType | Tensor, /) -> IntInfo"),
        documented("iinfo", "Limits of an integer dtype: bits, max, min.").c_str());
}

bool is_of_kind_named(DType dtype, std::string_view kind, const char* who) {
  if (kind == "bool") return is_bool(dtype);
  if (kind == "signed integer") return is_signed_int(dtype);
  if (kind == "unsigned integer") return is_unsigned_int(dtype);
  if (kind == "integral") return is_integer(dtype);
  if (kind == "real floating") return is_floating(dtype);
  if (kind == "complex floating") return false;
  if (kind == "numeric") return !is_bool(dtype);
  throw ValueError(
      message(who, ": no kind \"", std::string(kind),
              "\"; there are \"bool\", \"signed integer\", \"unsigned integer\", "
              "\"integral\", \"real floating\", \"complex floating\" and \"numeric\""));
}

/// A kind's name, a dtype, or a tuple of both.
bool is_of_kind(DType dtype, nb::handle kind, const char* who) {
  if (nb::isinstance<nb::tuple>(kind)) {
    for (const nb::handle one : nb::borrow<nb::tuple>(kind)) {
      if (is_of_kind(dtype, one, who)) return true;
    }
    return false;
  }
  if (nb::isinstance<nb::str>(kind)) {
    return is_of_kind_named(dtype, nb::cast<std::string>(kind), who);
  }
  return dtype == dtype_of_either(kind, who);
}

bool can_cast(nb::handle from, nb::handle to) {
  const DType source = dtype_of_either(from, "can_cast");
  const DType target = dtype_of_either(to, "can_cast");
  try {
    return promote(source, target) == target;
  } catch (const DTypeError&) {
    return false;
  }
}

/// Numbers are weak: they take part after the dtypes of all tensors are known.
DType result_type(const nb::args& items) {
  std::optional<DType> dtype;
  std::vector<Scalar> numbers;
  for (const nb::handle item : items) {
    Scalar number;
    if (tensor_in(item.ptr()) == nullptr && number_from(item.ptr(), number)) {
      numbers.push_back(number);
      continue;
    }
    const DType next = dtype_of_either(item, "result_type");
    dtype = dtype ? promote(*dtype, next) : next;
  }
  if (!dtype) throw ValueError("result_type: needs at least one tensor or dtype");
  for (const Scalar& number : numbers) dtype = weak_dtype(number, *dtype);
  return *dtype;
}

Tensor converted_to(const Tensor& x, DType dtype, bool copy, DeviceArg device) {
  return moved(x, dtype, device.in("astype").value_or(x.device()), copy);
}

/// The result of __array_namespace_info__.
struct NamespaceInfo {};

/// All devices that are available.
nb::list devices(const NamespaceInfo&) {
  nb::list all;
  for (int type = 0; type < kNumDeviceTypes; ++type) {
    const auto kind = static_cast<DeviceType>(type);
    for (int i = 0; i < device_count(kind); ++i) all.append(Device(kind, i));
  }
  return all;
}

nb::dict capabilities(const NamespaceInfo&) {
  nb::dict known;
  known["boolean indexing"] = true;
  known["data-dependent shapes"] = true;
  known["max dimensions"] = kMaxDims;
  return known;
}

nb::dict default_dtypes(const NamespaceInfo&, DeviceArg device) {
  device.in("default_dtypes");
  nb::dict defaults;
  defaults["real floating"] = kDefaultFloat;
  defaults["complex floating"] = nb::none();
  defaults["integral"] = DType::Int64;
  defaults["indexing"] = DType::Int64;
  return defaults;
}

/// The half-precision dtypes are not part of the standard, so they are not listed.
nb::dict dtypes(const NamespaceInfo&, DeviceArg device, nb::handle kind) {
  device.in("dtypes");
  nb::dict found;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::Float16 || dtype == DType::BFloat16) continue;
    if (!kind.is_none() && !is_of_kind(dtype, kind, "dtypes")) continue;
    found[std::string(name(dtype)).c_str()] = dtype;
  }
  return found;
}

void bind_namespace_info(nb::module_& m) {
  nb::class_<NamespaceInfo>(m, "NamespaceInfo",
                            "The inspection functions of the array API standard.\n\n"
                            ">>> info = bg.__array_namespace_info__()\n"
                            ">>> isinstance(info, bg.NamespaceInfo), \"cpu\" in info.devices()\n"
                            "(True, True)")
      .def("capabilities", &capabilities,
           nb::sig("def capabilities(self) -> dict[str, bool | int | None]"),
           "Supported features, and the greatest number of dimensions.")
      .def(
          "default_device", [](const NamespaceInfo&) { return default_device(); },
          "The device of new tensors.")
      .def("default_dtypes", &default_dtypes, nb::kw_only(), nb::arg("device") = nb::none(),
           nb::sig("def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, "
                   "DType | "
                   "None]"),
           "The dtypes of new tensors, by kind; None for the unsupported complex kind.")
      .def("devices", &devices, nb::sig("def devices(self) -> list[Device]"),
           "All devices that are available.")
      .def("dtypes", &dtypes, nb::kw_only(), nb::arg("device") = nb::none(),
           nb::arg("kind") = nb::none(),
           nb::sig("def dtypes(self, *, device: Device | str | None = None, kind: str | tuple[str, "
                   "...] | "
                   "None = None) -> dict[str, DType]"),
           "The supported dtypes of the standard, by name; kinds are those of isdtype.");
  m.def(
      "__array_namespace_info__", [] { return NamespaceInfo(); },
      documented("__array_namespace_info__", "What there is: dtypes, devices, capabilities.")
          .c_str());
  m.attr("__array_api_version__") = "2024.12";
}

}  // namespace

void bind_dtype_functions(nb::module_& m) {
  bind_info(m);
  m.def(
      "astype", &converted_to, nb::arg(), nb::arg(), nb::kw_only(), nb::arg("copy") = true,
      nb::arg("device") = nb::none(),
      nb::sig("def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Device | str | "
              "None = None) -> Tensor"),
      documented("astype",
                 "The elements in another dtype.\n\nFloats beyond an integer's range "
                 "saturate, NaN becomes 0. copy=False gives x itself where it has the "
                 "dtype already.")
          .c_str());
  m.def(
      "isdtype",
      [](nb::handle dtype, nb::handle kind) {
        return is_of_kind(dtype_of_either(dtype, "isdtype"), kind, "isdtype");
      },
      nb::arg("dtype"), nb::arg("kind"),
      nb::sig("def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool"),
      documented("isdtype",
                 "Whether a dtype is of a kind, another dtype, or one of a tuple of both.")
          .c_str());
  m.def("can_cast", &can_cast, nb::arg(), nb::arg(),
        nb::sig("def can_cast(from_: DType | Tensor, to: DType, /) -> bool"),
        documented("can_cast", "Whether promotion leads from one dtype to another.").c_str());
  m.def(
      "result_type", &result_type,
      nb::sig("def result_type(*arrays_and_dtypes: Tensor | DType | bool | int | float) -> DType"),
      documented("result_type",
                 "The dtype that tensors, dtypes and numbers promote to; numbers are weak.")
          .c_str());
  bind_namespace_info(m);
}

}  // namespace baregrad::python
