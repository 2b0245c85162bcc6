// softmax, log_softmax and logsumexp of one contiguous float32 row, for one ISA.
#include <hwy/highway.h>

#include "kernels/cpu/math_f32.h"
#include "kernels/cpu/reduce_block.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {

void register_rows(KernelTable& table);

namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
// Exponentials are summed while they are in L1.
constexpr std::int64_t kPiece = 512;

/// exp(x - max) for x <= max. The subtraction rounds and exp would magnify that, so what
/// it lost goes along.
HWY_INLINE V exp_below(V x, V max) {
  const D d;
  const V diff = hn::Sub(x, max);
  const V back = hn::Sub(diff, x);
  const V lost = hn::Sub(hn::Sub(x, hn::Sub(diff, back)), hn::Add(max, back));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(diff, hn::Set(d, -87.0f))))) {
    const auto p = math::exp_parts(diff, hn::Neg(lost));
    return math::scale_normal(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
  }
  // An infinite difference leaves a NaN behind; there is nothing to add to 0.
  const V rest = hn::IfThenElseZero(hn::Gt(diff, hn::Set(d, -105.0f)), lost);
  const auto p = math::exp_parts(math::at_least(diff, -105.0), hn::Neg(rest));
  return math::scale(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
}

/// n exponentials, with one maximum for all (kManyTops false) or one each.
template <bool kManyTops>
void exp_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT max, float* HWY_RESTRICT out,
             std::int64_t n) {
  const D d;
  const V one = hn::Set(d, max[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V m = kManyTops ? hn::LoadU(d, max + i) : one;
    hn::StoreU(exp_below(hn::LoadU(d, x + i), m), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float lanes[kLanes] = {};
  HWY_ALIGN float tops[kLanes] = {};
  for (std::int64_t k = 0; k < n - i; ++k) {
    lanes[k] = x[i + k];
    tops[k] = max[kManyTops ? i + k : 0];
  }
  hn::Store(exp_below(hn::Load(d, lanes), hn::Load(d, tops)), d, lanes);
  for (std::int64_t k = 0; k < n - i; ++k) out[i + k] = lanes[k];
}

void exp_block(const void* x_in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
               const void* max_in, bool rows_are_lanes, void* out_in) {
  const auto* x = static_cast<const float*>(x_in);
  const auto* max = static_cast<const float*>(max_in);
  auto* out = static_cast<float*>(out_in);
  for (std::int64_t r = 0; r < rows; ++r, x += row_stride, out += cols) {
    if (rows_are_lanes) {
      exp_run<false>(x, max + r, out, cols);
    } else {
      exp_run<true>(x, max, out, cols);
    }
  }
}

/// The exponentials of a row to `out` where there is one, and their sum.
double exp_sum(const float* x, float max, float* out, std::int64_t n) {
  HWY_ALIGN float piece[kPiece];
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kPiece) {
    const std::int64_t count = n - i < kPiece ? n - i : kPiece;
    float* to = out == nullptr ? piece : out + i;
    exp_run<false>(x + i, &max, to, count);
    sum += vector_run<VecSum<float>>(to, count, 0);
  }
  return sum;
}

bool is_finite(float x) { return x - x == 0; }

void fill_nan(float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = __builtin_nanf("");
}

void softmax(const void* x_in, void* out_in, std::int64_t n) {
  const auto* x = static_cast<const float*>(x_in);
  auto* out = static_cast<float*>(out_in);
  const float max = extreme_of<float, true>(x, n);
  if (!is_finite(max)) return fill_nan(out, n);
  const auto scale = static_cast<float>(1 / exp_sum(x, max, out, n));
  for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
}

void log_softmax(const void* x_in, void* out_in, std::int64_t n) {
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  auto* HWY_RESTRICT out = static_cast<float*>(out_in);
  const float max = extreme_of<float, true>(x, n);
  if (!is_finite(max)) return fill_nan(out, n);
  const double top = max;
  const double log_sum = __builtin_log(exp_sum(x, max, nullptr, n));
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>((static_cast<double>(x[i]) - top) - log_sum);
  }
}

void logsumexp(const void* x_in, void* out, std::int64_t n) {
  const auto* x = static_cast<const float*>(x_in);
  const float max = extreme_of<float, true>(x, n);
  // An infinite or NaN maximum is the answer.
  *static_cast<float*>(out) = is_finite(max)
                                  ? static_cast<float>(static_cast<double>(max) +
                                                       __builtin_log(exp_sum(x, max, nullptr, n)))
                                  : max;
}

}  // namespace

void register_rows(KernelTable& table) {
  constexpr int kFloat = static_cast<int>(DType::Float32);
  table.exp_block[kFloat] = exp_block;
  table.row[static_cast<int>(OpId::softmax)][kFloat] = softmax;
  table.row[static_cast<int>(OpId::log_softmax)][kFloat] = log_softmax;
  table.row[static_cast<int>(OpId::logsumexp)][kFloat] = logsumexp;
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
