// The trials of the experiment `branches`.
#pragma once

#include "lab/counting/trial.h"

namespace baregrad::lab {

/// "ORDER_SHARE": the sum of `size` integers, of which a share of so many percent is large enough,
/// and ORDER is "sorted" or "random", or "masked": random and without a branch.
Body prepare_pick(std::string_view argument, std::int64_t size);
/// A name of dots().
Body prepare_dot(std::string_view argument, std::int64_t size);
/// Straight-line code of `size` bytes.
Body prepare_code(std::string_view argument, std::int64_t size);

/// `size` different integers of which `percent` in a hundred are at least 0.
std::vector<std::int32_t> pick_numbers(std::int64_t size, std::int64_t percent, bool sorted);

}  // namespace baregrad::lab
