// Planning and staging for reductions.
#include "backends/cpu/walkers/reduce_plan.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cpu/walkers/stage.h"
#include "core/integer_math.h"

namespace baregrad::kernels {

namespace {

// Enough parts to keep eight threads busy to the end.
constexpr std::int64_t kMaxSplits = 64;

struct PlanDim : ReduceDim {
  bool is_reduced;
};

// Distance in memory. Repeated elements (stride 0) are best walked in the outermost loop.
std::int64_t distance(const PlanDim& d) noexcept {
  return d.x_stride == 0 ? INT64_MAX : std::abs(d.x_stride);
}

/// Null where no conversion is needed.
CastFn cast_between(DType from, DType to, const KernelTable& table) noexcept {
  return from == to ? nullptr : table.cast[static_cast<int>(from)][static_cast<int>(to)];
}

}  // namespace

ReducePlan make_reduce_plan(const View& x, std::uint32_t axes_mask, const std::int64_t* out_strides,
                            std::size_t out_itemsize, ReduceOrder order) {
  ReducePlan plan;
  plan.x = static_cast<const char*>(x.data);
  const auto x_itemsize = static_cast<std::int64_t>(itemsize(x.dtype));
  const bool ordered = order == ReduceOrder::RowMajor;

  PlanDim dims[kMaxDims];
  int ndim = 0;
  int num_reduced = 0;
  for (int i = 0; i < x.ndim; ++i) {
    if (x.shape[i] == 1) continue;
    PlanDim d;
    d.size = x.shape[i];
    d.x_stride = x.strides[i] * x_itemsize;
    d.out_stride = out_strides[i] * static_cast<std::int64_t>(out_itemsize);
    d.is_reduced = (axes_mask >> i & 1) != 0;
    if (d.x_stride < 0 && !(ordered && d.is_reduced)) {
      plan.x += (d.size - 1) * d.x_stride;
      plan.out_offset += (d.size - 1) * d.out_stride;
      d.x_stride = -d.x_stride;
      d.out_stride = -d.out_stride;
    }
    if (d.is_reduced) {
      plan.reduced_size *= d.size;
      ++num_reduced;
    }
    dims[ndim++] = d;
  }

  // Outermost first. With several reduced axes, a row-major walk runs over all of them: their order
  // is kept.
  if (!ordered || num_reduced <= 1) {
    for (int i = 1; i < ndim; ++i) {
      for (int k = i; k > 0 && distance(dims[k - 1]) < distance(dims[k]); --k) {
        std::swap(dims[k - 1], dims[k]);
      }
    }
  }
  int merged = 0;
  for (int i = 1; i < ndim; ++i) {
    PlanDim& outer = dims[merged];
    const PlanDim& inner = dims[i];
    if (outer.is_reduced == inner.is_reduced && outer.x_stride == inner.size * inner.x_stride &&
        outer.out_stride == inner.size * inner.out_stride) {
      outer.size *= inner.size;
      outer.x_stride = inner.x_stride;
      outer.out_stride = inner.out_stride;
    } else {
      dims[++merged] = inner;
    }
  }
  if (ndim > 0) ndim = merged + 1;

  plan.inner = ndim == 0 || dims[ndim - 1].is_reduced;
  bool have_run = false;
  bool have_lane = false;
  for (int i = ndim - 1; i >= 0; --i) {
    bool& have = dims[i].is_reduced ? have_run : have_lane;
    if (!have) {
      (dims[i].is_reduced ? plan.run : plan.lane) = dims[i];
      dims[i].size = 0;
      have = true;
    }
  }
  for (int i = 0; i < ndim; ++i) {
    if (dims[i].size == 0) continue;
    if (dims[i].is_reduced) {
      plan.reduced[plan.num_reduced++] = dims[i];
    } else {
      plan.kept[plan.num_kept++] = dims[i];
    }
  }
  return plan;
}

void cut_blocks(ReducePlan& plan, const BlockLimits& limits) {
  constexpr std::int64_t kOne = 1;
  if (plan.inner) {
    plan.run_block = std::min(plan.run.size, limits.elements);
    plan.lane_block =
        std::min({plan.lane.size, limits.lanes, std::max(kOne, limits.elements / plan.run_block)});
  } else {
    plan.lane_block = std::min({plan.lane.size, limits.lanes, limits.elements});
    plan.run_block =
        std::min(plan.run.size, std::max(limits.min_run, limits.elements / plan.lane_block));
  }
  plan.lane_blocks = ceil_div(plan.lane.size, plan.lane_block);
  plan.run_blocks = ceil_div(plan.run.size, plan.run_block);
  plan.tiles = plan.lane_blocks;
  for (int i = 0; i < plan.num_kept; ++i) plan.tiles *= plan.kept[i].size;
  plan.units = plan.run_blocks;
  for (int i = 0; i < plan.num_reduced; ++i) plan.units *= plan.reduced[i].size;

  const std::int64_t per_tile = plan.reduced_size * plan.lane_block;
  plan.splits = std::clamp<std::int64_t>(
      std::min(kMaxSplits / std::min(plan.tiles, kMaxSplits), per_tile / kReduceGrain), 1,
      plan.units);
  plan.grain = std::max<std::int64_t>(1, kReduceGrain / per_tile);
}

BlockReader::BlockReader(const ReducePlan& plan, DType from, DType to, bool runs_as_rows,
                         const KernelTable& table)
    : run_stride_(plan.run.x_stride),
      lane_stride_(plan.lane.x_stride),
      from_(from),
      to_(to),
      runs_as_rows_(runs_as_rows),
      aligned_(is_aligned(plan.x, from)),
      cast_(cast_between(from, to, table)) {
  const ReduceDim& col = runs_as_rows ? plan.run : plan.lane;
  direct_ = from == to && aligned_ &&
            (col.size == 1 || col.x_stride == static_cast<std::int64_t>(itemsize(from)));
}

std::int64_t BlockReader::stage_elements() const noexcept {
  return kBlockBytes / static_cast<std::int64_t>(std::max(itemsize(from_), itemsize(to_)));
}

Rows BlockReader::read(const ReduceBlock& block, BlockScratch& scratch, bool copy) const {
  const std::int64_t rows = runs_as_rows_ ? block.lanes : block.run;
  const std::int64_t cols = runs_as_rows_ ? block.run : block.lanes;
  const std::int64_t row_stride = runs_as_rows_ ? lane_stride_ : run_stride_;
  const std::int64_t col_stride = runs_as_rows_ ? run_stride_ : lane_stride_;
  const std::size_t bytes = itemsize(from_);
  const auto width = static_cast<std::int64_t>(bytes);
  if (direct_ && !copy) {
    // The kernels only read; Rows is writable for those that asked for a copy.
    return {const_cast<char*>(block.x), rows, row_stride / width, cols};
  }
  const bool contiguous = col_stride == width || cols == 1;
  if (cast_ != nullptr && aligned_ && contiguous) {
    if (row_stride == cols * width || rows == 1) {
      cast_(block.x, scratch.tile, rows * cols);
    } else {
      const auto out_width = static_cast<std::int64_t>(itemsize(to_));
      for (std::int64_t r = 0; r < rows; ++r) {
        cast_(block.x + r * row_stride, scratch.tile + r * cols * out_width, cols);
      }
    }
    return {scratch.tile, rows, cols, cols};
  }
  char* to = cast_ == nullptr ? scratch.tile : scratch.raw;
  if (std::abs(row_stride) < std::abs(col_stride) && rows > 1) {
    stage_kernels(bytes).transpose(to, block.x, rows, row_stride, cols, col_stride);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
      strided_copy(to + r * cols * width, width, block.x + r * row_stride, col_stride, cols, bytes);
    }
  }
  if (cast_ != nullptr) cast_(scratch.raw, scratch.tile, rows * cols);
  return {scratch.tile, rows, cols, cols};
}

BlockWriter::BlockWriter(const ReducePlan& plan, DType from, DType to, const KernelTable& table)
    : run_stride_(plan.run.out_stride),
      lane_stride_(plan.lane.out_stride),
      runs_as_rows_(plan.inner),
      to_(to),
      cast_(cast_between(from, to, table)) {}

void BlockWriter::write_block(const Rows& block, char* out, char* raw) const {
  write(block.data, block.rows, block.cols, runs_as_rows_ ? lane_stride_ : run_stride_,
        runs_as_rows_ ? run_stride_ : lane_stride_, out, raw);
}

void BlockWriter::write_lanes(const void* values, std::int64_t lanes, char* out, char* raw) const {
  write(values, 1, lanes, 0, lane_stride_, out, raw);
}

void BlockWriter::write(const void* data, std::int64_t rows, std::int64_t cols,
                        std::int64_t row_stride, std::int64_t col_stride, char* out,
                        char* raw) const {
  const auto width = static_cast<std::int64_t>(itemsize(to_));
  const char* p = static_cast<const char*>(data);
  const bool contiguous =
      (cols == 1 || col_stride == width) && (rows == 1 || row_stride == cols * width);
  if (cast_ != nullptr) {
    if (contiguous && is_aligned(out, to_)) {
      cast_(data, out, rows * cols);
      return;
    }
    cast_(data, raw, rows * cols);
    p = raw;
  }
  if (contiguous) {
    std::memcpy(out, p, static_cast<std::size_t>(rows * cols * width));
    return;
  }
  // Along the shorter stride: neighbouring writes share cache lines.
  const bool by_rows = rows == 1 || (cols > 1 && std::abs(col_stride) <= std::abs(row_stride));
  for (std::int64_t i = 0; i < (by_rows ? rows : cols); ++i) {
    if (by_rows) {
      strided_copy(out + i * row_stride, col_stride, p + i * cols * width, width, cols,
                   itemsize(to_));
    } else {
      strided_copy(out + i * col_stride, row_stride, p + i * width, cols * width, rows,
                   itemsize(to_));
    }
  }
}

void fill_converted(double value, const View& out, const KernelTable& table) {
  if (numel(out) == 0) return;
  const auto width = static_cast<std::int64_t>(itemsize(out.dtype));
  alignas(8) char element[8];
  if (const CastFn cast = cast_between(DType::Float64, out.dtype, table)) {
    cast(&value, element, 1);
  } else {
    std::memcpy(element, &value, sizeof value);
  }
  strided_copy(static_cast<char*>(out.data), width, element, 0, numel(out), itemsize(out.dtype));
}

}  // namespace baregrad::kernels
