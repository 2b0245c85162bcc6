// The reduction walker: splits by shape, combines in a fixed order.
#include "backends/cpu/walkers/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/reduce_plan.h"
#include "backends/cpu/walkers/scratch.h"
#include "backends/cpu/walkers/stage.h"
#include "baregrad/allocator.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Kernel calls that are added to one accumulator before the next level: no chain of adds is longer.
constexpr std::int64_t kCascade = 16;
// Rows of a block that is not staged. kMaxLanes of them fit into L2, where variance reads them
// twice.
constexpr std::int64_t kMinDirectRun = 64;

bool is_variance(OpId op) noexcept { return op == OpId::var || op == OpId::std; }

/// Which kernel computes an op, and on what type.
struct Choice {
  OpId kernel_op;
  DType compute;
};

Choice choose(OpId op, DType x, DType out) noexcept {
  const DType compute = compute_dtype(x);
  const DType as_float = is_floating(x)     ? compute
                         : itemsize(x) <= 2 ? DType::Float32
                                            : DType::Float64;
  const DType as_int = !is_floating(x) ? x : is_unsigned_int(out) ? DType::UInt64 : DType::Int64;
  switch (op) {
    case OpId::sum:
    case OpId::mean:
      if (is_bool(out)) return {OpId::any, compute};
      // A sum of narrow integers is exact in 64 bits, whatever the dtype of the result.
      if (!is_floating(x) && itemsize(x) <= 4) return {OpId::sum, x};
      return {OpId::sum, is_floating(out) ? as_float : as_int};
    case OpId::prod:
      if (is_bool(out)) return {OpId::all, compute};
      if (!is_floating(out)) return {op, as_int};
      return {op, is_floating(x) ? compute : DType::Float64};
    case OpId::norm2:
    case OpId::sum_squares:
    case OpId::var:
    case OpId::std:
      return {op, as_float};
    default:
      return {op, compute};
  }
}

double acc_to_double(const void* acc, std::int64_t i, DType dtype) noexcept {
  if (dtype == DType::Float64) return static_cast<const double*>(acc)[i];
  if (dtype == DType::UInt64) return static_cast<double>(static_cast<const std::uint64_t*>(acc)[i]);
  return static_cast<double>(static_cast<const std::int64_t*>(acc)[i]);
}

/// Mean and sum of squared deviations of `count` elements, for each lane.
struct Moments {
  std::int64_t count = 0;
  double mean[kMaxLanes];
  double m2[kMaxLanes];

  // Chan's update: exact up to rounding for any two means.
  void merge(std::int64_t other_count, const double* other_mean, const double* other_m2,
             std::int64_t lanes) noexcept {
    if (count == 0) {
      count = other_count;
      std::copy_n(other_mean, lanes, mean);
      std::copy_n(other_m2, lanes, m2);
      return;
    }
    const auto total = static_cast<double>(count + other_count);
    const double weight = static_cast<double>(other_count) / total;
    const double cross = static_cast<double>(count) * weight;
    for (std::int64_t i = 0; i < lanes; ++i) {
      const double delta = other_mean[i] - mean[i];
      mean[i] += delta * weight;
      m2[i] += other_m2[i] + delta * delta * cross;
    }
    count += other_count;
  }
};

class Reduction {
 public:
  Reduction(OpId op, const View& x, std::uint32_t axes_mask, const View& out, double correction)
      : op_(op),
        choice_(choose(op, x.dtype, out.dtype)),
        by_moments_(choice_.compute == DType::Float32),
        table_(active_table()),
        kernel_(kernel(choice_.kernel_op)),
        out_(static_cast<char*>(out.data)),
        out_dtype_(out.dtype),
        correction_(correction),
        plan_(planned(x, axes_mask, out)),
        reader_(plan_, x.dtype, choice_.compute, plan_.inner, table_) {
    cut_blocks(plan_, {.elements = reader_.stage_elements(),
                       .min_run = reader_.direct() ? kMinDirectRun : 1});
  }

  void run() {
    if (plan_.splits == 1) {
      parallel::parallel_for(plan_.tiles, plan_.grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t tile = begin; tile < end; ++tile) run_tile(tile);
      });
    } else if (!is_variance(op_)) {
      run_split();
    } else if (by_moments_) {
      run_split_moments();
    } else {
      run_split_variance();
    }
  }

 private:
  static ReducePlan planned(const View& x, std::uint32_t axes_mask, const View& out) {
    std::int64_t strides[kMaxDims];
    for (int i = 0; i < x.ndim; ++i) strides[i] = (axes_mask >> i & 1) != 0 ? 0 : out.strides[i];
    return make_reduce_plan(x, axes_mask, strides, itemsize(out.dtype), ReduceOrder::Any);
  }

  const ReduceKernel& kernel(OpId op) const {
    return table_.reduce[static_cast<int>(op)][static_cast<int>(choice_.compute)];
  }

  void apply(const ReduceKernel& k, const Rows& b, void* acc, const double* shift) const {
    (plan_.inner ? k.inner : k.outer)(b.data, b.rows, b.row_stride, b.cols, acc, shift);
  }

  /// acc = the reduction of some units of a tile.
  void accumulate(const ReduceKernel& k, std::int64_t tile, std::int64_t begin, std::int64_t end,
                  std::int64_t lanes, void* acc, const double* shift) const {
    BlockScratch scratch;
    k.init(acc, lanes);
    if (end - begin <= kCascade) {
      for_blocks(plan_, tile, begin, end, [&](const ReduceBlock& block) {
        apply(k, reader_.read(block, scratch), acc, shift);
      });
      return;
    }
    alignas(64) char low[kMaxLanes * 8];
    alignas(64) char high[kMaxLanes * 8];
    k.init(low, lanes);
    k.init(high, lanes);
    std::int64_t calls = 0;
    for_blocks(plan_, tile, begin, end, [&](const ReduceBlock& block) {
      apply(k, reader_.read(block, scratch), low, shift);
      if (++calls % kCascade != 0) return;
      k.combine(high, low, lanes);
      k.init(low, lanes);
      if (calls % (kCascade * kCascade) != 0) return;
      k.combine(acc, high, lanes);
      k.init(high, lanes);
    });
    k.combine(high, low, lanes);
    k.combine(acc, high, lanes);
  }

  /// The first element of each lane of a tile, in float64. Means are computed relative to it: the
  /// mean of equal elements is then exact.
  void first_elements(std::int64_t tile, double* first) const {
    BlockScratch scratch;
    for_blocks(plan_, tile, 0, 1, [&](const ReduceBlock& block) {
      const Rows rows = reader_.read(block, scratch);
      const auto* x = static_cast<const double*>(rows.data);
      for (std::int64_t i = 0; i < block.lanes; ++i) {
        first[i] = x[plan_.inner ? i * rows.row_stride : i];
      }
    });
  }

  /// From sums of differences to the first elements to means.
  void to_means(double* sums, const double* first, std::int64_t n) const {
    const auto count = static_cast<double>(plan_.reduced_size);
    for (std::int64_t i = 0; i < n; ++i) sums[i] = first[i] + sums[i] / count;
  }

  /// One pass over memory: the mean of each block, then the deviations from it while the block is
  /// in cache. Only for float32: the means have the precision of float64, which is too low to merge
  /// float64 data.
  void accumulate_moments(std::int64_t tile, std::int64_t begin, std::int64_t end,
                          std::int64_t lanes, Moments& moments) const {
    BlockScratch scratch;
    double mean[kMaxLanes];
    double m2[kMaxLanes];
    const ReduceKernel& sum = kernel(OpId::sum);
    for_blocks(plan_, tile, begin, end, [&](const ReduceBlock& block) {
      const Rows rows = reader_.read(block, scratch);
      sum.init(mean, lanes);
      apply(sum, rows, mean, nullptr);
      const auto n = static_cast<double>(block.run);
      for (std::int64_t i = 0; i < lanes; ++i) mean[i] /= n;
      kernel_.init(m2, lanes);
      apply(kernel_, rows, m2, mean);
      moments.merge(block.run, mean, m2, lanes);
    });
  }

  void run_tile(std::int64_t tile) const {
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    if (is_variance(op_) && by_moments_) {
      Moments moments;
      accumulate_moments(tile, 0, plan_.units, lanes, moments);
      finish(tile, lanes, moments.m2);
      return;
    }
    double means[kMaxLanes];
    if (is_variance(op_)) {
      double first[kMaxLanes];
      first_elements(tile, first);
      accumulate(kernel(OpId::mean), tile, 0, plan_.units, lanes, means, first);
      to_means(means, first, lanes);
    }
    alignas(64) char acc[kMaxLanes * 8];
    accumulate(kernel_, tile, 0, plan_.units, lanes, acc, is_variance(op_) ? means : nullptr);
    finish(tile, lanes, acc);
  }

  /// Bytes between the partial accumulators of one split and the next.
  std::int64_t partial_stride(const ReduceKernel& k) const {
    return plan_.lane_block * static_cast<std::int64_t>(itemsize(k.acc));
  }

  /// Leaves the accumulators of each tile at its first split. `shifts`: lane_block of them for each
  /// tile, or null.
  void accumulate_split(const ReduceKernel& k, const double* shifts, char* partials) const {
    const std::int64_t stride = partial_stride(k);
    parallel::parallel_for(
        plan_.tiles * plan_.splits, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t tile = i / plan_.splits;
            const std::int64_t split = i % plan_.splits;
            accumulate(k, tile, plan_.split_begin(split), plan_.split_begin(split + 1),
                       tile_at(plan_, tile).lanes, partials + i * stride,
                       shifts == nullptr ? nullptr : shifts + tile * plan_.lane_block);
          }
        });
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      const std::int64_t lanes = tile_at(plan_, tile).lanes;
      char* first = partials + tile * plan_.splits * stride;
      for (std::int64_t split = 1; split < plan_.splits; ++split) {
        k.combine(first, first + split * stride, lanes);
      }
    }
  }

  void finish_split(const ReduceKernel& k, char* partials) const {
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      finish(tile, tile_at(plan_, tile).lanes, partials + tile * plan_.splits * partial_stride(k));
    }
  }

  void run_split() const {
    Scratch<4096> partials(
        static_cast<std::size_t>(plan_.tiles * plan_.splits * partial_stride(kernel_)));
    accumulate_split(kernel_, nullptr, partials.data());
    finish_split(kernel_, partials.data());
  }

  void run_split_variance() const {
    const ReduceKernel& sum = kernel(OpId::mean);
    const std::int64_t stride = partial_stride(sum);
    Scratch<4096> partials(static_cast<std::size_t>(plan_.tiles * plan_.splits * stride));
    Scratch<4096> memory(static_cast<std::size_t>(2 * plan_.tiles * stride));
    auto* means = reinterpret_cast<double*>(memory.data());
    auto* firsts = means + plan_.tiles * plan_.lane_block;
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      first_elements(tile, firsts + tile * plan_.lane_block);
    }
    accumulate_split(sum, firsts, partials.data());
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      const std::int64_t lanes = tile_at(plan_, tile).lanes;
      double* mean = means + tile * plan_.lane_block;
      std::memcpy(mean, partials.data() + tile * plan_.splits * stride,
                  static_cast<std::size_t>(lanes) * sizeof(double));
      to_means(mean, firsts + tile * plan_.lane_block, lanes);
    }
    accumulate_split(kernel_, means, partials.data());
    finish_split(kernel_, partials.data());
  }

  void run_split_moments() const {
    // A partial: the count, the means, the sums of squares.
    const std::int64_t stride = 1 + 2 * plan_.lane_block;
    Scratch<4096> memory(static_cast<std::size_t>(plan_.tiles * plan_.splits * stride) *
                         sizeof(double));
    auto* partials = reinterpret_cast<double*>(memory.data());
    parallel::parallel_for(plan_.tiles * plan_.splits, 1,
                           [&](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t i = begin; i < end; ++i) {
                               const std::int64_t tile = i / plan_.splits;
                               const std::int64_t split = i % plan_.splits;
                               const std::int64_t lanes = tile_at(plan_, tile).lanes;
                               Moments moments;
                               accumulate_moments(tile, plan_.split_begin(split),
                                                  plan_.split_begin(split + 1), lanes, moments);
                               double* partial = partials + i * stride;
                               partial[0] = static_cast<double>(moments.count);
                               std::copy_n(moments.mean, lanes, partial + 1);
                               std::copy_n(moments.m2, lanes, partial + 1 + plan_.lane_block);
                             }
                           });
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      const std::int64_t lanes = tile_at(plan_, tile).lanes;
      Moments moments;
      for (std::int64_t split = 0; split < plan_.splits; ++split) {
        const double* partial = partials + (tile * plan_.splits + split) * stride;
        moments.merge(static_cast<std::int64_t>(partial[0]), partial + 1,
                      partial + 1 + plan_.lane_block, lanes);
      }
      finish(tile, lanes, moments.m2);
    }
  }

  /// Converts accumulators to results and writes them. Overwrites acc.
  void finish(std::int64_t tile, std::int64_t lanes, void* acc) const {
    const DType result = finish_values(acc, lanes);
    char raw[kMaxLanes * 8];
    BlockWriter(plan_, result, out_dtype_, table_)
        .write_lanes(acc, lanes, out_ + tile_at(plan_, tile).out_offset, raw);
  }

  DType finish_values(void* acc, std::int64_t lanes) const {
    const std::int64_t n = plan_.reduced_size;
    const OpId op = choice_.kernel_op;
    if (op == OpId::any || op == OpId::all) {
      // In place from the front: a byte is written after the eight bytes at its place were read.
      const std::int64_t least = op == OpId::any ? 1 : n;
      auto* bytes = static_cast<unsigned char*>(acc);
      for (std::int64_t i = 0; i < lanes; ++i) {
        std::int64_t count;
        std::memcpy(&count, bytes + i * 8, 8);
        bytes[i] = count >= least ? 1 : 0;
      }
      return DType::Bool;
    }
    if (op_ == OpId::mean || is_variance(op_)) {
      const auto size = static_cast<double>(n);
      const double divisor = op_ == OpId::mean ? size : std::max(size - correction_, 0.0);
      for (std::int64_t i = 0; i < lanes; ++i) {
        const double value = acc_to_double(acc, i, kernel_.acc) / divisor;
        const double root = op_ == OpId::std ? std::sqrt(value) : value;
        std::memcpy(static_cast<char*>(acc) + i * 8, &root, 8);
      }
      return DType::Float64;
    }
    if (op_ == OpId::norm2) {
      auto* values = static_cast<double*>(acc);
      for (std::int64_t i = 0; i < lanes; ++i) values[i] = std::sqrt(values[i]);
    }
    return kernel_.acc;
  }

  OpId op_;
  Choice choice_;
  bool by_moments_;  // variance in one pass
  const KernelTable& table_;
  const ReduceKernel& kernel_;
  char* out_;
  DType out_dtype_;
  double correction_;
  ReducePlan plan_;
  BlockReader reader_;
};

/// The result of a reduction of no elements.
double value_of_nothing(OpId op) {
  if (op == OpId::prod || op == OpId::all) return 1;
  if (op == OpId::mean || is_variance(op)) return std::numeric_limits<double>::quiet_NaN();
  return 0;
}

}  // namespace

void reduce(OpId op, const View& x, std::uint32_t axes_mask, const View& out, double correction) {
  if (numel(out) == 0) return;
  if (numel(x) == 0) {
    fill_converted(value_of_nothing(op), out, active_table());
    return;
  }
  Reduction(op, x, axes_mask, out, correction).run();
}

}  // namespace baregrad::kernels
