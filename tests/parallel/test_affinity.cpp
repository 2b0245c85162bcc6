// Workers and their CPUs: masks that others set are kept, and a worker that is stuck on its
// caller's CPU is moved.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "baregrad/parallel.h"
#include "parallel/parallel_for.h"

namespace baregrad {
namespace {

using parallel::parallel_for;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Cpus {
  cpu_set_t set{};

  static Cpus of(pid_t thread) {
    Cpus cpus;
    EXPECT_EQ(sched_getaffinity(thread, sizeof cpus.set, &cpus.set), 0) << "thread " << thread;
    return cpus;
  }
  static Cpus only(int cpu) {
    Cpus cpus;
    CPU_SET(cpu, &cpus.set);
    return cpus;
  }
  void give_to(pid_t thread) const {
    EXPECT_EQ(sched_setaffinity(thread, sizeof set, &set), 0) << "thread " << thread;
  }
  std::vector<int> list() const {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
  }
  bool operator==(const Cpus& other) const { return CPU_EQUAL(&set, &other.set) != 0; }
};

void PrintTo(const Cpus& cpus, std::ostream* out) {
  *out << "CPUs";
  for (const int cpu : cpus.list()) *out << ' ' << cpu;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<pid_t> workers() {
  std::vector<pid_t> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (first_line(task.path() / "comm") == "baregrad") {
      threads.push_back(static_cast<pid_t>(std::stol(task.path().filename())));
    }
  }
  return threads;
}

// The kernel's state of one of our threads: "state ppid ...", fields 3 and on of /proc/self/stat.
std::istringstream status_of(pid_t thread) {
  const std::string line = first_line("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::size_t name_end = line.find(") ");  // our thread names contain no bracket
  EXPECT_NE(name_end, std::string::npos) << line;
  return std::istringstream(line.substr(std::min(line.size(), name_end + 2)));
}

// The CPU where it runs, or waits to run.
int cpu_of(pid_t thread) {
  std::istringstream fields = status_of(thread);
  std::string field;
  for (int i = 3; i <= 39; ++i) fields >> field;
  return std::stoi(field);
}

// Waits until the worker sleeps between regions. Tests read masks only then: a worker that was just
// woken may be in the middle of a move.
void wait_until_asleep(pid_t worker) {
  while (status_of(worker).get() != 'S') std::this_thread::sleep_for(1ms);
}

// A mask that is set while a worker reads its own may be lost; a sleeping worker reads none.
void give_to_workers(const Cpus& cpus) {
  for (const pid_t worker : workers()) {
    wait_until_asleep(worker);
    cpus.give_to(worker);
  }
}

std::vector<Cpus> masks_asleep() {
  std::vector<Cpus> masks;
  for (const pid_t worker : workers()) {
    wait_until_asleep(worker);
    masks.push_back(Cpus::of(worker));
  }
  return masks;
}

// Context switches of this thread, voluntary or not.
std::int64_t times_switched_out() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

bool sums_correctly() {
  std::atomic<std::int64_t> sum{0};
  parallel_for(64, 1, [&](std::int64_t begin, std::int64_t) { sum += begin; });
  return sum == 64 * 63 / 2;
}

// Regions close together, and after pauses in which workers fall asleep. The caller computes in the
// pauses, so that a worker woken on its CPU cannot run there.
void run_many_regions() {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(sums_correctly());
    const auto until = Clock::now() + std::chrono::microseconds(random() % 200);
    while (Clock::now() < until) {
    }
  }
}

// A region may end before a new worker has run and set its name, by which this test finds it. On a
// busy machine such a worker would keep the mask that all workers are to lose.
void start_workers(int threads) {
  set_num_threads(threads);
  ASSERT_TRUE(sums_correctly());
  while (workers().size() + 1 < static_cast<std::size_t>(threads)) {
    std::this_thread::sleep_for(1ms);
  }
}

class Affinity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (allowed_.list().size() < 2) GTEST_SKIP() << "there is one CPU";
    start_workers(2);
    give_to_workers(allowed_);
  }
  ~Affinity() override {
    allowed_.give_to(0);
    give_to_workers(allowed_);
    set_num_threads(threads_);
  }

  const Cpus allowed_ = Cpus::of(0);

 private:
  const int threads_ = get_num_threads();
};

TEST_F(Affinity, WorkersKeepTheMaskTheyBeganWith) {
  for (const int threads : {2, 3, 16}) {
    set_num_threads(threads);
    run_many_regions();
    for (const Cpus& mask : masks_asleep()) EXPECT_EQ(mask, allowed_) << threads << " threads";
  }
}

TEST_F(Affinity, AMaskSetWhileWorkersSleepStays) {
  for (const int threads : {2, 4}) {
    start_workers(threads);
    for (const int cpu : allowed_.list()) {
      give_to_workers(Cpus::only(cpu));
      run_many_regions();
      for (const Cpus& mask : masks_asleep()) EXPECT_EQ(mask, Cpus::only(cpu));
    }
  }
}

TEST_F(Affinity, AProcessHeldOnOneCpuAndLetGo) {
  const Cpus one = Cpus::only(allowed_.list().front());
  for (int round = 0; round < 3; ++round) {
    for (const Cpus& mask : {one, allowed_}) {
      mask.give_to(0);
      give_to_workers(mask);
      start_workers(2 + round);
      run_many_regions();
      EXPECT_EQ(Cpus::of(0), mask);
      for (const Cpus& seen : masks_asleep()) EXPECT_EQ(seen, mask);
    }
  }
}

// The single worker of regions on two threads.
pid_t only_worker() {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<pid_t> worker{0};
  while (worker == 0) {
    parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != caller) worker = gettid();
    });
  }
  return worker;
}

// The caller keeps its CPU busy, and the worker is woken there: it cannot run, whatever other CPUs
// its mask allows. If another process took the CPU meanwhile, the result is inconclusive and the
// test repeats.
TEST_F(Affinity, AWorkerWokenOnItsCallersCpuIsMoved) {
  const int here = allowed_.list().front();
  const pid_t worker = only_worker();
  const std::thread::id caller = std::this_thread::get_id();
  Cpus::only(here).give_to(0);
  const auto give_up = Clock::now() + 20s;
  int seen = 0;
  int moved = 0;
  while (seen < 10 && Clock::now() < give_up) {
    wait_until_asleep(worker);
    Cpus::only(here).give_to(worker);
    const std::int64_t switches = times_switched_out();
    int turns = 0;
    parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != caller || ++turns > 2) return;
      if (turns == 1) {
        allowed_.give_to(worker);
        const auto overdue = Clock::now() + 200us;
        while (Clock::now() < overdue) {
        }
        return;
      }
      const int cpu = cpu_of(worker);
      if (times_switched_out() != switches) return;
      ++seen;
      moved += cpu != here ? 1 : 0;
    });
    if (turns == 0) continue;  // the worker did all of it
    wait_until_asleep(worker);
    ASSERT_EQ(Cpus::of(worker), allowed_);
  }
  EXPECT_GT(seen, 0);
  EXPECT_GE(2 * moved, seen);  // not all of it: the load balancer may have moved it back
}

}  // namespace
}  // namespace baregrad
