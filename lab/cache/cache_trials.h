// The trials of the experiment `cache`.
#pragma once

#include "lab/counting/trial.h"

namespace baregrad::lab {

/// "rows", "columns" or "tiles" of an n x n matrix.
Body prepare_sum(std::string_view argument, std::int64_t n);
/// The same on huge pages.
Body prepare_huge_sum(std::string_view argument, std::int64_t n);
Body prepare_fill(std::string_view argument, std::int64_t n);
/// "naive" or "tiled".
Body prepare_transpose(std::string_view argument, std::int64_t n);
/// "N": the sum of every N-th of `size` floats.
Body prepare_stride(std::string_view argument, std::int64_t size);
/// "N": the sum of the first 16 columns, one after the other, of a matrix of `rows` rows of N
/// floats.
Body prepare_pitch(std::string_view argument, std::int64_t rows);
inline constexpr std::int64_t kPitchColumns = 16;

}  // namespace baregrad::lab
