// Three loops, one element of C at a time.
#include "backends/cpu/reference/gemm.h"

#include <cmath>
#include <type_traits>

#include "core/visit.h"

namespace baregrad::kernels {

namespace {

double activate(double x, Activation activation) {
  switch (activation) {
    case Activation::None:
      break;
    case Activation::Relu:
      return x <= 0 ? 0 : x;
    case Activation::Gelu:
      return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case Activation::GeluTanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::Silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

/// Floats in double, integers modulo 2^64 (which determines every narrower width), bools as 0 or 1.
template <class T>
struct WideArithmetic {
  static constexpr bool kFloat = !std::is_integral_v<T>;
  using Wide = std::conditional_t<kFloat, double, std::uint64_t>;
  using Raw = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

  static Wide load(const void* base, std::int64_t at) {
    const Raw raw = static_cast<const Raw*>(base)[at];
    if constexpr (std::is_same_v<T, bool>)
      return raw != 0;
    else
      return static_cast<Wide>(raw);
  }
  static Wide add(Wide x, Wide y) {
    if constexpr (std::is_same_v<T, bool>)
      return x | y;
    else
      return x + y;
  }
  static Wide multiply(Wide x, Wide y) { return x * y; }
  static Wide act(Wide x, Activation activation) {
    if constexpr (kFloat)
      return activate(x, activation);
    else if constexpr (std::is_signed_v<T>)
      return activation == Activation::Relu && static_cast<T>(x) < 0 ? 0 : x;
    else
      return x;
  }
};

}  // namespace

void reference_gemm(const GemmCall& call) {
  visit_dtype(call.dtype, [&]<class T>(TypeTag<T>) {
    using S = WideArithmetic<T>;
    const GemmEpilogue& e = call.epilogue;
    for (std::int64_t i = 0; i < call.m; ++i) {
      for (std::int64_t j = 0; j < call.n; ++j) {
        typename S::Wide sum = 0;
        for (std::int64_t p = 0; p < call.k; ++p) {
          sum = S::add(
              sum,
              S::multiply(S::load(call.a.data, i * call.a.row_stride + p * call.a.col_stride),
                          S::load(call.b.data, p * call.b.row_stride + j * call.b.col_stride)));
        }
        const std::int64_t at = i * call.c_row_stride + j * call.c_col_stride;
        if (call.accumulate) sum = S::add(sum, S::load(call.c, at));
        if (e.bias != nullptr) sum = S::add(sum, S::load(e.bias, j * e.bias_stride));
        sum = S::act(sum, e.activation);
        if (e.residual != nullptr) {
          sum = S::add(sum,
                       S::load(e.residual, i * e.residual_row_stride + j * e.residual_col_stride));
        }
        static_cast<typename S::Raw*>(call.c)[at] = static_cast<typename S::Raw>(sum);
      }
    }
  });
}

}  // namespace baregrad::kernels
