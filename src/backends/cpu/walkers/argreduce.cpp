// argmax and argmin of strided views.
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/reduce_plan.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/visit.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// Whether element a, which has the higher position, replaces the best so far.
using BetterFn = bool (*)(const void* a, const void* best);

template <class T, bool kGreatest>
bool better(const void* a_in, const void* best_in) {
  T a;
  T best;
  std::memcpy(&a, a_in, sizeof(T));
  std::memcpy(&best, best_in, sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    if (best != best) return false;
    if (a != a) return true;
  }
  return kGreatest ? a > best : a < best;
}

BetterFn better_fn(DType dtype, bool greatest) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> BetterFn {
    if constexpr (std::is_same_v<T, bool>) {
      return greatest ? better<std::uint8_t, true> : better<std::uint8_t, false>;
    } else if constexpr (std::is_arithmetic_v<T>) {
      return greatest ? better<T, true> : better<T, false>;
    } else {
      return nullptr;  // the 16-bit floats are compared as float32
    }
  });
}

/// The best of each lane so far.
struct Best {
  bool empty = true;
  std::int64_t position[kMaxLanes];
  char value[kMaxLanes * 8];
};

class ArgReduction {
 public:
  ArgReduction(OpId op, const View& x, int axis, const View& out)
      : table_(active_table()),
        compute_(compute_dtype(x.dtype)),
        size_(itemsize(compute_)),
        kernel_(table_.argreduce[static_cast<int>(op)][static_cast<int>(compute_)]),
        better_(better_fn(compute_, op == OpId::argmax)),
        out_(static_cast<char*>(out.data)),
        plan_(planned(x, axis)),
        reader_(plan_, x.dtype, compute_, /*runs_as_rows=*/true, table_) {
    // Slow runs are transposed into rows, a cache line of lanes at a time.
    const std::int64_t line = 64 / static_cast<std::int64_t>(itemsize(x.dtype));
    cut_blocks(plan_,
               {.elements = reader_.stage_elements(), .lanes = plan_.inner ? kMaxLanes : line});
  }

  void run() {
    if (plan_.splits == 1) {
      parallel::parallel_for(plan_.tiles, plan_.grain, [&](std::int64_t begin, std::int64_t end) {
        Best best;
        for (std::int64_t tile = begin; tile < end; ++tile) {
          best.empty = true;
          search(tile, 0, plan_.units, best);
          write(tile, best);
        }
      });
      return;
    }
    // Few tiles: one at a time. Its parts run in parallel and are then compared in order.
    Scratch<4096> parts(static_cast<std::size_t>(plan_.splits * plan_.lane_block) * sizeof(Part));
    for (std::int64_t tile = 0; tile < plan_.tiles; ++tile) {
      run_split(tile, reinterpret_cast<Part*>(parts.data()));
    }
  }

 private:
  struct Part {
    std::int64_t position;
    char value[8];
  };

  static ReducePlan planned(const View& x, int axis) {
    std::int64_t strides[kMaxDims];
    std::int64_t stride = 1;
    for (int i = x.ndim - 1; i >= 0; --i) {
      const bool kept = axis >= 0 && i != axis;
      strides[i] = kept ? stride : 0;
      if (kept) stride *= x.shape[i];
    }
    return make_reduce_plan(x, axis < 0 ? ~0U : 1U << axis, strides, sizeof(std::int64_t),
                            ReduceOrder::RowMajor);
  }

  void take(Best& best, std::int64_t lane, const void* value, std::int64_t position) const {
    char* slot = best.value + lane * 8;
    if (!best.empty && !better_(value, slot)) return;
    std::memcpy(slot, value, size_);
    best.position[lane] = position;
  }

  void search(std::int64_t tile, std::int64_t begin, std::int64_t end, Best& best) const {
    BlockScratch scratch;
    for_blocks(plan_, tile, begin, end, [&](const ReduceBlock& block) {
      const Rows rows = reader_.read(block, scratch);
      for (std::int64_t r = 0; r < rows.rows; ++r) {
        const char* row = static_cast<const char*>(rows.data) +
                          r * rows.row_stride * static_cast<std::int64_t>(size_);
        const std::int64_t i = kernel_(row, rows.cols);
        take(best, r, row + i * static_cast<std::int64_t>(size_), block.run_begin + i);
      }
      best.empty = false;
    });
  }

  void run_split(std::int64_t tile, Part* parts) const {
    const std::int64_t lanes = tile_at(plan_, tile).lanes;
    parallel::parallel_for(plan_.splits, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t split = begin; split < end; ++split) {
        Best best;
        search(tile, plan_.split_begin(split), plan_.split_begin(split + 1), best);
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          Part& part = parts[split * lanes + lane];
          part.position = best.position[lane];
          std::memcpy(part.value, best.value + lane * 8, 8);
        }
      }
    });
    Best best;
    for (std::int64_t split = 0; split < plan_.splits; ++split) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const Part& part = parts[split * lanes + lane];
        take(best, lane, part.value, part.position);
      }
      best.empty = false;
    }
    write(tile, best);
  }

  void write(std::int64_t tile, const Best& best) const {
    const ReduceTile t = tile_at(plan_, tile);
    BlockWriter(plan_, DType::Int64, DType::Int64, table_)
        .write_lanes(best.position, t.lanes, out_ + t.out_offset, nullptr);
  }

  const KernelTable& table_;
  DType compute_;
  std::size_t size_;
  ArgReduceFn kernel_;
  BetterFn better_;
  char* out_;
  ReducePlan plan_;
  BlockReader reader_;
};

}  // namespace

void argreduce(OpId op, const View& x, int axis, const View& out) {
  if (numel(x) == 0) return;
  ArgReduction(op, x, axis, out).run();
}

}  // namespace baregrad::kernels
