// Checking and normalising of positions.
#include "ops/positions.h"

#include "baregrad/error.h"
#include "core/dtype_kind.h"
#include "core/message.h"
#include "core/number_text.h"
#include "ops/internal_ops.h"

namespace baregrad {

namespace {

/// Each index of an expanded tensor once: axes of stride 0 cut down to one element.
Tensor without_repeats(const Tensor& x) {
  Tensor out = x;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.strides()[i] == 0 && x.shape()[i] > 1) out = narrow(out, i, 0, 1);
  }
  return out;
}

}  // namespace

void require_defined(const Tensor& x, const char* what, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": ", what, " is undefined"));
}

Tensor as_int64(const Tensor& x, const char* what, const char* who) {
  require_defined(x, what, who);
  if (!is_integer(x.dtype())) {
    throw DTypeError(message(who, ": ", what, " must be of an integer dtype, not ", describe(x)));
  }
  if (x.dtype() == DType::Int64) return x;
  if (x.dtype() == DType::UInt64 && x.numel() > 0) {
    const std::uint64_t greatest = amax(x).item().to_uint64();
    if (greatest > static_cast<std::uint64_t>(INT64_MAX)) {
      throw IndexError(
          message(who, ": ", greatest, " in ", what, " ", describe(x), " is beyond every size"));
    }
  }
  return converted(x, DType::Int64, who);
}

void check_positions(const Tensor& indices, const IndexBounds& bounds, const char* who) {
  if (indices.numel() == 0) return;
  for (const Tensor& end : {amin(indices), amax(indices)}) {
    const auto index = end.item<std::int64_t>();
    if (index < -bounds.size || index >= bounds.size) throw_out_of_bounds(index, bounds, who);
  }
}

std::int64_t count_true(const Tensor& mask) {
  if (mask.numel() == 0) return 0;
  const Tensor once = without_repeats(mask);
  return count_nonzero(once).item<std::int64_t>() * (mask.numel() / once.numel());
}

void check_assigned(const Scalar& value, const Tensor& x, const char* who) {
  if (value.kind() == Scalar::Kind::Float && !is_floating(x.dtype())) {
    throw DTypeError(message(who, ": cannot write the float ", number_text(value.to_double()),
                             " into ", describe(x), "; cast one of them first"));
  }
}

namespace {
/// A number of the CPU on x's device: once repeated, it would be a number no longer.
Tensor beside(const Tensor& value, const Tensor& x) {
  const bool joins = value.ndim() == 0 && value.device().is_cpu() && !x.device().is_cpu();
  return joins ? to_device(value, x.device()) : value;
}
}  // namespace

Tensor assigned(const Operand& value, const Tensor& x, const char* who) {
  if (const Tensor* tensor = value.tensor()) {
    require_defined(*tensor, "the value", who);
    if (kind_of(tensor->dtype()) > kind_of(x.dtype())) {
      throw DTypeError(message(who, ": cannot write ", describe(*tensor), " into ", describe(x),
                               "; cast it with astype first"));
    }
    return beside(converted(*tensor, x.dtype(), who), x);
  }
  check_assigned(value.scalar(), x, who);
  return beside(Tensor::scalar(value.scalar(), x.dtype(), who), x);
}

}  // namespace baregrad
