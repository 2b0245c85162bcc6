// Prepares inputs for the kernels of branch_kernels.h and code_block.h.
#include "lab/branches/branch_trials.h"

#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/harness.h"
#include "lab/branches/branch_kernels.h"
#include "lab/branches/code_block.h"

namespace baregrad::lab {

std::vector<std::int32_t> pick_numbers(std::int64_t size, std::int64_t percent, bool sorted) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(),
            static_cast<std::int32_t>(-(size * (100 - percent) / 100)));
  if (sorted) return numbers;
  // Written out, because std::shuffle differs between libraries.
  std::mt19937_64 random(1);
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
  return numbers;
}

Body prepare_pick(std::string_view argument, std::int64_t size) {
  const std::size_t split = argument.find('_');
  const std::string_view order = argument.substr(0, split);
  if (split == std::string_view::npos ||
      (order != "sorted" && order != "random" && order != "masked")) {
    throw ValueError(fmt::format(
        "lab-trial: '{}' is no input to pick from: those are sorted_N, random_N, masked_N",
        argument));
  }
  const std::int64_t percent = parse_argument(argument.substr(split + 1));
  if (percent > 100) {
    throw ValueError(fmt::format("lab-trial: a share of {} in a hundred", percent));
  }
  auto numbers = std::make_shared<const std::vector<std::int32_t>>(
      pick_numbers(size, percent, order == "sorted"));
  const auto sum = order == "masked" ? sum_if_masked : sum_if_branching;
  return [sum, size, numbers = std::move(numbers)] { bench::keep(sum(numbers->data(), size, 0)); };
}

Body prepare_dot(std::string_view argument, std::int64_t size) {
  for (const Dot& dot : dots()) {
    if (dot.name != argument) continue;
    const std::int64_t count = size - size % 32;
    auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count), 0.5F);
    return [&dot, count, x = shared_numbers(count), y = std::move(y)] {
      bench::keep(dot.run(x.get(), y->data(), count));
    };
  }
  throw ValueError(fmt::format("lab-trial: there is no dot product '{}': one is 8x1", argument));
}

Body prepare_code(std::string_view /*argument*/, std::int64_t size) {
  std::string why;
  std::shared_ptr<CodeBlock> code = CodeBlock::make(static_cast<std::size_t>(size), why);
  if (!code) throw Error("lab-trial: " + why);
  return [code = std::move(code)] { code->run(); };
}

}  // namespace baregrad::lab
