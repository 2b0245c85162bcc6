// Interrupted work: by the caller's check, in chunks, in waits and in workers.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "parallel/interrupt.h"
#include "parallel/parallel_for.h"

namespace baregrad {
namespace {

using parallel::parallel_for;
using namespace std::chrono_literals;

struct Stop {};
std::atomic<int> g_asked{0};

void stop_always() {
  ++g_asked;
  throw Stop();
}
void only_count() { ++g_asked; }

/// Checks are called every 50 ms: this sleep is long enough for the next poll to call one.
void let_time_pass() { std::this_thread::sleep_for(120ms); }

class Interrupt : public ::testing::TestWithParam<int> {
 protected:
  Interrupt() {
    let_time_pass();
    g_asked = 0;
    set_num_threads(GetParam());
  }
  ~Interrupt() override {
    set_interrupt_check(nullptr);
    set_num_threads(before_);
  }

 private:
  int before_ = get_num_threads();
};

INSTANTIATE_TEST_SUITE_P(Threads, Interrupt, ::testing::Values(1, 2, 4));

std::int64_t sum_below(std::int64_t n) {
  std::atomic<std::int64_t> sum{0};
  parallel_for(n, 3, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

TEST_P(Interrupt, EndsARegionThatWouldLastForHours) {
  set_interrupt_check(&stop_always);
  std::atomic<std::int64_t> chunks{0};
  EXPECT_THROW(parallel_for(1'000'000'000, 1,
                            [&](std::int64_t, std::int64_t) {
                              ++chunks;
                              std::this_thread::sleep_for(1ms);
                            }),
               Stop);
  EXPECT_GE(g_asked, 1);
  set_interrupt_check(nullptr);
  EXPECT_EQ(sum_below(1000), 499'500);
}

TEST_P(Interrupt, ReachesAWorkerWhileTheCallerWaits) {
  if (GetParam() == 1) GTEST_SKIP() << "one thread has no workers";
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun{0};
  EXPECT_THROW(parallel_for(2, 1,
                            [&](std::int64_t, std::int64_t) {
                              ++begun;
                              while (begun < 2) std::this_thread::yield();
                              if (std::this_thread::get_id() == caller) {
                                set_interrupt_check(&stop_always);
                                return;
                              }
                              for (;;) parallel::poll_interrupt();
                            }),
               Stop);
  set_interrupt_check(nullptr);
  EXPECT_EQ(sum_below(1000), 499'500);
}

TEST_P(Interrupt, AsksNobodyInAnUninterruptedScope) {
  set_interrupt_check(&stop_always);
  {
    const parallel::UninterruptedScope whole;
    EXPECT_EQ(sum_below(100'000), 4'999'950'000);
  }
  EXPECT_EQ(g_asked, 0);
}

TEST_P(Interrupt, AsksNotMoreOftenThanEveryFiftyMilliseconds) {
  set_interrupt_check(&only_count);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) sum_below(1000);
  const auto passed = std::chrono::steady_clock::now() - start;
  // The coarse clock may be early by one tick, at most 10 ms.
  EXPECT_LE(g_asked, passed / 40ms + 1);
}

TEST_P(Interrupt, ABackwardStopsBetweenItsNodes) {
  const Tensor x = ones({1}, DType::Float32).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 1000; ++i) y = y * 1.0;
  set_interrupt_check(&stop_always);
  EXPECT_THROW(y.backward(), Stop);
  EXPECT_FALSE(x.grad().defined());
  set_interrupt_check(nullptr);
  Tensor again = x * 2.0;
  again.backward();
  EXPECT_EQ(x.grad().item<double>(), 2.0);
}

TEST_P(Interrupt, AWriteThatWasCutOffCounts) {
  // Workers may finish all of it before the caller polls: then there was nothing to interrupt.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const Tensor x = ones({1 << 20}, DType::Float32);
    const Tensor w = ones({1 << 20}, DType::Float32).requires_grad_();
    const Tensor y = sum(x * w);
    let_time_pass();
    set_interrupt_check(&stop_always);
    bool cut_off = false;
    try {
      add_(x, x);
    } catch (const Stop&) {
      cut_off = true;
    }
    set_interrupt_check(nullptr);
    if (!cut_off) continue;
    // x was saved for the gradient of w, and its contents are undefined now.
    EXPECT_THROW(y.backward(), GradError);
    return;
  }
  FAIL() << "no write was cut off";
}

}  // namespace
}  // namespace baregrad
