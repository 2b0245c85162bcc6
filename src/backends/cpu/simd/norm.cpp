// Normalisation and cross-entropy of contiguous float32 rows, for one ISA.
#include "backends/cpu/irregular/norm.h"

#include <hwy/highway.h>

#include "backends/cpu/simd/exp_rows.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {

void register_norm(KernelTable& table);

namespace {

// Elements that are added in float32, on several lanes, before their sum is added in float64.
constexpr std::int64_t kSumPiece = 1024;

HWY_INLINE double total(V v) { return static_cast<double>(hn::GetLane(hn::SumOfLanes(D(), v))); }

/// Two sums over the same elements: step(i, vectors, first, second) adds to both.
struct Sums {
  double first = 0;
  double second = 0;
};
template <class F>
HWY_INLINE Sums sums_of(std::int64_t n, const F& step) {
  Sums sums;
  for (std::int64_t begin = 0; begin < n; begin += kSumPiece) {
    const std::int64_t end = n - begin < kSumPiece ? n : begin + kSumPiece;
    const V zero = hn::Zero(D());
    V a0 = zero, a1 = zero, b0 = zero, b1 = zero;
    std::int64_t i = begin;
    // Two chains each hide most of the latency of an add.
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      step(i, WholeVector{}, a0, b0);
      step(i + kLanes, WholeVector{}, a1, b1);
    }
    for (; i + kLanes <= end; i += kLanes) step(i, WholeVector{}, a0, b0);
    if (i < end) step(i, PartOfVector{static_cast<std::size_t>(end - i)}, a1, b1);
    sums.first += total(hn::Add(a0, a1));
    sums.second += total(hn::Add(b0, b1));
  }
  return sums;
}

/// Whether float32 may have underflowed or overflowed: the squares are then added in double.
bool out_of_range(double squares) { return !(squares < 1e38) || squares < 1e-30; }
double squares_in_double(const float* x, std::int64_t n, double mean) {
  return vector_run<VecDeviation<float>>(x, n, mean);
}

HWY_INLINE V splat(double value) { return hn::Set(D(), static_cast<float>(value)); }

void layer(const void* x_in, std::int64_t rows, std::int64_t n, const void* weight_in,
           const void* bias_in, double eps, void* y_out, void* stats_out) {
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  const auto* HWY_RESTRICT weight = static_cast<const float*>(weight_in);
  const auto* HWY_RESTRICT bias = static_cast<const float*>(bias_in);
  auto* HWY_RESTRICT y = static_cast<float*>(y_out);
  auto* HWY_RESTRICT stats = static_cast<float*>(stats_out);
  const auto count = static_cast<double>(n);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double mean = vector_run<VecSum<float>>(x, n, 0) / count;
    // The mean in two floats: rows far from zero keep their digits.
    const auto rounded = static_cast<float>(mean);
    const V high = hn::Set(D(), rounded);
    const V low = splat(mean - static_cast<double>(rounded));
    const auto centred = [&](V v) { return hn::Sub(hn::Sub(v, high), low); };
    double squares = sums_of(n, [&](std::int64_t i, auto at, V& a, V&) {
                       const V d = at.only(centred(at.load(x + i)));
                       a = hn::MulAdd(d, d, a);
                     }).first;
    if (out_of_range(squares)) squares = squares_in_double(x, n, mean);
    const double rstd = 1 / __builtin_sqrt(squares / count + eps);
    const V scale = splat(rstd);
    if (weight == nullptr) {
      for_vectors(n, [&](std::int64_t i, auto at) {
        at.store(hn::Mul(centred(at.load(x + i)), scale), y + i);
      });
    } else if (bias == nullptr) {
      for_vectors(n, [&](std::int64_t i, auto at) {
        const V hat = hn::Mul(centred(at.load(x + i)), scale);
        at.store(hn::Mul(hat, at.load(weight + i)), y + i);
      });
    } else {
      for_vectors(n, [&](std::int64_t i, auto at) {
        const V hat = hn::Mul(centred(at.load(x + i)), scale);
        at.store(hn::MulAdd(hat, at.load(weight + i), at.load(bias + i)), y + i);
      });
    }
    stats[2 * r] = rounded;
    stats[2 * r + 1] = static_cast<float>(rstd);
  }
}

void rms(const void* x_in, std::int64_t rows, std::int64_t n, const void* weight_in, double eps,
         void* y_out, void* stats_out) {
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  const auto* HWY_RESTRICT weight = static_cast<const float*>(weight_in);
  auto* HWY_RESTRICT y = static_cast<float*>(y_out);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    double squares = sums_of(n, [&](std::int64_t i, auto at, V& a, V&) {
                       const V v = at.load(x + i);
                       a = hn::MulAdd(v, v, a);
                     }).first;
    if (out_of_range(squares)) squares = squares_in_double(x, n, 0);
    const double rstd = 1 / __builtin_sqrt(squares / static_cast<double>(n) + eps);
    const V scale = splat(rstd);
    if (weight == nullptr) {
      for_vectors(
          n, [&](std::int64_t i, auto at) { at.store(hn::Mul(at.load(x + i), scale), y + i); });
    } else {
      for_vectors(n, [&](std::int64_t i, auto at) {
        at.store(hn::Mul(hn::Mul(at.load(x + i), scale), at.load(weight + i)), y + i);
      });
    }
    static_cast<float*>(stats_out)[r] = static_cast<float>(rstd);
  }
}

/// The sums of g w and g w x^ of one row, and what the row adds to dweight and dbias.
template <bool kCentred, bool kWeight, bool kParameters>
HWY_INLINE Sums backward_sums(const float* HWY_RESTRICT g, const float* HWY_RESTRICT x, V mean,
                              V rstd, const float* HWY_RESTRICT weight, std::int64_t n,
                              float* HWY_RESTRICT dweight, float* HWY_RESTRICT dbias) {
  return sums_of(n, [&](std::int64_t i, auto at, V& level, V& along) {
    const V grad = at.load(g + i);
    V hat = at.load(x + i);
    if constexpr (kCentred) hat = hn::Sub(hat, mean);
    hat = at.only(hn::Mul(hat, rstd));
    const V gw = kWeight ? hn::Mul(grad, at.load(weight + i)) : grad;
    level = hn::Add(level, gw);
    along = hn::MulAdd(gw, hat, along);
    if constexpr (kParameters) {
      at.store(hn::MulAdd(grad, hat, at.load(dweight + i)), dweight + i);
      if constexpr (kCentred) at.store(hn::Add(grad, at.load(dbias + i)), dbias + i);
    }
  });
}

template <bool kCentred, bool kWeight, bool kParameters>
void backward_rows(const float* HWY_RESTRICT g, const float* HWY_RESTRICT x,
                   const float* HWY_RESTRICT stats, const float* HWY_RESTRICT weight,
                   std::int64_t rows, std::int64_t n, float* HWY_RESTRICT dx,
                   float* HWY_RESTRICT dweight, float* HWY_RESTRICT dbias) {
  const auto count = static_cast<double>(n);
  for (std::int64_t r = 0; r < rows; ++r, g += n, x += n) {
    const V mean = hn::Set(D(), kCentred ? stats[2 * r] : 0.0f);
    const V rstd = hn::Set(D(), kCentred ? stats[2 * r + 1] : stats[r]);
    const Sums sums =
        backward_sums<kCentred, kWeight, kParameters>(g, x, mean, rstd, weight, n, dweight, dbias);
    if (dx == nullptr) continue;
    const V level = splat(kCentred ? sums.first / count : 0);
    const V along = splat(sums.second / count);
    for_vectors(n, [&](std::int64_t i, auto at) {
      const V grad = at.load(g + i);
      V hat = at.load(x + i);
      if constexpr (kCentred) hat = hn::Sub(hat, mean);
      hat = hn::Mul(hat, rstd);
      V gw = kWeight ? hn::Mul(grad, at.load(weight + i)) : grad;
      if constexpr (kCentred) gw = hn::Sub(gw, level);
      at.store(hn::Mul(rstd, hn::NegMulAdd(hat, along, gw)), dx + i);
    });
    dx += n;
  }
}

template <bool kCentred>
void backward(const void* g_in, const void* x_in, const void* stats_in, const void* weight_in,
              std::int64_t rows, std::int64_t n, void* dx_out, void* dweight_out, void* dbias_out) {
  const auto* g = static_cast<const float*>(g_in);
  const auto* x = static_cast<const float*>(x_in);
  const auto* stats = static_cast<const float*>(stats_in);
  const auto* weight = static_cast<const float*>(weight_in);
  auto* dx = static_cast<float*>(dx_out);
  auto* dweight = static_cast<float*>(dweight_out);
  auto* dbias = static_cast<float*>(dbias_out);
  if (weight == nullptr) {
    backward_rows<kCentred, false, false>(g, x, stats, weight, rows, n, dx, dweight, dbias);
  } else if (dweight == nullptr) {
    backward_rows<kCentred, true, false>(g, x, stats, weight, rows, n, dx, dweight, dbias);
  } else {
    backward_rows<kCentred, true, true>(g, x, stats, weight, rows, n, dx, dweight, dbias);
  }
}

/// An operand with one element for each row or for each column, as a vector.
template <bool kPerRow>
struct RowOrColumnOperand {
  V one;
  const float* many;
  HWY_INLINE RowOrColumnOperand(const float* p, std::int64_t row)
      : one(hn::Set(D(), kPerRow ? p[row] : 0.0f)), many(p) {}
  template <class At>
  HWY_INLINE V load(const At& at, std::int64_t i) const {
    return kPerRow ? one : at.load(many + i);
  }
};

template <bool kPerRow>
void affine_rows(const float* HWY_RESTRICT x, std::int64_t rows, std::int64_t n, const float* mean,
                 const float* scale, const float* shift, float* HWY_RESTRICT y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const RowOrColumnOperand<kPerRow> m(mean, r);
    const RowOrColumnOperand<kPerRow> s(scale, r);
    const RowOrColumnOperand<kPerRow> b(shift, r);
    for_vectors(n, [&](std::int64_t i, auto at) {
      const V d = hn::Sub(at.load(x + i), m.load(at, i));
      at.store(hn::MulAdd(d, s.load(at, i), b.load(at, i)), y + i);
    });
  }
}

void affine(const void* x, std::int64_t rows, std::int64_t n, const void* mean, const void* scale,
            const void* shift, bool per_row, void* y) {
  const auto run = per_row ? affine_rows<true> : affine_rows<false>;
  run(static_cast<const float*>(x), rows, n, static_cast<const float*>(mean),
      static_cast<const float*>(scale), static_cast<const float*>(shift), static_cast<float*>(y));
}

void run_sums(const void* g_in, const void* x_in, std::int64_t n, double mean, double* sums) {
  const auto* HWY_RESTRICT g = static_cast<const float*>(g_in);
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  const V m = splat(mean);
  const Sums found = sums_of(n, [&](std::int64_t i, auto at, V& level, V& along) {
    const V grad = at.load(g + i);
    level = hn::Add(level, grad);
    along = hn::MulAdd(grad, at.only(hn::Sub(at.load(x + i), m)), along);
  });
  sums[0] += found.first;
  sums[1] += found.second;
}

// Columns are independent: the compiler vectorises over them.
void column_sums(const void* g_in, const void* x_in, std::int64_t rows, std::int64_t row_stride,
                 std::int64_t n, const void* mean_in, double* sums) {
  const auto* HWY_RESTRICT g = static_cast<const float*>(g_in);
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  const auto* HWY_RESTRICT mean = static_cast<const float*>(mean_in);
  double* HWY_RESTRICT level = sums;
  double* HWY_RESTRICT along = sums + n;
  for (std::int64_t r = 0; r < rows; ++r, g += row_stride, x += row_stride) {
    for (std::int64_t i = 0; i < n; ++i) {
      level[i] += static_cast<double>(g[i]);
      along[i] += static_cast<double>(g[i] * (x[i] - mean[i]));
    }
  }
}

template <bool kPerRow>
void spread_rows(const float* HWY_RESTRICT g, const float* HWY_RESTRICT x, std::int64_t rows,
                 std::int64_t n, const float* a, const float* b, const float* c, const float* mean,
                 float* HWY_RESTRICT dx) {
  for (std::int64_t r = 0; r < rows; ++r, g += n, x += n, dx += n) {
    const RowOrColumnOperand<kPerRow> va(a, r);
    const RowOrColumnOperand<kPerRow> vb(b, r);
    const RowOrColumnOperand<kPerRow> vc(c, r);
    const RowOrColumnOperand<kPerRow> vm(mean, r);
    for_vectors(n, [&](std::int64_t i, auto at) {
      const V d = hn::Sub(at.load(x + i), vm.load(at, i));
      const V rest = hn::MulAdd(vb.load(at, i), d, vc.load(at, i));
      at.store(hn::MulAdd(va.load(at, i), at.load(g + i), rest), dx + i);
    });
  }
}

void affine_backward(const void* g, const void* x, std::int64_t rows, std::int64_t n, const void* a,
                     const void* b, const void* c, const void* mean, bool per_row, void* dx) {
  const auto run = per_row ? spread_rows<true> : spread_rows<false>;
  run(static_cast<const float*>(g), static_cast<const float*>(x), rows, n,
      static_cast<const float*>(a), static_cast<const float*>(b), static_cast<const float*>(c),
      static_cast<const float*>(mean), static_cast<float*>(dx));
}

void row_exp_sum(const void* x_in, std::int64_t n, double* out) {
  const auto* x = static_cast<const float*>(x_in);
  const float max = max_of_row(x, n);
  out[0] = static_cast<double>(max);
  out[1] =
      is_finite(max) ? exp_sum<false>(x, max, nullptr, n) : static_cast<double>(__builtin_nanf(""));
}

void exp_scaled(const void* x_in, std::int64_t n, double max, double scale, void* out_in) {
  const auto* HWY_RESTRICT x = static_cast<const float*>(x_in);
  auto* HWY_RESTRICT out = static_cast<float*>(out_in);
  const V m = splat(max);
  const V s = splat(scale);
  for_vectors(n, [&](std::int64_t i, auto at) {
    at.store(hn::Mul(exp_below(at.load(x + i), m), s), out + i);
  });
}

}  // namespace

void register_norm(KernelTable& table) {
  // float64 uses the reference kernels.
  auto* kernels = new NormKernels(*table.norm);  // never deleted, like the table
  kernels->f32 = {layer,    rms,         backward<true>,  backward<false>, affine,
                  run_sums, column_sums, affine_backward, row_exp_sum,     exp_scaled};
  table.norm = kernels;
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
