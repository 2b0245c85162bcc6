// The training experiment: its counts, and that a step in the arena requests no memory.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/ops.h"
#include "bench/step_cost.h"
#include "lab/training/trainee.h"

namespace baregrad::lab {
namespace {

const Network kNetworks[] = {
    {{784, 64, 32, 10}, 64}, {{128, 256, 64}, 1024}, {{128, 1024, 64}, 1024}};

/// The minimum of several rounds: a page of code may be touched late, once.
Demands settled_demands(OurTrainee& trainee) {
  trainee.step_ns(10);
  Demands least = trainee.demands(10);
  for (int round = 0; round < 3; ++round) {
    const Demands next = trainee.demands(10);
    least.minor_faults = std::min(least.minor_faults, next.minor_faults);
    least.system_calls = std::max(least.system_calls, next.system_calls);
  }
  return least;
}

TEST(TrainingLab, AStepInTheArenaHasNoFaultsAndNoAllocations) {
  const AllocatorScope scope(pool_allocator());
  for (const Network& network : kNetworks) {
    OurTrainee trainee(network, 1, "arena");
    const Demands demands = settled_demands(trainee);
    EXPECT_EQ(demands.system_calls, 0.0) << describe(network);
    EXPECT_EQ(demands.major_faults, 0.0) << describe(network);
    EXPECT_GT(demands.blocks, 10.0) << describe(network);
// Whose own memory causes page faults.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_EQ(demands.minor_faults, 0.0) << describe(network);
#endif
  }
}

TEST(TrainingLab, TheSystemIsAskedForEveryBlock) {
  const AllocatorScope scope(pool_allocator());
  OurTrainee trainee(kNetworks[0], 1, "system");
  const Demands demands = settled_demands(trainee);
  EXPECT_EQ(demands.system_calls, demands.blocks);
  EXPECT_GT(demands.blocks, 10.0);
}

TEST(TrainingLab, LargeBlocksOfTheSystemFaultInEveryStep) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const AllocatorScope scope(pool_allocator());
  OurTrainee trainee(kNetworks[2], 1, "system");
  // At least 4 MiB twice, with huge pages or without.
  EXPECT_GE(settled_demands(trainee).minor_faults, 2.0);
#endif
}

TEST(TrainingLab, AllMemoryLearnsTheSameBits) {
  const AllocatorScope scope(pool_allocator());
  OurTrainee first(kNetworks[0], 3, "pool");
  const double before = first.loss();
  first.step_ns(5);
  EXPECT_LT(first.loss(), before);
  for (const char* memory : {"system", "arena"}) {
    OurTrainee other(kNetworks[0], 3, memory);
    EXPECT_EQ(other.loss(), before) << memory;
    other.step_ns(5);
    EXPECT_EQ(other.loss(), first.loss()) << memory;
  }
}

TEST(TrainingLab, TheFirstLossIsThatOfPlainLoops) {
  for (const Network& network : kNetworks) {
    OurTrainee trainee(network, 2, "pool");
    EXPECT_NEAR(trainee.loss(), reference_loss(trainee.tensors()), 2e-6) << describe(network);
  }
}

TEST(TrainingLab, ReferenceLossByHand) {
  // One input 2, hidden units relu(2) and relu(-2), logits 1 + 2 * 2 and 0.5; the class is 1.
  const NamedTensors tensors = {
      {"x", Tensor::of<float>({2}).reshape({1, 1})},          {"y", Tensor::of<std::int64_t>({1})},
      {"0", Tensor::of<float>({1, -1}).reshape({2, 1})},      {"1", Tensor::of<float>({0, 0})},
      {"2", Tensor::of<float>({2, 7, 0, 7}).reshape({2, 2})}, {"3", Tensor::of<float>({1, 0.5})}};
  EXPECT_NEAR(reference_loss(tensors), std::log(std::exp(5.0) + std::exp(0.5)) - 0.5, 1e-12);
}

TEST(TrainingLab, CountsByHand) {
  const Network network{{2, 3, 4}, 5};
  EXPECT_EQ(describe(network), "2-3-4, batch 5");
  EXPECT_EQ(count_parameters(network), 2 * 3 + 3 + 3 * 4 + 4);
  // Per row: forward 2*3 + 3*4 multiply-adds, the same for the weights, 3*4 for the hidden layer.
  EXPECT_EQ(bench::mlp_step_flops(network.sizes, network.batch), 2.0 * 5 * (18 + 18 + 12));
}

}  // namespace
}  // namespace baregrad::lab
