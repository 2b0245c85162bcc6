// What the reductions of one ISA share: monoids over scalars and the loops that run them over a
// block. Included by ISA-flagged sources only; everything here is local to its translation unit.
#pragma once

#include <cstdint>

#include <hwy/highway.h>

#include "backends/cpu/abi.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
inline constexpr bool is_float_type = false;
template <>
inline constexpr bool is_float_type<float> = true;
template <>
inline constexpr bool is_float_type<double> = true;

// Integers of up to 16 bits are added in 32 bits over a short stretch, then widened: this gives
// twice the lanes. kPartStretch of them cannot overflow.
inline constexpr std::int64_t kPartStretch = 4096;
template <class T>
struct SumTypes {
  using Part = std::uint64_t;
  using Acc = std::uint64_t;
};
template <>
struct SumTypes<std::int8_t> {
  using Part = std::int32_t;
  using Acc = std::uint64_t;
};
template <>
struct SumTypes<std::uint8_t> : SumTypes<std::int8_t> {};
template <>
struct SumTypes<std::int16_t> : SumTypes<std::int8_t> {};
template <>
struct SumTypes<std::uint16_t> : SumTypes<std::int8_t> {};
template <>
struct SumTypes<float> {
  using Part = double;
  using Acc = double;
};
template <>
struct SumTypes<double> : SumTypes<float> {};

// A monoid: elements of type Elem are lifted to Part, Parts are merged, and a stretch of them is
// widened to Acc. 64-bit integers wrap, so signed ones are added as unsigned.
template <class T>
struct Sum {
  using Elem = T;
  using Part = typename SumTypes<T>::Part;
  using Acc = typename SumTypes<T>::Acc;
  static constexpr bool kShifted = false;
  static constexpr Acc identity() { return 0; }
  static Part lift(T x, double) { return static_cast<Part>(x); }
  static Acc widen(Part part) { return static_cast<Acc>(part); }
  template <class A>
  static A merge(A a, A b) {
    return a + b;
  }
};

template <class T>
struct Prod {
  using Elem = T;
  using Part = double;
  using Acc = double;
  static constexpr bool kShifted = false;
  static constexpr Acc identity() { return 1; }
  static Part lift(T x, double) { return x; }
  static Acc widen(Part part) { return part; }
  static double merge(double a, double b) { return a * b; }
};

template <class T>
struct SumSquares : Sum<T> {
  static double lift(T x, double) { return static_cast<double>(x) * static_cast<double>(x); }
};

/// Sums of differences to one number per lane: the mean is computed relative to it.
template <class T>
struct ShiftedSum : Sum<T> {
  static constexpr bool kShifted = true;
  static double lift(T x, double shift) { return static_cast<double>(x) - shift; }
};

template <class T>
struct Deviation : Sum<T> {
  static constexpr bool kShifted = true;
  static double lift(T x, double shift) {
    const double d = static_cast<double>(x) - shift;
    return d * d;
  }
};

template <class T>
struct CountNonzero {
  using Elem = T;
  using Part = std::uint32_t;
  using Acc = std::uint64_t;
  static constexpr bool kShifted = false;
  static constexpr Acc identity() { return 0; }
  static Part lift(T x, double) { return x != T{0} ? 1 : 0; }
  static Acc widen(Part part) { return part; }
  template <class A>
  static A merge(A a, A b) {
    return a + b;
  }
};

// The identity: no element of T is better.
template <class T, bool kGreatest>
constexpr T extreme() {
  if constexpr (is_float_type<T>) {
    return kGreatest ? -static_cast<T>(__builtin_inf()) : static_cast<T>(__builtin_inf());
  } else {
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T top = is_signed ? static_cast<T>((1ULL << (8 * sizeof(T) - 1)) - 1) : T(~T(0));
    return kGreatest ? static_cast<T>(is_signed ? -top - 1 : 0) : top;
  }
}

template <class T, bool kGreatest>
struct Extreme {
  using Elem = T;
  using Part = T;
  using Acc = T;
  static constexpr bool kShifted = false;
  static constexpr Acc identity() { return extreme<T, kGreatest>(); }
  static Part lift(T x, double) { return x; }
  static Acc widen(Part part) { return part; }
  static T merge(T a, T b) {
    if constexpr (is_float_type<T>) {
      // A NaN in b is taken; one in a compares false with everything and stays.
      const bool take = (kGreatest ? b > a : b < a) | (b != b);
      return take ? b : a;
    } else {
      return (kGreatest ? b > a : b < a) ? b : a;
    }
  }
};

template <class Op>
HWY_NOINLINE void init_acc(void* acc, std::int64_t n) {
  auto* a = static_cast<typename Op::Acc*>(acc);
  for (std::int64_t i = 0; i < n; ++i) a[i] = Op::identity();
}

template <class Op>
HWY_NOINLINE void combine_acc(void* acc, const void* other, std::int64_t n) {
  auto* HWY_RESTRICT a = static_cast<typename Op::Acc*>(acc);
  const auto* HWY_RESTRICT b = static_cast<const typename Op::Acc*>(other);
  for (std::int64_t i = 0; i < n; ++i) a[i] = Op::merge(a[i], b[i]);
}

// The compiler vectorises this over the columns: the order of operations within a column is kept.
// Four rows at a time keep the traffic of the accumulators small. More rows would compete for the
// same cache sets when they are a power of two apart.
template <class Op>
struct PlainRows {
  using Elem = typename Op::Elem;
  using Acc = typename Op::Acc;
  using Scalar = Op;

  static HWY_NOINLINE void outer(const Elem* HWY_RESTRICT x, std::int64_t rows,
                                 std::int64_t row_stride, std::int64_t cols, Acc* HWY_RESTRICT acc,
                                 const double*) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const Elem* HWY_RESTRICT p = x + r * row_stride;
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = [&](std::int64_t k) { return Op::lift(p[k * row_stride + c], 0); };
        const auto part = Op::merge(Op::merge(at(0), at(1)), Op::merge(at(2), at(3)));
        acc[c] = Op::merge(acc[c], Op::widen(part));
      }
    }
    for (; r < rows; ++r) {
      const Elem* HWY_RESTRICT p = x + r * row_stride;
      for (std::int64_t c = 0; c < cols; ++c) {
        acc[c] = Op::merge(acc[c], Op::widen(Op::lift(p[c], 0)));
      }
    }
  }
};

// Loop: PlainRows or VectorRows.
template <class Loop>
void outer(const void* x_in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
           void* acc_out, const double* shift) {
  using Op = typename Loop::Scalar;
  using Acc = typename Loop::Acc;
  const auto* x = static_cast<const typename Loop::Elem*>(x_in);
  auto* acc = static_cast<Acc*>(acc_out);
  // Few contiguous columns: several rows are one long row of as many accumulators.
  constexpr std::int64_t kFold = 128;
  if (cols <= kFold / 4 && row_stride == cols && rows * cols >= 8 * kFold) {
    const std::int64_t fold = kFold / cols;
    const std::int64_t long_cols = fold * cols;
    Acc part[kFold];
    init_acc<Op>(part, long_cols);
    double part_shift[Op::kShifted ? kFold : 1];
    if constexpr (Op::kShifted) {
      for (std::int64_t i = 0; i < long_cols; ++i) part_shift[i] = shift[i % cols];
    }
    const std::int64_t long_rows = rows / fold;
    Loop::outer(x, long_rows, long_cols, long_cols, part, part_shift);
    for (std::int64_t i = 0; i < fold; ++i) combine_acc<Op>(acc, part + i * cols, cols);
    x += long_rows * long_cols;
    rows -= long_rows * fold;
  }
  Loop::outer(x, rows, row_stride, cols, acc, shift);
}

// The merge of n contiguous elements in any order: integers only.
template <class Op>
typename Op::Acc run(const typename Op::Elem* x, std::int64_t n, double shift) {
  auto acc = Op::identity();
  for (std::int64_t begin = 0; begin < n; begin += kPartStretch) {
    const std::int64_t end = begin + kPartStretch < n ? begin + kPartStretch : n;
    auto part = static_cast<typename Op::Part>(Op::identity());
    for (std::int64_t i = begin; i < end; ++i) part = Op::merge(part, Op::lift(x[i], shift));
    acc = Op::merge(acc, Op::widen(part));
  }
  return acc;
}

// The same for floats: the order is fixed, in SIMD. A VecOp adds to a monoid
//   load(d, p)         Lanes(d) elements as vector of Acc
//   step(acc, x, s)    acc (+) lift(x, s)
//   merge(acc, acc)
template <class VecOp>
typename VecOp::Acc vector_run(const typename VecOp::Elem* HWY_RESTRICT x, std::int64_t n,
                               double shift) {
  using Acc = typename VecOp::Acc;
  using Scalar = typename VecOp::Scalar;
  const hn::ScalableTag<Acc> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<Acc>()));
  std::int64_t i = 0;
  Acc acc = Scalar::identity();
  if (n >= kLanes) {
    const auto s = hn::Set(d, static_cast<Acc>(shift));
    auto a0 = hn::Set(d, Scalar::identity());
    // Eight chains hide the latency of an add.
    if (n >= 8 * kLanes) {
      auto a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
      for (; i + 8 * kLanes <= n; i += 8 * kLanes) {
        a0 = VecOp::step(a0, VecOp::load(d, x + i), s);
        a1 = VecOp::step(a1, VecOp::load(d, x + i + kLanes), s);
        a2 = VecOp::step(a2, VecOp::load(d, x + i + 2 * kLanes), s);
        a3 = VecOp::step(a3, VecOp::load(d, x + i + 3 * kLanes), s);
        a4 = VecOp::step(a4, VecOp::load(d, x + i + 4 * kLanes), s);
        a5 = VecOp::step(a5, VecOp::load(d, x + i + 5 * kLanes), s);
        a6 = VecOp::step(a6, VecOp::load(d, x + i + 6 * kLanes), s);
        a7 = VecOp::step(a7, VecOp::load(d, x + i + 7 * kLanes), s);
      }
      a0 = VecOp::merge(VecOp::merge(VecOp::merge(a0, a1), VecOp::merge(a2, a3)),
                        VecOp::merge(VecOp::merge(a4, a5), VecOp::merge(a6, a7)));
    }
    for (; i + kLanes <= n; i += kLanes) a0 = VecOp::step(a0, VecOp::load(d, x + i), s);
    HWY_ALIGN Acc lanes[kLanes];
    hn::Store(a0, d, lanes);
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::int64_t k = 0; k < half; ++k) lanes[k] = Scalar::merge(lanes[k], lanes[k + half]);
    }
    acc = lanes[0];
  }
  for (; i < n; ++i) acc = Scalar::merge(acc, Scalar::lift(x[i], shift));
  return acc;
}

// Eight rows at a time, cache line by cache line: each line is read once, even when other rows fall
// on its cache set.
template <class VecOp>
struct VectorRows {
  using Elem = typename VecOp::Elem;
  using Acc = typename VecOp::Acc;
  using Scalar = typename VecOp::Scalar;
  using D = hn::ScalableTag<Acc>;
  static constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

  template <int kVectors>
  static HWY_INLINE void columns(const Elem* HWY_RESTRICT x, std::int64_t rows,
                                 std::int64_t row_stride, Acc* HWY_RESTRICT acc,
                                 const double* HWY_RESTRICT shift) {
    const D d;
    hn::Vec<D> s[kVectors];
    hn::Vec<D> part[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      part[k] = hn::Set(d, Scalar::identity());
      if constexpr (Scalar::kShifted) {
        s[k] = hn::LoadU(d, shift + k * kLanes);
      } else {
        s[k] = part[k];
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (int k = 0; k < kVectors; ++k) {
        part[k] = VecOp::step(part[k], VecOp::load(d, x + r * row_stride + k * kLanes), s[k]);
      }
    }
    for (int k = 0; k < kVectors; ++k) {
      Acc* to = acc + k * kLanes;
      hn::StoreU(VecOp::merge(hn::LoadU(d, to), part[k]), d, to);
    }
  }

  static HWY_NOINLINE void outer(const Elem* HWY_RESTRICT x, std::int64_t rows,
                                 std::int64_t row_stride, std::int64_t cols, Acc* HWY_RESTRICT acc,
                                 const double* HWY_RESTRICT shift) {
    constexpr std::int64_t kRows = 8;
    for (std::int64_t r = 0; r < rows; r += kRows) {
      const std::int64_t count = rows - r < kRows ? rows - r : kRows;
      const Elem* HWY_RESTRICT p = x + r * row_stride;
      std::int64_t c = 0;
      for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
        columns<4>(p + c, count, row_stride, acc + c, Scalar::kShifted ? shift + c : shift);
      }
      for (; c + kLanes <= cols; c += kLanes) {
        columns<1>(p + c, count, row_stride, acc + c, Scalar::kShifted ? shift + c : shift);
      }
      for (; c < cols; ++c) {
        Acc part = Scalar::identity();
        const double s = Scalar::kShifted ? shift[c] : 0;
        for (std::int64_t k = 0; k < count; ++k) {
          part = Scalar::merge(part, Scalar::lift(p[k * row_stride + c], s));
        }
        acc[c] = Scalar::merge(acc[c], part);
      }
    }
  }
};

// What the sums of floats share: f32 is widened on load, so that a sum of it is rounded once.
template <class T>
struct VecInDouble {
  using Elem = T;
  using Acc = double;
  template <class D>
  static hn::Vec<D> load(D d, const T* p) {
    if constexpr (sizeof(T) == 4) {
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), p));
    } else {
      return hn::LoadU(d, p);
    }
  }
  template <class V>
  static V merge(V a, V b) {
    return hn::Add(a, b);
  }
};

template <class T>
struct VecSum : VecInDouble<T> {
  using Scalar = Sum<T>;
  template <class V>
  static V step(V a, V x, V) {
    return hn::Add(a, x);
  }
};

template <class T>
struct VecDeviation : VecInDouble<T> {
  using Scalar = Deviation<T>;
  template <class V>
  static V step(V a, V x, V s) {
    const V d = hn::Sub(x, s);
    return hn::MulAdd(d, d, a);
  }
};

// Greatest (or least) of float vectors; NaN is taken and kept.
template <class T, bool kGreatest>
struct VecExtreme {
  using Elem = T;
  using Acc = T;
  using Scalar = Extreme<T, kGreatest>;
  template <class D>
  static hn::Vec<D> load(D d, const T* p) {
    return hn::LoadU(d, p);
  }
  template <class V>
  static V merge(V a, V b) {
    const auto better = kGreatest ? hn::Gt(b, a) : hn::Lt(b, a);
    return hn::IfThenElse(hn::Or(better, hn::IsNaN(b)), b, a);
  }
  template <class V>
  static V step(V a, V x, V) {
    return merge(a, x);
  }
};

/// Greatest or least of n >= 0 elements, NaN if any is.
template <class T, bool kGreatest>
T extreme_of(const T* x, std::int64_t n) {
  if constexpr (is_float_type<T>) {
    return vector_run<VecExtreme<T, kGreatest>>(x, n, 0);
  } else {
    return run<Extreme<T, kGreatest>>(x, n, 0);
  }
}

}  // namespace
}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
