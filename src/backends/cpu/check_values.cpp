// Values that ops are not defined for, looked at before anything is written. The kernels check what
// they use once more: another thread may write to borrowed memory meanwhile.
#include <atomic>
#include <cmath>
#include <string>

#include "backends/cpu/describe.h"
#include "backends/cpu/execute.h"
#include "backends/cpu/temporary.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/stage.h"
#include "baregrad/error.h"
#include "baregrad/scalar.h"
#include "core/index_bounds.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/visit.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Indices looked at by one parallel chunk.
constexpr std::int64_t kIndexGrain = 32768;

std::string describe_inputs(const Call& call) {
  std::string out;
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    if (k != 0) out += k + 1 == call.in.size() ? " and " : ", ";
    out += describe(call.in[k]);
  }
  return out;
}

/// A view's elements in a row, each element of an expanded view once.
class Packed {
 public:
  explicit Packed(const View& v) {
    view_ = v;
    for (int i = 0; i < v.ndim; ++i) {
      const auto k = static_cast<std::size_t>(i);
      shape_[k] = v.strides[i] == 0 && v.shape[i] > 1 ? 1 : v.shape[i];
    }
    if (v.packed) return;
    view_.shape = shape_.data();
    view_ = copy_.copy_of(view_, v.dtype);
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  const View& view() const noexcept { return view_; }

 private:
  std::array<std::int64_t, kMaxDims> shape_{};
  Temporary copy_;
  View view_;
};

/// Throws unless all of the int64 `indices` lie in [-size, size).
void check_positions(const View& indices, const IndexBounds& bounds, const char* who) {
  if (numel(indices) == 0) return;
  const Packed packed(indices);
  const auto* values = static_cast<const std::int64_t*>(packed.view().data);
  const std::int64_t size = bounds.size;
  const std::int64_t count = numel(packed.view());
  std::atomic<std::int64_t> first{count};
  parallel::parallel_for(count, kIndexGrain, [&](std::int64_t begin, std::int64_t end) {
    bool outside = false;
    for (std::int64_t i = begin; i < end; ++i) outside |= values[i] < -size || values[i] >= size;
    if (!outside) return;
    std::int64_t at = begin;
    while (at < end && values[at] >= -size && values[at] < size) ++at;
    if (at == end) return;  // another thread has written to it
    // The least position wins, whichever chunk came first.
    std::int64_t seen = first.load();
    while (at < seen && !first.compare_exchange_weak(seen, at)) {
    }
  });
  if (first.load() < count) throw_out_of_bounds(values[first.load()], bounds, who);
}

/// One value of a reduction of all of `x`.
Scalar reduced(OpId op, const View& x, DType dtype) {
  alignas(8) char element[8] = {};
  std::array<std::int64_t, kMaxDims> ones;
  ones.fill(1);
  const View out{element, dtype, x.ndim, ones.data(), ones.data()};
  std::array<std::int64_t, kMaxDims> shape{};
  View once = x;
  for (int i = 0; i < x.ndim; ++i) {
    shape[static_cast<std::size_t>(i)] = x.strides[i] == 0 && x.shape[i] > 1 ? 1 : x.shape[i];
  }
  once.shape = shape.data();
  reduce(op, once, (1U << x.ndim) - 1U, out, 0.0);
  return load_scalar(element, dtype);
}

/// Integer division and power are partial functions.
void check_integer_domain(const Call& call) {
  if (!is_integer(call.compute) || numel(call.out[0]) == 0) return;
  const View& y = call.in[1];
  if (call.op != OpId::pow) {
    if (reduced(OpId::all, y, DType::Bool).to_bool()) return;
    throw ValueError(message(call.who, ": integer division by zero in ", describe_inputs(call)));
  }
  if (!is_signed_int(y.dtype) || reduced(OpId::amin, y, y.dtype).to_int64() >= 0) return;
  throw ValueError(message(call.who, ": integers to a negative integer power in ",
                           describe_inputs(call), "; cast to a float dtype first"));
}

void check_index(const Call& call, const View& indexed, int axis, const Dims& callers_axes,
                 const Dims& callers_shape) {
  for (std::size_t k = 1; k < call.in.size(); ++k) {
    const int at = static_cast<int>(k) - 1;
    check_positions(call.in[k],
                    {callers_axes[at], indexed.shape[axis + at], indexed.dtype, callers_shape},
                    call.who);
  }
}

void check_along(const Call& call) {
  const View& x = call.in[0];
  const int axis = call.attrs.as<AlongAttrs>().axis;
  check_positions(call.in[1], {axis, x.shape[axis], x.dtype, shape_of(x)}, call.who);
}

void check_classes(const Call& call) {
  const View& x = call.in[0];
  const View& target = call.in[1];
  const std::int64_t rows = x.shape[0];
  const std::int64_t classes = x.shape[1];
  const std::int64_t ignored = call.attrs.as<CrossEntropyAttrs>().ignored;
  const auto* from = static_cast<const char*>(target.data);
  const std::int64_t step = target.strides[0] * static_cast<std::int64_t>(sizeof(std::int64_t));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t at = 0;
    std::memcpy(&at, from + i * step, sizeof at);  // borrowed memory need not be aligned
    if (at == ignored || (at >= 0 && at < classes)) continue;
    throw IndexError(message(call.who, ": class ", at, " (row ", i, " of the target) of ",
                             describe(x), " with C = ", classes,
                             " classes: must lie in [0, C) or be ignore_index, ", ignored));
  }
}

void check_probabilities(const Call& call) {
  if (call.in.empty() || numel(call.in[0]) == 0) return;
  const View& p = call.in[0];
  for (const OpId end : {OpId::amin, OpId::amax}) {
    const double value = reduced(end, p, p.dtype).to_double();
    if (value >= 0 && value <= 1) continue;
    throw ValueError(message("bernoulli: ", number_text(value), " in ", describe(p),
                             " is no probability: it must lie in [0, 1]"));
  }
}

}  // namespace

void check_values(const Call& call) {
  switch (call.op) {
    case OpId::floor_divide:
    case OpId::remainder:
    case OpId::pow:
      return check_integer_domain(call);
    case OpId::take:
    case OpId::index: {
      const auto& attrs = call.attrs.as<PositionsAttrs>();
      return check_index(call, call.in[0], attrs.axis, attrs.callers_axes, attrs.callers_shape);
    }
    case OpId::index_put: {
      const auto& attrs = call.attrs.as<IndexPutAttrs>();
      return check_index(call, call.out[0], attrs.axis, attrs.callers_axes, attrs.callers_shape);
    }
    case OpId::gather:
    case OpId::scatter:
    case OpId::scatter_add:
      return check_along(call);
    case OpId::cross_entropy:
      return check_classes(call);
    case OpId::bernoulli:
      return check_probabilities(call);
    default:
      return;
  }
}

}  // namespace baregrad::kernels
