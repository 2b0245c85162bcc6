// What an instruction set offers to the loops of gemm/: plain functions over one tile.
//
// T is the compute type of a dtype: f32 for f32, f16 and bf16; f64; an unsigned integer of 16, 32
// or 64 bits for integers (8 bits compute in 16); a byte of 0 or 1 for bool. Strides count
// elements. The sum of one element of C runs over k in order, whichever tile it is in: its bits
// depend neither on its place nor on the number of threads.
#pragma once

#include <cstdint>

#include "baregrad/activation.h"

namespace baregrad::kernels {

/// The most rows, and the most columns, of a tile on any instruction set.
inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileCols = 128;

/// C[i][j] = (add ? C[i][j] : 0) + sum over p < k of A[i][p] * B[p][j], for a number of rows fixed
/// by the function and any number of columns. B and C have unit column stride. A packed B has whole
/// vectors: elements beyond `cols` are read, but their results are not stored.
struct GemmTile {
  const void* a;
  std::int64_t a_stride;  ///< from row to row, or from k to k where rows are contiguous
  const void* b;
  std::int64_t b_row;
  void* c;
  std::int64_t c_row;
  std::int64_t k;
  std::int64_t cols;
  bool add;
  bool b_packed;
  /// Few rows: B is prefetched into L2 this far ahead (0: no prefetch).
  std::int64_t ahead = 0;
  /// Several products one after the other, and the distance between their operands.
  std::int64_t products = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
};
using GemmTileFn = void (*)(const GemmTile& tile);

/// to[o * to_outer + i] = from[o * outer_stride + i * inner_stride] as T; i from inner to padded
/// become 0.
struct GemmPack {
  const void* from;
  std::int64_t outer_stride;
  std::int64_t inner_stride;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t padded;
  void* to;
  std::int64_t to_outer;
};
using GemmPackFn = void (*)(const GemmPack& pack);

/// C = act(tile + partial [+ C] [+ bias]) [+ residual], rounded once to the dtype. `tile` and
/// `partial` (may be null: nothing) hold T with unit column stride; all others the dtype.
struct GemmFinish {
  const void* tile;
  std::int64_t tile_row;
  const void* partial;
  std::int64_t partial_row;
  std::int64_t rows;
  std::int64_t cols;
  void* c;
  std::int64_t c_row;
  std::int64_t c_col;
  const void* bias;
  std::int64_t bias_row;
  std::int64_t bias_col;
  const void* residual;
  std::int64_t residual_row;
  std::int64_t residual_col;
  bool accumulate;
  Activation activation;
};
using GemmFinishFn = void (*)(const GemmFinish& finish);

/// to[i * to_row + j] = sum over p < k of A[i][p] * B[p][j], both of unit stride along p.
struct GemmDot {
  const void* a;
  std::int64_t a_row;
  const void* b;
  std::int64_t b_col;
  std::int64_t k;
  std::int64_t rows;
  std::int64_t cols;
  void* to;
  std::int64_t to_row;
};
using GemmDotFn = void (*)(const GemmDot& dot);

/// One dtype on one instruction set. mr == 0: there are no kernels, the reference computes it.
struct GemmKernels {
  int mr = 0;
  int nr = 0;  ///< columns of a packed panel of B
  int lanes = 0;
  int item = 0;         ///< bytes of T
  bool direct = false;  ///< tiles may read A and B where they lie: T is the dtype
  bool masked = false;  ///< ... and B need not have whole vectors
  GemmTileFn k_contiguous[kMaxTileRows + 1] = {};    ///< by number of rows: A[i * stride + p]
  GemmTileFn row_contiguous[kMaxTileRows + 1] = {};  ///< A[i + p * stride]
  GemmPackFn pack = nullptr;
  GemmFinishFn finish = nullptr;
  GemmDotFn dot = nullptr;
};

}  // namespace baregrad::kernels
