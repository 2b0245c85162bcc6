// The loops around elementwise functors, and which loop serves an op at a compute type.
//
// Floats go through Vec<T>, the rest of each run in a vector of its own: an element's value does
// not depend on where it stands. Everything else is exact at any width and is left to the
// compiler as a plain loop. `out` may be an input of the same item size, so no loop reads an
// element after a later one was written: hence `ivdep`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/abi.h"
#include "kernels/cpu/vec.h"
#include "ops/functors.h"

namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

template <class F>
BG_INLINE F make_functor(const double* params) {
  if constexpr (std::is_constructible_v<F, const double*>)
    return F(params);
  else
    return F{};
}

template <class F, class Tag>
constexpr bool kHas = std::is_base_of_v<Tag, F>;

template <std::size_t kSize>
using UnsignedOf = std::conditional_t<
    kSize == 1, std::uint8_t,
    std::conditional_t<kSize == 2, std::uint16_t,
                       std::conditional_t<kSize == 4, std::uint32_t, std::uint64_t>>>;

/// The type whose loop serves T: fewer loops, where the bits come out the same.
template <class F, class T>
using LoopType = std::conditional_t<kHas<F, functors::Copying> ||
                                        (kHas<F, functors::Modular> && std::is_integral_v<T> &&
                                         !std::is_same_v<T, bool>),
                                    UnsignedOf<sizeof(T)>, T>;

/// Up to three inputs of one type, loaded side by side.
template <class F, class T, int kInputs>
struct VecBody {
  using V = Vec<T>;
  F f;
  const T* x;
  const T* y;
  const T* z;
  T* out;

  BG_INLINE void whole(std::size_t at) const {
    if constexpr (kInputs == 1)
      f(V::load(x + at)).store(out + at);
    else if constexpr (kInputs == 2)
      f(V::load(x + at), V::load(y + at)).store(out + at);
    else
      f(V::load(x + at), V::load(y + at), V::load(z + at)).store(out + at);
  }
  BG_INLINE void part(std::size_t at, std::size_t n) const {
    if constexpr (kInputs == 1) {
      f(V::load_part(x + at, n)).store_part(out + at, n);
    } else if constexpr (kInputs == 2) {
      f(V::load_part(x + at, n), V::load_part(y + at, n)).store_part(out + at, n);
    } else {
      f(V::load_part(x + at, n), V::load_part(y + at, n), V::load_part(z + at, n))
          .store_part(out + at, n);
    }
  }
};

template <class F, class T, int kInputs>
void vec_loop(const void* const* in, void* out, std::int64_t n, const double* params) {
  constexpr std::size_t kLanes = Vec<T>::kLanes;
  const VecBody<F, T, kInputs> body{make_functor<F>(params), static_cast<const T*>(in[0]),
                                    kInputs > 1 ? static_cast<const T*>(in[1]) : nullptr,
                                    kInputs > 2 ? static_cast<const T*>(in[2]) : nullptr,
                                    static_cast<T*>(out)};
  const auto size = static_cast<std::size_t>(n);
  std::size_t at = 0;
  // Cheap bodies are bound by the loop around them, approximations are not.
  if constexpr (!kHas<F, functors::Approximate>) {
    for (; size - at >= 4 * kLanes; at += 4 * kLanes) {
      body.whole(at);
      body.whole(at + kLanes);
      body.whole(at + 2 * kLanes);
      body.whole(at + 3 * kLanes);
    }
  }
  for (; size - at >= kLanes; at += kLanes) body.whole(at);
  if (at != size) body.part(at, size - at);
}

template <class T>
using RawOf = typename Scalar<T>::Raw;

template <class F, class T>
void unary_plain(const void* const* in, void* out, std::int64_t n, const double* params) {
  using S = Scalar<T>;
  const F f = make_functor<F>(params);
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  auto* to = static_cast<RawOf<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(S::load(x[i])).raw;
}

template <class F, class T>
void binary_plain(const void* const* in, void* out, std::int64_t n, const double* params) {
  using S = Scalar<T>;
  const F f = make_functor<F>(params);
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  const auto* y = static_cast<const RawOf<T>*>(in[1]);
  auto* to = static_cast<RawOf<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(S::load(x[i]), S::load(y[i])).raw;
}

template <class F, class T>
void ternary_plain(const void* const* in, void* out, std::int64_t n, const double* params) {
  using S = Scalar<T>;
  const F f = make_functor<F>(params);
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  const auto* y = static_cast<const RawOf<T>*>(in[1]);
  const auto* z = static_cast<const RawOf<T>*>(in[2]);
  auto* to = static_cast<RawOf<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = f(S::load(x[i]), S::load(y[i]), S::load(z[i])).raw;
  }
}

/// `where` on any type of this size.
template <class T>
void where_plain(const void* const* in, void* out, std::int64_t n, const double*) {
  static_assert(std::is_unsigned_v<T>);
  // For AVX-512 GCC does not vectorise a choice between 64-bit elements by bytes.
  constexpr bool kByMask = HWY_TARGET == HWY_AVX3 && sizeof(T) == 8;
  const auto* condition = static_cast<const std::uint8_t*>(in[0]);
  const auto* x = static_cast<const T*>(in[1]);
  const auto* y = static_cast<const T*>(in[2]);
  auto* to = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (kByMask) {
      const T mask = 0 - static_cast<T>(condition[i] != 0);
      to[i] = (x[i] & mask) | (y[i] & ~mask);
    } else {
      to[i] = functors::where{}(condition[i] != 0, Scalar<T>{x[i]}, Scalar<T>{y[i]}).raw;
    }
  }
}

template <class F, class T>
void predicate_plain(const void* const* in, void* out, std::int64_t n, const double*) {
  using S = Scalar<T>;
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  auto* to = static_cast<std::uint8_t*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(F{}(S::load(x[i])));
}

template <class F, class T>
void compare_plain(const void* const* in, void* out, std::int64_t n, const double*) {
  using S = Scalar<T>;
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  const auto* y = static_cast<const RawOf<T>*>(in[1]);
  auto* to = static_cast<std::uint8_t*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<std::uint8_t>(F{}(S::load(x[i]), S::load(y[i])));
  }
}

template <class F, class T>
constexpr ElementwiseFn unary_kernel() {
  using L = LoopType<F, T>;
  if constexpr (std::is_floating_point_v<L>)
    return &vec_loop<F, L, 1>;
  else
    return &unary_plain<F, L>;
}
template <class F, class T>
constexpr ElementwiseFn binary_kernel() {
  using L = LoopType<F, T>;
  if constexpr (std::is_floating_point_v<L>)
    return &vec_loop<F, L, 2>;
  else
    return &binary_plain<F, L>;
}
template <class F, class T>
constexpr ElementwiseFn ternary_kernel() {
  using L = LoopType<F, T>;
  if constexpr (std::is_same_v<F, functors::where>)
    return &where_plain<L>;
  else if constexpr (std::is_floating_point_v<L>)
    return &vec_loop<F, L, 3>;
  else
    return &ternary_plain<F, L>;
}
template <class F, class T>
constexpr ElementwiseFn predicate_kernel() {
  return &predicate_plain<F, LoopType<F, T>>;
}
template <class F, class T>
constexpr ElementwiseFn compare_kernel() {
  return &compare_plain<F, LoopType<F, T>>;
}

/// Calls visit<T>() for every compute type the rule allows.
template <Rule kRule, class Visitor>
BG_INLINE void for_each_compute_type(const Visitor& visit) {
  constexpr bool kAny = kRule == Rule::Any;
  if constexpr (kAny || kRule == Rule::Integer) visit.template operator()<bool>();
  if constexpr (kRule != Rule::Floating) {
    visit.template operator()<std::int8_t>();
    visit.template operator()<std::int16_t>();
    visit.template operator()<std::int32_t>();
    visit.template operator()<std::int64_t>();
    visit.template operator()<std::uint8_t>();
    visit.template operator()<std::uint16_t>();
    visit.template operator()<std::uint32_t>();
    visit.template operator()<std::uint64_t>();
  }
  if constexpr (kAny || kRule == Rule::Numeric || kRule == Rule::Floating) {
    visit.template operator()<float>();
    visit.template operator()<double>();
  }
}

template <class T>
BG_INLINE ElementwiseFn& entry(KernelTable& table, OpId op) {
  return table.elementwise[static_cast<int>(op)][static_cast<int>(DTypeOf<T>::value)];
}

}  // namespace
}  // namespace baregrad::kernels::HWY_NAMESPACE
