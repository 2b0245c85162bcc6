// Loops that show what this machine can do: `baregrad info` and the benchmarks' percentages.
#pragma once

#include <cstdint>

namespace baregrad::kernels {

enum class Isa : std::uint8_t;

/// Not ops, so not in the table. Arrays start on 64 bytes and hold a multiple of kUnit floats.
struct Ceilings {
  static constexpr std::int64_t kUnit = 128;

  /// Independent chains of multiply-adds in registers. Returns how many floating-point operations
  /// that was; `sink` takes the result, so that no compiler leaves the work out.
  double (*fma_f32)(std::int64_t iterations, double* sink);
  double (*fma_f64)(std::int64_t iterations, double* sink);
  float (*read)(const float* x, std::int64_t n);
  /// `streamed`: the stores go past the caches, which saves reading the lines they fill.
  void (*copy)(const float* x, float* out, std::int64_t n, bool streamed);
  void (*add)(const float* x, const float* y, float* out, std::int64_t n, bool streamed);
  /// Every number is read and written where it stands, as optimizers do it: no line is fetched only
  /// to be overwritten.
  void (*update)(float* x, std::int64_t n);
};

/// The reference has no loops of its own: it gets the scalar ones. Throws ValueError for an
/// instruction set this machine cannot run.
Ceilings ceilings(Isa isa);

// As in cpu/register.h: what each instruction set's objects offer.
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
