// How a convolution reads its image: taps, planes and blocks. See conv.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/conv/conv.h"

namespace baregrad::kernels {

/// One axis: result i reads the source at i * step + taps[t].
struct ConvTaps {
  std::int64_t step = 1;
  std::vector<std::int64_t> at;
  /// A plane for every tap. This costs more copying, but rows of pixels then follow each other
  /// without a gap, and no vector computes pixels that are not results.
  bool separate_planes = false;
};

/// Planes along one axis. In plane p, place i holds the source at i * step + origin[p], or zero
/// outside of it; tap t of result i lies at place i + shift[t] of plane[t].
struct ConvAxis {
  ConvAxis(const ConvTaps& taps, std::int64_t count);

  std::int64_t step;
  std::int64_t count;   ///< results
  std::int64_t length;  ///< of each plane
  std::vector<std::int64_t> origin;
  std::vector<std::int64_t> plane;
  std::vector<std::int64_t> shift;

  std::int64_t planes() const { return static_cast<std::int64_t>(origin.size()); }
  std::int64_t taps() const { return static_cast<std::int64_t>(plane.size()); }
};

/// A block of rows of results, all their columns, and the part of one image that it reads.
struct ConvBlock {
  ConvBlock(const ConvTaps& row_taps, std::int64_t row_count, const ConvTaps& col_taps,
            std::int64_t col_count)
      : rows(row_taps, row_count), cols(col_taps, col_count) {}

  ConvAxis rows;
  ConvAxis cols;

  /// Elements of one channel's planes.
  std::int64_t channel() const { return rows.planes() * cols.planes() * rows.length * cols.length; }
  /// Result (y, x) is pixel y * width() + x; pixels between the rows are not results.
  std::int64_t width() const { return cols.length; }
  std::int64_t pixels(std::int64_t height) const {
    return height == 0 ? 0 : (height - 1) * width() + cols.count;
  }
  /// The distance of every tap of every channel from the pixel, in the order channel, row, column.
  std::vector<std::int64_t> distances(std::int64_t channels) const;
};

/// Sizes of one image, or of some of its channels.
struct ConvImage {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

/// Fills the planes for the results from row `first` on.
template <class T>
void stage_block(const ConvKernelsOf& kernels, const ConvBlock& block, const ConvImage& image,
                 const T* from, std::int64_t first, T* to);

/// Rows of results of a block, chosen so that the image part and `row_bytes` per row of results
/// stay in half of L2, `images` images make enough tasks where their rows allow, and little of the
/// last vector of pixels is wasted.
struct ConvBlockParams {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t row_bytes;
  std::int64_t images;
  int lanes;
  int item;
};
std::int64_t block_rows(const ConvTaps& rows, const ConvTaps& cols, const ConvBlockParams& params);

}  // namespace baregrad::kernels
