// Block sizes from the cache sizes and the shape; never from the number of threads.
#include "backends/cpu/gemm/blocks.h"

#include <algorithm>

#include "core/cache_sizes.h"
#include "core/integer_math.h"

namespace baregrad::kernels {

namespace {

/// Elements that fit into `bytes` of cache.
std::int64_t room(std::size_t bytes, const GemmKernels& kernels) {
  return static_cast<std::int64_t>(bytes) / kernels.item;
}

}  // namespace

bool rows_alias_in_l1(std::int64_t rows, std::int64_t row_bytes) {
  constexpr std::int64_t kAliasing = 2048;
  constexpr std::int64_t kHarmless = 4;
  return rows > kHarmless && row_bytes % kAliasing == 0;
}

bool reads_a_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t row_stride) {
  return !rows_alias_in_l1(m, row_stride * kernels.item);
}

std::int64_t tile_rows_in_place(const GemmKernels& kernels, std::int64_t row_stride) {
  // With rows a page apart, all rows fall on one set of L1. Nine is the most that runs at full
  // speed.
  constexpr std::int64_t kSameSet = 4096;
  constexpr std::int64_t kMostRows = 9;
  const bool same_set = row_stride * kernels.item % kSameSet == 0;
  return same_set ? std::min<std::int64_t>(kernels.mr, kMostRows) : kernels.mr;
}

bool reads_b_in_place(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k) {
  return m <= 8 * kernels.mr || k * n <= room(cache_sizes().l2, kernels);
}

GemmBlocks gemm_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k) {
  const CacheSizes& cache = cache_sizes();
  const std::int64_t l1 = room(cache.l1, kernels);
  const std::int64_t l2 = room(cache.l2, kernels);
  GemmBlocks blocks;
  // A panel of A takes most of L1 while panels of B pass by. All steps have nearly the same depth,
  // so that the last one is not much thinner.
  const std::int64_t most = std::clamp<std::int64_t>(l1 * 7 / 8 / kernels.mr, 192, 512);
  const std::int64_t steps = std::max<std::int64_t>(ceil_div(k, most), 1);
  blocks.kc = steps == 1 ? k : round_up(ceil_div(k, steps), 8);
  blocks.mb = 2048;
  blocks.nb = 2048;
  // kc x jc of B take half of L2 while panels of A pass by.
  blocks.mc = 256;
  blocks.jc =
      std::clamp<std::int64_t>(l2 / 2 / std::max<std::int64_t>(blocks.kc, 1), kernels.nr, 512);
  // Many tasks, so that any number of threads gets even shares; but none so small that the overhead
  // of a task matters.
  constexpr std::int64_t kTasks = 32;
  constexpr std::int64_t kLeast = 1 << 17;
  const std::int64_t block_rows = std::min(m, blocks.mb);
  const std::int64_t block_cols = std::min(n, blocks.nb);
  std::int64_t rows = std::min(block_rows, blocks.mc);
  std::int64_t cols = std::min(block_cols, blocks.jc);
  while (rows * cols * kTasks > block_rows * block_cols && rows * cols * blocks.kc > 2 * kLeast) {
    if (cols > 2 * rows)
      cols = ceil_div(cols, 2);
    else
      rows = ceil_div(rows, 2);
  }
  blocks.mc = round_up(rows, kernels.mr);
  blocks.jc = round_up(cols, kernels.nr);
  return blocks;
}

SkinnyBlocks skinny_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  const CacheSizes& cache = cache_sizes();
  // Measured in sizes of L2: an L3 is shared, and one core gets a small part of it.
  const bool far = k * n > room(8 * cache.l2, kernels);
  // Several tasks share B, and each takes at least a few microseconds. They cut k, so that each
  // reads memory from one end to the other. Columns are cut only where the sums of a task would not
  // stay in a part of L1, or of L2 where memory is the bottleneck anyway.
  constexpr std::int64_t kLeast = 1 << 17;
  constexpr std::int64_t kLeastDepth = 256;
  const std::int64_t most = room(far ? cache.l2 / 16 : cache.l1 / 4, kernels) / m / 128 * 128;
  const std::int64_t least = std::max<std::int64_t>(256, round_up(kLeast / (m * k), 128));
  const std::int64_t cols = std::min(n, std::max(most, least));
  const std::int64_t pieces = ceil_div(n, cols);
  const std::int64_t tasks = std::min<std::int64_t>(m * n * k / kLeast, kMaxSkinnyParts);
  const std::int64_t parts = std::max<std::int64_t>(std::min(tasks / pieces, k / kLeastDepth), 1);
  // From memory, few rows of B are read at a time: the prefetchers follow about ten streams, not
  // sixty. The same holds for a single row from L3, except where a piece has the 512 bytes of
  // AVX-512.
  const bool long_pieces = kernels.lanes * kernels.item == 64;
  const bool few = far || (m == 1 && !long_pieces && k * n > room(cache.l2, kernels));
  return {round_up(ceil_div(k, parts), 8), cols, few ? 8 : 64, far};
}

DotBlocks dot_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t k) {
  // The rows stay in half of L2; a task takes about ten microseconds.
  constexpr std::int64_t kTask = 1 << 17;
  const std::int64_t rows = room(cache_sizes().l2 / 2, kernels) / k / 4 * 4;
  return {std::clamp<std::int64_t>(rows, 4, kMaxDotRows),
          std::clamp<std::int64_t>(kTask / (k * m) / 8 * 8, 8, kMaxDotCols)};
}

}  // namespace baregrad::kernels
