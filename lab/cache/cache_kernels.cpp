// Compiled with special flags, see CMakeLists.txt.
#include "lab/cache/cache_kernels.h"

#include <algorithm>

namespace baregrad::lab {
namespace {

constexpr std::int64_t kTileColumns = 16;  // floats per cache line
constexpr std::int64_t kTileRows = 64;     // 4 KiB of lines: a fraction of any L1 cache

/// Calls line(start, count, stride) for every run of elements in that order.
template <class Line>
void walk(Order order, std::int64_t n, const Line& line) {
  if (order == Order::Rows) {
    for (std::int64_t i = 0; i < n; ++i) line(i * n, n, 1);
    return;
  }
  const std::int64_t height = order == Order::Tiles ? kTileRows : n;
  const std::int64_t width = order == Order::Tiles ? kTileColumns : n;
  for (std::int64_t i = 0; i < n; i += height) {
    for (std::int64_t j = 0; j < n; j += width) {
      const std::int64_t end = std::min(j + width, n);
      for (std::int64_t k = j; k < end; ++k) line(i * n + k, std::min(height, n - i), n);
    }
  }
}

}  // namespace

double sum_strided(const float* x, std::int64_t count, std::int64_t stride) {
  float a = 0;
  float b = 0;
  float c = 0;
  float d = 0;
  float e = 0;
  float f = 0;
  float g = 0;
  float h = 0;
  for (; count >= 8; count -= 8, x += 8 * stride) {
    a += x[0];
    b += x[stride];
    c += x[2 * stride];
    d += x[3 * stride];
    e += x[4 * stride];
    f += x[5 * stride];
    g += x[6 * stride];
    h += x[7 * stride];
  }
  for (; count > 0; --count, x += stride) a += *x;
  return (static_cast<double>(a) + b + c + d) + (static_cast<double>(e) + f + g + h);
}

void fill_strided(float* x, std::int64_t count, std::int64_t stride, float value) {
  for (; count >= 8; count -= 8, x += 8 * stride) {
    x[0] = value;
    x[stride] = value;
    x[2 * stride] = value;
    x[3 * stride] = value;
    x[4 * stride] = value;
    x[5 * stride] = value;
    x[6 * stride] = value;
    x[7 * stride] = value;
  }
  for (; count > 0; --count, x += stride) *x = value;
}

double sum_matrix(Order order, std::int64_t n, const float* x) {
  double sum = 0;
  walk(order, n, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    sum += sum_strided(x + start, count, stride);
  });
  return sum;
}

void fill_matrix(Order order, std::int64_t n, float* x, float value) {
  walk(order, n, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    fill_strided(x + start, count, stride, value);
  });
}

void transpose_naive(std::int64_t n, const float* from, float* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[j * n + i] = from[i * n + j];
  }
}

void transpose_tiled(std::int64_t n, const float* from, float* to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t i = 0; i < n; i += kTile) {
    for (std::int64_t j = 0; j < n; j += kTile) {
      const std::int64_t rows = std::min(i + kTile, n);
      const std::int64_t columns = std::min(j + kTile, n);
      for (std::int64_t k = i; k < rows; ++k) {
        for (std::int64_t l = j; l < columns; ++l) to[l * n + k] = from[k * n + l];
      }
    }
  }
}

}  // namespace baregrad::lab
