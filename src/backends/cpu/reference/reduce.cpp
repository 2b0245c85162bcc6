// Reductions, arg-reductions and softmax rows, written out in the plainest form.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/reference/reference.h"

namespace baregrad::kernels {

void register_reference_reductions(KernelTable& table);

namespace {

template <class T>
using SumOf =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

// 64-bit integers wrap: they are added and multiplied as unsigned.
template <class A>
using Wrapping = typename std::conditional_t<std::is_integral_v<A>, std::make_unsigned<A>,
                                             std::type_identity<A>>::type;

template <class T>
struct Sum {
  using Elem = T;
  using Acc = SumOf<T>;
  static constexpr Acc kIdentity = 0;
  static Acc lift(T x, double) { return static_cast<Acc>(x); }
  static Acc merge(Acc a, Acc b) {
    return static_cast<Acc>(static_cast<Wrapping<Acc>>(a) + static_cast<Wrapping<Acc>>(b));
  }
};

template <class T>
struct Prod : Sum<T> {
  using typename Sum<T>::Acc;
  static constexpr Acc kIdentity = 1;
  static Acc merge(Acc a, Acc b) {
    return static_cast<Acc>(static_cast<Wrapping<Acc>>(a) * static_cast<Wrapping<Acc>>(b));
  }
};

template <class T>
struct Squares : Sum<T> {
  static double lift(T x, double shift) {
    const double d = static_cast<double>(x) - shift;
    return d * d;
  }
};

template <class T>
struct Shifted : Sum<T> {
  static double lift(T x, double shift) { return static_cast<double>(x) - shift; }
};

template <class T>
struct Count {
  using Elem = T;
  using Acc = std::int64_t;
  static constexpr Acc kIdentity = 0;
  static Acc lift(T x, double) { return x != T{0} ? 1 : 0; }
  static Acc merge(Acc a, Acc b) { return a + b; }
};

template <class T, bool kGreatest>
struct Extreme {
  using Elem = T;
  using Acc = T;
  using Limits = std::numeric_limits<T>;
  static constexpr T kWorst = kGreatest ? Limits::lowest() : Limits::max();
  static constexpr T kIdentity = !Limits::has_infinity ? kWorst
                                 : kGreatest           ? -Limits::infinity()
                                                       : Limits::infinity();
  static T lift(T x, double) { return x; }
  static T merge(T a, T b) {
    if (a != a) return a;
    if (b != b) return b;
    return (kGreatest ? b > a : b < a) ? b : a;
  }
};

template <class Op>
struct Block {
  using Elem = typename Op::Elem;
  using Acc = typename Op::Acc;

  static void init(void* acc, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = Op::kIdentity;
  }
  static void combine(void* acc, const void* other, std::int64_t n) {
    Acc* a = static_cast<Acc*>(acc);
    for (std::int64_t i = 0; i < n; ++i) a[i] = Op::merge(a[i], static_cast<const Acc*>(other)[i]);
  }
  template <bool kInner>
  static void accumulate(const void* x, std::int64_t rows, std::int64_t row_stride,
                         std::int64_t cols, void* acc, const double* shift) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const Elem* row = static_cast<const Elem*>(x) + r * row_stride;
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t i = kInner ? r : c;
        Acc& a = static_cast<Acc*>(acc)[i];
        a = Op::merge(a, Op::lift(row[c], shift == nullptr ? 0 : shift[i]));
      }
    }
  }
  static ReduceKernel kernel(DType acc) {
    return {acc, init, accumulate<true>, accumulate<false>, combine};
  }
};

template <class T, bool kGreatest>
std::int64_t arg_extreme(const void* x_in, std::int64_t n) {
  const T* x = static_cast<const T*>(x_in);
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n && x[best] == x[best]; ++i) {
    if ((kGreatest ? x[i] > x[best] : x[i] < x[best]) || x[i] != x[i]) best = i;
  }
  return best;
}

/// exp(x - max). exp would magnify the rounding error of the difference, so the result is corrected
/// by it.
double exp_below(double x, double max) {
  const double diff = x - max;
  const double back = diff - x;
  const double lost = (x - (diff - back)) - (max + back);
  const double e = std::exp(diff);
  return e != 0 && std::isfinite(diff) ? e + e * lost : e;
}

template <class T>
void exp_block(const void* x, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
               const void* max, bool rows_are_lanes, void* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const T top = static_cast<const T*>(max)[rows_are_lanes ? r : c];
      const T element = static_cast<const T*>(x)[r * row_stride + c];
      static_cast<T*>(out)[r * cols + c] = static_cast<T>(exp_below(element, top));
    }
  }
}

/// The maximum of a row and the sum of exp(x - max).
template <class T>
struct ExpSum {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;

  ExpSum(const T* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      max = Extreme<double, true>::merge(max, static_cast<double>(x[i]));
    }
    for (std::int64_t i = 0; i < n; ++i) sum += exp_below(static_cast<double>(x[i]), max);
  }
};

template <class T>
void softmax(const void* x_in, void* out, std::int64_t n) {
  const T* x = static_cast<const T*>(x_in);
  const ExpSum<T> s(x, n);
  for (std::int64_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>(exp_below(static_cast<double>(x[i]), s.max) / s.sum);
  }
}

template <class T>
void log_softmax(const void* x_in, void* out, std::int64_t n) {
  const T* x = static_cast<const T*>(x_in);
  const ExpSum<T> s(x, n);
  const double log = std::log(s.sum);
  for (std::int64_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>((static_cast<double>(x[i]) - s.max) - log);
  }
}

template <class T>
void logsumexp(const void* x, void* out, std::int64_t n) {
  const ExpSum<T> s(static_cast<const T*>(x), n);
  *static_cast<T*>(out) = static_cast<T>(std::isfinite(s.max) ? s.max + std::log(s.sum) : s.max);
}

template <class T>
void register_type(KernelTable& table, DType dtype) {
  const int t = static_cast<int>(dtype);
  const auto entry = [&](OpId op) -> ReduceKernel& {
    return table.reduce[static_cast<int>(op)][t];
  };
  const auto arg = [&](OpId op) -> ArgReduceFn& {
    return table.argreduce[static_cast<int>(op)][t];
  };
  const auto row = [&](OpId op) -> RowFn& { return table.row[static_cast<int>(op)][t]; };

  const DType acc = is_bool(dtype) ? DType::Int64 : dtype_of<SumOf<T>>;
  entry(OpId::sum) = is_bool(dtype) ? Block<Count<T>>::kernel(acc) : Block<Sum<T>>::kernel(acc);
  entry(OpId::prod) = Block<Prod<T>>::kernel(acc);
  entry(OpId::amax) = Block<Extreme<T, true>>::kernel(dtype);
  entry(OpId::amin) = Block<Extreme<T, false>>::kernel(dtype);
  for (const OpId op : {OpId::any, OpId::all, OpId::count_nonzero}) {
    entry(op) = Block<Count<T>>::kernel(DType::Int64);
  }
  arg(OpId::argmax) = arg_extreme<T, true>;
  arg(OpId::argmin) = arg_extreme<T, false>;
  if constexpr (std::is_floating_point_v<T>) {
    entry(OpId::mean) =
        sizeof(T) == 8 ? Block<Shifted<T>>::kernel(DType::Float64) : entry(OpId::sum);
    for (const OpId op : {OpId::sum_squares, OpId::norm2, OpId::var, OpId::std}) {
      entry(op) = Block<Squares<T>>::kernel(DType::Float64);
    }
    table.exp_block[t] = exp_block<T>;
    row(OpId::softmax) = softmax<T>;
    row(OpId::log_softmax) = log_softmax<T>;
    row(OpId::logsumexp) = logsumexp<T>;
  }
}

}  // namespace

void register_reference_reductions(KernelTable& table) {
  register_type<std::uint8_t>(table, DType::Bool);  // as bytes: a bool must be 0 or 1
  register_type<std::int8_t>(table, DType::Int8);
  register_type<std::int16_t>(table, DType::Int16);
  register_type<std::int32_t>(table, DType::Int32);
  register_type<std::int64_t>(table, DType::Int64);
  register_type<std::uint8_t>(table, DType::UInt8);
  register_type<std::uint16_t>(table, DType::UInt16);
  register_type<std::uint32_t>(table, DType::UInt32);
  register_type<std::uint64_t>(table, DType::UInt64);
  register_type<float>(table, DType::Float32);
  register_type<double>(table, DType::Float64);
}

}  // namespace baregrad::kernels
