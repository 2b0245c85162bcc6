// The elementwise walker: plans, tiles, staging.
#include "backends/cpu/walkers/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/plan.h"
#include "backends/cpu/walkers/stage.h"
#include "core/integer_math.h"
#include "core/multi_index.h"
#include "ops/functors.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// A tile holds 4 KB of the widest operand: all tiles of a call stay in L1 together.
constexpr std::int64_t kTileBytes = 4096;
// Runs shorter than this are gathered several at a time into one tile.
constexpr std::int64_t kShortRun = 64;
// The same where nothing is staged, a part of a vector costs little, and there are at least
// kFewRows rows.
constexpr std::int64_t kShortDirectRun = 4;
constexpr std::int64_t kFewRows = 8;
// Rows of a block that is gathered for a transposed input: 64 bytes of float32, a cache line.
constexpr std::int64_t kBlockRows = 16;
constexpr std::int64_t kBlockCols = 128;
enum class Access : std::uint8_t {
  Direct,      // contiguous, aligned, of the kernel's type: no tile
  Splat,       // one value along the run: repeated by the kernel, or a tile filled with it
  Strided,     // gathered and converted, run by run
  Transposed,  // gathered block by block: neighbouring rows share cache lines
};

struct Operand {
  char* base = nullptr;
  DType dtype = DType::Float32;
  DType kernel_dtype = DType::Float32;
  Access access = Access::Direct;
  bool flat = false;  // contiguous over the whole space (short runs only)
  std::int64_t inner_stride = 0;
};

/// What the walker knows about a kernel.
struct Kernel {
  ElementwiseFn fn = nullptr;
  const double* params = nullptr;
  bool repeats = false;  // takes operands that are one element
  bool cheap = true;     // an element costs less than staging it
};

/// Scratch of one thread: `raw` in the operand's dtype, `tile` in the kernel's.
struct alignas(64) WalkScratch {
  char raw[kMaxOperands][kBlockRows * kBlockCols * 8];
  char tile[kMaxOperands][kBlockRows * kBlockCols * 8];
  // The data that each tile holds: rows that repeat it are staged once.
  const char* staged[kMaxOperands] = {};
  std::int64_t staged_length[kMaxOperands] = {};
};

using Bases = std::array<char*, kMaxOperands>;

class Walk {
 public:
  Walk(Plan& plan, std::span<const Operand> operands, const Kernel& kernel)
      : plan_(plan), operands_(operands), kernel_(kernel), casts_(active_table().cast) {}

  void run() {
    classify();
    if (plan_.ndim >= 2 && plan_.inner() < shortest_run()) {
      run_short();
    } else {
      run_long();
    }
  }

 private:
  std::int64_t shortest_run() const {
    const bool direct = direct_rows_ && kernel_.cheap && plan_.shape[plan_.ndim - 2] >= kFewRows;
    return direct ? kShortDirectRun : kShortRun;
  }

  void classify() {
    direct_rows_ = true;
    all_splat_ = operands_.size() > 1;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const Operand& o = operands_[k];
      const bool splat = o.access == Access::Splat;
      if (k > 0) all_splat_ &= splat;
      if (splat && kernel_.repeats) repeated_ |= 1U << (k - 1);
      staged_ |= o.access == Access::Strided || (splat && !kernel_.repeats);
      blocked_ |= o.access == Access::Transposed;
      direct_rows_ &=
          o.access == Access::Direct || (splat && kernel_.repeats && is_direct_splat(k));
      widest_ = std::max({widest_, static_cast<std::int64_t>(itemsize(o.dtype)),
                          static_cast<std::int64_t>(itemsize(o.kernel_dtype))});
    }
    direct_rows_ &= !all_splat_;
  }

  // ---- Long runs: rows of the innermost dimension, cut into tiles ----------------------------
  void run_long() {
    const std::int64_t inner = plan_.inner();
    row_dim_ = plan_.ndim >= 2 ? plan_.shape[plan_.ndim - 2] : 1;
    rows_per_unit_ =
        blocked_ ? kBlockRows : std::clamp<std::int64_t>(kElementGrain / inner, 1, row_dim_);
    tile_ = blocked_ ? kBlockCols : staged_ && !all_splat_ ? kTileBytes / widest_ : inner;
    const std::int64_t cols_per_unit =
        std::min(inner, std::max(kElementGrain / rows_per_unit_, kTileBytes));
    const std::int64_t row_blocks = ceil_div(row_dim_, rows_per_unit_);
    const std::int64_t col_blocks = ceil_div(inner, cols_per_unit);
    const std::int64_t outer = plan_.numel / (row_dim_ * inner);
    const std::int64_t unit_size = rows_per_unit_ * cols_per_unit;
    const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / unit_size);
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      WalkScratch scratch;
      for (std::int64_t u = begin; u < end; ++u) {
        unit(u, row_blocks, col_blocks, cols_per_unit, scratch);
      }
    };
    parallel::parallel_for(outer * row_blocks * col_blocks, grain, body);
  }

  /// The kernel can read the single element in place, in every row.
  bool is_direct_splat(std::size_t k) const {
    const Operand& o = operands_[k];
    return o.dtype == o.kernel_dtype && is_aligned(o.base, o.dtype);
  }

  void unit(std::int64_t u, std::int64_t row_blocks, std::int64_t col_blocks,
            std::int64_t cols_per_unit, WalkScratch& scratch) const {
    const std::int64_t col0 = u % col_blocks * cols_per_unit;
    u /= col_blocks;
    const std::int64_t row0 = u % row_blocks * rows_per_unit_;
    Bases at{};
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      at[k] = operands_[k].base + row0 * row_stride(k) + col0 * operands_[k].inner_stride;
    }
    move_to(
        plan_.ndim - 2, u / row_blocks, [&](int d) { return plan_.shape[d]; },
        [&](int d, std::int64_t i) {
          for (std::size_t k = 0; k < operands_.size(); ++k) at[k] += i * plan_.strides[k][d];
        });
    const std::int64_t rows = std::min(rows_per_unit_, row_dim_ - row0);
    const std::int64_t cols = std::min(cols_per_unit, plan_.inner() - col0);
    if (direct_rows_) return run_direct(at, rows, cols);
    if (blocked_) return run_blocks(at, rows, cols, scratch);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t col = 0; col < cols; col += tile_) {
        run_staged(at, r, col, std::min(tile_, cols - col), scratch);
      }
    }
  }

  std::int64_t row_stride(std::size_t k) const {
    return plan_.ndim >= 2 ? plan_.strides[k][plan_.ndim - 2] : 0;
  }

  /// Rows that the kernel can read and write in place.
  void run_direct(const Bases& at, std::int64_t rows, std::int64_t n) const {
    std::array<const void*, kMaxInputs> in{};
    std::array<std::int64_t, kMaxInputs> step{};
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      in[k - 1] = at[k];
      step[k - 1] = row_stride(k);
    }
    char* dst = at[0];
    for (std::int64_t r = 0; r < rows; ++r, dst += row_stride(0)) {
      kernel_.fn(in.data(), dst, n, kernel_.params, repeated_);
      for (std::size_t k = 0; k < kMaxInputs; ++k)
        in[k] = static_cast<const char*>(in[k]) + step[k];
    }
  }

  /// Blocks of rows and columns: transposed inputs are gathered a block at a time.
  void run_blocks(const Bases& at, std::int64_t rows, std::int64_t cols,
                  WalkScratch& scratch) const {
    for (std::int64_t col = 0; col < cols; col += tile_) {
      const std::int64_t n = std::min(tile_, cols - col);
      for (std::size_t k = 1; k < operands_.size(); ++k) {
        const Operand& o = operands_[k];
        if (o.access != Access::Transposed) continue;
        const bool same = o.dtype == o.kernel_dtype;
        char* raw = same ? scratch.tile[k] : scratch.raw[k];
        stage_kernels(itemsize(o.dtype))
            .transpose(raw, at[k] + col * o.inner_stride, rows, row_stride(k), n, o.inner_stride);
        if (!same) cast(o.dtype, o.kernel_dtype, raw, scratch.tile[k], rows * n);
      }
      for (std::int64_t r = 0; r < rows; ++r) run_staged(at, r, col, n, scratch);
    }
  }

  /// n elements of row r from column `col` on.
  void run_staged(const Bases& at, std::int64_t r, std::int64_t col, std::int64_t n,
                  WalkScratch& scratch) const {
    std::array<const void*, kMaxInputs> in{};
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      const Operand& o = operands_[k];
      const char* src = at[k] + r * row_stride(k) + col * o.inner_stride;
      switch (o.access) {
        case Access::Direct:
          in[k - 1] = src;
          break;
        case Access::Splat:
          in[k - 1] = splat(k, src, all_splat_ || kernel_.repeats ? 1 : n, scratch);
          break;
        case Access::Strided:
          in[k - 1] = load(k, src, n, scratch);
          break;
        case Access::Transposed:
          in[k - 1] = scratch.tile[k] + r * n * static_cast<std::int64_t>(itemsize(o.kernel_dtype));
          break;
      }
    }
    char* dst = at[0] + r * row_stride(0) + col * operands_[0].inner_stride;
    if (all_splat_) {
      kernel_.fn(in.data(), scratch.tile[0], 1, kernel_.params, 0);
      store_repeated(scratch.tile[0], dst, n);
    } else if (operands_[0].access == Access::Direct) {
      kernel_.fn(in.data(), dst, n, kernel_.params, repeated_);
    } else {
      kernel_.fn(in.data(), scratch.tile[0], n, kernel_.params, repeated_);
      store(scratch.tile[0], dst, n, scratch);
    }
  }

  void cast(DType from, DType to, const void* src, void* dst, std::int64_t n) const {
    casts_[static_cast<int>(from)][static_cast<int>(to)](src, dst, n);
  }

  const char* load(std::size_t k, const char* src, std::int64_t n, WalkScratch& scratch) const {
    if (is_staged(k, src, n, scratch)) return scratch.tile[k];
    const Operand& o = operands_[k];
    if (o.dtype == o.kernel_dtype) {
      strided_copy(scratch.tile[k], static_cast<std::int64_t>(itemsize(o.dtype)), src,
                   o.inner_stride, n, itemsize(o.dtype));
      return scratch.tile[k];
    }
    const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
    const char* raw = src;
    if (o.inner_stride != width || !is_aligned(src, o.dtype)) {
      strided_copy(scratch.raw[k], width, src, o.inner_stride, n, itemsize(o.dtype));
      raw = scratch.raw[k];
    }
    cast(o.dtype, o.kernel_dtype, raw, scratch.tile[k], n);
    return scratch.tile[k];
  }

  const char* splat(std::size_t k, const char* src, std::int64_t n, WalkScratch& scratch) const {
    if (is_staged(k, src, n, scratch)) return scratch.tile[k];
    const Operand& o = operands_[k];
    alignas(8) char value[8];
    alignas(8) char element[8];
    std::memcpy(element, src, itemsize(o.dtype));
    cast(o.dtype, o.kernel_dtype, element, value, 1);
    strided_copy(scratch.tile[k], static_cast<std::int64_t>(itemsize(o.kernel_dtype)), value, 0, n,
                 itemsize(o.kernel_dtype));
    return scratch.tile[k];
  }

  /// Whether the tile already holds n elements from `src`; records that it does from now on.
  static bool is_staged(std::size_t k, const char* src, std::int64_t n, WalkScratch& scratch) {
    if (scratch.staged[k] == src && scratch.staged_length[k] >= n) return true;
    scratch.staged[k] = src;
    scratch.staged_length[k] = n;
    return false;
  }

  void store_repeated(const char* one, char* dst, std::int64_t n) const {
    const Operand& o = operands_[0];
    alignas(8) char value[8];
    cast(o.kernel_dtype, o.dtype, one, value, 1);
    strided_copy(dst, o.inner_stride, value, 0, n, itemsize(o.dtype));
  }

  void store(const char* tile, char* dst, std::int64_t n, WalkScratch& scratch) const {
    const Operand& o = operands_[0];
    const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
    if (o.dtype == o.kernel_dtype) {
      strided_copy(dst, o.inner_stride, tile, width, n, itemsize(o.dtype));
      return;
    }
    if (o.inner_stride == width && is_aligned(dst, o.dtype)) {
      cast(o.kernel_dtype, o.dtype, tile, dst, n);
      return;
    }
    cast(o.kernel_dtype, o.dtype, tile, scratch.raw[0], n);
    strided_copy(dst, o.inner_stride, scratch.raw[0], width, n, itemsize(o.dtype));
  }

  // ---- Short runs: a tile is a stretch of the whole space, gathered run by run ----------------
  void run_short() {
    const std::int64_t tile = kTileBytes / 8;
    const std::int64_t tiles = ceil_div(plan_.numel, tile);
    parallel::parallel_for(tiles, kElementGrain / tile, [&](std::int64_t begin, std::int64_t end) {
      WalkScratch scratch;
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t first = t * tile;
        short_tile(first, std::min(tile, plan_.numel - first), scratch);
      }
    });
  }

  void short_tile(std::int64_t first, std::int64_t n, WalkScratch& scratch) const {
    std::array<const void*, kMaxInputs> in{};
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      const Operand& o = operands_[k];
      const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
      const bool same = o.dtype == o.kernel_dtype;
      if (o.flat && same) {
        in[k - 1] = o.base + first * width;
        continue;
      }
      const char* raw = o.base + first * width;
      if (!o.flat) {
        char* to = same ? scratch.tile[k] : scratch.raw[k];
        for_runs(k, first, n, [&](char* src, std::int64_t done, std::int64_t count) {
          strided_copy(to + done * width, width, src, o.inner_stride, count, itemsize(o.dtype));
        });
        raw = to;
      }
      if (!same) cast(o.dtype, o.kernel_dtype, raw, scratch.tile[k], n);
      in[k - 1] = scratch.tile[k];
    }
    const Operand& o = operands_[0];
    const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
    const bool same = o.dtype == o.kernel_dtype;
    char* flat = o.base + first * width;
    char* result = o.flat && same ? flat : scratch.tile[0];
    kernel_.fn(in.data(), result, n, kernel_.params, 0);
    if (result == flat) return;
    if (!same) {
      char* converted = o.flat ? flat : scratch.raw[0];
      cast(o.kernel_dtype, o.dtype, result, converted, n);
      if (o.flat) return;
      result = converted;
    }
    for_runs(0, first, n, [&](char* dst, std::int64_t done, std::int64_t count) {
      strided_copy(dst, o.inner_stride, result + done * width, width, count, itemsize(o.dtype));
    });
  }

  /// visit(address, elements before it, elements of the run) for the runs of [first, first + n).
  template <class Visit>
  void for_runs(std::size_t k, std::int64_t first, std::int64_t n, Visit visit) const {
    const std::int64_t* strides = plan_.strides[k];
    std::array<std::int64_t, kMaxDims> index{};
    char* at = operands_[k].base;
    const auto size = [&](int d) { return plan_.shape[d]; };
    const auto move = [&](int d, std::int64_t steps) { at += steps * strides[d]; };
    set_index(index.data(), plan_.ndim, first, size, move);
    const int last = plan_.ndim - 1;
    std::int64_t column = index[static_cast<std::size_t>(last)];
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t count = std::min(plan_.shape[last] - column, n - done);
      visit(at, done, count);
      done += count;
      at -= column * strides[last];
      column = 0;
      next_index(index.data(), last, size, move);
    }
  }

  const Plan& plan_;
  std::span<const Operand> operands_;
  const Kernel& kernel_;
  const CastFn (*casts_)[kNumDTypes];
  std::uint32_t repeated_ = 0;
  std::int64_t widest_ = 1;   // item size
  bool direct_rows_ = false;  // nothing to stage
  bool staged_ = false;       // run by run
  bool all_splat_ = false;    // every input is one element along the run
  bool blocked_ = false;
  std::int64_t row_dim_ = 1;
  std::int64_t rows_per_unit_ = 1;
  std::int64_t tile_ = 1;
};

/// An input with a large stride along the innermost dimension, but stride 1 along another one, is
/// read in blocks of both: that other dimension is moved next to the innermost.
void block_transposed(Plan& plan, std::span<Operand> operands) {
  if (plan.ndim < 2 || plan.inner() < kShortRun) return;
  const auto out_width = static_cast<std::int64_t>(itemsize(operands[0].dtype));
  if (plan.inner_stride(0) != out_width) return;
  int dim = -1;
  for (int k = 1; k < plan.operands && dim < 0; ++k) {
    const auto width =
        static_cast<std::int64_t>(itemsize(operands[static_cast<std::size_t>(k)].dtype));
    if (plan.inner_stride(k) == 0 || plan.inner_stride(k) == width) continue;
    for (int d = 0; d < plan.ndim - 1; ++d) {
      if (plan.strides[k][d] == width && plan.shape[d] >= kBlockRows / 2) dim = d;
    }
  }
  if (dim < 0) return;
  plan.move_dim(dim, plan.ndim - 2);
  for (int k = 1; k < plan.operands; ++k) {
    Operand& o = operands[static_cast<std::size_t>(k)];
    const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
    if (o.access == Access::Strided && plan.strides[k][plan.ndim - 2] == width &&
        plan.inner_stride(k) != width) {
      o.access = Access::Transposed;
    }
  }
}

void walk(const Kernel& kernel, std::span<const View* const> views,
          std::span<const DType> kernel_dtypes) {
  Plan plan = make_plan(views);
  if (plan.numel == 0) return;
  std::array<Operand, kMaxOperands> storage;
  const std::span<Operand> operands(storage.data(), views.size());
  const bool short_runs = plan.ndim >= 2 && plan.inner() < kShortRun;
  for (std::size_t k = 0; k < views.size(); ++k) {
    Operand& o = operands[k];
    o.base = static_cast<char*>(views[k]->data);
    o.dtype = views[k]->dtype;
    o.kernel_dtype = kernel_dtypes[k];
    o.inner_stride = plan.inner_stride(static_cast<int>(k));
    const auto width = static_cast<std::int64_t>(itemsize(o.dtype));
    const bool aligned = is_aligned(o.base, o.dtype);
    const bool unit = o.inner_stride == width || plan.ndim == 0;
    o.flat = short_runs && aligned && plan.is_flat(static_cast<int>(k), width);
    o.access = unit && aligned && o.dtype == o.kernel_dtype ? Access::Direct
               : k > 0 && o.inner_stride == 0               ? Access::Splat
                                                            : Access::Strided;
  }
  block_transposed(plan, operands);
  Walk(plan, operands, kernel).run();
}

/// Approximations and divisions cost as much for a part of a vector as for a whole one.
bool is_cheap(OpId op) {
  switch (op) {
#define BG_FUNCTOR(name)                                                \
  case OpId::name:                                                      \
    return !std::is_base_of_v<functors::Approximate, functors::name> && \
           !std::is_base_of_v<functors::Serial, functors::name>;
#define BG_UNARY(name, rule, doc) BG_FUNCTOR(name)
#define BG_BINARY(name, rule, doc) BG_FUNCTOR(name)
#define BG_TERNARY(name, rule, doc) BG_FUNCTOR(name)
#include "ops/ops.def"
#undef BG_FUNCTOR
    default:
      return true;
  }
}

void copy_kernel_1(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  std::memmove(out, in[0], static_cast<std::size_t>(n));
}
void copy_kernel_2(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  std::memmove(out, in[0], static_cast<std::size_t>(n) * 2);
}
void copy_kernel_4(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  std::memmove(out, in[0], static_cast<std::size_t>(n) * 4);
}
void copy_kernel_8(const void* const* in, void* out, std::int64_t n, const double*, std::uint32_t) {
  std::memmove(out, in[0], static_cast<std::size_t>(n) * 8);
}

}  // namespace

DType kernel_input_dtype(OpId op, int k, DType compute) noexcept {
  return op == OpId::where && k == 0 ? DType::Bool : compute;
}

DType kernel_output_dtype(OpId op, DType compute) noexcept {
  const Family family = op_info(op).family;
  return family == Family::Predicate || family == Family::Compare ? DType::Bool : compute;
}

bool takes_repeated(OpId op, DType compute) noexcept {
  const Family family = op_info(op).family;
  const bool several = family == Family::Binary || (family == Family::Ternary && op != OpId::where);
  return several && is_floating(compute);
}

void elementwise(const ElementwiseCall& call) {
  const ElementwiseFn fn =
      active_table().elementwise[static_cast<int>(call.op)][static_cast<int>(call.compute)];
  std::array<const View*, kMaxOperands> views{&call.out};
  std::array<DType, kMaxOperands> dtypes{kernel_output_dtype(call.op, call.compute)};
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    views[k + 1] = &call.in[k];
    dtypes[k + 1] = kernel_input_dtype(call.op, static_cast<int>(k), call.compute);
  }
  const std::size_t count = call.in.size() + 1;
  const Kernel kernel{fn, call.params, takes_repeated(call.op, call.compute), is_cheap(call.op)};
  walk(kernel, {views.data(), count}, {dtypes.data(), count});
}

void copy(const View& in, const View& out) {
  constexpr ElementwiseFn kCopy[] = {copy_kernel_1, copy_kernel_2, copy_kernel_4, copy_kernel_8};
  const std::size_t bytes = itemsize(out.dtype);
  const ElementwiseFn fn = kCopy[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
  const View* views[] = {&out, &in};
  const DType dtypes[] = {out.dtype, out.dtype};
  walk({.fn = fn}, views, dtypes);
}

}  // namespace baregrad::kernels
