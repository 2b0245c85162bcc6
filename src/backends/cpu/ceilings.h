// Loops that measure the limits of this machine: for `baregrad info` and the percentages of
// benchmarks.
#pragma once

#include <cstdint>

namespace baregrad::kernels {

enum class Isa : std::uint8_t;

/// Not ops, so not in the table. Arrays start on 64 bytes and hold a multiple of kUnit floats.
struct Ceilings {
  static constexpr std::int64_t kUnit = 128;

  /// Independent chains of multiply-adds in registers. Returns the number of floating-point
  /// operations; the result goes to `sink`, so that no compiler removes the work.
  double (*fma_f32)(std::int64_t iterations, double* sink);
  double (*fma_f64)(std::int64_t iterations, double* sink);
  float (*read)(const float* x, std::int64_t n);
  /// `streamed`: the stores bypass the caches, which avoids reading the lines they fill.
  void (*copy)(const float* x, float* out, std::int64_t n, bool streamed);
  void (*add)(const float* x, const float* y, float* out, std::int64_t n, bool streamed);
  /// Every number is read and written in place, as optimizers do it: no line is fetched only to be
  /// overwritten.
  void (*update)(float* x, std::int64_t n);
};

/// The reference has no loops of its own: it uses the scalar ones. Throws ValueError for an
/// instruction set that this machine cannot run.
Ceilings ceilings(Isa isa);

// As in cpu/simd/register.h: functions that the objects of each instruction set provide.
namespace N_SCALAR {
Ceilings ceilings();
}
namespace N_SSE4 {
Ceilings ceilings();
}
namespace N_AVX2 {
Ceilings ceilings();
}
namespace N_AVX3 {
Ceilings ceilings();
}

}  // namespace baregrad::kernels
