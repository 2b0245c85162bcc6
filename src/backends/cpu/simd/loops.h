// The loops around elementwise functors, and which loop serves an op at a compute type.
//
// Floats go through Vec<T>, the rest of each run in a vector of its own: the value of an element
// does not depend on its position. Everything else is exact at any vector width and is left to the
// compiler as a plain loop. `out` may be an input of the same item size, so no loop reads an
// element after a later one was written: hence `ivdep`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/abi.h"
#include "backends/cpu/simd/vec.h"
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

// ---- Floats: vectors ----------------------------------------------------------------------------

// Vectors of one iteration. Cheap bodies are limited by the overhead of the loop.
constexpr std::size_t kUnroll = 4;

/// An operand with one element for each result.
template <class T>
struct VecRun {
  const T* at;

  BG_INLINE Vec<T> load(std::size_t i) const { return Vec<T>::load(at + i); }
  BG_INLINE Vec<T> load_part(std::size_t n) const { return Vec<T>::load_part(at, n); }
  BG_INLINE void advance(std::size_t vectors) { at += vectors * Vec<T>::kLanes; }
};

/// One element for all results, in a register.
template <class T>
struct VecOne {
  Vec<T> value;

  BG_INLINE explicit VecOne(const void* one)
      : value{hn::Set(typename Vec<T>::D(), *static_cast<const T*>(one))} {}
  BG_INLINE Vec<T> load(std::size_t) const { return value; }
  BG_INLINE Vec<T> load_part(std::size_t) const { return value; }
  BG_INLINE void advance(std::size_t) {}
};

/// Either kind: a single element fills `tile`, which is read again and again. This needs one loop
/// in the binary, where a loop for each mix of operands would need several.
template <class T>
struct VecEither {
  using Tile = T[kUnroll * Vec<T>::kLanes];
  const T* at;
  std::size_t stride = Vec<T>::kLanes;

  BG_INLINE VecEither(const void* from, bool one, Tile& tile) : at(static_cast<const T*>(from)) {
    if (one) *this = repeat(at, tile);
  }
  BG_INLINE Vec<T> load(std::size_t i) const { return Vec<T>::load(at + i); }
  BG_INLINE Vec<T> load_part(std::size_t n) const { return Vec<T>::load_part(at, n); }
  BG_INLINE void advance(std::size_t vectors) { at += vectors * stride; }

 private:
  BG_INLINE VecEither(const T* from, std::size_t step) : at(from), stride(step) {}
  static HWY_NOINLINE VecEither repeat(const T* one, Tile& tile) {
    const Vec<T> many{hn::Set(typename Vec<T>::D(), *one)};
    for (std::size_t i = 0; i < kUnroll; ++i) many.store(tile + i * Vec<T>::kLanes);
    return {tile, 0};
  }
};

template <class F>
constexpr bool kCheap = !kHas<F, functors::Approximate> && !kHas<F, functors::Serial>;

template <class F, class T, class... Inputs>
BG_INLINE void vec_run(const F& f, T* out, std::size_t n, Inputs... in) {
  constexpr std::size_t kLanes = Vec<T>::kLanes;
  if constexpr (kCheap<F>) {
    for (; n >= kUnroll * kLanes; n -= kUnroll * kLanes, out += kUnroll * kLanes) {
      for (std::size_t i = 0; i < kUnroll * kLanes; i += kLanes) f(in.load(i)...).store(out + i);
      (in.advance(kUnroll), ...);
    }
  }
#pragma GCC unroll 1
  for (; n >= kLanes; n -= kLanes, out += kLanes) {
    f(in.load(0)...).store(out);
    (in.advance(1), ...);
  }
  if (n != 0) f(in.load_part(n)...).store_part(out, n);
}

template <class F, class T>
void vec_unary(const void* const* in, void* out, std::int64_t n, const double* params,
               std::uint32_t) {
  vec_run(make_functor<F>(params), static_cast<T*>(out), static_cast<std::size_t>(n),
          VecRun<T>{static_cast<const T*>(in[0])});
}

template <class F, class T>
void vec_binary(const void* const* in, void* out, std::int64_t n, const double* params,
                std::uint32_t repeated) {
  const F f = make_functor<F>(params);
  auto* const to = static_cast<T*>(out);
  const auto size = static_cast<std::size_t>(n);
  // One 512-bit load is issued per cycle: a second load shows where a vector takes at most two
  // cycles.
  if constexpr (kCheap<F> && HWY_TARGET == HWY_AVX3) {
    const VecRun<T> x{static_cast<const T*>(in[0])};
    const VecRun<T> y{static_cast<const T*>(in[1])};
    if (repeated == 0) return vec_run(f, to, size, x, y);
    if (repeated == 1) return vec_run(f, to, size, VecOne<T>(in[0]), y);
    return vec_run(f, to, size, x, VecOne<T>(in[1]));
  } else {
    using Operand = VecEither<T>;
    HWY_ALIGN typename Operand::Tile tiles[2];
    vec_run(f, to, size, Operand(in[0], (repeated & 1U) != 0, tiles[0]),
            Operand(in[1], (repeated & 2U) != 0, tiles[1]));
  }
}

template <class F, class T>
void vec_ternary(const void* const* in, void* out, std::int64_t n, const double* params,
                 std::uint32_t repeated) {
  using Operand = VecEither<T>;
  HWY_ALIGN typename Operand::Tile tiles[3];
  vec_run(make_functor<F>(params), static_cast<T*>(out), static_cast<std::size_t>(n),
          Operand(in[0], (repeated & 1U) != 0, tiles[0]),
          Operand(in[1], (repeated & 2U) != 0, tiles[1]),
          Operand(in[2], (repeated & 4U) != 0, tiles[2]));
}

// ---- Everything else: plain loops over n elements of every operand ------------------------------

template <class T>
using RawOf = typename Scalar<T>::Raw;

template <class F, class T>
void unary_plain(const void* const* in, void* out, std::int64_t n, const double* params,
                 std::uint32_t) {
  using S = Scalar<T>;
  const F f = make_functor<F>(params);
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  auto* to = static_cast<RawOf<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(S::load(x[i])).raw;
}

template <class F, class T>
void binary_plain(const void* const* in, void* out, std::int64_t n, const double* params,
                  std::uint32_t) {
  using S = Scalar<T>;
  const F f = make_functor<F>(params);
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  const auto* y = static_cast<const RawOf<T>*>(in[1]);
  auto* to = static_cast<RawOf<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(S::load(x[i]), S::load(y[i])).raw;
}

template <class F, class T>
void ternary_plain(const void* const* in, void* out, std::int64_t n, const double* params,
                   std::uint32_t) {
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
void where_plain(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  static_assert(std::is_unsigned_v<T>);
  // With AVX-512 flags GCC does not vectorise a choice between 64-bit elements by bytes.
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
void predicate_plain(const void* const* in, void* out, std::int64_t n, const double*,
                     std::uint32_t) {
  using S = Scalar<T>;
  const auto* x = static_cast<const RawOf<T>*>(in[0]);
  auto* to = static_cast<std::uint8_t*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(F{}(S::load(x[i])));
}

template <class F, class T>
void compare_plain(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
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
    return &vec_unary<F, L>;
  else
    return &unary_plain<F, L>;
}
template <class F, class T>
constexpr ElementwiseFn binary_kernel() {
  using L = LoopType<F, T>;
  if constexpr (std::is_floating_point_v<L>)
    return &vec_binary<F, L>;
  else
    return &binary_plain<F, L>;
}
template <class F, class T>
constexpr ElementwiseFn ternary_kernel() {
  using L = LoopType<F, T>;
  if constexpr (std::is_same_v<F, functors::where>)
    return &where_plain<L>;
  else if constexpr (std::is_floating_point_v<L>)
    return &vec_ternary<F, L>;
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
