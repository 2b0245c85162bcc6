// Creation: public functions and infer functions of fill, arange, linspace, eye, tril and triu.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/visit.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"

namespace baregrad {

namespace {

// Wide enough for any difference of two 64-bit integers, signed or not.
__extension__ using Int128 = __int128;

const Tensor& checked_input(const Tensor& x, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": the tensor is undefined"));
  return x;
}

bool is_float(const Scalar& s) { return s.kind() == Scalar::Kind::Float; }

Int128 to_int128(const Scalar& s) {
  return s.kind() == Scalar::Kind::UInt ? Int128{s.to_uint64()} : Int128{s.to_int64()};
}

/// One element of `dtype` in the first bytes of an integer.
std::uint64_t element_bits(const Scalar& value, DType dtype, const char* who) {
  std::uint64_t bits = 0;
  store_scalar(value, dtype, &bits, who);
  return bits;
}

/// A Make call of an op without inputs.
Tensor create(OpId op, AttrsRef attrs, Device device, const char* who = nullptr) {
  return run({.op = op, .inputs = {}, .attrs = attrs, .who = who, .device = device});
}

Tensor filled(const Dims& shape, const Scalar& value, DType dtype, Device device, const char* who) {
  checked_numel(shape, dtype, who);
  const FillAttrs attrs{shape, dtype, element_bits(value, dtype, who)};
  return create(OpId::fill, attrs, device, who);
}

/// `value`, already rounded to an integer, lies in the range of an integer dtype.
bool fits_integer(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      // Both bounds are exact in double; the greatest 64-bit integers are not.
      return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value < std::ldexp(1.0, std::numeric_limits<T>::digits);
    } else {
      return true;
    }
  });
}

void check_numeric(DType dtype, const char* who) {
  if (is_bool(dtype)) {
    throw DTypeError(message(who, ": evenly spaced values need a numeric dtype, not bool"));
  }
}

void check_fits(double value, DType dtype, const char* who) {
  if (is_integer(dtype) && !fits_integer(value, dtype)) {
    throw ValueError(message(who, ": ", number_text(value), " does not fit ", name(dtype)));
  }
}

struct ArangeBounds {
  const Scalar& start;
  const Scalar& stop;
  const Scalar& step;
};

[[noreturn]] void throw_too_long(const std::string& bounds) {
  throw ShapeError(message("arange: ", bounds, " has more elements than an address can count"));
}

/// ceil((stop - start) / step), 0 when that is negative. Throws when an end does not fit the dtype.
std::int64_t arange_count_of_ints(const ArangeBounds& b, DType dtype, const std::string& text) {
  const Int128 start = to_int128(b.start);
  const Int128 step = to_int128(b.step);
  const Int128 span = to_int128(b.stop) - start;
  if (step == 0) throw ValueError(message("arange: the step is 0 in ", text));
  if (span == 0 || (span < 0) != (step < 0)) return 0;
  const Int128 count = (span + step - (step > 0 ? 1 : -1)) / step;
  if (count > std::numeric_limits<std::int64_t>::max()) throw_too_long(text);
  if (is_integer(dtype)) {
    // Both ends lie between start and stop, hence in 64 bits.
    for (const Int128 end : {start, start + (count - 1) * step}) {
      element_bits(end < 0 ? Scalar(static_cast<std::int64_t>(end))
                           : Scalar(static_cast<std::uint64_t>(end)),
                   dtype, "arange");
    }
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t arange_count_of_floats(const ArangeBounds& b, DType dtype, const std::string& text) {
  const double start = b.start.to_double();
  const double step = b.step.to_double();
  const double span = b.stop.to_double() - start;
  if (!std::isfinite(span) || !std::isfinite(step)) {
    throw ValueError(message("arange: ", text, ": span and step must be finite"));
  }
  if (step == 0) throw ValueError(message("arange: the step is 0 in ", text));
  if (span == 0 || (span < 0) != (step < 0)) return 0;
  // A quotient that underflows to 0 still means one element.
  const double count = std::max(1.0, std::ceil(span / step));
  if (count >= 0x1p63) throw_too_long(text);
  if (is_integer(dtype)) {
    check_fits(std::trunc(start), dtype, "arange");
    check_fits(std::trunc(start + (count - 1) * step), dtype, "arange");
  }
  return static_cast<std::int64_t>(count);
}

std::string to_text(const Scalar& s) {
  if (is_float(s)) return number_text(s.to_double());
  return s.kind() == Scalar::Kind::UInt ? std::to_string(s.to_uint64())
                                        : std::to_string(s.to_int64());
}

Tensor triangle(OpId op, const Tensor& x, std::int64_t diagonal) {
  return run(op, {&x}, TriangleAttrs{diagonal});
}

}  // namespace

// ---- Filled

Tensor empty(const Dims& shape, DType dtype, DeviceOption device) {
  return Tensor::allocate(shape, dtype, device.value_or(default_device()), "empty");
}
Tensor zeros(const Dims& shape, DType dtype, DeviceOption device) {
  return filled(shape, 0, dtype, device.value_or(default_device()), "zeros");
}
Tensor ones(const Dims& shape, DType dtype, DeviceOption device) {
  return filled(shape, 1, dtype, device.value_or(default_device()), "ones");
}
Tensor full(const Dims& shape, const Scalar& value, DTypeOption dtype, DeviceOption device) {
  return filled(shape, value, dtype.value_or(default_dtype(value)),
                device.value_or(default_device()), "full");
}

Tensor empty_like(const Tensor& x, DTypeOption dtype, DeviceOption device) {
  checked_input(x, "empty_like");
  return Tensor::allocate(x.shape(), dtype.value_or(x.dtype()), device.value_or(x.device()),
                          "empty_like");
}
Tensor zeros_like(const Tensor& x, DTypeOption dtype, DeviceOption device) {
  checked_input(x, "zeros_like");
  return filled(x.shape(), 0, dtype.value_or(x.dtype()), device.value_or(x.device()), "zeros_like");
}
Tensor ones_like(const Tensor& x, DTypeOption dtype, DeviceOption device) {
  checked_input(x, "ones_like");
  return filled(x.shape(), 1, dtype.value_or(x.dtype()), device.value_or(x.device()), "ones_like");
}
Tensor full_like(const Tensor& x, const Scalar& value, DTypeOption dtype, DeviceOption device) {
  checked_input(x, "full_like");
  return filled(x.shape(), value, dtype.value_or(x.dtype()), device.value_or(x.device()),
                "full_like");
}

const Tensor& fill_(const Tensor& dst, const Scalar& value) {
  checked_input(dst, "fill_");
  const FillAttrs attrs{dst.shape(), dst.dtype(), element_bits(value, dst.dtype(), "fill_")};
  run_into(OpId::fill, {}, dst, attrs, "fill_");
  return dst;
}

std::vector<OutputSpec> infer_fill(const OpCall& call) {
  const auto& attrs = call.attrs.as<FillAttrs>();
  return {{attrs.shape, attrs.dtype}};
}

// ---- Evenly spaced

Tensor arange(const Scalar& stop, DTypeOption dtype, DeviceOption device) {
  return arange(0, stop, 1, dtype, device);
}

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DTypeOption dtype,
              DeviceOption device) {
  const bool floats = is_float(start) || is_float(stop) || is_float(step);
  DType type = floats ? kDefaultFloat : DType::Int64;
  if (!floats && (default_dtype(start) == DType::UInt64 || default_dtype(stop) == DType::UInt64)) {
    type = DType::UInt64;
  }
  if (dtype.has_value()) type = *dtype;
  check_numeric(type, "arange");
  const ArangeBounds bounds{start, stop, step};
  const std::string text =
      message("start ", to_text(start), ", stop ", to_text(stop), ", step ", to_text(step));
  ArangeAttrs attrs;
  attrs.dtype = type;
  attrs.integers = !floats && is_integer(type);
  attrs.int_start = start.to_uint64();
  attrs.int_step = step.to_uint64();
  attrs.start = start.to_double();
  attrs.step = step.to_double();
  attrs.count = floats ? arange_count_of_floats(bounds, type, text)
                       : arange_count_of_ints(bounds, type, text);
  return create(OpId::arange, attrs, device.value_or(default_device()));
}

std::vector<OutputSpec> infer_arange(const OpCall& call) {
  const auto& attrs = call.attrs.as<ArangeAttrs>();
  return {{{attrs.count}, attrs.dtype}};
}

Tensor linspace(const Scalar& start, const Scalar& stop, std::int64_t count, DTypeOption dtype,
                bool endpoint, DeviceOption device) {
  constexpr const char* kWho = "linspace";
  const DType type = dtype.value_or(kDefaultFloat);
  check_numeric(type, kWho);
  if (count < 0) throw ValueError(message(kWho, ": the count is negative: ", count));
  LinspaceAttrs attrs;
  attrs.dtype = type;
  attrs.endpoint = endpoint;
  attrs.count = count;
  const Scalar* ends[] = {&start, &stop};
  for (int i = 0; i < 2; ++i) {
    const double value = ends[i]->to_double();
    if (!std::isfinite(value)) {
      throw ValueError(
          message(kWho, ": start ", to_text(start), ", stop ", to_text(stop), " is not finite"));
    }
    (i == 0 ? attrs.start : attrs.stop) = value;
    std::uint64_t& element = i == 0 ? attrs.first : attrs.last;
    if (is_float(*ends[i]) && is_integer(type)) {
      check_fits(std::floor(value), type, kWho);
      element = element_bits(std::floor(value), type, kWho);
    } else {
      element = element_bits(*ends[i], type, kWho);
    }
  }
  return create(OpId::linspace, attrs, device.value_or(default_device()));
}

std::vector<OutputSpec> infer_linspace(const OpCall& call) {
  const auto& attrs = call.attrs.as<LinspaceAttrs>();
  return {{{attrs.count}, attrs.dtype}};
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, bool xy) {
  constexpr const char* kWho = "meshgrid";
  const auto place = [&](std::size_t k) {
    return static_cast<int>(xy && axes.size() > 1 && k < 2 ? 1 - k : k);
  };
  if (axes.size() > static_cast<std::size_t>(kMaxDims)) {
    throw ShapeError(message(kWho, ": ", axes.size(), " tensors, but a tensor has at most ",
                             kMaxDims, " dimensions"));
  }
  const auto count = static_cast<int>(axes.size());
  Dims shape(count, 1);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (checked_input(axes[k], kWho).ndim() > 1) {
      throw ShapeError(
          message(kWho, ": tensor ", k, " is ", describe(axes[k]), ", not one-dimensional"));
    }
    shape[place(k)] = axes[k].numel();
  }
  std::vector<Tensor> grids;
  grids.reserve(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Dims own(count, 1);
    own[place(k)] = axes[k].numel();
    grids.push_back(repeated_to(reshape(axes[k], own), shape, kWho));
  }
  return grids;
}

// ---- Matrices

Tensor eye(std::int64_t rows, std::optional<std::int64_t> cols, std::int64_t diagonal, DType dtype,
           DeviceOption device) {
  return create(OpId::eye, EyeAttrs{rows, cols.value_or(rows), diagonal, dtype},
                device.value_or(default_device()));
}

std::vector<OutputSpec> infer_eye(const OpCall& call) {
  const auto& attrs = call.attrs.as<EyeAttrs>();
  return {{{attrs.rows, attrs.columns}, attrs.dtype}};
}

Tensor tril(const Tensor& x, std::int64_t diagonal) { return triangle(OpId::tril, x, diagonal); }
Tensor triu(const Tensor& x, std::int64_t diagonal) { return triangle(OpId::triu, x, diagonal); }

std::vector<OutputSpec> infer_triangle(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  if (x.ndim() < 2) {
    throw ShapeError(message(op_name(call.op), ": ", describe(x),
                             " is no matrix: it needs at least 2 dimensions"));
  }
  return {{x.shape(), x.dtype()}};
}

}  // namespace baregrad
