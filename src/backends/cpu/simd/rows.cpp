// softmax, log_softmax and logsumexp of one contiguous float32 row, for one ISA.
#include <hwy/highway.h>

#include "backends/cpu/simd/exp_rows.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {

void register_rows(KernelTable& table);

namespace {

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

void fill_nan(float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = __builtin_nanf("");
}

void softmax(const void* x_in, void* out_in, std::int64_t n) {
  const auto* x = static_cast<const float*>(x_in);
  auto* out = static_cast<float*>(out_in);
  const float max = max_of_row(x, n);
  if (!is_finite(max)) return fill_nan(out, n);
  const auto scale = static_cast<float>(1 / exp_sum<true>(x, max, out, n));
  for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
}

void log_softmax(const void* x_in, void* out_in, std::int64_t n) {
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  auto* HWY_RESTRICT out = static_cast<float*>(out_in);
  const float max = max_of_row(x, n);
  if (!is_finite(max)) return fill_nan(out, n);
  const double shift = static_cast<double>(max) + __builtin_log(exp_sum<false>(x, max, nullptr, n));
  // The shift in two floats, and the error of the first subtraction: rounded as if from float64.
  const auto rounded = static_cast<float>(shift);
  const V high = hn::Set(D(), rounded);
  const V low = hn::Set(D(), static_cast<float>(shift - static_cast<double>(rounded)));
  // No x is above the shift. Where none is below its negative either, and no difference overflows,
  // the rounding error takes two steps.
  const V limit = hn::Set(D(), rounded < 1e38f ? -rounded : __builtin_inff());
  const V nothing = hn::Set(D(), -__builtin_inff());
  for_vectors(n, [&](std::int64_t i, auto at) {
    const V v = at.load(x + i);
    const V diff = hn::Sub(v, high);
    if (HWY_LIKELY(hn::AllTrue(D(), hn::Ge(v, limit)))) {
      const V lost = hn::Sub(v, hn::Add(diff, high));
      return at.store(hn::Add(diff, hn::Sub(lost, low)), out + i);
    }
    const V exact = hn::Add(diff, hn::Sub(rounding_error_of(diff, v, high), low));
    at.store(hn::IfThenElse(hn::Eq(diff, nothing), diff, exact), out + i);
  });
}

void logsumexp(const void* x_in, void* out, std::int64_t n) {
  const auto* x = static_cast<const float*>(x_in);
  const float max = max_of_row(x, n);
  // An infinite or NaN maximum is the result.
  *static_cast<float*>(out) =
      is_finite(max) ? static_cast<float>(static_cast<double>(max) +
                                          __builtin_log(exp_sum<false>(x, max, nullptr, n)))
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
