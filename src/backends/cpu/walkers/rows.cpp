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

// Rows of one parallel chunk hold so many elements: an exponential costs more than an add.
constexpr std::int64_t kRowGrain = 8192;
// Lanes of a block whose runs are slow: a long run of that many still fits into L2.
constexpr std::int64_t kSlowLanes = 128;

/// log(sum(exp(x))) of each lane as it grows: max + log(sum).
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
    // An infinite or NaN maximum is the answer; the sum beside it is not a number.
    return std::isfinite(max[lane]) ? max[lane] + std::log(sum[lane]) : max[lane];
  }
};

/// exp(x - max) by blocks, for views that no row kernel takes as they are.
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

  /// result = max and sum of some units of a tile. Where that is a single block, its exponentials
  /// are left in `out`.
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

// Whole runs, some rows of them a chunk.
void cut_rows(ReducePlan& plan) {
  cut_blocks(plan, {.elements = std::max(plan.run.size, kRowGrain), .min_run = plan.run.size});
  plan.grain = std::max<std::int64_t>(1, kRowGrain / (plan.run.size * plan.lane_block));
}

// Exponentials times 1 / sum, in place.
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

// Elements less max and log(sum), to `out`.
template <class T>
Rows log_block(const Rows& x, bool inner, const double* max, const double* log, void* out_in) {
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
  return {out_in, x.rows, x.cols, x.cols};
}

}  // namespace

void softmax_like(OpId op, const View& x, int axis, const View& out) {
  for (int i = 0; i < x.ndim; ++i) {
    if (x.shape[i] == 0) return;
  }
  const KernelTable& table = active_table();
  const DType compute = row_dtype(x.dtype, out.dtype);
  const auto width = static_cast<std::int64_t>(itemsize(compute));
  char* const out_data = static_cast<char*>(out.data);
  const std::uint32_t mask = x.ndim == 0 ? 0 : 1U << axis;
  ReducePlan plan =
      make_reduce_plan(x, mask, out.strides, itemsize(out.dtype), ReduceOrder::RowMajor);

  const bool out_rows = out.dtype == compute && is_aligned(out_data, compute) &&
                        (plan.run.size == 1 || plan.run.out_stride == width);
  if (out_rows && BlockReader(plan, x.dtype, compute, /*runs_as_rows=*/true, table).direct()) {
    const RowFn row = table.row[static_cast<int>(op)][static_cast<int>(compute)];
    cut_rows(plan);
    parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        const ReduceTile t = tile_at(plan, tile);
        for (std::int64_t i = 0; i < t.lanes; ++i) {
          row(plan.x + t.x_offset + i * plan.lane.x_stride,
              out_data + t.out_offset + i * plan.lane.out_stride, plan.run.size);
        }
      }
    });
    return;
  }

  const auto with_compute = [&](auto&& f) { compute == DType::Float64 ? f(0.0) : f(0.0F); };
  const BlockExp blocks(plan, x.dtype, compute, table);
  cut_blocks(plan,
             {.elements = blocks.stage_elements(), .lanes = plan.inner ? kMaxLanes : kSlowLanes});
  const std::int64_t row_stride = plan.inner ? plan.lane.out_stride : plan.run.out_stride;
  const std::int64_t col_stride = plan.inner ? plan.run.out_stride : plan.lane.out_stride;
  parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
    BlockScratch scratch;
    alignas(64) char result[kBlockBytes];
    LogSum sums;
    for (std::int64_t tile = begin; tile < end; ++tile) {
      blocks.log_sum(tile, 0, plan.units, scratch, result, sums);
      const std::int64_t lanes = tile_at(plan, tile).lanes;
      for (std::int64_t i = 0; i < lanes; ++i) {
        sums.sum[i] = op == OpId::softmax ? 1 / sums.sum[i] : std::log(sums.sum[i]);
      }
      for_blocks(plan, tile, 0, plan.units, [&](const ReduceBlock& block) {
        Rows rows{result, plan.inner ? block.lanes : block.run,
                  plan.inner ? block.run : block.lanes, plan.inner ? block.run : block.lanes};
        if (op == OpId::softmax) {
          if (plan.units > 1) rows = blocks.exponentials(block, sums.max, scratch, result);
          with_compute([&]<class T>(T) { scale_block<T>(rows, plan.inner, sums.sum); });
        } else {
          const Rows elements = blocks.elements(block, scratch);
          with_compute([&]<class T>(T) {
            rows = log_block<T>(elements, plan.inner, sums.max, sums.sum, result);
          });
        }
        write_rows(rows.data, rows.rows, rows.cols, compute, out_data + block.out_offset,
                   row_stride, col_stride, out.dtype, table, scratch.raw);
      });
    }
  });
}

void logsumexp(const View& x, std::uint32_t axes_mask, const View& out) {
  const KernelTable& table = active_table();
  const DType compute = row_dtype(x.dtype, out.dtype);
  std::int64_t strides[kMaxDims];
  std::int64_t x_numel = 1;
  std::int64_t out_numel = 1;
  for (int i = 0; i < x.ndim; ++i) {
    const bool reduced = (axes_mask >> i & 1) != 0;
    strides[i] = reduced ? 0 : out.strides[i];
    x_numel *= x.shape[i];
    out_numel *= reduced ? 1 : x.shape[i];
  }
  char* const out_data = static_cast<char*>(out.data);
  if (x_numel == 0) {
    const double nothing = -std::numeric_limits<double>::infinity();
    const auto width = static_cast<std::int64_t>(itemsize(out.dtype));
    char raw[8];
    for (std::int64_t i = 0; i < out_numel; ++i) {
      write_rows(&nothing, 1, 1, DType::Float64, out_data + i * width, 0, 0, out.dtype, table, raw);
    }
    return;
  }
  ReducePlan plan = make_reduce_plan(x, axes_mask, strides, itemsize(out.dtype), ReduceOrder::Any);
  const auto write = [&](std::int64_t tile, const double* values) {
    const ReduceTile t = tile_at(plan, tile);
    char raw[kMaxLanes * 8];
    write_rows(values, 1, t.lanes, DType::Float64, out_data + t.out_offset, 0, plan.lane.out_stride,
               out.dtype, table, raw);
  };

  const bool whole_rows = plan.num_reduced == 0 && plan.run.size <= kBlockBytes;
  if (whole_rows && BlockReader(plan, x.dtype, compute, /*runs_as_rows=*/true, table).direct()) {
    const RowFn row = table.row[static_cast<int>(OpId::logsumexp)][static_cast<int>(compute)];
    cut_rows(plan);
    parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
      double values[kMaxLanes];
      for (std::int64_t tile = begin; tile < end; ++tile) {
        const ReduceTile t = tile_at(plan, tile);
        for (std::int64_t i = 0; i < t.lanes; ++i) {
          float single = 0;
          void* value = compute == DType::Float64 ? static_cast<void*>(&values[i]) : &single;
          row(plan.x + t.x_offset + i * plan.lane.x_stride, value, plan.run.size);
          if (compute != DType::Float64) values[i] = static_cast<double>(single);
        }
        write(tile, values);
      }
    });
    return;
  }

  const BlockExp blocks(plan, x.dtype, compute, table);
  cut_blocks(plan,
             {.elements = blocks.stage_elements(), .lanes = plan.inner ? kMaxLanes : kSlowLanes});
  const auto finish = [&](std::int64_t tile, LogSum& sums) {
    const std::int64_t lanes = tile_at(plan, tile).lanes;
    for (std::int64_t i = 0; i < lanes; ++i) sums.sum[i] = sums.value(i);
    write(tile, sums.sum);
  };
  if (plan.splits == 1) {
    parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
      BlockScratch scratch;
      alignas(64) char exponentials[kBlockBytes];
      LogSum sums;
      for (std::int64_t tile = begin; tile < end; ++tile) {
        blocks.log_sum(tile, 0, plan.units, scratch, exponentials, sums);
        finish(tile, sums);
      }
    });
    return;
  }
  // A partial: the maxima, the sums.
  const std::int64_t parts = plan.tiles * plan.splits;
  const std::int64_t stride = 2 * plan.lane_block;
  Scratch<4096> memory(static_cast<std::size_t>(parts * stride) * sizeof(double));
  auto* const partials = reinterpret_cast<double*>(memory.data());
  parallel::parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    BlockScratch scratch;
    alignas(64) char exponentials[kBlockBytes];
    LogSum sums;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i / plan.splits;
      const std::int64_t split = i % plan.splits;
      blocks.log_sum(tile, plan.split_begin(split), plan.split_begin(split + 1), scratch,
                     exponentials, sums);
      const std::int64_t lanes = tile_at(plan, tile).lanes;
      std::copy_n(sums.max, lanes, partials + i * stride);
      std::copy_n(sums.sum, lanes, partials + i * stride + plan.lane_block);
    }
  });
  for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
    const std::int64_t lanes = tile_at(plan, tile).lanes;
    LogSum sums;
    sums.start(lanes);
    for (std::int64_t split = 0; split < plan.splits; ++split) {
      const double* partial = partials + (tile * plan.splits + split) * stride;
      sums.merge(partial, partial + plan.lane_block, lanes);
    }
    finish(tile, sums);
  }
}

}  // namespace baregrad::kernels
