// Vectors of the instruction set that a file is compiled for. The vector rungs are compiled once
// per instruction set (cmake/isa.cmake), each time into a namespace of its own, and hold nothing
// that two of these copies could share: all that is inline here is static.
#pragma once

#include <cstdint>

#if defined(__AVX512F__)
#define BAREGRAD_LADDER_ISA avx512
#define BAREGRAD_LADDER_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define BAREGRAD_LADDER_ISA avx2
#define BAREGRAD_LADDER_VECTOR_BYTES 32
#else  // what every x86-64 processor has: SSE2, and no fused multiply-add
#define BAREGRAD_LADDER_ISA sse2
#define BAREGRAD_LADDER_VECTOR_BYTES 16
#endif

namespace baregrad::lab::BAREGRAD_LADDER_ISA {

/// Arithmetic on these is elementwise; x * y + z is one instruction where there is one.
using Vec [[gnu::vector_size(BAREGRAD_LADDER_VECTOR_BYTES)]] = float;
/// Four of them: what is left at the edges.
using Quad [[gnu::vector_size(16)]] = float;

constexpr std::int64_t kLanes = sizeof(Vec) / sizeof(float);
/// Rows of c that a block of registers holds, two vectors each: with two vectors of b and one
/// number of a that is nearly all registers there are, 32 or 16.
constexpr int kBlockRows = sizeof(Vec) == 64 ? 14 : sizeof(Vec) == 32 ? 6 : 4;

/// From any address.
template <class V>
[[gnu::always_inline]] static inline V load(const float* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V>
[[gnu::always_inline]] static inline void store(V v, float* to) {
  __builtin_memcpy(to, &v, sizeof v);
}

void multiply_simd(std::int64_t n, const float* a, const float* b, float* c);
void multiply_register_blocked(std::int64_t n, const float* a, const float* b, float* c);
void multiply_packed_rows(std::int64_t n, std::int64_t begin, std::int64_t end, const float* a,
                          const float* b, float* c);

}  // namespace baregrad::lab::BAREGRAD_LADDER_ISA
