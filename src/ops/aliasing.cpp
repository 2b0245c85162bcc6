// Shared memory, found by address ranges.
#include "ops/aliasing.h"

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad {

namespace {

/// The addresses that a tensor's elements lie in.
struct Range {
  std::intptr_t low;
  std::intptr_t high;
};

Range range_of(const Tensor& t) {
  const auto width = static_cast<std::int64_t>(itemsize(t.dtype()));
  const auto start = reinterpret_cast<std::intptr_t>(t.data_ptr());
  Range range{start, start};
  for (int i = 0; i < t.ndim(); ++i) {
    const std::int64_t span = t.strides()[i] * (t.shape()[i] - 1) * width;
    (span < 0 ? range.low : range.high) += span;
  }
  range.high += width;
  return range;
}

}  // namespace

bool overlaps(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || a.device() != b.device()) return false;
  const Range ra = range_of(a);
  const Range rb = range_of(b);
  return ra.low < rb.high && rb.low < ra.high;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.dtype() == b.dtype() && a.device() == b.device() &&
         a.shape() == b.shape() && a.strides() == b.strides();
}

void check_writable(const OpCall& call, const Tensor& out) {
  if (!out.defined()) throw ValueError(message(call.name(), ": the output is undefined"));
  if (!out.is_contiguous() && out.layout().may_self_overlap()) {
    throw ValueError(message(call.name(), ": cannot write into ", describe(out), " with strides ",
                             to_string(out.strides()),
                             ", which holds some element more than once; clone it first"));
  }
}

}  // namespace baregrad
