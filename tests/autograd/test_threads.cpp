// Several threads: graphs that share leaves, and one graph with two backwards at once.
#include <atomic>
#include <barrier>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "tests/autograd/support.h"
#include "tests/op_table/support.h"

namespace baregrad {
namespace {

/// Runs fn(i) in `count` threads that start together.
template <class F>
void in_threads(int count, const F& fn) {
  std::barrier together(count);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      fn(i);
    });
  }
  for (std::thread& t : threads) t.join();
}

Tensor whole_numbers(const Dims& shape, std::uint64_t seed) {
  op_table::Rng rng(seed);
  return astype(op_table::sample_indices(rng, shape, -4, 5), DType::Float64);
}

TEST(Threads, GradientsOfSharedLeavesAddUp) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 10;
  const Tensor w = whole_numbers({6, 5}, 1).requires_grad_();
  const Tensor b = whole_numbers({5}, 2).requires_grad_();
  const auto loss = [&](int thread) {
    const Tensor x = whole_numbers({4, 6}, static_cast<std::uint64_t>(10 + thread));
    const Tensor h = relu(matmul(x, w) + b);
    return sum(h * h) + sum(narrow(w, 0, 1, 2) * b);
  };
  // Integers: sums are exact in any order.
  std::vector<double> want_w(30);
  std::vector<double> want_b(5);
  for (int i = 0; i < kThreads; ++i) {
    const Tensors g = autograd::grad({loss(i)}, {w, b});
    for (std::size_t k = 0; k < 30; ++k) want_w[k] += kRounds * values(g[0])[k];
    for (std::size_t k = 0; k < 5; ++k) want_b[k] += kRounds * values(g[1])[k];
  }
  in_threads(kThreads, [&](int i) {
    for (int round = 0; round < kRounds; ++round) loss(i).backward();
  });
  EXPECT_EQ(values(w.grad()), want_w);
  EXPECT_EQ(values(b.grad()), want_b);
}

/// One graph, with several backwards at the same time, each for another leaf.
TEST(Threads, OneGraphWalkedBySeveral) {
  constexpr int kRounds = 30;
  for (const int threads : {2, 4}) {
    const Tensor x = whole_numbers({3, 4}, 3).requires_grad_();
    Tensor h = x * 2.0;
    for (int i = 0; i < 20; ++i) h = h + relu(h - x) - h * 1.0 + x;
    const Tensors parts = split(h, 2, 1);
    const Tensor y = sum(parts[0] * parts[1]) + sum(h);
    const Tensor want = autograd::grad({y}, {x}, {}, {.retain_graph = true})[0];
    in_threads(threads, [&](int) {
      for (int round = 0; round < kRounds; ++round) y.backward({}, true);
    });
    EXPECT_EQ(values(x.grad()), values(want * static_cast<double>(threads * kRounds)));
  }
}

/// With capture: a node reached by two backwards must still run once in each.
TEST(Threads, GradOfOneGraphBySeveral) {
  constexpr int kRounds = 60;
  const Tensor x = whole_numbers({3, 4}, 4).requires_grad_();
  const Tensor h = x * 3.0;
  Tensor t = h;
  for (int i = 0; i < 30; ++i) t = t + h * 1.0 - relu(t) * 0.0 + x;
  const Tensor y = sum(t * h);
  const std::vector<Tensor> want = autograd::grad({y}, {h, x}, {}, {.retain_graph = true});
  std::atomic<int> wrong{0};
  in_threads(4, [&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const Tensors got = autograd::grad({y}, {h, x}, {}, {.retain_graph = true});
      for (std::size_t k = 0; k < 2; ++k) {
        if (op_table::bytes_of(got[k]) != op_table::bytes_of(want[k])) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

/// A view is brought up to date by the first thread that reads it.
TEST(Threads, AViewOfAWrittenBaseReadBySeveral) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = whole_numbers({6}, 5).requires_grad_();
    const Tensor base = x * 1.0;
    const Tensor view = narrow(base, 0, 1, 3);
    multiply_(base, 3.0);
    in_threads(4, [&](int) { sum(view * 2.0).backward({}, true); });
    EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 24, 24, 24, 0, 0}));
  }
}

TEST(Threads, AViewWithoutHistoryReadBySeveral) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = whole_numbers({3}, 5).requires_grad_();
    const Tensor base = ones({6}, DType::Float64);
    const Tensor view = narrow(base, 0, 1, 3);
    multiply_(base, 3.0);
    in_threads(4, [&](int) { sum(view * x).backward(); });
    EXPECT_EQ(values(x.grad()), (std::vector<double>{12, 12, 12}));
  }
}

// Neither keeps the graph: the later one gets an error, and no freed memory is read.
TEST(Threads, ASharedTrunkFreedByWhoeverIsFirst) {
  for (int round = 0; round < 200; ++round) {
    const Tensor x = ones({40}, DType::Float64).requires_grad_();
    Tensor trunk = x;
    for (int k = 0; k < 8; ++k) trunk = tanh(trunk * (trunk + 1.0));
    Tensor ends[] = {sum(trunk * 2.0), sum(trunk * 3.0)};
    trunk = {};
    std::atomic<int> refused{0};
    in_threads(2, [&](int i) {
      try {
        ends[i].backward();
      } catch (const GradError& e) {
        EXPECT_NE(std::string(e.what()).find("retain_graph"), std::string::npos) << e.what();
        ++refused;
      }
    });
    EXPECT_LE(refused, 1);
  }
}

TEST(Fork, WhileAnotherThreadAddsToTheSameLeaf) {
  const Tensor w = ones({1000000}).requires_grad_();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) sum(w).backward();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      sum(w).backward();
      _exit(w.grad().defined() ? 13 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 13) << status;
  }
  stop = true;
  other.join();
}

TEST(Threads, RecordingIsSwitchedPerThread) {
  const Tensor x = leaf({1});
  const no_grad off;
  bool recorded = false;
  std::thread([&] { recorded = (x * 2.0).requires_grad(); }).join();
  EXPECT_TRUE(recorded);
  EXPECT_FALSE((x * 2.0).requires_grad());
}

/// The last handle on a graph dropped in another thread.
TEST(Threads, AGraphFreedElsewhere) {
  const std::int64_t before = autograd::live_nodes();
  in_threads(4, [&](int i) {
    Tensor y = leaf({1.0 * i});
    for (int k = 0; k < 2000; ++k) y = y + 1.0;
    std::thread([t = std::move(y)]() mutable { t = Tensor(); }).join();
  });
  EXPECT_EQ(autograd::live_nodes(), before);
}

}  // namespace
}  // namespace baregrad
