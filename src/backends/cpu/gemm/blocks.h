// Block sizes of matrix products: all tuning numbers of gemm/ are here and in blocks.cpp.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/kernels.h"

namespace baregrad::kernels {

/// Up to this size nothing is blocked, packed or shared with other threads.
inline constexpr std::int64_t kSmallGemm = 64;

/// With no more rows than this on one side, and the other side contiguous along k, vectors run
/// along k: transposing the other side would cost more than the product.
inline constexpr std::int64_t kMaxDotRows = 64;
inline constexpr std::int64_t kMaxDotCols = 32;

/// Whether `rows` rows that begin `row_bytes` apart fall on the same few sets of L1. With more such
/// rows than ways, a step along k evicts the lines that the next step needs.
bool rows_alias_in_l1(std::int64_t rows, std::int64_t row_bytes);
/// Whether tiles can read A (m rows, contiguous along k) in place, many times over.
bool reads_a_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t row_stride);
/// The most rows of a tile that reads A in place.
std::int64_t tile_rows_in_place(const GemmKernels& kernels, std::int64_t row_stride);
/// Whether packing B (k x n, rows contiguous) would cost more than it saves.
bool reads_b_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k);

/// The loops cut C into blocks of mb x nb, each summed over k in steps of kc; a task computes up to
/// mc x jc of a block. All in elements.
struct GemmBlocks {
  std::int64_t kc;
  std::int64_t mc;
  std::int64_t jc;
  std::int64_t mb;
  std::int64_t nb;
};
GemmBlocks gemm_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k);

/// The most parts of k that a product of few rows is cut into.
inline constexpr int kMaxSkinnyParts = 16;

/// For products where one tile has all rows of C: the depth and columns of a task, the rows of B
/// that are read at a time, and whether the next ones are prefetched.
struct SkinnyBlocks {
  std::int64_t depth;
  std::int64_t cols;
  std::int64_t rows;
  bool fetch;
};
SkinnyBlocks skinny_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n,
                           std::int64_t k);

/// Rows of A at a time, and columns of a task, for products that vectorise along k.
struct DotBlocks {
  std::int64_t rows;
  std::int64_t cols;
};
DotBlocks dot_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t k);

}  // namespace baregrad::kernels
