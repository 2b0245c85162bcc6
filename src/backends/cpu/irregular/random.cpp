// Kernels of the random ops. Element i depends on (seed, position, i) alone: tiles, chunks and
// threads do not change it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "backends/cpu/irregular/irregular.h"
#include "core/integer_math.h"
#include "core/philox.h"
#include "core/visit.h"
#include "ops/random_blocks.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk: a multiple of every tile, so that tiles start on whole blocks.
constexpr std::int64_t kRandomGrain = 16384;
// Random blocks computed at a time: 1 KB, which stays in L1 together with the results.
constexpr std::int64_t kTileBlocks = 64;

std::uint64_t word64(const std::uint32_t* words, std::int64_t i) {
  return words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
}

/// body(first, count, words) for tiles of 0..n-1. Block b of the sequence gives the elements from b
/// * kPerBlock on; `words` starts with the block of element `first`.
template <std::int64_t kPerBlock, class Body>
void for_tiles(const Generator::State& state, std::int64_t n, Body body) {
  parallel::parallel_for(n, kRandomGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint32_t words[4 * kTileBlocks];
    for (std::int64_t first = begin; first < end; first += kTileBlocks * kPerBlock) {
      const std::int64_t count = std::min(kTileBlocks * kPerBlock, end - first);
      const auto block = static_cast<std::uint64_t>(first / kPerBlock);
      philox_blocks(state, block, ceil_div(count, kPerBlock), words);
      body(first, count, words);
    }
  });
}

template <class T>
constexpr std::int64_t kPerBlock = elements_per_block(OpId::random_uniform, dtype_of<T>);

/// k * 2^-24, or k * 2^-53 for doubles: every value of [0, 1) with that spacing equally likely.
template <class T>
double unit(const std::uint32_t* words, std::int64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(word64(words, i) >> 11) * 0x1p-53;
  } else {
    return static_cast<double>(words[i] >> 8) * 0x1p-24;
  }
}

/// The next value below a finite one.
template <class T>
T below(T value) {
  using U = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  const U bits = std::bit_cast<U>(value);
  if (static_cast<U>(bits & ~kSign) == 0) return std::bit_cast<T>(static_cast<U>(kSign | 1));
  return std::bit_cast<T>(static_cast<U>((bits & kSign) != 0 ? bits + 1 : bits - 1));
}

/// Rounded towards minus infinity.
template <class T>
T round_down(double value) {
  const T nearest = static_cast<T>(value);
  return static_cast<double>(nearest) > value ? below(nearest) : nearest;
}

template <class T>
void uniform(const Call& call, T* out, std::int64_t n) {
  const double low = call.attrs.as<RandomRealAttrs>().first;
  const double high = call.attrs.as<RandomRealAttrs>().second;
  // The least and the greatest value of T inside [low, high). Where there is none (the bounds are
  // equal, or between two neighbours), all results are the value nearest to low.
  const double least = -static_cast<double>(round_down<T>(-low));
  const T top = round_down<T>(high);
  const double greatest = static_cast<double>(static_cast<double>(top) < high ? top : below(top));
  if (least > greatest) {
    std::fill_n(out, n, static_cast<T>(low));
    return;
  }
  const double span = high - low;
  const bool wide = !std::isfinite(span);
  for_tiles<kPerBlock<T>>(call.random, n,
                          [&](std::int64_t first, std::int64_t count, const auto* words) {
                            T* tile = out + first;
                            if (std::is_same_v<T, float> && low == 0 && high == 1) {
                              for (std::int64_t i = 0; i < count; ++i)
                                tile[i] = static_cast<T>(unit<T>(words, i));
                              return;
                            }
                            for (std::int64_t i = 0; i < count; ++i) {
                              const double u = unit<T>(words, i);
                              const double value = wide ? low * (1 - u) + high * u : low + u * span;
                              // Values of T stay themselves when rounded again.
                              tile[i] = round_down<T>(std::clamp(value, least, greatest));
                            }
                          });
}

// ---- Normal: Box-Muller in double
// Logarithm, sine and cosine are implemented here: the same bits with every C library, and no
// branches, so that the compiler vectorises the loop over pairs.

constexpr std::int64_t kMaxPairs = kTileBlocks * 2;

/// Natural logarithm of a normal double in (0, 1].
inline double log_unit(double u) {
  // u = 2^e * m with m in [sqrt(1/2), sqrt(2)): near 1 the exponent is 0 and nothing cancels.
  constexpr std::uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDULL;
  constexpr std::uint64_t kBias = 1024;  // keeps the exponent positive
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(u) - kSqrtHalf + (kBias << 52);
  const double m = std::bit_cast<double>((shifted & 0xFFFFFFFFFFFFFULL) + kSqrtHalf);
  // The integer as the lowest bits of 2^52: a conversion that baseline vectors have.
  const double biased = std::bit_cast<double>(shifted >> 52 | std::bit_cast<std::uint64_t>(0x1p52));
  const double e = biased - (0x1p52 + static_cast<double>(kBias));
  // log(m) = 2 artanh(s), whose series in s^2 < 0.03 needs eleven terms.
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double series = 1.0 / 21;
  series = series * z + 1.0 / 19;
  series = series * z + 1.0 / 17;
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  series = series * z + 1.0;
  return e * 0.693147180559945309417 + 2 * s * series;
}

struct Point {
  double x;
  double y;
};

/// Cosine and sine of t turns, t in [0, 1).
inline Point cos_sin_of_turns(double t) {
  // The nearest quarter turn: an integer in the lowest bits of `shifted`.
  constexpr double kShift = 0x1.8p52;
  const double shifted = t * 4 + kShift;
  const double a = (t - (shifted - kShift) * 0.25) * 6.28318530717958647693;
  const double z = a * a;  // |a| is at most an eighth of a turn
  double sine = -1.0 / 1307674368000.0;
  sine = sine * z + 1.0 / 6227020800.0;
  sine = sine * z - 1.0 / 39916800.0;
  sine = sine * z + 1.0 / 362880.0;
  sine = sine * z - 1.0 / 5040.0;
  sine = sine * z + 1.0 / 120.0;
  sine = sine * z - 1.0 / 6.0;
  sine = a + a * z * sine;
  double cosine = 1.0 / 20922789888000.0;
  cosine = cosine * z - 1.0 / 87178291200.0;
  cosine = cosine * z + 1.0 / 479001600.0;
  cosine = cosine * z - 1.0 / 3628800.0;
  cosine = cosine * z + 1.0 / 40320.0;
  cosine = cosine * z - 1.0 / 720.0;
  cosine = cosine * z + 1.0 / 24.0;
  cosine = 1 - (0.5 * z - z * z * cosine);
  // A quarter turn maps (x, y) to (-y, x): odd quarters exchange them, and the signs follow from
  // the lowest two bits.
  const std::uint64_t quarter = std::bit_cast<std::uint64_t>(shifted);
  const std::uint64_t swap = std::uint64_t{0} - (quarter & 1);
  const std::uint64_t c = std::bit_cast<std::uint64_t>(cosine);
  const std::uint64_t s = std::bit_cast<std::uint64_t>(sine);
  const std::uint64_t x = (c & ~swap) | (s & swap);
  const std::uint64_t y = (s & ~swap) | (c & swap);
  const std::uint64_t x_sign = ((quarter + 1) & 2) << 62;
  const std::uint64_t y_sign = (quarter & 2) << 62;
  return {std::bit_cast<double>(x ^ x_sign), std::bit_cast<double>(y ^ y_sign)};
}

/// An unsigned 32-bit integer, through the signed conversion: the only one that baseline vectors
/// have.
inline double word_to_double(std::uint32_t word) {
  return static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000U)) + 0x1p31;
}

/// The two uniform numbers of pair i: the first in (0, 1], the second in [0, 1), in steps of 2^-32,
/// or 2^-53 for doubles. So normal numbers reach 6.6 deviations, or 8.5, and are never infinite.
template <class T>
Point uniform_pair(const std::uint32_t* words, std::int64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return {static_cast<double>((word64(words, 2 * i) >> 11) + 1) * 0x1p-53,
            static_cast<double>(word64(words, 2 * i + 1) >> 11) * 0x1p-53};
  } else {
    return {(word_to_double(words[2 * i]) + 1) * 0x1p-32,
            word_to_double(words[2 * i + 1]) * 0x1p-32};
  }
}

/// The normal numbers of a tile, two of each pair.
template <class T>
void normal_tile(const std::uint32_t* words, std::int64_t pairs, double* z) {
  double u[kMaxPairs];
  double t[kMaxPairs];
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Point p = uniform_pair<T>(words, i);
    u[i] = p.x;
    t[i] = p.y;
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double radius = std::sqrt(-2 * log_unit(u[i]));
    const Point p = cos_sin_of_turns(t[i]);
    z[2 * i] = radius * p.x;
    z[2 * i + 1] = radius * p.y;
  }
}

template <class T>
void normal(const Call& call, T* out, std::int64_t n) {
  const double mean = call.attrs.as<RandomRealAttrs>().first;
  const double deviation = call.attrs.as<RandomRealAttrs>().second;
  const double most = greatest_finite(dtype_of<T>);
  for_tiles<kPerBlock<T>>(
      call.random, n, [&](std::int64_t first, std::int64_t count, const auto* words) {
        double z[2 * kMaxPairs];
        normal_tile<T>(words, (count + 1) / 2, z);
        for (std::int64_t i = 0; i < count; ++i) {
          out[first + i] = static_cast<T>(std::clamp(mean + deviation * z[i], -most, most));
        }
      });
}

/// An integer below `range` from 64 random bits: the upper half of their product. Some values are
/// more probable than others, by at most range / 2^64 of their probability, which no test can
/// detect.
std::uint64_t below_range(std::uint64_t bits, std::uint64_t range) {
  __extension__ using UInt128 = unsigned __int128;
  return static_cast<std::uint64_t>(UInt128{bits} * range >> 64);
}

/// Calls f for the four float types.
template <class F>
void visit_float(DType dtype, F f) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (!std::is_integral_v<T>) f(tag);
  });
}

}  // namespace

void random_uniform_kernel(const Call& call) {
  const View& out = call.out[0];
  visit_float(out.dtype,
              [&]<class T>(TypeTag<T>) { uniform(call, static_cast<T*>(out.data), numel(out)); });
}

void random_normal_kernel(const Call& call) {
  const View& out = call.out[0];
  visit_float(out.dtype,
              [&]<class T>(TypeTag<T>) { normal(call, static_cast<T*>(out.data), numel(out)); });
}

void random_int_kernel(const Call& call) {
  const View& out = call.out[0];
  const auto& attrs = call.attrs.as<RandomIntAttrs>();
  const auto low = static_cast<std::uint64_t>(attrs.low);
  const std::uint64_t range = static_cast<std::uint64_t>(attrs.high) - low;
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    T* data = static_cast<T*>(out.data);
    for_tiles<elements_per_block(OpId::random_int, DType::Int64)>(
        call.random, numel(out), [&](std::int64_t first, std::int64_t count, const auto* words) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::uint64_t value = low + below_range(word64(words, i), range);
            data[first + i] = static_cast<T>(static_cast<std::int64_t>(value));
          }
        });
  });
}

/// Fisher-Yates, one swap after the other.
void random_perm_kernel(const Call& call) {
  const View& out = call.out[0];
  const std::int64_t n = out.shape[0];
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    T* data = static_cast<T*>(out.data);
    for (std::int64_t i = 0; i < n; ++i) data[i] = static_cast<T>(i);
    const Generator::State state = call.random;
    std::uint32_t words[4 * kTileBlocks];
    for (std::int64_t first = 0; first < n; first += 2 * kTileBlocks) {
      const std::int64_t count = std::min(2 * kTileBlocks, n - first);
      philox_blocks(state, static_cast<std::uint64_t>(first / 2), (count + 1) / 2, words);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t i = first + k;
        const std::uint64_t step = below_range(word64(words, k), static_cast<std::uint64_t>(n - i));
        std::swap(data[i], data[i + static_cast<std::int64_t>(step)]);
      }
    }
  });
}

void bernoulli_kernel(const Call& call) {
  const View& out = call.out[0];
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    T* data = static_cast<T*>(out.data);
    const T* given = call.in.empty() ? nullptr : static_cast<const T*>(call.in[0].data);
    const double fixed = call.attrs.as<BernoulliAttrs>().p;
    for_tiles<kPerBlock<T>>(
        call.random, numel(out), [&](std::int64_t first, std::int64_t count, const auto* words) {
          for (std::int64_t i = 0; i < count; ++i) {
            const double p = given != nullptr ? static_cast<double>(given[first + i]) : fixed;
            // Half a step is added, so that the probability is p rounded to the nearest step; the
            // sum is exact, 0 never succeeds and 1 always does.
            bool one = false;
            if constexpr (std::is_same_v<T, double>) {
              one = static_cast<double>(word64(words, i) >> 12) + 0.5 < p * 0x1p52;
            } else {
              one = static_cast<double>(words[i]) + 0.5 < p * 0x1p32;
            }
            data[first + i] = static_cast<T>(one ? 1 : 0);
          }
        });
  });
}

}  // namespace baregrad::kernels
