// Elementwise ops one number at a time; approximated float32 results are rounded from double.
#include <cstdint>
#include <type_traits>

#include "core/visit.h"
#include "kernels/reference/reference.h"
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

/// What F computes in where elements are T.
template <class F, class T>
using Number = Scalar<std::conditional_t<
    std::is_base_of_v<functors::Approximate, F> && std::is_same_v<T, float>, double, T>>;

/// Element i of an operand.
template <class F, class T>
Number<F, T> at(const void* data, std::int64_t i) {
  using Raw = typename Number<F, T>::Raw;
  return Number<F, T>::load(static_cast<Raw>(static_cast<const typename Scalar<T>::Raw*>(data)[i]));
}

/// Element i of input k, which floats may have only one of.
template <class F, class T>
Number<F, T> at(const void* const* in, int k, std::int64_t i, std::uint32_t repeated) {
  const bool one = std::is_floating_point_v<T> && (repeated >> k & 1U) != 0;
  return at<F, T>(in[k], one ? 0 : i);
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
  for (std::int64_t i = 0; i < n; ++i) put<T>(out, i, f(at<F, T>(in[0], i)));
}

template <class F, class T>
void binary(const void* const* in, void* out, std::int64_t n, const double* params,
            std::uint32_t repeated) {
  const F f = make_functor<F>(params);
  for (std::int64_t i = 0; i < n; ++i)
    put<T>(out, i, f(at<F, T>(in, 0, i, repeated), at<F, T>(in, 1, i, repeated)));
}

template <class F, class T>
void ternary(const void* const* in, void* out, std::int64_t n, const double* params,
             std::uint32_t repeated) {
  const F f = make_functor<F>(params);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<F, functors::where>) {
      const bool condition = static_cast<const std::uint8_t*>(in[0])[i] != 0;
      put<T>(out, i, f(condition, at<F, T>(in[1], i), at<F, T>(in[2], i)));
    } else {
      put<T>(out, i,
             f(at<F, T>(in, 0, i, repeated), at<F, T>(in, 1, i, repeated),
               at<F, T>(in, 2, i, repeated)));
    }
  }
}

template <class F, class T>
void predicate(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  for (std::int64_t i = 0; i < n; ++i) put_bool(out, i, F{}(at<F, T>(in[0], i)));
}

template <class F, class T>
void compare(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  for (std::int64_t i = 0; i < n; ++i) {
    put_bool(out, i, F{}(at<F, T>(in[0], i), at<F, T>(in[1], i)));
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
void fill(KernelTable& table, OpId op, Kernel kernel) {
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
#define BG_FILL(name, rule, kernel)                                              \
  fill<Rule::rule>(table, OpId::name, []<class T>(TypeTag<T>) -> ElementwiseFn { \
    return &kernel<functors::name, T>;                                           \
  });
#define BG_UNARY(name, rule, doc) BG_FILL(name, rule, unary)
#define BG_PREDICATE(name, rule, doc) BG_FILL(name, rule, predicate)
#define BG_BINARY(name, rule, doc) BG_FILL(name, rule, binary)
#define BG_COMPARE(name, rule, doc) BG_FILL(name, rule, compare)
#define BG_TERNARY(name, rule, doc) BG_FILL(name, rule, ternary)
#include "ops/ops.def"
#undef BG_FILL
}

}  // namespace baregrad::kernels::reference
