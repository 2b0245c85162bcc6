// Compiled with -O3, for vectors. Rows of a shuffled epoch lie anywhere in a set larger than the
// caches: asked for while the row before them is at work, they come in half the time.
#include "data/gather.h"

#include <algorithm>
#include <cstring>

#include "parallel/parallel_for.h"

namespace baregrad::data {

namespace {

/// Bytes of result per chunk: below this a second thread costs more than it saves.
constexpr std::int64_t kGrainBytes = std::int64_t{1} << 16;
constexpr std::size_t kRowsAhead = 2;
/// Of a longer row the hardware fetches the rest by itself.
constexpr std::int64_t kMostAhead = 2048;
constexpr std::int64_t kCacheLine = 64;

/// row(i, index) for each index, several threads at once.
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
            // Not in a function of its own, which g++ takes for one that does
            // nothing and leaves out.
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
