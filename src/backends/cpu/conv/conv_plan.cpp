// Makes planes from taps, and blocks from the shape and the cache sizes.
#include "backends/cpu/conv/conv_plan.h"

#include <algorithm>

#include "core/cache_sizes.h"
#include "core/integer_math.h"

namespace baregrad::kernels {

namespace {

std::int64_t floor_mod(std::int64_t x, std::int64_t m) { return ((x % m) + m) % m; }

/// Places of one plane that lie inside of the source, along one axis.
struct Inside {
  Inside(const ConvAxis& axis, std::int64_t origin, std::int64_t size)
      : begin(std::clamp<std::int64_t>(ceil_div(-origin, axis.step), 0, axis.length)),
        end(std::clamp<std::int64_t>(ceil_div(size - origin, axis.step), begin, axis.length)),
        first(begin * axis.step + origin) {}
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;  ///< the source at `begin`
};

}  // namespace

ConvAxis::ConvAxis(const ConvTaps& taps, std::int64_t n) : step(taps.step), count(n), length(n) {
  // Taps with the same remainder modulo the step share a plane, shifted against each other.
  std::vector<std::int64_t> rest;
  for (const std::int64_t at : taps.at) {
    const std::int64_t r = floor_mod(at, step);
    const auto found = std::find(rest.begin(), rest.end(), r);
    const auto p = static_cast<std::size_t>(found - rest.begin());
    if (found == rest.end()) {
      rest.push_back(r);
      origin.push_back(at);
    }
    origin[p] = std::min(origin[p], at);
    plane.push_back(static_cast<std::int64_t>(p));
  }
  std::int64_t most = 0;
  for (std::size_t t = 0; t < plane.size(); ++t) {
    shift.push_back((taps.at[t] - origin[static_cast<std::size_t>(plane[t])]) / step);
    most = std::max(most, shift.back());
  }
  const auto count_of_taps = static_cast<std::int64_t>(plane.size());
  // Far apart (a large dilation), the pixels between them cost more than a plane for each tap.
  if (taps.separate_planes || (most > 0 && (n + most) / count_of_taps > n / planes())) {
    origin = taps.at;
    for (std::int64_t t = 0; t < count_of_taps; ++t) plane[static_cast<std::size_t>(t)] = t;
    std::fill(shift.begin(), shift.end(), 0);
  } else {
    length = n + most;
  }
}

std::vector<std::int64_t> ConvBlock::distances(std::int64_t channels) const {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(channels * rows.taps() * cols.taps()));
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::size_t r = 0; r < rows.plane.size(); ++r) {
      for (std::size_t q = 0; q < cols.plane.size(); ++q) {
        const std::int64_t plane =
            (c * rows.planes() + rows.plane[r]) * cols.planes() + cols.plane[q];
        out.push_back((plane * rows.length + rows.shift[r]) * cols.length + cols.shift[q]);
      }
    }
  }
  return out;
}

template <class T>
void stage_block(const ConvKernelsOf& kernels, const ConvBlock& block, const ConvImage& image,
                 const T* from, std::int64_t first, T* to) {
  const ConvAxis& rows = block.rows;
  const ConvAxis& cols = block.cols;
  std::vector<Inside> row_inside;
  std::vector<Inside> col_inside;
  for (const std::int64_t origin : rows.origin) {
    row_inside.emplace_back(rows, first * rows.step + origin, image.height);
  }
  for (const std::int64_t origin : cols.origin) col_inside.emplace_back(cols, origin, image.width);
  for (std::int64_t c = 0; c < image.channels; ++c, from += image.height * image.width) {
    for (const Inside& row : row_inside) {
      for (const Inside& col : col_inside) {
        std::fill_n(to, row.begin * cols.length, T(0));
        to += row.begin * cols.length;
        const bool any = row.begin < row.end && col.begin < col.end;
        kernels.stage({any ? from + row.first * image.width + col.first : from,
                       rows.step * image.width, cols.step, to, row.end - row.begin, col.begin,
                       col.end, cols.length});
        to += (row.end - row.begin) * cols.length;
        std::fill_n(to, (rows.length - row.end) * cols.length, T(0));
        to += (rows.length - row.end) * cols.length;
      }
    }
  }
}
template void stage_block(const ConvKernelsOf&, const ConvBlock&, const ConvImage&, const float*,
                          std::int64_t, float*);
template void stage_block(const ConvKernelsOf&, const ConvBlock&, const ConvImage&, const double*,
                          std::int64_t, double*);

std::int64_t block_rows(const ConvTaps& rows, const ConvTaps& cols, const ConvBlockParams& params) {
  constexpr std::int64_t kTasks = 8;
  constexpr std::int64_t kLeastVectors = 8;
  if (params.height <= 1) return 1;
  const ConvBlock whole(rows, params.height, cols, params.width);
  const std::int64_t halo = whole.rows.length - params.height;
  const std::int64_t row =
      whole.rows.planes() * whole.cols.planes() * whole.cols.length * params.channels * params.item;
  const auto room = static_cast<std::int64_t>(cache_sizes().l2 / 2);
  std::int64_t most = (room - halo * row) / std::max<std::int64_t>(row + params.row_bytes, 1);
  most = std::min(std::max(most, std::max<std::int64_t>(1, halo)), params.height);
  if (params.images < kTasks) {
    const std::int64_t parts = ceil_div(kTasks, std::max<std::int64_t>(params.images, 1));
    const std::int64_t few = std::max(ceil_div(params.height, parts),
                                      ceil_div(kLeastVectors * params.lanes, params.width));
    most = std::min(most, few);
  }
  // Of the sizes down to half of that, the cheapest: cost of tiles of two vectors, of tiles of one
  // vector, and of copying the halo.
  const auto cost = [&](std::int64_t height) {
    if (height == 0) return std::int64_t{0};
    const std::int64_t vectors = ceil_div(whole.pixels(height), params.lanes);
    return vectors / 2 * 20 + vectors % 2 * 13 + 10;
  };
  std::int64_t best = most;
  std::int64_t least = INT64_MAX;
  const std::int64_t from = std::max<std::int64_t>(1, std::max(most / 2, most - 32));
  for (std::int64_t r = most; r >= from; --r) {
    const std::int64_t blocks = params.height / r;
    const std::int64_t total = blocks * cost(r) + cost(params.height - blocks * r);
    if (total < least) {
      least = total;
      best = r;
    }
  }
  return best;
}

}  // namespace baregrad::kernels
