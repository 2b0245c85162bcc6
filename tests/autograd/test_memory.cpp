// Memory: every allocation of a training step fails once, and no memory leaks.
#include <new>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "tests/autograd/support.h"
#include "tests/op_table/support.h"

namespace baregrad {
namespace {

struct Mlp {
  Tensors parameters;
  Tensor x;

  Mlp() {
    op_table::Rng rng(1);
    const auto sample = [&](const Dims& shape) {
      return op_table::sample(rng, DType::Float32, shape, -1, 1);
    };
    x = sample({6, 5});
    for (const Dims& shape : {Dims{8, 5}, Dims{8}, Dims{3, 8}, Dims{3}}) {
      parameters.push_back(sample(shape).requires_grad_());
    }
  }
  /// Fused and composed layers, a write into a view, a sort, several results.
  Tensor loss() const {
    const Tensor h = linear(x, parameters[0], parameters[1], Activation::Gelu);
    const Tensor z = linear(h, parameters[2], parameters[3]);
    const Tensor out = z * 1.0;
    multiply_(narrow(out, 1, 0, 2), 2.0);
    const auto sorted = sort_with_indices(out, 1);
    return mean(logsumexp(out, 1)) + sum(sorted.values * 0.1) + var(h);
  }
  void clear() const {
    for (const Tensor& p : parameters) p.zero_grad();
  }
  std::vector<char> gradients() const {
    std::vector<char> bytes;
    for (const Tensor& p : parameters) {
      const std::vector<char> more = op_table::bytes_of(p.grad());
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }
};

TEST(Memory, FailingAtEveryAllocationOfAStep) {
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  const AllocatorScope scope(faulty);
  const Mlp mlp;
  mlp.loss().backward();
  const std::vector<char> want = mlp.gradients();
  mlp.clear();
  const std::size_t live = pool.stats().live_bytes;
  const std::int64_t nodes = autograd::live_nodes();
  for (const bool and_after : {false, true}) {
    std::uint64_t n = 0;
    for (;; ++n) {
      ASSERT_LT(n, 1000U);
      faulty.fail_at(n, and_after);
      bool failed = false;
      try {
        mlp.loss().backward();
      } catch (const OutOfMemory&) {
        failed = true;
      }
      faulty.never_fail();
      if (!failed) {
        EXPECT_TRUE(mlp.gradients() == want);
      }
      mlp.clear();
      EXPECT_EQ(pool.stats().live_bytes, live) << "allocation " << n;
      EXPECT_EQ(autograd::live_nodes(), nodes) << "allocation " << n;
      mlp.loss().backward();
      EXPECT_TRUE(mlp.gradients() == want) << "the step after allocation " << n << " failed";
      mlp.clear();
      if (!failed) break;
    }
    EXPECT_GT(n, 40U);
  }
}

/// An in-place write that fails leaves values, history and gradients unchanged.
TEST(Memory, AFailedWriteChangesNothing) {
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  const AllocatorScope scope(faulty);
  const Tensor x = leaf({1, 2, 3});
  const Tensor w = leaf({4, 5, 6});
  for (std::uint64_t n = 0;; ++n) {
    ASSERT_LT(n, 20U);
    const Tensor y = x * 2.0;
    const Tensor view = narrow(y, 0, 0, 2);
    faulty.fail_at(n, false);
    bool failed = false;
    try {
      multiply_(view, narrow(w, 0, 1, 2));
    } catch (const OutOfMemory&) {
      failed = true;
    }
    faulty.never_fail();
    x.zero_grad();
    w.zero_grad();
    sum(y).backward();
    if (failed) {
      EXPECT_EQ(values(y), (std::vector<double>{2, 4, 6}));
      EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2, 2}));
      EXPECT_FALSE(w.grad().defined());
    } else {
      EXPECT_EQ(values(y), (std::vector<double>{10, 24, 6}));
      EXPECT_EQ(values(x.grad()), (std::vector<double>{10, 12, 2}));
      break;
    }
  }
}

TEST(Memory, StepsDoNotGrow) {
  const Mlp mlp;
  mlp.loss().backward();
  mlp.clear();
  const std::size_t live = current_allocator().stats().live_bytes;
  const std::int64_t nodes = autograd::live_nodes();
  for (int i = 0; i < 200; ++i) {
    mlp.loss().backward();
    mlp.clear();
  }
  EXPECT_EQ(current_allocator().stats().live_bytes, live);
  EXPECT_EQ(autograd::live_nodes(), nodes);
}

}  // namespace
}  // namespace baregrad
