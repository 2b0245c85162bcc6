// Compiled with -O3, for vectorisation. The rows of a shuffled epoch are not in the caches.
// Prefetching the next row while the current one is copied halves the time.
#include "data/gather.h"

#include <algorithm>
#include <cstring>

#include "parallel/parallel_for.h"

namespace baregrad::data {

namespace {

/// Bytes of the result per chunk. For smaller chunks a second thread costs more than it saves.
constexpr std::int64_t kGrainBytes = std::int64_t{1} << 16;
constexpr std::size_t kRowsAhead = 2;
/// The prefetched part of a row. The hardware prefetcher loads the rest of a longer row.
constexpr std::int64_t kMostAhead = 2048;
constexpr std::int64_t kCacheLine = 64;

/// Calls row(i, index) for each index, in several threads.
template <class Row>
void for_each_row(const void* from, std::int64_t from_bytes, std::int64_t to_bytes,
                  std::span<const std::int64_t> indices, const Row& row) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / to_bytes);
  const std::int64_t ahead = std::min(from_bytes, kMostAhead);
  parallel::parallel_for(
      static_cast<std::int64_t>(indices.size()), grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (at + kRowsAhead < indices.size()) {
            // Not in a function of its own: g++ would treat it as one without effects
            // and remove the calls.
            const char* next =
                static_cast<const char*>(from) + indices[at + kRowsAhead] * from_bytes;
            for (std::int64_t k = 0; k < ahead; k += kCacheLine) {
              __builtin_prefetch(next + k);
            }
          }
          row(i, indices[at]);
        }
      });
}

}  // namespace

void gather_rows(const char* from, std::int64_t row_bytes, std::span<const std::int64_t> indices,
                 char* to) {
  for_each_row(from, row_bytes, row_bytes, indices, [=](std::int64_t i, std::int64_t index) {
    std::memcpy(to + i * row_bytes, from + index * row_bytes, static_cast<std::size_t>(row_bytes));
  });
}

void gather_scaled(const std::uint8_t* from, std::int64_t width,
                   std::span<const std::int64_t> indices, const Scaling& scaling, float* to) {
  const float mean = scaling.mean;
  const float std = scaling.std;
  const auto to_bytes = width * static_cast<std::int64_t>(sizeof(float));
  for_each_row(from, width, to_bytes, indices, [=](std::int64_t i, std::int64_t index) {
    const std::uint8_t* pixels = from + index * width;
    float* row = to + i * width;
    for (std::int64_t k = 0; k < width; ++k) row[k] = (static_cast<float>(pixels[k]) - mean) / std;
  });
}

}  // namespace baregrad::data
