// The five loops of Goto and van de Geijn, without any instruction set.
//
// C is cut into blocks of mb x nb; each block is summed over k in steps of kc. A step first packs
// its part of A and B on all threads (operands that tiles can read in place are not packed), then
// computes tasks of mc x jc. Within a task, a panel of A stays in L1 while the panels of B pass by;
// where B is read in place, the panel of B stays while the tiles of A pass by, so that B is read
// once. Threads share m and n, never k; only a product of few rows is cut along k too, by its shape
// alone. So each element has one order of summation.
#include "backends/cpu/gemm/nest.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/blocks.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

const char* at(const void* base, std::int64_t offset, int item) {
  return static_cast<const char*>(base) + offset * item;
}
char* at(void* base, std::int64_t offset, int item) {
  return static_cast<char*>(base) + offset * item;
}

/// A GemmFinish without its sums.
GemmFinish finish_at(const GemmPlan& plan, std::int64_t row, std::int64_t col, std::int64_t rows,
                     std::int64_t cols) {
  const GemmCall& call = plan.call;
  const GemmEpilogue& e = call.epilogue;
  const int item = static_cast<int>(itemsize(call.dtype));
  GemmFinish f{};
  f.rows = rows;
  f.cols = cols;
  f.c = at(call.c, row * call.c_row_stride + col * call.c_col_stride, item);
  f.c_row = call.c_row_stride;
  f.c_col = call.c_col_stride;
  if (e.bias != nullptr) {
    f.bias = at(e.bias, row * plan.bias_row + col * plan.bias_col, item);
    f.bias_row = plan.bias_row;
    f.bias_col = plan.bias_col;
  }
  if (e.residual != nullptr) {
    f.residual = at(e.residual, row * e.residual_row_stride + col * e.residual_col_stride, item);
    f.residual_row = e.residual_row_stride;
    f.residual_col = e.residual_col_stride;
  }
  f.accumulate = call.accumulate;
  f.activation = e.activation;
  return f;
}

/// One step: rows from i0, columns from j0 of C, k from p0.
struct Step {
  std::int64_t i0, j0, p0;
  std::int64_t rows, cols, depth;
};

class Nest {
 public:
  explicit Nest(const GemmPlan& plan)
      : plan_(plan),
        call_(plan.call),
        kernels_(*plan.kernels),
        stored_(static_cast<int>(itemsize(plan.call.dtype))),
        blocks_(gemm_blocks(kernels_, call_.m, call_.n, call_.k)),
        // An odd number of cache lines, so that rows of packed A do not alias in the cache.
        a_row_((round_up(blocks_.kc * kernels_.item, 128) + 64) / kernels_.item),
        scratch_(a_bytes() + b_bytes() + partial_bytes()),
        packed_a_(scratch_.data()),
        packed_b_(packed_a_ + a_bytes()),
        partial_(packed_b_ + b_bytes()) {}

  void run() {
    for (std::int64_t i0 = 0; i0 < call_.m; i0 += blocks_.mb) {
      for (std::int64_t j0 = 0; j0 < call_.n; j0 += blocks_.nb) {
        std::int64_t p0 = 0;
        do {
          const Step step{i0,
                          j0,
                          p0,
                          std::min(blocks_.mb, call_.m - i0),
                          std::min(blocks_.nb, call_.n - j0),
                          std::min(blocks_.kc, call_.k - p0)};
          const EvenSplit tiles = EvenSplit::of_at_most(step.rows, tile_rows());
          pack(step, tiles);
          compute(step, tiles);
          p0 += blocks_.kc;
        } while (p0 < call_.k);
      }
    }
  }

 private:
  std::int64_t tile_rows() const {
    const bool strided = !plan_.pack_a && plan_.a_along_k;
    return strided ? tile_rows_in_place(kernels_, call_.a.row_stride) : kernels_.mr;
  }
  std::size_t a_bytes() const {
    if (!plan_.pack_a) return 0;
    return static_cast<std::size_t>(std::min(blocks_.mb, call_.m) * a_row_ * kernels_.item);
  }
  std::size_t b_bytes() const {
    if (!plan_.pack_b) return 0;
    const std::int64_t cols = round_up(std::min(blocks_.nb, call_.n), kernels_.nr);
    return static_cast<std::size_t>(round_up(cols * blocks_.kc * kernels_.item, 64));
  }
  /// Sums between two steps are kept in C where it can hold them and its old values are not needed
  /// at the end.
  bool needs_partial() const {
    if (call_.k <= blocks_.kc) return false;
    if (!kernels_.direct || call_.c_col_stride != 1) return true;
    return plan_.finish && (call_.accumulate || call_.epilogue.residual == call_.c);
  }
  std::int64_t partial_row() const { return std::min(blocks_.nb, call_.n); }
  std::size_t partial_bytes() const {
    if (!needs_partial()) return 0;
    return static_cast<std::size_t>(std::min(blocks_.mb, call_.m) * partial_row() * kernels_.item);
  }

  void pack(const Step& s, const EvenSplit& tiles) {
    const std::int64_t a_items = plan_.pack_a ? tiles.count : 0;
    const std::int64_t b_items = plan_.pack_b ? ceil_div(s.depth, kPackDepth) : 0;
    if (a_items + b_items == 0) return;
    parallel::parallel_for(a_items + b_items, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        if (item < b_items)
          pack_b_rows(s, item * kPackDepth);
        else
          pack_a_panel(s, tiles, item - b_items);
      }
    });
  }

  void pack_a_panel(const Step& s, const EvenSplit& tiles, std::int64_t tile) {
    const std::int64_t first = tiles.begin(tile);
    const std::int64_t rows = tiles.size(tile);
    const Matrix& a = call_.a;
    const void* from = at(a.data, (s.i0 + first) * a.row_stride + s.p0 * a.col_stride, stored_);
    if (plan_.a_along_k) {
      kernels_.pack({from, a.row_stride, a.col_stride, rows, s.depth, s.depth,
                     at(packed_a_, first * a_row_, kernels_.item), a_row_});
    } else {
      kernels_.pack({from, a.col_stride, a.row_stride, s.depth, rows, rows,
                     at(packed_a_, first * a_row_, kernels_.item), rows});
    }
  }

  /// Some rows of all panels: reading along the rows of B is what the prefetchers follow.
  void pack_b_rows(const Step& s, std::int64_t p) {
    const Matrix& b = call_.b;
    const std::int64_t depth = std::min(kPackDepth, s.depth - p);
    for (std::int64_t j = 0; j < s.cols; j += kernels_.nr) {
      const std::int64_t cols = std::min<std::int64_t>(kernels_.nr, s.cols - j);
      kernels_.pack({at(b.data, (s.p0 + p) * b.row_stride + (s.j0 + j) * b.col_stride, stored_),
                     b.row_stride, b.col_stride, depth, cols, round_up(cols, kernels_.lanes),
                     at(packed_b_, j * s.depth + p * kernels_.nr, kernels_.item), kernels_.nr});
    }
  }

  void compute(const Step& s, const EvenSplit& tiles) {
    const std::int64_t tiles_per_task = std::max<std::int64_t>(1, blocks_.mc / kernels_.mr);
    const EvenSplit row_tasks = EvenSplit::of_at_most(tiles.count, tiles_per_task);
    const EvenSplit col_tasks =
        EvenSplit::of_at_most(ceil_div(s.cols, kernels_.nr), blocks_.jc / kernels_.nr);
    parallel::parallel_for(
        row_tasks.count * col_tasks.count, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t r = task / col_tasks.count;
            const std::int64_t q = task % col_tasks.count;
            const std::int64_t j = col_tasks.begin(q) * kernels_.nr;
            const std::int64_t j_end = std::min(s.cols, j + col_tasks.size(q) * kernels_.nr);
            compute_task(s, tiles, row_tasks.begin(r), row_tasks.begin(r) + row_tasks.size(r), j,
                         j_end);
          }
        });
  }

  void compute_task(const Step& s, const EvenSplit& tiles, std::int64_t tile_begin,
                    std::int64_t tile_end, std::int64_t j_begin, std::int64_t j_end) {
    const bool finish = plan_.finish && s.p0 + s.depth >= call_.k;
    // A single row of tiles that reads B in place takes all columns in one call.
    const bool strip = tiles.count == 1 && !plan_.pack_b && !finish;
    const std::int64_t width = strip ? j_end - j_begin : kernels_.nr;
    // A packed panel of A stays in L1 while those of B pass by. A B that is read in place is read
    // once.
    if (plan_.pack_b) {
      for (std::int64_t tile = tile_begin; tile < tile_end; ++tile) {
        for (std::int64_t j = j_begin; j < j_end; j += width) {
          compute_tile(s, tiles, tile, j, std::min(width, j_end - j), finish);
        }
      }
    } else {
      for (std::int64_t j = j_begin; j < j_end; j += width) {
        for (std::int64_t tile = tile_begin; tile < tile_end; ++tile) {
          compute_tile(s, tiles, tile, j, std::min(width, j_end - j), finish);
        }
      }
    }
  }

  void compute_tile(const Step& s, const EvenSplit& tiles, std::int64_t tile, std::int64_t j,
                    std::int64_t cols, bool finish) {
    const std::int64_t i = tiles.begin(tile);
    const std::int64_t rows = tiles.size(tile);
    GemmTile t;
    t.k = s.depth;
    t.cols = cols;
    if (plan_.pack_a) {
      t.a = at(packed_a_, i * a_row_, kernels_.item);
      t.a_stride = plan_.a_along_k ? a_row_ : rows;
    } else {
      const Matrix& a = call_.a;
      t.a = at(a.data, (s.i0 + i) * a.row_stride + s.p0 * a.col_stride, kernels_.item);
      t.a_stride = plan_.a_along_k ? a.row_stride : a.col_stride;
    }
    t.b_packed = plan_.pack_b;
    if (plan_.pack_b) {
      t.b = at(packed_b_, j * s.depth, kernels_.item);
      t.b_row = kernels_.nr;
    } else {
      t.b = at(call_.b.data, s.p0 * call_.b.row_stride + s.j0 + j, kernels_.item);
      t.b_row = call_.b.row_stride;
    }
    const GemmTileFn fn =
        plan_.a_along_k ? kernels_.k_contiguous[rows] : kernels_.row_contiguous[rows];
    if (finish) return finish_tile(s, t, fn, i, rows, j);
    if (needs_partial()) {
      t.c = at(partial_, i * partial_row() + j, kernels_.item);
      t.c_row = partial_row();
    } else {
      t.c = at(call_.c, (s.i0 + i) * call_.c_row_stride + s.j0 + j, kernels_.item);
      t.c_row = call_.c_row_stride;
    }
    t.add = s.p0 > 0 || (call_.accumulate && !plan_.finish);
    fn(t);
  }

  void finish_tile(const Step& s, GemmTile& t, GemmTileFn fn, std::int64_t i, std::int64_t rows,
                   std::int64_t j) {
    alignas(64) char sums[kMaxTileRows * kMaxTileBytes];
    t.c = sums;
    t.c_row = kernels_.nr;
    t.add = false;
    fn(t);
    GemmFinish f = finish_at(plan_, s.i0 + i, s.j0 + j, rows, t.cols);
    f.tile = sums;
    f.tile_row = kernels_.nr;
    if (s.p0 > 0) {
      f.partial = needs_partial() ? at(partial_, i * partial_row() + j, kernels_.item)
                                  : static_cast<const char*>(f.c);
      f.partial_row = needs_partial() ? partial_row() : call_.c_row_stride;
    }
    kernels_.finish(f);
  }

  static constexpr int kMaxTileBytes = 128;
  static constexpr std::int64_t kPackDepth = 16;

  const GemmPlan& plan_;
  const GemmCall& call_;
  const GemmKernels& kernels_;
  int stored_;
  GemmBlocks blocks_;
  std::int64_t a_row_;
  Scratch<64> scratch_;
  char* packed_a_;
  char* packed_b_;
  char* partial_;
};

/// As many ones as a skinny product has parts, of a dtype that tiles can read in place.
class ArrayOfOnes {
 public:
  explicit ArrayOfOnes(DType dtype) {
    if (dtype == DType::Float32) {
      fill(1.0f);
    } else if (dtype == DType::Float64) {
      fill(1.0);
    } else if (dtype == DType::UInt64) {
      fill(std::uint64_t{1});
    } else if (dtype == DType::UInt32) {
      fill(std::uint32_t{1});
    } else {
      fill(std::uint16_t{1});
    }
  }
  const void* data() const { return bytes_; }

 private:
  template <class T>
  void fill(T one) {
    for (int i = 0; i < kMaxSkinnyParts; ++i) std::memcpy(bytes_ + i * sizeof(T), &one, sizeof(T));
  }
  alignas(8) char bytes_[kMaxSkinnyParts * 8];
};

/// One row of tiles over a B that is read along its rows. Tasks are parts of k too: the first part
/// sums into C, each other part into a buffer of its own. These are added at the end, in order.
class Skinny {
 public:
  explicit Skinny(const GemmPlan& plan)
      : plan_(plan),
        call_(plan.call),
        kernels_(*plan.kernels),
        blocks_(skinny_blocks(kernels_, call_.m, call_.n, call_.k)),
        parts_(ceil_div(call_.k, blocks_.depth)),
        sums_(static_cast<std::size_t>((parts_ - 1) * call_.m * call_.n * kernels_.item)) {}

  void run() {
    const std::int64_t pieces = ceil_div(call_.n, blocks_.cols);
    parallel::parallel_for(parts_ * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        multiply(task / pieces, task % pieces * blocks_.cols);
      }
    });
    if (parts_ == 1) return;
    constexpr std::int64_t kCols = 4096;
    parallel::parallel_for(call_.n, kCols, [&](std::int64_t begin, std::int64_t end) {
      add_parts(begin, end - begin);
    });
  }

 private:
  /// The buffer of part 1, 2, ...
  char* sums(std::int64_t part, std::int64_t col) {
    return at(sums_.data(), (part - 1) * call_.m * call_.n + col, kernels_.item);
  }

  void multiply(std::int64_t part, std::int64_t col) {
    const std::int64_t end = std::min(call_.k, (part + 1) * blocks_.depth);
    const GemmTileFn fn =
        (plan_.a_along_k ? kernels_.k_contiguous : kernels_.row_contiguous)[call_.m];
    GemmTile t;
    t.a_stride = plan_.a_along_k ? call_.a.row_stride : call_.a.col_stride;
    t.b_row = call_.b.row_stride;
    t.b_packed = false;
    t.c = part == 0 ? at(call_.c, col, kernels_.item) : sums(part, col);
    t.c_row = part == 0 ? call_.c_row_stride : call_.n;
    t.cols = std::min(blocks_.cols, call_.n - col);
    t.add = part == 0 && call_.accumulate;
    for (std::int64_t p = part * blocks_.depth; p < end; p += blocks_.rows) {
      t.a = at(call_.a.data, p * call_.a.col_stride, kernels_.item);
      t.b = at(call_.b.data, p * call_.b.row_stride + col, kernels_.item);
      t.k = std::min(blocks_.rows, end - p);
      const bool more = p + 2 * blocks_.rows <= end;
      t.ahead = blocks_.fetch && more ? blocks_.rows * t.b_row : 0;
      fn(t);
      t.add = true;
    }
  }

  /// Adds the parts to each row of C, as a product of a row of ones with the rows of sums.
  void add_parts(std::int64_t col, std::int64_t cols) {
    const ArrayOfOnes ones(call_.dtype);
    GemmTile t;
    t.a = ones.data();
    t.a_stride = 1;
    t.b_row = call_.m * call_.n;
    t.c_row = 0;
    t.k = parts_ - 1;
    t.cols = cols;
    t.add = true;
    t.b_packed = false;
    for (std::int64_t i = 0; i < call_.m; ++i) {
      t.b = sums(1, i * call_.n + col);
      t.c = at(call_.c, i * call_.c_row_stride + col, kernels_.item);
      kernels_.k_contiguous[1](t);
    }
  }

  const GemmPlan& plan_;
  const GemmCall& call_;
  const GemmKernels& kernels_;
  SkinnyBlocks blocks_;
  std::int64_t parts_;
  Scratch<8192> sums_;
};

}  // namespace

void run_nest(const GemmPlan& plan) { Nest(plan).run(); }

void run_skinny(const GemmPlan& plan) { Skinny(plan).run(); }

void run_dot(const GemmPlan& plan) {
  const GemmCall& call = plan.call;
  const GemmKernels& kernels = *plan.kernels;
  Scratch<4096> packed(plan.pack_a ? static_cast<std::size_t>(call.m * call.k * kernels.item) : 0);
  GemmDot shared{call.a.data, call.a.row_stride, nullptr, call.b.col_stride, call.k, call.m,
                 0,           nullptr,           0};
  if (plan.pack_a) {
    kernels.pack({call.a.data, call.a.row_stride, call.a.col_stride, call.m, call.k, call.k,
                  packed.data(), call.k});
    shared.a = packed.data();
    shared.a_row = call.k;
  }
  const DotBlocks blocks = dot_blocks(kernels, call.m, call.k);
  for (std::int64_t i = 0; i < call.m; i += blocks.rows) {
    parallel::parallel_for(call.n, blocks.cols, [&](std::int64_t begin, std::int64_t end) {
      GemmDot d = shared;
      d.a = at(shared.a, i * shared.a_row, kernels.item);
      d.b = at(call.b.data, begin * call.b.col_stride, kernels.item);
      d.rows = std::min(blocks.rows, call.m - i);
      d.cols = end - begin;
      if (!plan.finish) {
        d.to = at(call.c, i * call.c_row_stride + begin, kernels.item);
        d.to_row = call.c_row_stride;
        kernels.dot(d);
        return;
      }
      alignas(64) char sums[kMaxDotRows * kMaxDotCols * sizeof(double)];
      d.to = sums;
      d.to_row = kMaxDotCols;
      kernels.dot(d);
      GemmFinish f = finish_at(plan, i, begin, d.rows, d.cols);
      f.tile = sums;
      f.tile_row = kMaxDotCols;
      kernels.finish(f);
    });
  }
}

void run_rows(const GemmCall& call, const GemmKernels& kernels, bool a_along_k,
              const GemmRun& products) {
  GemmTile t;
  t.a = call.a.data;
  t.a_stride = a_along_k ? call.a.row_stride : call.a.col_stride;
  t.b = call.b.data;
  t.b_row = call.b.row_stride;
  t.c = call.c;
  t.c_row = call.c_row_stride;
  t.k = call.k;
  t.cols = call.n;
  t.add = call.accumulate;
  t.b_packed = false;
  const GemmTileFn* fns = a_along_k ? kernels.k_contiguous : kernels.row_contiguous;
  if (call.m <= kernels.mr && products.count == 1) return fns[call.m](t);
  const EvenSplit tiles = EvenSplit::of_at_most(call.m, kernels.mr);
  t.a_step = products.a_step;
  t.b_step = products.b_step;
  t.c_step = products.c_step;
  // With one row of tiles, all products are computed in one call. Otherwise one by one: coming back
  // for the other rows of several products was three times slower from memory.
  t.products = tiles.count == 1 ? products.count : 1;
  for (std::int64_t product = 0; product < products.count; product += t.products) {
    t.b = at(call.b.data, product * products.b_step, kernels.item);
    const char* a = at(call.a.data, product * products.a_step, kernels.item);
    char* c = at(call.c, product * products.c_step, kernels.item);
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t i = tiles.begin(tile);
      t.a = at(static_cast<const void*>(a), i * call.a.row_stride, kernels.item);
      t.c = at(static_cast<void*>(c), i * call.c_row_stride, kernels.item);
      fns[tiles.size(tile)](t);
    }
  }
}

}  // namespace baregrad::kernels
