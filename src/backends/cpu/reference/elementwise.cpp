// Elementwise ops one number at a time; approximate float32 functions are computed in double.
#include <cstdint>
#include <type_traits>

#include "backends/cpu/reference/reference.h"
#include "core/visit.h"
#include "ops/functors.h"

namespace baregrad::kernels::reference {

namespace {

template <class F>
F make_functor(const double* params) {
  if constexpr (std::is_constructible_v<F, const double*>)
    return F(params);
  else
    return F{};
}

/// The type in which F computes elements of T.
template <class F, class T>
using Number = Scalar<std::conditional_t<
    std::is_base_of_v<functors::Approximate, F> && std::is_same_v<T, float>, double, T>>;

/// Element i of an operand.
template <class F, class T>
Number<F, T> element(const void* data, std::int64_t i) {
  using Raw = typename Number<F, T>::Raw;
  return Number<F, T>::load(static_cast<Raw>(static_cast<const typename Scalar<T>::Raw*>(data)[i]));
}

/// Element i of input k; a float input may have only one element.
template <class F, class T>
Number<F, T> input(const void* const* in, int k, std::int64_t i, std::uint32_t repeated) {
  const bool one = std::is_floating_point_v<T> && (repeated >> k & 1U) != 0;
  return element<F, T>(in[k], one ? 0 : i);
}

template <class T, class Result>
void put(void* data, std::int64_t i, Result result) {
  using Raw = typename Scalar<T>::Raw;
  static_cast<Raw*>(data)[i] = static_cast<Raw>(result.raw);
}

void put_bool(void* data, std::int64_t i, bool result) {
  static_cast<std::uint8_t*>(data)[i] = result ? 1 : 0;
}

template <class F, class T>
void unary(const void* const* in, void* out, std::int64_t n, const double* params, std::uint32_t) {
  const F f = make_functor<F>(params);
  for (std::int64_t i = 0; i < n; ++i) put<T>(out, i, f(element<F, T>(in[0], i)));
}

template <class F, class T>
void binary(const void* const* in, void* out, std::int64_t n, const double* params,
            std::uint32_t repeated) {
  const F f = make_functor<F>(params);
  for (std::int64_t i = 0; i < n; ++i)
    put<T>(out, i, f(input<F, T>(in, 0, i, repeated), input<F, T>(in, 1, i, repeated)));
}

template <class F, class T>
void ternary(const void* const* in, void* out, std::int64_t n, const double* params,
             std::uint32_t repeated) {
  const F f = make_functor<F>(params);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<F, functors::where>) {
      const bool condition = static_cast<const std::uint8_t*>(in[0])[i] != 0;
      put<T>(out, i, f(condition, element<F, T>(in[1], i), element<F, T>(in[2], i)));
    } else {
      put<T>(out, i,
             f(input<F, T>(in, 0, i, repeated), input<F, T>(in, 1, i, repeated),
               input<F, T>(in, 2, i, repeated)));
    }
  }
}

template <class F, class T>
void predicate(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  for (std::int64_t i = 0; i < n; ++i) put_bool(out, i, F{}(element<F, T>(in[0], i)));
}

template <class F, class T>
void compare(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  for (std::int64_t i = 0; i < n; ++i) {
    put_bool(out, i, F{}(element<F, T>(in[0], i), element<F, T>(in[1], i)));
  }
}

/// The 16-bit float next to x towards y, by their bits; kInfinity is the bit pattern of infinity.
/// Values are mapped to integers in which neighbours differ by one and both zeros are 0.
template <std::int32_t kInfinity>
std::uint16_t next_half(std::uint16_t x, std::uint16_t y) {
  constexpr std::int32_t kSign = 0x8000;
  constexpr std::int32_t kQuiet = (kInfinity & -kInfinity) / 2;  // the mantissa's highest bit
  const std::int32_t x_size = x & ~kSign;
  const std::int32_t y_size = y & ~kSign;
  if (x_size > kInfinity) return static_cast<std::uint16_t>(x | kQuiet);  // NaN
  if (y_size > kInfinity) return static_cast<std::uint16_t>(y | kQuiet);
  const std::int32_t from = (x & kSign) != 0 ? -x_size : x_size;
  const std::int32_t to = (y & kSign) != 0 ? -y_size : y_size;
  if (from == to) return y;
  const std::int32_t next = from < to ? from + 1 : from - 1;
  // A step that ends at zero keeps the sign of its start.
  const bool negative = next < 0 || (next == 0 && from < 0);
  return static_cast<std::uint16_t>(negative ? kSign - next : next);
}

/// Elements of float16 or bfloat16. Only this op needs the neighbours in these types, which float32
/// would round away.
template <std::int32_t kInfinity>
void nextafter_half(const void* const* in, void* out, std::int64_t n, const double*,
                    std::uint32_t repeated) {
  const auto* x = static_cast<const std::uint16_t*>(in[0]);
  const auto* y = static_cast<const std::uint16_t*>(in[1]);
  auto* to = static_cast<std::uint16_t*>(out);
  const std::int64_t x_step = (repeated & 1U) != 0 ? 0 : 1;
  const std::int64_t y_step = (repeated & 2U) != 0 ? 0 : 1;
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = next_half<kInfinity>(x[i * x_step], y[i * y_step]);
  }
}

/// Whether an op of this rule computes in T.
template <Rule kRule, class T>
constexpr bool computes_in() {
  constexpr bool kIsBool = std::is_same_v<T, bool>;
  constexpr bool kIsFloat = std::is_floating_point_v<T>;
  constexpr bool kIsInt = std::is_integral_v<T> && !kIsBool;
  switch (kRule) {
    case Rule::Any:
      return kIsBool || kIsInt || kIsFloat;
    case Rule::Numeric:
      return kIsInt || kIsFloat;
    case Rule::Floating:
      return kIsFloat;
    case Rule::Integer:
      return kIsBool || kIsInt;
    case Rule::Shift:
      return kIsInt;
    case Rule::Free:
      break;
  }
  return false;
}

/// Sets the op's entries to kernel(TypeTag<T>) for every T the rule allows.
template <Rule kRule, class Kernel>
void fill_types(KernelTable& table, OpId op, Kernel kernel) {
  for (int d = 0; d < kNumDTypes; ++d) {
    visit_dtype(static_cast<DType>(d), [&]<class T>(TypeTag<T> tag) {
      if constexpr (computes_in<kRule, T>()) {
        table.elementwise[static_cast<int>(op)][d] = kernel(tag);
      }
    });
  }
}

}  // namespace

void register_elementwise(KernelTable& table) {
#define BG_FILL(name, rule, kernel)                                                    \
  fill_types<Rule::rule>(table, OpId::name, []<class T>(TypeTag<T>) -> ElementwiseFn { \
    return &kernel<functors::name, T>;                                                 \
  });
#define BG_UNARY(name, rule, doc) BG_FILL(name, rule, unary)
#define BG_PREDICATE(name, rule, doc) BG_FILL(name, rule, predicate)
#define BG_BINARY(name, rule, doc) BG_FILL(name, rule, binary)
#define BG_COMPARE(name, rule, doc) BG_FILL(name, rule, compare)
#define BG_TERNARY(name, rule, doc) BG_FILL(name, rule, ternary)
#include "ops/ops.def"
#undef BG_FILL
  ElementwiseFn* nextafter = table.elementwise[static_cast<int>(OpId::nextafter)];
  nextafter[static_cast<int>(DType::Float16)] = &nextafter_half<0x7c00>;
  nextafter[static_cast<int>(DType::BFloat16)] = &nextafter_half<0x7f80>;
}

}  // namespace baregrad::kernels::reference
