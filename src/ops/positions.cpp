// Checking and normalising of positions.
#include "ops/positions.h"

#include <atomic>

#include "baregrad/error.h"
#include "core/message.h"
#include "core/number_text.h"
#include "ops/named.h"
#include "parallel/parallel_for.h"

namespace baregrad {

namespace {

// Indices looked at by one parallel chunk.
constexpr std::int64_t kGrain = 32768;

/// Each index of an expanded tensor once: axes of stride 0 cut down to one element.
Tensor without_repeats(const Tensor& x) {
  Tensor out = x;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.strides()[i] == 0 && x.shape()[i] > 1) out = narrow(out, i, 0, 1);
  }
  return out;
}

int kind_rank(DType dtype) { return is_bool(dtype) ? 0 : is_integer(dtype) ? 1 : 2; }

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

void throw_out_of_range(std::int64_t index, const IndexedAxis& where, const char* who) {
  throw IndexError(message(who, ": index ", index, " is out of range for axis ", where.axis,
                           " of size ", where.size, " in ", name(where.dtype),
                           to_string(where.shape)));
}

void check_positions(const Tensor& indices, const IndexedAxis& where, const char* who) {
  if (indices.numel() == 0) return;
  Tensor packed = without_repeats(indices);
  if (!packed.is_contiguous() || !packed.is_aligned()) packed = clone(packed);
  const auto* values = packed.data<std::int64_t>();
  const std::int64_t size = where.size;
  const std::int64_t count = packed.numel();
  std::atomic<std::int64_t> first{count};
  parallel::parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    bool outside = false;
    for (std::int64_t i = begin; i < end; ++i) outside |= values[i] < -size || values[i] >= size;
    if (!outside) return;
    std::int64_t at = begin;
    while (at < end && values[at] >= -size && values[at] < size) ++at;
    if (at == end) return;  // another thread has written to it; kernels check what they use
    // The least position wins, whichever chunk came first.
    std::int64_t seen = first.load();
    while (at < seen && !first.compare_exchange_weak(seen, at)) {
    }
  });
  if (first.load() < count) throw_out_of_range(values[first.load()], where, who);
}

std::int64_t count_true(const Tensor& mask) {
  if (mask.numel() == 0) return 0;
  const Tensor once = without_repeats(mask);
  return count_nonzero(once).item<std::int64_t>() * (mask.numel() / once.numel());
}

void store_assigned(const Scalar& value, const Tensor& x, void* out, const char* who) {
  if (value.kind() == Scalar::Kind::Float && !is_floating(x.dtype())) {
    throw DTypeError(message(who, ": cannot write the float ", number_text(value.to_double()),
                             " into ", describe(x), "; cast one of them first"));
  }
  store_scalar(value, x.dtype(), out, who);
}

Tensor assigned(const Operand& value, const Tensor& x, const char* who) {
  if (const Tensor* tensor = value.tensor()) {
    require_defined(*tensor, "the value", who);
    if (kind_rank(tensor->dtype()) > kind_rank(x.dtype())) {
      throw DTypeError(message(who, ": cannot write ", describe(*tensor), " into ", describe(x),
                               "; cast it with astype first"));
    }
    return converted(*tensor, x.dtype(), who);
  }
  Tensor out = Tensor::allocate({}, x.dtype(), who);
  store_assigned(value.scalar(), x, out.data_ptr(), who);
  return out;
}

}  // namespace baregrad
