// Convolutions: the kernels that an instruction set provides for conv/.
//
// No matrix of windows is built (no im2col). A block of the image is copied once, with its border
// of zeros, into planes in which every place of a window (a tap) is at a fixed distance from the
// pixel. A product with the filters then reads its right operand through a table of distances.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/kernels.h"

namespace baregrad::kernels {

/// C[i][q] = (add ? C[i][q] : 0) + sum over p < k of A[i][p] * x[at[p] + q], for a number of rows
/// fixed by the function. `cols` is a multiple of the lanes. The sum runs over p in order.
struct ConvTile {
  const void* a;
  std::int64_t a_row;
  const void* x;
  const std::int64_t* at;
  void* c;
  std::int64_t c_row;
  std::int64_t k;
  std::int64_t cols;
  bool add;
};
using ConvTileFn = void (*)(const ConvTile& tile);

/// The same sums with filters along vectors: C[i][j] = (add ? C[i][j] : 0) + sum over p < k of
/// x[at[p] + i] * W[p][j], for a number of pixels i fixed by the function. `cols` is a multiple of
/// the lanes. Each sum has the same bits as that of a ConvTile.
struct ConvPixels {
  const void* x;
  const std::int64_t* at;
  const void* w;
  std::int64_t w_row;
  void* c;
  std::int64_t c_row;
  std::int64_t k;
  std::int64_t cols;
  bool add;
};
using ConvPixelsFn = void (*)(const ConvPixels& pixels);

/// C[i][j] = (add ? C[i][j] : 0) + sum over y < height, p < width of
/// x[at[i] + y * x_row + p] * g[(y * width + p) * g_row + j], for a number of rows fixed by the
/// function. `cols` is a multiple of the lanes.
struct ConvSum {
  const void* x;
  const std::int64_t* at;
  std::int64_t x_row;
  const void* g;
  std::int64_t g_row;
  void* c;
  std::int64_t c_row;
  std::int64_t height;
  std::int64_t width;
  std::int64_t cols;
  bool add;
};
using ConvSumFn = void (*)(const ConvSum& sum);

/// Lines of a plane: to[l * length + i] = from[l * from_line + (i - begin) * step] for begin <= i <
/// end, and zero for the other i < length.
struct ConvLines {
  const void* from;
  std::int64_t from_line;
  std::int64_t step;
  void* to;
  std::int64_t lines;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t length;
};
using ConvLinesFn = void (*)(const ConvLines& lines);

struct ConvKernelsOf {
  int lanes = 0;
  int tile_rows = 0;
  int sum_rows = 0;
  ConvTileFn tile[kMaxTileRows + 1] = {};      ///< by number of rows
  ConvPixelsFn pixels[kMaxTileRows + 1] = {};  ///< only f32, not in the reference
  ConvSumFn sum[kMaxTileRows + 1] = {};
  ConvLinesFn stage = nullptr;
};

struct ConvKernels {
  ConvKernelsOf f32;
  ConvKernelsOf f64;
};

}  // namespace baregrad::kernels
