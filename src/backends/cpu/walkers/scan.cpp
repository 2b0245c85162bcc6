// Cumulative sum, product and maximum along an axis.
#include "backends/cpu/walkers/scan.h"

#include <limits>
#include <type_traits>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/reduce_plan.h"
#include "parallel/interrupt.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Integers wrap: they are added and multiplied as unsigned.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

template <class T>
struct RunningSum {
  static constexpr T kStart = 0;
  static T next(T a, T x) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(x));
  }
};

template <class T>
struct RunningProd {
  static constexpr T kStart = 1;
  static T next(T a, T x) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(x));
  }
};

template <class T>
struct RunningMax {
  static constexpr T kStart = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::lowest();
  // A NaN in x is taken; one in a compares false with everything and stays.
  static T next(T a, T x) { return x > a || x != x ? x : a; }
};

/// Scans a block in place and leaves the last values in `carry`, one per lane.
using BlockScanFn = void (*)(const Rows& block, bool runs_as_rows, void* carry);

template <class T, template <class> class Running>
void scan_block(const Rows& block, bool runs_as_rows, void* carry_inout) {
  T* carry = static_cast<T*>(carry_inout);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* row = static_cast<T*>(block.data) + r * block.row_stride;
    if (runs_as_rows) {
      T a = carry[r];
      for (std::int64_t c = 0; c < block.cols; ++c) row[c] = a = Running<T>::next(a, row[c]);
      carry[r] = a;
    } else {
      for (std::int64_t c = 0; c < block.cols; ++c) {
        row[c] = carry[c] = Running<T>::next(carry[c], row[c]);
      }
    }
  }
}

struct Scanner {
  BlockScanFn block = nullptr;
  void (*start)(void* carry, std::int64_t n) = nullptr;
};

template <class T, template <class> class Running>
Scanner scanner() {
  return {scan_block<T, Running>, [](void* carry, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(carry)[i] = Running<T>::kStart;
          }};
}

template <class T>
Scanner scanner_for(OpId op) {
  if (op == OpId::cumulative_sum) return scanner<T, RunningSum>();
  if (op == OpId::cumulative_prod) return scanner<T, RunningProd>();
  return scanner<T, RunningMax>();
}

}  // namespace

void scan(OpId op, const View& x, int axis, const View& out) {
  if (numel(x) == 0) return;
  const KernelTable& table = active_table();
  const DType running = is_floating(out.dtype)       ? DType::Float64
                        : is_unsigned_int(out.dtype) ? DType::UInt64
                                                     : DType::Int64;
  const Scanner scanner = running == DType::Float64  ? scanner_for<double>(op)
                          : running == DType::UInt64 ? scanner_for<std::uint64_t>(op)
                                                     : scanner_for<std::int64_t>(op);
  // A 0-d view is one element: no axis, no dimension.
  const std::uint32_t mask = x.ndim == 0 ? 0 : 1U << axis;
  ReducePlan plan =
      make_reduce_plan(x, mask, out.strides, itemsize(out.dtype), ReduceOrder::RowMajor);
  const BlockReader reader(plan, x.dtype, running, plan.inner, table);
  cut_blocks(plan, {.elements = reader.stage_elements()});
  const BlockWriter writer(plan, running, out.dtype, table);

  parallel::parallel_for(plan.tiles, plan.grain, [&](std::int64_t begin, std::int64_t end) {
    BlockScratch scratch;
    alignas(64) char carry[kMaxLanes * 8];
    for (std::int64_t tile = begin; tile < end; ++tile) {
      scanner.start(carry, kMaxLanes);
      for_blocks(plan, tile, 0, plan.units, [&](const ReduceBlock& block) {
        parallel::poll_interrupt();
        const Rows rows = reader.read(block, scratch, /*copy=*/true);
        scanner.block(rows, plan.inner, carry);
        writer.write_block(rows, static_cast<char*>(out.data) + block.out_offset, scratch.raw);
      });
    }
  });
}

}  // namespace baregrad::kernels
