// Loops that mainly access memory, in different orders. They are compiled without vectors, so that
// one element is one load or one store.
#pragma once

#include <cstdint>

namespace baregrad::lab {

/// The sum of `count` floats at a distance of `stride` floats. Eight independent sums: the loop
/// waits for memory, not for the previous addition.
double sum_strided(const float* x, std::int64_t count, std::int64_t stride);
void fill_strided(float* x, std::int64_t count, std::int64_t stride, float value);

/// The order in which a row-major n x n matrix is walked.
enum class Order {
  Rows,
  Columns,
  Tiles,  ///< one line wide; down the columns as in Columns, but a tile stays in the L1 cache
};
double sum_matrix(Order order, std::int64_t n, const float* x);
void fill_matrix(Order order, std::int64_t n, float* x, float value);

void transpose_naive(std::int64_t n, const float* from, float* to);
/// In tiles; the lines of a tile of both matrices fit in the L1 cache.
void transpose_tiled(std::int64_t n, const float* from, float* to);

}  // namespace baregrad::lab
