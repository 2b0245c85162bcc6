// Sums, products, extremes and counts over contiguous blocks, for one ISA.
#include <hwy/highway.h>

#include "backends/cpu/simd/reduce_block.h"
#include "core/integer_math.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {

void register_reductions(KernelTable& table);
void register_argreductions(KernelTable& table);

namespace {

template <class T>
struct VecSumSquares : VecInDouble<T> {
  using Scalar = SumSquares<T>;
  template <class V>
  static V step(V a, V x, V) {
    return hn::MulAdd(x, x, a);
  }
};

template <class T>
struct VecProd : VecInDouble<T> {
  using Scalar = Prod<T>;
  template <class V>
  static V step(V a, V x, V) {
    return hn::Mul(a, x);
  }
  template <class V>
  static V merge(V a, V b) {
    return hn::Mul(a, b);
  }
};

template <class T>
struct VecShiftedSum : VecInDouble<T> {
  using Scalar = ShiftedSum<T>;
  template <class V>
  static V step(V a, V x, V s) {
    return hn::Add(a, hn::Sub(x, s));
  }
};

// Pairwise summation over blocks that a few dozen lanes share: the error grows with log n.
template <class VecOp>
double pairwise_run(const typename VecOp::Elem* x, std::int64_t n, double shift) {
  constexpr std::int64_t kBlock = 1024;
  if (n <= kBlock) return vector_run<VecOp>(x, n, shift);
  const std::int64_t half = round_up(n / 2, kBlock);
  const double low = pairwise_run<VecOp>(x, half, shift);
  return VecOp::Scalar::merge(low, pairwise_run<VecOp>(x + half, n - half, shift));
}

template <class Op>
void inner(const void* x, std::int64_t rows, std::int64_t row_stride, std::int64_t cols, void* acc,
           const double*) {
  const auto* p = static_cast<const typename Op::Elem*>(x);
  auto* a = static_cast<typename Op::Acc*>(acc);
  for (std::int64_t r = 0; r < rows; ++r, p += row_stride) {
    a[r] = Op::merge(a[r], run<Op>(p, cols, 0));
  }
}

constexpr std::int64_t kShortRow = 8;

template <class VecOp, bool kPairwise>
void vector_inner(const void* x, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                  void* acc, const double* shift) {
  const auto* p = static_cast<const typename VecOp::Elem*>(x);
  auto* a = static_cast<typename VecOp::Acc*>(acc);
  using Scalar = typename VecOp::Scalar;
  std::int64_t r = 0;
  // Rows too short for vectors: four at a time, so that their dependent chains overlap.
  if (cols <= kShortRow) {
    for (; r + 4 <= rows; r += 4, p += 4 * row_stride) {
      for (std::int64_t c = 0; c < cols; ++c) {
        for (std::int64_t k = 0; k < 4; ++k) {
          const double s = Scalar::kShifted ? shift[r + k] : 0;
          a[r + k] = Scalar::merge(a[r + k], Scalar::lift(p[k * row_stride + c], s));
        }
      }
    }
  }
  for (; r < rows; ++r, p += row_stride) {
    const double s = Scalar::kShifted ? shift[r] : 0;
    const auto part = kPairwise ? static_cast<typename VecOp::Acc>(pairwise_run<VecOp>(p, cols, s))
                                : vector_run<VecOp>(p, cols, s);
    a[r] = Scalar::merge(a[r], part);
  }
}

template <class Op>
ReduceKernel integer_kernel(DType acc) {
  return {acc, init_acc<Op>, inner<Op>, outer<PlainRows<Op>>, combine_acc<Op>};
}

template <class VecOp, bool kPairwise = false>
ReduceKernel float_kernel(DType acc) {
  using Op = typename VecOp::Scalar;
  return {acc, init_acc<Op>, vector_inner<VecOp, kPairwise>, outer<VectorRows<VecOp>>,
          combine_acc<Op>};
}

ReduceKernel& entry(KernelTable& table, OpId op, DType dtype) {
  return table.reduce[static_cast<int>(op)][static_cast<int>(dtype)];
}

template <class T>
void register_integer(KernelTable& table, DType dtype, DType acc) {
  if (!is_bool(dtype)) entry(table, OpId::sum, dtype) = integer_kernel<Sum<T>>(acc);
  entry(table, OpId::amax, dtype) = integer_kernel<Extreme<T, true>>(dtype);
  entry(table, OpId::amin, dtype) = integer_kernel<Extreme<T, false>>(dtype);
}

template <class T>
void register_float(KernelTable& table, DType dtype) {
  constexpr bool kPairwise = sizeof(T) == 8;
  constexpr DType kAcc = DType::Float64;
  const ReduceKernel sum = float_kernel<VecSum<T>, kPairwise>(kAcc);
  entry(table, OpId::sum, dtype) = sum;
  // Means of float64 are computed relative to a given number, as variance requires it.
  if constexpr (kPairwise) {
    entry(table, OpId::mean, dtype) = float_kernel<VecShiftedSum<T>, kPairwise>(kAcc);
  } else {
    entry(table, OpId::mean, dtype) = sum;
  }
  entry(table, OpId::prod, dtype) = float_kernel<VecProd<T>>(kAcc);
  const ReduceKernel squares = float_kernel<VecSumSquares<T>, kPairwise>(kAcc);
  entry(table, OpId::sum_squares, dtype) = squares;
  entry(table, OpId::norm2, dtype) = squares;
  const ReduceKernel deviation = float_kernel<VecDeviation<T>, kPairwise>(kAcc);
  entry(table, OpId::var, dtype) = deviation;
  entry(table, OpId::std, dtype) = deviation;
  entry(table, OpId::amax, dtype) = float_kernel<VecExtreme<T, true>>(dtype);
  entry(table, OpId::amin, dtype) = float_kernel<VecExtreme<T, false>>(dtype);
}

// any and all are counts too: at least one, or as many as there are elements.
template <class T>
void register_count(KernelTable& table, DType dtype) {
  const ReduceKernel count = integer_kernel<CountNonzero<T>>(DType::Int64);
  entry(table, OpId::count_nonzero, dtype) = count;
  entry(table, OpId::any, dtype) = count;
  entry(table, OpId::all, dtype) = count;
}

}  // namespace

void register_reductions(KernelTable& table) {
  register_integer<std::uint8_t>(table, DType::Bool, DType::Int64);
  register_integer<std::int8_t>(table, DType::Int8, DType::Int64);
  register_integer<std::int16_t>(table, DType::Int16, DType::Int64);
  register_integer<std::int32_t>(table, DType::Int32, DType::Int64);
  register_integer<std::int64_t>(table, DType::Int64, DType::Int64);
  register_integer<std::uint8_t>(table, DType::UInt8, DType::UInt64);
  register_integer<std::uint16_t>(table, DType::UInt16, DType::UInt64);
  register_integer<std::uint32_t>(table, DType::UInt32, DType::UInt64);
  register_integer<std::uint64_t>(table, DType::UInt64, DType::UInt64);
  register_float<float>(table, DType::Float32);
  register_float<double>(table, DType::Float64);

  register_count<std::uint8_t>(table, DType::Bool);
  register_count<std::uint8_t>(table, DType::Int8);
  register_count<std::uint16_t>(table, DType::Int16);
  register_count<std::uint32_t>(table, DType::Int32);
  register_count<std::uint64_t>(table, DType::Int64);
  register_count<std::uint8_t>(table, DType::UInt8);
  register_count<std::uint16_t>(table, DType::UInt16);
  register_count<std::uint32_t>(table, DType::UInt32);
  register_count<std::uint64_t>(table, DType::UInt64);
  register_count<float>(table, DType::Float32);
  register_count<double>(table, DType::Float64);
  // A sum of bool is a count.
  entry(table, OpId::sum, DType::Bool) = entry(table, OpId::count_nonzero, DType::Bool);

  register_argreductions(table);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
