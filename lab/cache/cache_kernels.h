// Loops that do little but touch memory, in one order or another. They are compiled without
// vectors, so that one element is one load or one store.
#pragma once

#include <cstdint>

namespace baregrad::lab {

/// The sum of `count` floats, `stride` floats from one to the next. Eight sums at once: the loop
/// waits for memory, not for the addition before.
double sum_strided(const float* x, std::int64_t count, std::int64_t stride);
void fill_strided(float* x, std::int64_t count, std::int64_t stride, float value);

/// How an n x n matrix, its rows one behind the other, is gone through.
enum class Order {
  Rows,
  Columns,
  Tiles,  ///< one line wide; down its columns as in Columns, but a tile stays in the L1 cache
};
double sum_matrix(Order order, std::int64_t n, const float* x);
void fill_matrix(Order order, std::int64_t n, float* x, float value);

void transpose_naive(std::int64_t n, const float* from, float* to);
/// In tiles whose lines of both matrices fit in the L1 cache.
void transpose_tiled(std::int64_t n, const float* from, float* to);

}  // namespace baregrad::lab
