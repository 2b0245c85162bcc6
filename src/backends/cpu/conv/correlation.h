// Correlation of images with filters: what conv2d and its gradient towards the images have in
// common.
#pragma once

#include <cstdint>

#include "backends/cpu/conv/conv_plan.h"

namespace baregrad::kernels {

/// How the filters of a correlation lie in memory.
struct FilterLayout {
  /// true: a row holds one tap of all filters of a group, padded with zeros to whole vectors; tiles
  /// have filters along their vectors. false: a row holds all taps of one filter; tiles have pixels
  /// along their vectors.
  bool tap_major = false;
  std::int64_t row = 0;  ///< elements from one row to the next
};

/// The layout for `filters` filters of `depth` taps each per group, and `pixels` results in rows of
/// `width`. With fewer than `least_pixels` results, transposing the filters would not pay off.
template <class T>
FilterLayout choose_filter_layout(std::int64_t filters, std::int64_t depth, std::int64_t width,
                                  std::int64_t pixels, std::int64_t least_pixels);

/// y[n, g * filters + m, row_start + i * row_step, ...] = bias + the sum over channels c and taps
/// of weight[g, m, c, tap] * x[n, g * channels + c, i * step + tap, ...].
template <class T>
struct Correlation {
  std::int64_t images = 0;
  std::int64_t groups = 0;
  ConvImage source;  ///< of one group
  const T* x = nullptr;
  ConvTaps row_taps;
  ConvTaps col_taps;
  std::int64_t filters = 0;  ///< of one group
  const T* weight = nullptr;
  FilterLayout layout;
  const T* bias = nullptr;  ///< only where the results fill whole rows of y
  T* y = nullptr;
  std::int64_t y_height = 0;
  std::int64_t y_width = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_start = 0;
  std::int64_t row_step = 1;
  std::int64_t col_start = 0;
  std::int64_t col_step = 1;
};

template <class T>
void correlate(Correlation<T> call);

}  // namespace baregrad::kernels
