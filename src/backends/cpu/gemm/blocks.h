// Block sizes: the one place with numbers that tune.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/kernels.h"

namespace baregrad::kernels {

/// Up to this size nothing is cut up, packed or shared with other threads.
inline constexpr std::int64_t kSmallGemm = 64;

/// With no more rows than this on one side, and the other side contiguous along k, vectors run
/// along k: transposing the other side would cost more than the product.
inline constexpr std::int64_t kMaxDotRows = 64;
inline constexpr std::int64_t kMaxDotCols = 32;

/// Whether `rows` rows that begin `row_bytes` apart fall on the same few sets of L1. With more such
/// rows than ways, a step along k evicts the lines that the next step needs.
bool rows_alias_in_l1(std::int64_t rows, std::int64_t row_bytes);
/// Whether A (of m rows, contiguous along k) can be read by tiles where it lies, many times over.
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

/// Parts of k that a product of few rows is cut into at most.
inline constexpr int kMaxSkinnyParts = 16;

/// Where one tile has all the rows of C: the depth and columns of a task, the rows of B it takes at
/// a time, and whether it fetches the next ones meanwhile.
struct SkinnyBlocks {
  std::int64_t depth;
  std::int64_t cols;
  std::int64_t rows;
  bool fetch;
};
SkinnyBlocks skinny_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n,
                           std::int64_t k);

/// Rows of A taken at a time, and columns of a task, of a product by dots.
struct DotBlocks {
  std::int64_t rows;
  std::int64_t cols;
};
DotBlocks dot_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t k);

}  // namespace baregrad::kernels
