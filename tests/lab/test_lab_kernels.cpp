// The kernels of the experiments `cache` and `branches`, compared with the results they must
// compute.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/branches/branch_kernels.h"
#include "lab/branches/branch_trials.h"
#include "lab/branches/code_block.h"
#include "lab/cache/cache_kernels.h"
#include "tests/message_of.h"

namespace baregrad::lab {
namespace {

std::vector<float> counting(std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  return numbers;
}

TEST(CacheKernels, SumsWithStrides) {
  const std::vector<float> x = counting(200);
  for (const std::int64_t stride : {1, 3, 16}) {
    for (std::int64_t count = 0; count * stride <= 200; ++count) {
      // 1 + (1 + stride) + (1 + 2 stride) + ...
      const double truth = static_cast<double>(count + stride * count * (count - 1) / 2);
      EXPECT_EQ(sum_strided(x.data(), count, stride), truth) << count << " " << stride;
    }
  }
}

TEST(CacheKernels, EveryOrderTouchesEveryElementOnce) {
  for (const std::int64_t n : {1, 15, 16, 17, 64, 65, 130}) {
    const std::vector<float> x = counting(n * n);
    for (const Order order : {Order::Rows, Order::Columns, Order::Tiles}) {
      EXPECT_EQ(sum_matrix(order, n, x.data()), static_cast<double>(n * n * (n * n + 1) / 2)) << n;
      std::vector<float> filled(static_cast<std::size_t>(n * n) + 1, -1.0F);
      fill_matrix(order, n, filled.data(), 2.0F);
      EXPECT_EQ(std::accumulate(filled.begin(), filled.end(), 0.0),
                2.0 * static_cast<double>(n * n) - 1)
          << n;
    }
  }
}

TEST(CacheKernels, Transposes) {
  for (const std::int64_t n : {1, 5, 16, 33}) {
    const std::vector<float> x = counting(n * n);
    for (const auto transpose : {transpose_naive, transpose_tiled}) {
      std::vector<float> y(x.size());
      transpose(n, x.data(), y.data());
      for (std::int64_t i = 0; i < n * n; ++i) {
        ASSERT_EQ(y[static_cast<std::size_t>(i)], x[static_cast<std::size_t>(i % n * n + i / n)]);
      }
    }
  }
}

TEST(BranchKernels, SumsOfTheLargeOnes) {
  for (const std::int64_t percent : {0, 1, 50, 100}) {
    for (const bool sorted : {true, false}) {
      const std::vector<std::int32_t> numbers = pick_numbers(1000, percent, sorted);
      const std::int64_t large = 10 * percent;
      EXPECT_EQ(std::count_if(numbers.begin(), numbers.end(), [](int each) { return each >= 0; }),
                large);
      EXPECT_EQ(std::is_sorted(numbers.begin(), numbers.end()), sorted);
      const std::int64_t truth = large * (large - 1) / 2;
      EXPECT_EQ(sum_if_branching(numbers.data(), 1000, 0), truth);
      EXPECT_EQ(sum_if_masked(numbers.data(), 1000, 0), truth);
    }
  }
}

TEST(BranchKernels, DotProducts) {
  const std::vector<float> x = counting(96);
  for (const Dot& dot : dots()) {
    EXPECT_EQ(dot.run(x.data(), x.data(), 0), 0) << dot.name;
    // 1 + 4 + 9 + ... + 96^2, exact in a float
    EXPECT_EQ(dot.run(x.data(), x.data(), 96), 96.0F * 97 * 193 / 6) << dot.name;
  }
}

TEST(CodeBlock, RunsToItsEnd) {
  std::string why;
  for (const std::size_t bytes : {0UL, 4UL, 4096UL, 1UL << 20}) {
    const std::unique_ptr<CodeBlock> code = CodeBlock::make(bytes, why);
    if (!code) GTEST_SKIP() << why;
    EXPECT_EQ(code->instructions(), bytes / 4);
    code->run();
  }
}

TEST(Trials, WrongArguments) {
  for (const char* name : {"pick:random", "pick:upwards_50", "pick:random_101", "pick:random_x",
                           "dot:3x3", "sum:diagonal", "fill:", "transpose:fast", "stride:x"}) {
    EXPECT_TRUE(message_of<ValueError>([&] { prepare_trial(name, 64); }).starts_with("lab-trial: "))
        << name;
  }
}

}  // namespace
}  // namespace baregrad::lab
