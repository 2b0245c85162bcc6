// How reductions, scans and softmax cut a strided view into blocks: the same blocks at any number
// of threads.
#pragma once

#include <cstdint>

#include "backends/cpu/abi.h"
#include "core/multi_index.h"

namespace baregrad::kernels {

/// The most accumulators of one block: rows of float32 are then read a page at a time.
inline constexpr std::int64_t kMaxLanes = 1024;
/// The elements of a block fit into this size: two passes over them read from L1 or L2.
inline constexpr std::int64_t kBlockBytes = 32768;
/// Elements of one parallel chunk.
inline constexpr std::int64_t kReduceGrain = 32768;

/// Strides count bytes here.
struct ReduceDim {
  std::int64_t size;
  std::int64_t x_stride;
  std::int64_t out_stride;
};

/// A view whose dimensions are kept or reduced, cut into blocks of `lanes` kept positions by `run`
/// reduced positions. Kept positions come in `tiles` (outer kept dimensions x pieces of the lane
/// dimension), reduced ones in `units` (outer reduced dimensions x pieces of the run dimension).
struct ReducePlan {
  const char* x = nullptr;
  std::int64_t out_offset = 0;
  ReduceDim run{1, 0, 0};
  ReduceDim lane{1, 0, 0};
  bool inner = true;  ///< elements of a run are nearer in memory than lanes are
  int num_kept = 0;
  int num_reduced = 0;
  ReduceDim kept[kMaxDims];       ///< the others, outermost first
  ReduceDim reduced[kMaxDims];    ///< likewise
  std::int64_t reduced_size = 1;  ///< elements per accumulator

  std::int64_t lane_block = 1;
  std::int64_t run_block = 1;
  std::int64_t lane_blocks = 1;
  std::int64_t run_blocks = 1;
  std::int64_t tiles = 1;
  std::int64_t units = 1;
  std::int64_t splits = 1;  ///< parts of each tile's units, where tiles are few
  std::int64_t grain = 1;   ///< tiles of one parallel chunk when there is one split

  /// First unit of a split.
  std::int64_t split_begin(std::int64_t split) const noexcept { return units * split / splits; }
};

/// Whether reduced positions may be walked in any order, or must be walked in row-major order.
enum class ReduceOrder : std::uint8_t { Any, RowMajor };

/// No size of x is 0. `out_strides` counts elements of `out_itemsize` bytes; those of reduced axes
/// are 0, except for ops that keep these axes.
ReducePlan make_reduce_plan(const View& x, std::uint32_t axes_mask, const std::int64_t* out_strides,
                            std::size_t out_itemsize, ReduceOrder order);

/// Bounds of the size of a block.
struct BlockLimits {
  std::int64_t elements;  ///< of a block
  std::int64_t lanes = kMaxLanes;
  std::int64_t min_run = 1;  ///< blocks along slow runs are this long even beyond `elements`
};
void cut_blocks(ReducePlan& plan, const BlockLimits& limits);

struct ReduceBlock {
  const char* x;
  std::int64_t lanes;
  std::int64_t run;
  std::int64_t run_begin;   ///< position of its first element along the reduced dimensions
  std::int64_t out_offset;  ///< bytes, of its first element
};

/// The lanes of a tile and the place of its first one.
struct ReduceTile {
  std::int64_t lanes;
  std::int64_t x_offset;
  std::int64_t out_offset;
};

inline ReduceTile tile_at(const ReducePlan& plan, std::int64_t tile) noexcept {
  const std::int64_t begin = tile % plan.lane_blocks * plan.lane_block;
  ReduceTile t{plan.lane.size - begin < plan.lane_block ? plan.lane.size - begin : plan.lane_block,
               begin * plan.lane.x_stride, begin * plan.lane.out_stride + plan.out_offset};
  move_to(
      plan.num_kept, tile / plan.lane_blocks, [&](int i) { return plan.kept[i].size; },
      [&](int i, std::int64_t index) {
        t.x_offset += index * plan.kept[i].x_stride;
        t.out_offset += index * plan.kept[i].out_stride;
      });
  return t;
}

/// Calls f(ReduceBlock) for the units [begin, end) of a tile, in order.
template <class F>
void for_blocks(const ReducePlan& plan, std::int64_t tile, std::int64_t begin, std::int64_t end,
                F&& f) {
  const ReduceTile t = tile_at(plan, tile);
  std::int64_t index[kMaxDims];
  std::int64_t piece = begin % plan.run_blocks;
  std::int64_t base = begin / plan.run_blocks * plan.run.size;
  std::int64_t x_offset = t.x_offset;
  std::int64_t out_offset = t.out_offset;
  const auto size = [&](int i) { return plan.reduced[i].size; };
  const auto move = [&](int i, std::int64_t steps) {
    x_offset += steps * plan.reduced[i].x_stride;
    out_offset += steps * plan.reduced[i].out_stride;
  };
  set_index(index, plan.num_reduced, begin / plan.run_blocks, size, move);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = piece * plan.run_block;
    const std::int64_t left = plan.run.size - first;
    f(ReduceBlock{plan.x + x_offset + first * plan.run.x_stride, t.lanes,
                  left < plan.run_block ? left : plan.run_block, base + first,
                  out_offset + first * plan.run.out_stride});
    if (++piece < plan.run_blocks) continue;
    piece = 0;
    base += plan.run.size;
    next_index(index, plan.num_reduced, size, move);
  }
}

/// Contiguous rows of one compute type, as kernels take them. A row is a run where `inner`, else
/// the lanes of one reduced position.
struct Rows {
  void* data;
  std::int64_t rows;
  std::int64_t row_stride;  ///< elements
  std::int64_t cols;
};

/// Scratch of one chunk: elements in their own dtype, then converted.
struct alignas(64) BlockScratch {
  char raw[kBlockBytes];
  char tile[kBlockBytes];
};

/// Turns blocks into rows: in place where the elements are contiguous, aligned and already of the
/// compute type, else gathered and converted.
class BlockReader {
 public:
  BlockReader(const ReducePlan& plan, DType from, DType to, bool runs_as_rows,
              const KernelTable& table);
  /// The most elements of a block that must be staged; blocks that are not may be larger.
  std::int64_t stage_elements() const noexcept;
  bool direct() const noexcept { return direct_; }
  /// The elements of the block; with `copy` always in scratch.tile, where they may be overwritten.
  Rows read(const ReduceBlock& block, BlockScratch& scratch, bool copy = false) const;

 private:
  std::int64_t run_stride_;
  std::int64_t lane_stride_;
  DType from_;
  DType to_;
  bool runs_as_rows_;
  bool aligned_;
  bool direct_;
  CastFn cast_;
};

/// The counterpart of BlockReader: converts contiguous elements and writes them to their places in
/// the output of the plan.
class BlockWriter {
 public:
  BlockWriter(const ReducePlan& plan, DType from, DType to, const KernelTable& table);
  /// A whole block, its rows contiguous and without gaps, to `out`, the place of its first element.
  /// `raw` holds kBlockBytes.
  void write_block(const Rows& block, char* out, char* raw) const;
  /// One value for each lane of a tile. `raw` holds as many elements of the output's type.
  void write_lanes(const void* values, std::int64_t lanes, char* out, char* raw) const;

 private:
  /// Writes rows x cols contiguous elements to places at these strides, in bytes.
  void write(const void* data, std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
             std::int64_t col_stride, char* out, char* raw) const;

  std::int64_t run_stride_;
  std::int64_t lane_stride_;
  bool runs_as_rows_;
  DType to_;
  CastFn cast_;
};

/// Sets all elements of `out`, which is contiguous, to a value.
void fill_converted(double value, const View& out, const KernelTable& table);

}  // namespace baregrad::kernels
