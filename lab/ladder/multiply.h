// The rungs' functions, one file each. All compute c = a b of n x n row-major floats. c is
// overwritten and need not be initialised.
#pragma once

#include <cstdint>

namespace baregrad::lab {

void multiply_naive(std::int64_t n, const float* a, const float* b, float* c);
void multiply_reordered(std::int64_t n, const float* a, const float* b, float* c);
void multiply_tiled(std::int64_t n, const float* a, const float* b, float* c);
void multiply_unrolled(std::int64_t n, const float* a, const float* b, float* c);

// Vectors as wide as those of the instruction set in use: see vector_rungs.cpp.
void multiply_simd(std::int64_t n, const float* a, const float* b, float* c);
void multiply_register_blocked(std::int64_t n, const float* a, const float* b, float* c);
void multiply_packed(std::int64_t n, const float* a, const float* b, float* c);
/// Only rows [begin, end) of c: the share of one thread.
void multiply_packed_rows(std::int64_t n, std::int64_t begin, std::int64_t end, const float* a,
                          const float* b, float* c);

void multiply_engine(std::int64_t n, const float* a, const float* b, float* c);

}  // namespace baregrad::lab
