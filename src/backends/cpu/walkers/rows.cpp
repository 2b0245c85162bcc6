// Softmax, log_softmax and logsumexp over an axis of any view.
#include "backends/cpu/walkers/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/reduce_plan.h"
#include "backends/cpu/walkers/scratch.h"
#include "backends/cpu/walkers/stage.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk: an exponential costs more than an add.
constexpr std::int64_t kRowGrain = 8192;
// Lanes of a block whose runs are slow: long runs of so many lanes still fit into L2.
constexpr std::int64_t kSlowLanes = 128;

/// Running log(sum(exp(x))) of each lane: max + log(sum).
struct LogSum {
  double max[kMaxLanes];
  double sum[kMaxLanes];

  void start(std::int64_t lanes) noexcept {
    std::fill_n(max, lanes, -std::numeric_limits<double>::infinity());
    std::fill_n(sum, lanes, 0.0);
  }
  void merge(const double* other_max, const double* other_sum, std::int64_t lanes) noexcept {
    for (std::int64_t i = 0; i < lanes; ++i) {
      const bool take = other_max[i] > max[i] || other_max[i] != other_max[i];
      const double top = take ? other_max[i] : max[i];
      const double low = take ? max[i] : other_max[i];
      const double scale = low == top ? 1.0 : std::exp(low - top);
      sum[i] = take ? sum[i] * scale + other_sum[i] : sum[i] + other_sum[i] * scale;
      max[i] = top;
    }
  }
  double value(std::int64_t lane) const noexcept {
    // An infinite or NaN maximum is the result; the sum is NaN then.
    return std::isfinite(max[lane]) ? max[lane] + std::log(sum[lane]) : max[lane];
  }
};

/// exp(x - max) by blocks, for views that no row kernel can read in place.
class BlockExp {
 public:
  BlockExp(const ReducePlan& plan, DType x, DType compute, const KernelTable& table)
      : plan_(plan),
        reader_(plan, x, compute, plan.inner, table),
        compute_(compute),
        max_(table.reduce[static_cast<int>(OpId::amax)][static_cast<int>(compute)]),
        sum_(table.reduce[static_cast<int>(OpId::sum)][static_cast<int>(compute)]),
        exp_(table.exp_block[static_cast<int>(compute)]) {}

  std::int64_t stage_elements() const noexcept { return reader_.stage_elements(); }

  /// result = max and sum of some units of a tile. For a single block, its exponentials are left in
  /// `out`.
  void log_sum(std::int64_t tile, std::int64_t begin, std::int64_t end, BlockScratch& scratch,
               char* out, LogSum& result) const {
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    alignas(64) char max[kMaxLanes * 8];
    max_.init(max, lanes);
    for_blocks(plan_, tile, begin, end,
               [&](const ReduceBlock& block) { apply(max_, reader_.read(block, scratch), max); });
    for (std::int64_t i = 0; i < lanes; ++i) {
      result.max[i] = compute_ == DType::Float64
                          ? reinterpret_cast<const double*>(max)[i]
                          : static_cast<double>(reinterpret_cast<const float*>(max)[i]);
    }
    sum_.init(result.sum, lanes);
    for_blocks(plan_, tile, begin, end, [&](const ReduceBlock& block) {
      apply(sum_, exponentials(block, result.max, scratch, out), result.sum);
    });
  }

  /// exp(x - max) of a block, in `out`.
  Rows exponentials(const ReduceBlock& block, const double* max, BlockScratch& scratch,
                    char* out) const {
    float single[kMaxLanes];
    const void* tops = max;
    if (compute_ != DType::Float64) {
      for (std::int64_t i = 0; i < block.lanes; ++i) single[i] = static_cast<float>(max[i]);
      tops = single;
    }
    const Rows x = reader_.read(block, scratch);
    exp_(x.data, x.rows, x.row_stride, x.cols, tops, plan_.inner, out);
    return {out, x.rows, x.cols, x.cols};
  }

  Rows elements(const ReduceBlock& block, BlockScratch& scratch) const {
    return reader_.read(block, scratch);
  }

 private:
  void apply(const ReduceKernel& k, const Rows& b, void* acc) const {
    (plan_.inner ? k.inner : k.outer)(b.data, b.rows, b.row_stride, b.cols, acc, nullptr);
  }

  const ReducePlan& plan_;
  BlockReader reader_;
  DType compute_;
  const ReduceKernel& max_;
  const ReduceKernel& sum_;
  ExpBlockFn exp_;
};

DType row_dtype(DType x, DType out) noexcept {
  return x == DType::Float64 || out == DType::Float64 ? DType::Float64 : DType::Float32;
}

/// Whether each run of x is a contiguous row of the compute type, which a row kernel can read.
bool has_direct_rows(const ReducePlan& plan, DType x, DType compute, const KernelTable& table) {
  return BlockReader(plan, x, compute, /*runs_as_rows=*/true, table).direct();
}

/// Cuts the plan into whole runs, some rows of them to a chunk.
void cut_rows(ReducePlan& plan) {
  cut_blocks(plan, {.elements = std::max(plan.run.size, kRowGrain), .min_run = plan.run.size});
  plan.grain = std::max<std::int64_t>(1, kRowGrain / (plan.run.size * plan.lane_block));
}

/// Calls body(tile) for all tiles of the plan, in parallel.
template <class Body>
void for_tiles(const ReducePlan& plan, const Body& body) {
  parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) body(tile);
  });
}

/// Cuts the plan into blocks that BlockExp can stage.
void cut_staged(ReducePlan& plan, const BlockExp& blocks) {
  cut_blocks(plan,
             {.elements = blocks.stage_elements(), .lanes = plan.inner ? kMaxLanes : kSlowLanes});
}

/// Memory of one thread for tiles that no row kernel takes.
struct TileScratch {
  BlockScratch block;
  alignas(64) char exponentials[kBlockBytes];
  LogSum sums;
};

/// Exponentials times 1 / sum, in place.
template <class T>
void scale_block(const Rows& e, bool inner, const double* scales) {
  T scale[kMaxLanes];
  const std::int64_t lanes = inner ? e.rows : e.cols;
  for (std::int64_t i = 0; i < lanes; ++i) scale[i] = static_cast<T>(scales[i]);
  for (std::int64_t r = 0; r < e.rows; ++r) {
    T* row = static_cast<T*>(e.data) + r * e.row_stride;
    if (inner) {
      for (std::int64_t c = 0; c < e.cols; ++c) row[c] *= scale[r];
    } else {
      for (std::int64_t c = 0; c < e.cols; ++c) row[c] *= scale[c];
    }
  }
}

/// out = elements - max - log(sum).
template <class T>
void log_block(const Rows& x, bool inner, const double* max, const double* log, void* out_in) {
  T* __restrict out = static_cast<T*>(out_in);
  for (std::int64_t r = 0; r < x.rows; ++r, out += x.cols) {
    const T* __restrict row = static_cast<const T*>(x.data) + r * x.row_stride;
    if (inner) {
      for (std::int64_t c = 0; c < x.cols; ++c) {
        out[c] = static_cast<T>((static_cast<double>(row[c]) - max[r]) - log[r]);
      }
    } else {
      for (std::int64_t c = 0; c < x.cols; ++c) {
        out[c] = static_cast<T>((static_cast<double>(row[c]) - max[c]) - log[c]);
      }
    }
  }
}

/// softmax or log_softmax along one axis.
class Softmax {
 public:
  Softmax(OpId op, const View& x, int axis, const View& out)
      : op_(op),
        table_(active_table()),
        x_dtype_(x.dtype),
        compute_(row_dtype(x.dtype, out.dtype)),
        out_(static_cast<char*>(out.data)),
        out_dtype_(out.dtype),
        plan_(make_reduce_plan(x, x.ndim == 0 ? 0 : 1U << axis, out.strides, itemsize(out.dtype),
                               ReduceOrder::RowMajor)) {}

  void run() {
    if (writes_direct_rows() && has_direct_rows(plan_, x_dtype_, compute_, table_)) {
      run_rows();
    } else {
      run_blocks();
    }
  }

 private:
  bool writes_direct_rows() const {
    const auto width = static_cast<std::int64_t>(itemsize(compute_));
    return out_dtype_ == compute_ && is_aligned(out_, compute_) &&
           (plan_.run.size == 1 || plan_.run.out_stride == width);
  }

  /// Row by row, by the row kernel.
  void run_rows() {
    const RowFn row = table_.row[static_cast<int>(op_)][static_cast<int>(compute_)];
    cut_rows(plan_);
    for_tiles(plan_, [&](std::int64_t tile) {
      const ReduceTile t = tile_at(plan_, tile);
      for (std::int64_t i = 0; i < t.lanes; ++i) {
        row(plan_.x + t.x_offset + i * plan_.lane.x_stride,
            out_ + t.out_offset + i * plan_.lane.out_stride, plan_.run.size);
      }
    });
  }

  /// Tile by tile: first the maximum and the sum of each lane, then the results.
  void run_blocks() {
    const BlockExp blocks(plan_, x_dtype_, compute_, table_);
    cut_staged(plan_, blocks);
    const BlockWriter writer(plan_, compute_, out_dtype_, table_);
    parallel::parallel_for(plan_.tiles, plan_.grain, [&](std::int64_t begin, std::int64_t end) {
      TileScratch scratch;
      for (std::int64_t tile = begin; tile < end; ++tile) {
        blocks.log_sum(tile, 0, plan_.units, scratch.block, scratch.exponentials, scratch.sums);
        invert(scratch.sums, tile_at(plan_, tile).lanes);
        for_blocks(plan_, tile, 0, plan_.units, [&](const ReduceBlock& block) {
          const Rows rows = compute_ == DType::Float64 ? results<double>(blocks, block, scratch)
                                                       : results<float>(blocks, block, scratch);
          writer.write_block(rows, out_ + block.out_offset, scratch.block.raw);
        });
      }
    });
  }

  /// From the sum of each lane to its factor (softmax) or its logarithm (log_softmax).
  void invert(LogSum& sums, std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes; ++i) {
      sums.sum[i] = op_ == OpId::softmax ? 1 / sums.sum[i] : std::log(sums.sum[i]);
    }
  }

  /// The results of a block, in scratch.exponentials.
  template <class T>
  Rows results(const BlockExp& blocks, const ReduceBlock& block, TileScratch& scratch) const {
    const LogSum& sums = scratch.sums;
    char* const out = scratch.exponentials;
    const std::int64_t cols = plan_.inner ? block.run : block.lanes;
    const Rows rows{out, plan_.inner ? block.lanes : block.run, cols, cols};
    if (op_ == OpId::softmax) {
      // The exponentials of a single block are still there.
      if (plan_.units > 1) blocks.exponentials(block, sums.max, scratch.block, out);
      scale_block<T>(rows, plan_.inner, sums.sum);
    } else {
      log_block<T>(blocks.elements(block, scratch.block), plan_.inner, sums.max, sums.sum, out);
    }
    return rows;
  }

  OpId op_;
  const KernelTable& table_;
  DType x_dtype_;
  DType compute_;
  char* out_;
  DType out_dtype_;
  ReducePlan plan_;
};

class LogSumExp {
 public:
  LogSumExp(const View& x, std::uint32_t axes_mask, const View& out)
      : table_(active_table()),
        x_dtype_(x.dtype),
        compute_(row_dtype(x.dtype, out.dtype)),
        out_(static_cast<char*>(out.data)),
        out_dtype_(out.dtype),
        plan_(planned(x, axes_mask, out)) {}

  void run() {
    const bool whole_rows = plan_.num_reduced == 0 && plan_.run.size <= kBlockBytes;
    if (whole_rows && has_direct_rows(plan_, x_dtype_, compute_, table_)) return run_rows();
    const BlockExp blocks(plan_, x_dtype_, compute_, table_);
    cut_staged(plan_, blocks);
    if (plan_.splits == 1) {
      run_tiles(blocks);
    } else {
      run_splits(blocks);
    }
  }

 private:
  static ReducePlan planned(const View& x, std::uint32_t axes_mask, const View& out) {
    std::int64_t strides[kMaxDims];
    for (int i = 0; i < x.ndim; ++i) strides[i] = (axes_mask >> i & 1) != 0 ? 0 : out.strides[i];
    return make_reduce_plan(x, axes_mask, strides, itemsize(out.dtype), ReduceOrder::Any);
  }

  /// Row by row, by the row kernel.
  void run_rows() {
    const RowFn row = table_.row[static_cast<int>(OpId::logsumexp)][static_cast<int>(compute_)];
    cut_rows(plan_);
    for_tiles(plan_, [&](std::int64_t tile) {
      const ReduceTile t = tile_at(plan_, tile);
      double values[kMaxLanes];
      for (std::int64_t i = 0; i < t.lanes; ++i) {
        const char* x = plan_.x + t.x_offset + i * plan_.lane.x_stride;
        if (compute_ == DType::Float64) {
          row(x, &values[i], plan_.run.size);
        } else {
          float value = 0;
          row(x, &value, plan_.run.size);
          values[i] = static_cast<double>(value);
        }
      }
      write(tile, values);
    });
  }

  /// Enough tiles for all threads.
  void run_tiles(const BlockExp& blocks) const {
    parallel::parallel_for(plan_.tiles, plan_.grain, [&](std::int64_t begin, std::int64_t end) {
      TileScratch scratch;
      for (std::int64_t tile = begin; tile < end; ++tile) {
        blocks.log_sum(tile, 0, plan_.units, scratch.block, scratch.exponentials, scratch.sums);
        finish(tile, scratch.sums);
      }
    });
  }

  /// Few tiles: each is cut into splits. Their partial results are merged in order.
  void run_splits(const BlockExp& blocks) const {
    const std::int64_t parts = plan_.tiles * plan_.splits;
    Scratch<4096> memory(static_cast<std::size_t>(parts * partial_size()) * sizeof(double));
    auto* const partials = reinterpret_cast<double*>(memory.data());
    parallel::parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      TileScratch scratch;
      for (std::int64_t i = begin; i < end; ++i) {
        sum_split(blocks, i, scratch, partials + i * partial_size());
      }
    });
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      merge_splits(tile, partials + tile * plan_.splits * partial_size());
    }
  }

  /// A partial result: lane_block maxima, then as many sums.
  std::int64_t partial_size() const { return 2 * plan_.lane_block; }

  void sum_split(const BlockExp& blocks, std::int64_t part, TileScratch& scratch,
                 double* partial) const {
    const std::int64_t tile = part / plan_.splits;
    const std::int64_t split = part % plan_.splits;
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    blocks.log_sum(tile, plan_.split_begin(split), plan_.split_begin(split + 1), scratch.block,
                   scratch.exponentials, scratch.sums);
    std::copy_n(scratch.sums.max, lanes, partial);
    std::copy_n(scratch.sums.sum, lanes, partial + plan_.lane_block);
  }

  void merge_splits(std::int64_t tile, const double* partials) const {
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    LogSum sums;
    sums.start(lanes);
    for (std::int64_t split = 0; split < plan_.splits; ++split) {
      const double* partial = partials + split * partial_size();
      sums.merge(partial, partial + plan_.lane_block, lanes);
    }
    finish(tile, sums);
  }

  void finish(std::int64_t tile, LogSum& sums) const {
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    for (std::int64_t i = 0; i < lanes; ++i) sums.sum[i] = sums.value(i);
    write(tile, sums.sum);
  }

  void write(std::int64_t tile, const double* values) const {
    const ReduceTile t = tile_at(plan_, tile);
    char raw[kMaxLanes * 8];
    BlockWriter(plan_, DType::Float64, out_dtype_, table_)
        .write_lanes(values, t.lanes, out_ + t.out_offset, raw);
  }

  const KernelTable& table_;
  DType x_dtype_;
  DType compute_;
  char* out_;
  DType out_dtype_;
  ReducePlan plan_;
};

}  // namespace

void softmax_like(OpId op, const View& x, int axis, const View& out) {
  if (numel(x) > 0) Softmax(op, x, axis, out).run();
}

void logsumexp(const View& x, std::uint32_t axes_mask, const View& out) {
  if (numel(x) == 0) {
    fill_converted(-std::numeric_limits<double>::infinity(), out, active_table());
    return;
  }
  LogSumExp(x, axes_mask, out).run();
}

}  // namespace baregrad::kernels
