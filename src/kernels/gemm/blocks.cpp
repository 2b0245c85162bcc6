// Block sizes out of the cache sizes and the shape; never out of the number of threads.
#include "kernels/gemm/blocks.h"

#include <algorithm>

#include "core/cache_sizes.h"

namespace baregrad::kernels {

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Elements that a cache holds.
std::int64_t room(std::size_t bytes, const GemmKernels& kernels) {
  return static_cast<std::int64_t>(bytes) / kernels.item;
}

}  // namespace

bool reads_a_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t row_stride) {
  // Rows this far apart fall on the same sets of L1: with more of them than ways, a step along k
  // loses the lines that the next one needs.
  constexpr std::int64_t kAliasing = 2048;
  return m <= 4 || row_stride * kernels.item % kAliasing != 0;
}

bool reads_b_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k) {
  return m <= 8 * kernels.mr || k * n <= room(cache_sizes().l2, kernels);
}

GemmBlocks gemm_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k) {
  const CacheSizes& cache = cache_sizes();
  const std::int64_t l1 = room(cache.l1, kernels);
  const std::int64_t l2 = room(cache.l2, kernels);
  GemmBlocks blocks;
  // A panel of A takes most of L1 while panels of B pass by. Blocks are of one depth, so that the
  // last is not a thin one.
  const std::int64_t most = std::clamp<std::int64_t>(l1 * 7 / 8 / kernels.mr, 192, 512);
  const std::int64_t steps = std::max<std::int64_t>((k + most - 1) / most, 1);
  blocks.kc = steps == 1 ? k : round_up((k + steps - 1) / steps, 8);
  blocks.mb = 2048;
  blocks.nb = 2048;
  // kc x jc of B take half of L2 while panels of A pass by.
  blocks.mc = 256;
  blocks.jc =
      std::clamp<std::int64_t>(l2 / 2 / std::max<std::int64_t>(blocks.kc, 1), kernels.nr, 512);
  // Many tasks, so that any number of threads shares them evenly; but none so small that handing it
  // out would show.
  constexpr std::int64_t kTasks = 32;
  constexpr std::int64_t kLeast = 1 << 17;
  const std::int64_t block_rows = std::min(m, blocks.mb);
  const std::int64_t block_cols = std::min(n, blocks.nb);
  std::int64_t rows = std::min(block_rows, blocks.mc);
  std::int64_t cols = std::min(block_cols, blocks.jc);
  while (rows * cols * kTasks > block_rows * block_cols && rows * cols * blocks.kc > 2 * kLeast) {
    if (cols > 2 * rows)
      cols = (cols + 1) / 2;
    else
      rows = (rows + 1) / 2;
  }
  blocks.mc = round_up(rows, kernels.mr);
  blocks.jc = round_up(cols, kernels.nr);
  return blocks;
}

SkinnyBlocks skinny_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  const CacheSizes& cache = cache_sizes();
  // Out of memory few rows of B are taken at a time, and long pieces of them: the prefetchers
  // follow some ten streams, not sixty. So they are for a single row out of L3, but where a piece
  // has the 512 bytes of AVX-512.
  const bool long_pieces = kernels.lanes * kernels.item == 64;
  // In L2s: the C library reports the L3 of a whole socket, of which a core has a small share.
  const std::size_t near = m == 1 && !long_pieces ? cache.l2 : 8 * cache.l2;
  const bool far = k * n > room(near, kernels);
  // C stays in half of L1; several tasks share a wide B, none of which takes less than a page of a
  // row, half of one where B is near, or a few microseconds.
  const std::int64_t most =
      std::max<std::int64_t>(room(cache.l1 / 2, kernels) / m / 128 * 128, 256);
  constexpr std::int64_t kTasks = 8;
  constexpr std::int64_t kLeast = 1 << 17;
  const std::int64_t piece = (far ? 4096 : 2048) / kernels.item;
  const std::int64_t least = std::max(piece, kLeast / (m * k));
  const std::int64_t cols = std::min(most, round_up(std::max(n / kTasks, least), 128));
  return {cols, far ? 8 : 64};
}

DotBlocks dot_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t k) {
  // The rows stay in half of L2; a task takes some ten microseconds.
  constexpr std::int64_t kTask = 1 << 17;
  const std::int64_t rows = room(cache_sizes().l2 / 2, kernels) / k / 4 * 4;
  return {std::clamp<std::int64_t>(rows, 4, kMaxDotRows),
          std::clamp<std::int64_t>(kTask / (k * m) / 8 * 8, 8, kMaxDotCols)};
}

}  // namespace baregrad::kernels
