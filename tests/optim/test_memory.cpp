// Failing allocations, and memory that is reused.
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "golden.h"

namespace baregrad {
namespace {

using namespace test;

Tensors some_parameters() {
  return {values(100, -1, DType::Float32), values(30, -1, DType::Float64),
          values(8, -1, DType::BFloat16)};
}

void set_gradients(const Tensors& params, int k) {
  for (const Tensor& p : params) p.set_grad(values(p.numel(), k, p.dtype()));
}

TEST(Memory, AStepThatFailsChangesNothingAndCanBeRepeated) {
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  for (const GoldenOptimizer& row : golden_optimizers()) {
    const Tensors truth = some_parameters();
    const Made never = row.make(truth);
    set_gradients(truth, 0);
    never->step();
    for (std::uint64_t n = 0;; ++n) {
      const Tensors params = some_parameters();
      const Tensors before = some_parameters();
      const Made optimizer = row.make(params);
      set_gradients(params, 0);
      bool failed = false;
      {
        const AllocatorScope scope(faulty);
        faulty.fail_at(n, /*and_after=*/true);
        try {
          optimizer->step();
        } catch (const OutOfMemory&) {
          failed = true;
        }
        faulty.never_fail();
      }
      if (failed) {
        for (std::size_t i = 0; i < params.size(); ++i) {
          ASSERT_TRUE(same_bits(params[i], before[i])) << row.name << ' ' << n;
        }
        EXPECT_EQ(optimizer->state().values.at("0.step"), "0");
        EXPECT_TRUE(optimizer->state().tensors.empty());
        optimizer->step();
      }
      for (std::size_t i = 0; i < params.size(); ++i) {
        ASSERT_TRUE(same_bits(params[i], truth[i])) << row.name << ' ' << n;
      }
      EXPECT_EQ(optimizer->state().values, never->state().values);
      if (!failed) break;
      ASSERT_LT(n, 100U);
    }
  }
}

TEST(Memory, ALoadThatFailsChangesNothing) {
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  const Tensors params = some_parameters();
  optim::Adam optimizer(params);
  set_gradients(params, 0);
  optimizer.step();
  State saved = optimizer.state();
  for (NamedTensor& t : saved.tensors) t.tensor = t.tensor.clone();
  optimizer.step();
  const State now = optimizer.state();
  const AllocatorScope scope(faulty);
  faulty.fail_at(3, /*and_after=*/true);
  EXPECT_THROW(optimizer.load_state(saved), OutOfMemory);
  faulty.never_fail();
  EXPECT_EQ(optimizer.state().values, now.values);
  for (std::size_t i = 0; i < now.tensors.size(); ++i) {
    EXPECT_TRUE(optimizer.state().tensors[i].tensor.is_same(now.tensors[i].tensor));
  }
}

TEST(Memory, LaterStepsAskForNoTensor) {
  const Tensors params = some_parameters();
  optim::EMA ema(params);
  PoolAllocator pool;
  FaultInjectingAllocator counting(pool);
  for (const GoldenOptimizer& row : golden_optimizers()) {
    const Made optimizer = row.make(params);
    set_gradients(params, 0);
    optimizer->step();
    const AllocatorScope scope(counting);
    counting.never_fail();
    optimizer->step();
    optim::clip_grad_norm_(params, 0.1);
    optim::clip_grad_value_(params, 0.1);
    ema.update();
    // The norm that clipping reads: the result of one op.
    EXPECT_EQ(counting.attempts(), 1U) << row.name;
  }
}

}  // namespace
}  // namespace baregrad
