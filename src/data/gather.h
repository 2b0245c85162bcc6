// The gather loop: copies rows of a tensor, in any order, to a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "baregrad/dataset.h"

namespace baregrad::data {

/// to[i] = from[indices[i]] for rows of `row_bytes` bytes. Indices have been checked.
void gather_rows(const char* from, std::int64_t row_bytes, std::span<const std::int64_t> indices,
                 char* to);
/// The same for rows of `width` pixels, which are scaled.
void gather_scaled(const std::uint8_t* from, std::int64_t width,
                   std::span<const std::int64_t> indices, const Scaling& scaling, float* to);

}  // namespace baregrad::data
