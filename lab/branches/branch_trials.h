// The trials of the experiment `branches`.
#pragma once

#include "lab/counting/trial.h"

namespace baregrad::lab {

/// "ORDER_SHARE": the sum of those of `size` integers that are large enough. SHARE is their
/// percentage; ORDER is "sorted", "random", or "masked" (random, without a branch).
Body prepare_pick(std::string_view argument, std::int64_t size);
/// A name of dots().
Body prepare_dot(std::string_view argument, std::int64_t size);
/// Straight-line code of `size` bytes.
Body prepare_code(std::string_view argument, std::int64_t size);

/// `size` different integers, of which `percent` percent are at least 0.
std::vector<std::int32_t> pick_numbers(std::int64_t size, std::int64_t percent, bool sorted);

}  // namespace baregrad::lab
