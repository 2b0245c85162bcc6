// Rung 7: the loops of Goto and van de Geijn. a and b are cut into pieces for each cache and copied
// ("packed") into the order in which the innermost loop reads them:
//
//   a panel of b (kDepth rows, two vectors wide) stays in L1 while a block of a passes,
//   a block of a (kRows rows)                    stays in L2 while all panels of b pass,
//   a block of b (kWidth columns)                stays in L3 while all of a passes.
//
// Packed, no cache line is fetched in part, no two rows fight for one place of the cache, and few
// pages are touched. Edges are padded with zeros.
#include <cstdlib>
#include <new>

#include "lab/ladder/vector.h"

namespace baregrad::lab::BAREGRAD_LADDER_ISA {
namespace {

constexpr std::int64_t kTileRows = kBlockRows;
constexpr std::int64_t kTileCols = 2 * kLanes;
constexpr std::int64_t kDepth = 256;             // a panel of b: 8, 16 or 32 KiB
constexpr std::int64_t kRows = 16 * kTileRows;   // a block of a: 64, 96 or 224 KiB
constexpr std::int64_t kWidth = 64 * kTileCols;  // a block of b: 0.5, 1 or 2 MiB

std::int64_t smaller(std::int64_t x, std::int64_t y) { return x < y ? x : y; }
std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Memory aligned to cache lines.
class Buffer {
 public:
  explicit Buffer(std::int64_t floats)
      : data_(static_cast<float*>(
            std::aligned_alloc(64, static_cast<std::size_t>(round_up(floats, 16)) * 4))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }

 private:
  float* data_;
};

/// `rows` rows of a, each at the same distance from the one before: the tile's loop then finds all
/// its rows from one address. Zeros up to a whole tile.
void pack_a(std::int64_t n, std::int64_t rows, std::int64_t depth, const float* a, float* to) {
  const auto bytes = static_cast<std::size_t>(depth) * sizeof(float);
  for (std::int64_t i = 0; i < rows; ++i) __builtin_memcpy(to + i * kDepth, a + i * n, bytes);
  for (std::int64_t i = rows; i < round_up(rows, kTileRows); ++i) {
    __builtin_memset(to + i * kDepth, 0, bytes);
  }
}

/// `cols` columns of b in panels of kTileCols, one panel after the other. Zeros up to a whole
/// panel.
void pack_b(std::int64_t n, std::int64_t cols, std::int64_t depth, const float* b, float* to) {
  for (std::int64_t j = 0; j < cols; j += kTileCols) {
    const std::int64_t there = smaller(kTileCols, cols - j);
    for (std::int64_t k = 0; k < depth; ++k, to += kTileCols) {
      if (there == kTileCols) {
        __builtin_memcpy(to, b + k * n + j, kTileCols * sizeof(float));
      } else {
        for (std::int64_t x = 0; x < kTileCols; ++x) to[x] = x < there ? b[k * n + j + x] : 0;
      }
    }
  }
}

/// The innermost loop: a whole tile of c from packed a and b, in registers until it is done.
void multiply_tile(std::int64_t depth, const float* a, const float* b, bool add, float* c,
                   std::int64_t c_row) {
  Vec sum[kTileRows][2] = {};
  for (std::int64_t k = 0; k < depth; ++k, b += kTileCols) {
    const Vec left = load<Vec>(b);
    const Vec right = load<Vec>(b + kLanes);
#pragma GCC unroll 14
    for (int i = 0; i < kTileRows; ++i) {
      sum[i][0] += a[i * kDepth + k] * left;
      sum[i][1] += a[i * kDepth + k] * right;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kTileRows; ++i, c += c_row) {
    store(add ? load<Vec>(c) + sum[i][0] : sum[i][0], c);
    store(add ? load<Vec>(c + kLanes) + sum[i][1] : sum[i][1], c + kLanes);
  }
}

/// A tile at the edge of c: computed whole beside it, then copied as far as c goes.
void multiply_edge(std::int64_t depth, const float* a, const float* b, bool add, float* c,
                   std::int64_t c_row, std::int64_t rows, std::int64_t cols) {
  float whole[kTileRows * kTileCols];
  multiply_tile(depth, a, b, false, whole, kTileCols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const float value = whole[i * kTileCols + j];
      c[i * c_row + j] = add ? c[i * c_row + j] + value : value;
    }
  }
}

/// A packed block of a times a packed block of b.
void multiply_blocks(std::int64_t n, std::int64_t rows, std::int64_t cols, std::int64_t depth,
                     bool add, const float* a, const float* b, float* c) {
  for (std::int64_t j = 0; j < cols; j += kTileCols) {
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      const std::int64_t there = smaller(kTileRows, rows - i);
      const std::int64_t wide = smaller(kTileCols, cols - j);
      const float* tile_a = a + i * kDepth;
      const float* tile_b = b + j * depth;
      float* tile_c = c + i * n + j;
      if (there == kTileRows && wide == kTileCols) {
        multiply_tile(depth, tile_a, tile_b, add, tile_c, n);
      } else {
        multiply_edge(depth, tile_a, tile_b, add, tile_c, n, there, wide);
      }
    }
  }
}

}  // namespace

void multiply_packed_rows(std::int64_t n, std::int64_t begin, std::int64_t end, const float* a,
                          const float* b, float* c) {
  // Kept from one product to the next: fresh memory costs a page fault every 4 KiB.
  thread_local const Buffer packed_a(kDepth * kRows);
  thread_local const Buffer packed_b(kDepth * kWidth);
  for (std::int64_t j = 0; j < n; j += kWidth) {
    const std::int64_t cols = smaller(kWidth, n - j);
    for (std::int64_t k = 0; k < n; k += kDepth) {
      const std::int64_t depth = smaller(kDepth, n - k);
      pack_b(n, cols, depth, b + k * n + j, packed_b.data());
      for (std::int64_t i = begin; i < end; i += kRows) {
        const std::int64_t rows = smaller(kRows, end - i);
        pack_a(n, rows, depth, a + i * n + k, packed_a.data());
        multiply_blocks(n, rows, cols, depth, k > 0, packed_a.data(), packed_b.data(),
                        c + i * n + j);
      }
    }
  }
}

}  // namespace baregrad::lab::BAREGRAD_LADDER_ISA
