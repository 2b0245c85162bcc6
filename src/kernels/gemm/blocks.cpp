// Block sizes out of the cache sizes and the shape; never out of the number of threads.
#include "kernels/gemm/blocks.h"

#include <algorithm>

#include "core/cache_sizes.h"

namespace baregrad::kernels {

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

}  // namespace

GemmBlocks gemm_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k) {
  const CacheSizes& cache = cache_sizes();
  const auto l1 = static_cast<std::int64_t>(cache.l1) / kernels.item;
  const auto l2 = static_cast<std::int64_t>(cache.l2) / kernels.item;
  GemmBlocks blocks;
  // A panel of A takes most of L1 while panels of B pass by. Blocks are of one depth, so that the
  // last is not a thin one.
  const std::int64_t most = std::clamp<std::int64_t>(l1 * 7 / 8 / kernels.mr, 192, 512);
  blocks.kc =
      k <= most ? k : round_up((k + (k + most - 1) / most - 1) / ((k + most - 1) / most), 8);
  blocks.mb = 2048;
  blocks.nb = 2048;
  // kc x jc of B take half of L2 while panels of A pass by.
  blocks.mc = 256;
  blocks.jc =
      std::clamp<std::int64_t>(l2 / 2 / std::max<std::int64_t>(blocks.kc, 1), kernels.nr, 512);
  // Many tasks, so that any number of threads shares them evenly; but none so small that handing it
  // out would show.
  constexpr std::int64_t kTasks = 32;
  constexpr std::int64_t kLeast = 1 << 19;
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

}  // namespace baregrad::kernels
