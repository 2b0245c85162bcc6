// parallel_for and the pool behind it: partition, nesting, errors, fork, environment.
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "parallel/parallel_for.h"
#include "parallel/serial.h"
#include "tests/core/alloc_testing.h"

namespace baregrad {
namespace {

using parallel::in_parallel_region;
using parallel::parallel_for;
using Chunk = std::pair<std::int64_t, std::int64_t>;

constexpr char kProbeVariable[] = "BAREGRAD_TEST_PRINT_NUM_THREADS";

// The environment is read once per process: the tests run this binary again with other variables.
[[maybe_unused]] const bool g_probe = [] {
  if (std::getenv(kProbeVariable) != nullptr) {
    std::printf("%d\n", get_num_threads());
    std::fflush(stdout);
    _exit(0);
  }
  return true;
}();

class ThreadsRestored : public ::testing::Test {
 protected:
  ~ThreadsRestored() override { set_num_threads(before_); }

 private:
  int before_ = get_num_threads();
};
using ParallelFor = ThreadsRestored;
using NumThreads = ThreadsRestored;
using Fork = ThreadsRestored;

std::vector<Chunk> chunks_seen(std::int64_t n, std::int64_t grain) {
  std::mutex mutex;
  std::vector<Chunk> seen;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(begin, end);
  });
  std::sort(seen.begin(), seen.end());
  return seen;
}

// Two chunks that each wait for the other to begin: true only if two threads run them.
bool runs_on_two_threads() {
  std::atomic<int> begun{0};
  std::atomic<bool> met{true};
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    begun.fetch_add(1);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun.load() < 2) {
      if (std::chrono::steady_clock::now() > give_up) {
        met = false;
        return;
      }
      std::this_thread::yield();
    }
  });
  return met;
}

bool sums_correctly(std::int64_t n, std::int64_t grain) {
  std::atomic<std::int64_t> sum{0};
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t local = 0;
    for (std::int64_t i = begin; i < end; ++i) local += i;
    sum.fetch_add(local, std::memory_order_relaxed);
  });
  return sum == n * (n - 1) / 2;
}

// Runs on a new thread that is not joinable: TSan's runtime fails when a forked child creates a
// thread while its parent had one that could still be joined.
template <class Body>
std::future<void> run_beside(Body body) {
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([body, promise = std::move(promise)]() mutable {
    body();
    promise.set_value();
  }).detach();
  return done;
}

template <class Child>
int exit_status_of_child(Child child) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    std::exit(child());
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(ParallelFor, VisitsEveryIndexExactlyOnce) {
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    set_num_threads(threads);
    for (const std::int64_t n : {1, 2, 3, 5, 16, 17, 31, 100, 1000, 4099}) {
      for (const std::int64_t grain : {1, 2, 3, 7, 16, 64, 1000, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
        parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        for (std::size_t i = 0; i < visits.size(); ++i) {
          ASSERT_EQ(visits[i], 1) << "index " << i << " of n = " << n << ", grain = " << grain
                                  << ", threads = " << threads;
        }
      }
    }
  }
}

TEST_F(ParallelFor, BoundariesDependOnNAndGrainAlone) {
  for (const Chunk& c :
       {Chunk{1, 1}, {2, 1}, {10, 3}, {64, 64}, {65, 64}, {100, 7}, {1000, 1}, {999, 250}}) {
    const auto [n, grain] = c;
    std::vector<Chunk> expected;
    for (std::int64_t begin = 0; begin < n; begin += grain) {
      expected.emplace_back(begin, std::min(n, begin + grain));
    }
    for (const int threads : {1, 2, 3, 4, 8}) {
      set_num_threads(threads);
      EXPECT_EQ(chunks_seen(n, grain), expected)
          << "n " << n << " grain " << grain << " threads " << threads;
    }
  }
}

TEST_F(ParallelFor, NothingToDo) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    EXPECT_TRUE(chunks_seen(0, 1).empty());
    EXPECT_TRUE(chunks_seen(0, std::numeric_limits<std::int64_t>::max()).empty());
  }
}

TEST_F(ParallelFor, HugeRangesDoNotOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t k60 = std::int64_t{1} << 60;
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_EQ(
        chunks_seen(4 * k60, k60),
        (std::vector<Chunk>{{0, k60}, {k60, 2 * k60}, {2 * k60, 3 * k60}, {3 * k60, 4 * k60}}));
    EXPECT_EQ(chunks_seen(kMax, kMax - 1), (std::vector<Chunk>{{0, kMax - 1}, {kMax - 1, kMax}}));
    EXPECT_EQ(chunks_seen(kMax, kMax), (std::vector<Chunk>{{0, kMax}}));
    EXPECT_EQ(chunks_seen(kMax, 3 * k60),
              (std::vector<Chunk>{{0, 3 * k60}, {3 * k60, 6 * k60}, {6 * k60, kMax}}));
  }
}

TEST_F(ParallelFor, MoreChunksThanFitInThirtyTwoBits) {
  // The first chunk throws and all others must be skipped, or this would take minutes.
  set_num_threads(4);
  constexpr std::int64_t kChunks = std::int64_t{1} << 40;
  std::atomic<std::int64_t> ran{0};
  std::atomic<bool> first_failed{false};
  EXPECT_THROW(parallel_for(kChunks, 1,
                            [&](std::int64_t begin, std::int64_t) {
                              ++ran;
                              if (begin == 0) {
                                first_failed = true;
                                throw std::runtime_error("first");
                              }
                              while (!first_failed) std::this_thread::yield();
                              // first_error is published a little after first_failed.
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            }),
               std::runtime_error);
  EXPECT_LT(ran, 10'000);
}

TEST_F(ParallelFor, RejectsBadArguments) {
  const auto never = [](std::int64_t, std::int64_t) { ADD_FAILURE() << "body called"; };
  EXPECT_THROW(parallel_for(10, 0, never), ValueError);
  EXPECT_THROW(parallel_for(10, -1, never), ValueError);
  EXPECT_THROW(parallel_for(0, 0, never), ValueError);
  EXPECT_THROW(parallel_for(-1, 1, never), ValueError);
  EXPECT_THROW(parallel_for(-5, -3, never), ValueError);
}

TEST_F(ParallelFor, ReallyUsesSeveralThreads) {
  set_num_threads(2);
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(runs_on_two_threads());
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // long enough to fall asleep
  }
}

TEST_F(ParallelFor, TheCallerSleepsUntilAWorkerIsDone) {
  set_num_threads(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun{0};
  std::atomic<int> finished{0};
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ++finished;
  });
  EXPECT_EQ(finished, 2);
}

TEST_F(ParallelFor, UnevenChunksMoveToIdleThreads) {
  // Chunk 0 lasts until all others are done. Chunks that began in its share run on other threads.
  set_num_threads(2);
  constexpr int kChunks = 16;
  std::atomic<int> others{0};
  std::atomic<bool> timed_out{false};
  parallel_for(kChunks, 1, [&](std::int64_t begin, std::int64_t) {
    if (begin != 0) {
      ++others;
      return;
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (others < kChunks - 1 && !timed_out) {
      timed_out = std::chrono::steady_clock::now() > give_up;
      std::this_thread::yield();
    }
  });
  EXPECT_FALSE(timed_out);
}

TEST_F(ParallelFor, NestedCallsRunInlineInOrder) {
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::atomic<int> wrong{0};
    std::atomic<std::int64_t> inner_total{0};
    EXPECT_FALSE(in_parallel_region());
    parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
      if (!in_parallel_region()) ++wrong;
      const std::thread::id outer = std::this_thread::get_id();
      std::int64_t next = 0;
      parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) {
        if (std::this_thread::get_id() != outer || begin != next || !in_parallel_region()) ++wrong;
        next = end;
        inner_total += end - begin;
      });
      if (!in_parallel_region()) ++wrong;
    });
    EXPECT_FALSE(in_parallel_region());
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(inner_total, 800);
  }
}

TEST_F(ParallelFor, ASingleChunkOpensNoRegion) {
  set_num_threads(2);
  bool inside = true;
  bool inner_parallel = false;
  parallel_for(5, 5, [&](std::int64_t, std::int64_t) {
    inside = in_parallel_region();
    inner_parallel = runs_on_two_threads();
  });
  EXPECT_FALSE(inside);
  EXPECT_TRUE(inner_parallel);
}

TEST_F(ParallelFor, LowestFailingChunkWins) {
  for (const int threads : {1, 2, 4, 16}) {
    set_num_threads(threads);
    for (int round = 0; round < 100; ++round) {
      const std::int64_t lowest = 5 + round % 50;
      std::vector<std::atomic<int>> ran(200);
      std::string message;
      try {
        parallel_for(200, 1, [&](std::int64_t begin, std::int64_t) {
          ++ran[static_cast<std::size_t>(begin)];
          if (begin >= lowest && begin % 3 == lowest % 3) {
            throw std::runtime_error("chunk " + std::to_string(begin));
          }
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      ASSERT_EQ(message, "chunk " + std::to_string(lowest)) << threads << " threads";
      for (std::int64_t i = 0; i <= lowest; ++i) {
        ASSERT_EQ(ran[static_cast<std::size_t>(i)], 1) << "chunk " << i;
      }
      ASSERT_FALSE(in_parallel_region());
    }
    EXPECT_TRUE(sums_correctly(10'000, 10));
  }
  set_num_threads(2);
  EXPECT_TRUE(runs_on_two_threads());
}

TEST_F(ParallelFor, ExceptionsThatAreNotStdExceptionsPass) {
  set_num_threads(2);
  EXPECT_THROW(parallel_for(4, 1, [](std::int64_t, std::int64_t) { throw 42; }), int);
}

TEST_F(ParallelFor, ConcurrentCallers) {
  set_num_threads(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&wrong, t] {
      for (int round = 0; round < 300; ++round) {
        if (!sums_correctly(1000 + t, 13)) ++wrong;
        try {
          parallel_for(20, 1, [t](std::int64_t begin, std::int64_t) {
            if (begin == 10) throw t;
          });
          ++wrong;
        } catch (int caller) {
          if (caller != t) ++wrong;
        }
        if (round % 50 == t) set_num_threads(1 + (round + t) % 5);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ParallelFor, ABusyPoolDoesNotBlockASecondCaller) {
  set_num_threads(2);
  std::atomic<int> inside{0};
  std::atomic<bool> second_done{false};
  std::thread first([&] {
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++inside;
      while (!second_done) std::this_thread::yield();
    });
  });
  while (inside == 0) std::this_thread::yield();
  std::vector<std::int64_t> order;
  std::int64_t inline_regions = 0;
  parallel_for(6, 2, [&](std::int64_t begin, std::int64_t) {
    order.push_back(begin);
    inline_regions += in_parallel_region() ? 1 : 0;
  });
  second_done = true;
  first.join();
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(inline_regions, 3);
}

TEST_F(ParallelFor, ManyRegionsWithPausesBetween) {
  // Pauses close to the spinning time, so that threads are about to fall asleep.
  std::mt19937 random(7);
  for (const int threads : {2, 4, 16}) {
    set_num_threads(threads);
    for (int round = 0; round < 400; ++round) {
      ASSERT_TRUE(sums_correctly(64, 1 + round % 5));
      if (round % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 120));
      }
    }
  }
}

TEST_F(ParallelFor, WorkersComputeInTheCallersRoundingMode) {
  set_num_threads(2);
  volatile double one = 1.0;
  volatile double tiny = 1e-30;
  const auto rounded_up_everywhere = [&] {
    std::atomic<int> up{0};
    std::atomic<int> begun{0};
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++begun;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (begun < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      const double sum = one + tiny;
      if (sum > 1.0) ++up;
    });
    return up.load();
  };
  EXPECT_EQ(rounded_up_everywhere(), 0);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const int upward = rounded_up_everywhere();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_EQ(upward, 2);
  EXPECT_EQ(rounded_up_everywhere(), 0);
}

TEST_F(ParallelFor, NO_TSAN_RunsWithFewerThreadsWhenNoneCanBeCreated) {
  // In a child, which has no worker yet. No address space has room for a stack of this size.
  const int status = exit_status_of_child([] {
    pthread_attr_t usual;
    pthread_attr_t impossible;
    if (pthread_getattr_default_np(&usual) != 0 || pthread_attr_init(&impossible) != 0) return 2;
    if (pthread_attr_setstacksize(&impossible, std::size_t{1} << 50) != 0) return 3;
    if (pthread_setattr_default_np(&impossible) != 0) return 4;
    set_num_threads(8);
    for (int i = 0; i < 10; ++i) {
      if (!sums_correctly(1000, 10)) return 5;
    }
    if (get_num_threads() != 8) return 6;
    if (pthread_setattr_default_np(&usual) != 0) return 7;
    set_num_threads(2);
    return runs_on_two_threads() ? 0 : 8;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(NumThreads, SetAndGet) {
  for (const int threads : {1, 2, 5, 1024}) {
    set_num_threads(threads);
    EXPECT_EQ(get_num_threads(), threads);
  }
}

TEST_F(NumThreads, OutOfRangeThrowsAndChangesNothing) {
  set_num_threads(3);
  for (const int threads : {0, -1, 1025, std::numeric_limits<int>::min()}) {
    try {
      set_num_threads(threads);
      ADD_FAILURE() << threads << " accepted";
    } catch (const ValueError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("set_num_threads:", 0), 0u) << message;
      EXPECT_NE(message.find(std::to_string(threads)), std::string::npos) << message;
    }
  }
  EXPECT_EQ(get_num_threads(), 3);
}

TEST_F(NumThreads, CannotChangeInsideARegion) {
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    EXPECT_THROW(parallel_for(4, 1, [](std::int64_t, std::int64_t) { set_num_threads(4); }),
                 ValueError);
    EXPECT_EQ(get_num_threads(), threads);
  }
}

TEST_F(NumThreads, ChangesBetweenRegionsAreSafe) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    set_num_threads(1 + static_cast<int>(random() % 16));
    ASSERT_TRUE(sums_correctly(500, 7));
  }
}

// The output of a new process with BAREGRAD_NUM_THREADS set to `text` (nullptr: unset).
int fresh_process_num_threads(const char* text) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return -1;
  self[length] = '\0';
  int out[2];
  if (pipe(out) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    setenv(kProbeVariable, "1", 1);
    if (text == nullptr) {
      unsetenv("BAREGRAD_NUM_THREADS");
    } else {
      setenv("BAREGRAD_NUM_THREADS", text, 1);
    }
    execl(self, self, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(out[1]);
  char answer[32] = {};
  std::size_t used = 0;
  for (ssize_t got; used < sizeof answer - 1 &&
                    (got = read(out[0], answer + used, sizeof answer - 1 - used)) > 0;) {
    used += static_cast<std::size_t>(got);
  }
  close(out[0]);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return -1;
  return std::atoi(answer);
}

TEST(NumThreadsEnvironment, ValidTextIsHonoured) {
  EXPECT_EQ(fresh_process_num_threads("1"), 1);
  EXPECT_EQ(fresh_process_num_threads("7"), 7);
  EXPECT_EQ(fresh_process_num_threads("1024"), 1024);
}

TEST(NumThreadsEnvironment, AnythingElseMeansTheCoresOfTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const int cores = CPU_COUNT(&all);
  for (const char* text : {static_cast<const char*>(nullptr), "", "0", "-2", "1025", "two", "7x",
                           " 7", "7 ", "99999999999999999999"}) {
    EXPECT_EQ(fresh_process_num_threads(text), cores) << (text != nullptr ? text : "(unset)");
  }

  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int pinned = fresh_process_num_threads(nullptr);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(pinned, 1);
}

TEST_F(ParallelFor, InASerialScopeChunksRunInlineAndInOrder) {
  set_num_threads(4);
  const std::thread::id self = std::this_thread::get_id();
  {
    const parallel::SerialScope outer;
    const parallel::SerialScope inner;
    std::int64_t next = 0;
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(begin, next++);
    });
    EXPECT_EQ(next, 100);
    EXPECT_TRUE(in_parallel_region());
  }
  EXPECT_FALSE(in_parallel_region());
}

TEST_F(Fork, ChildAndGrandchildStartTheirOwnWorkers) {
  set_num_threads(2);
  ASSERT_TRUE(runs_on_two_threads());
  const int status = exit_status_of_child([] {
    if (!runs_on_two_threads()) return 1;
    const int grandchild = exit_status_of_child([] { return runs_on_two_threads() ? 11 : 1; });
    if (grandchild != 11) return 2;
    return runs_on_two_threads() && sums_correctly(1000, 3) ? 10 : 3;
  });
  EXPECT_EQ(status, 10);
  EXPECT_TRUE(runs_on_two_threads());
}

TEST_F(Fork, WhileAnotherThreadIsInsideARegion) {
  set_num_threads(2);
  std::atomic<int> inside{0};
  std::atomic<bool> release{false};
  std::future<void> other = run_beside([&] {
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++inside;
      while (!release) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  const int status = exit_status_of_child([] { return runs_on_two_threads() ? 12 : 1; });
  release = true;
  other.wait();
  EXPECT_EQ(status, 12);
}

bool region_works_and_throws() {
  if (!sums_correctly(100, 3)) return false;
  if (!testing_tools::kMayAllocateAroundFork) return true;  // throwing allocates
  try {
    parallel_for(8, 1, [](std::int64_t begin, std::int64_t) { throw begin; });
    return false;
  } catch (std::int64_t first) {
    return first == 0;
  }
}

TEST_F(Fork, AtAnyMomentOfAnotherThreadsRegions) {
  set_num_threads(3);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::future<void> other = run_beside([&] {
    while (!stop) {
      if (!region_works_and_throws()) ++wrong;
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      // _exit, since the other thread may have held a lock that exit() needs.
      _exit(region_works_and_throws() && runs_on_two_threads() ? 13 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 13) << status;
  }
  stop = true;
  other.wait();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Fork, ProcessExitIsCleanAfterManyChanges) {
  const int status = exit_status_of_child([] {
    for (int i = 0; i < 50; ++i) {
      set_num_threads(1 + i % 12);
      if (!sums_correctly(200, 3)) return 1;
    }
    return 14;  // while workers are still spinning
  });
  EXPECT_EQ(status, 14);
}

}  // namespace
}  // namespace baregrad
