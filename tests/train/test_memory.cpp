// After the first steps, training requests nothing from the system.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/nn.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/optim.h"
#include "train/step_memory.h"

namespace baregrad::train {
namespace {

std::int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

[[maybe_unused]] std::int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident;
}

struct Learner {
  std::shared_ptr<nn::MLP> model =
      nn::make<nn::MLP>(std::vector<std::int64_t>{64, 48, 10}, nn::MLPOptions{.dropout = 0.1});
  optim::AdamW optimizer{model->parameters()};
  Tensor x = randn({32, 64});
  Tensor y = randint(0, 10, {32});

  void step() {
    cross_entropy((*model)(x), y).backward();
    optim::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
  }
};

class StepMemoryOf : public testing::TestWithParam<const char*> {};

TEST_P(StepMemoryOf, AStepTakesNothingFromTheSystem) {
  const AllocatorScope scope(pool_allocator());
  Learner setup;
  StepMemory memory(GetParam());
  for (int i = 0; i < 10; ++i) memory.run([&] { setup.step(); });
  const std::uint64_t allocations = pool_allocator().stats().system_allocations;
  const std::size_t live = pool_allocator().stats().live_bytes;
  // A page of code or of a worker's stack may be touched late, once; a step that faults does so in
  // every round.
  std::int64_t least = INT64_MAX;
  for (int round = 0; round < 5; ++round) {
    const std::int64_t before = minor_faults();
    for (int i = 0; i < 100; ++i) memory.run([&] { setup.step(); });
    least = std::min(least, minor_faults() - before);
  }
  EXPECT_EQ(pool_allocator().stats().system_allocations, allocations);
  EXPECT_EQ(pool_allocator().stats().live_bytes, live);
// Whose own memory causes page faults.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(least, 0);
#else
  static_cast<void>(least);
#endif
}

INSTANTIATE_TEST_SUITE_P(All, StepMemoryOf, testing::Values("pool", "arena"),
                         [](const auto& row) { return std::string(row.param); });

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep freed memory
// 100,000 steps with BAREGRAD_TEST_LONG=1.
TEST(StepMemory, StaysFlat) {
  const bool is_long = std::getenv("BAREGRAD_TEST_LONG") != nullptr;
  const int steps = is_long ? 100'000 : 2'000;
  Learner setup;
  for (int i = 0; i < steps / 20; ++i) setup.step();
  const std::int64_t before = resident_pages();
  for (int i = 0; i < steps; ++i) setup.step();
  EXPECT_LE(resident_pages(), before + before / 100);
}
#endif

}  // namespace
}  // namespace baregrad::train
