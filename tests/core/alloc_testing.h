// Helpers for allocator tests: marked blocks, an idle thread, a forked child.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "baregrad/allocator.h"

namespace baregrad::testing_tools {

inline constexpr std::size_t kKib = 1024;
inline constexpr std::size_t kMib = 1024 * kKib;

struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
  unsigned char mark = 0;
};

inline Block make_block(Allocator& allocator, std::size_t bytes, unsigned char mark) {
  Block block{allocator.allocate(bytes), bytes, mark};
  if (bytes != 0) std::memset(block.data, mark, bytes);
  return block;
}

inline bool intact(const Block& block) {
  const auto* data = static_cast<const unsigned char*>(block.data);
  return std::all_of(data, data + block.bytes, [&](unsigned char c) { return c == block.mark; });
}

/// A thread that runs given tasks and otherwise idles with full caches.
class Worker {
 public:
  Worker() : thread_([this] { loop(); }) {}
  ~Worker() {
    run([this] { done_ = true; });
    thread_.join();
  }
  void run(std::function<void()> job) {
    std::unique_lock lock(mutex_);
    job_ = std::move(job);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !job_; });
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      changed_.wait(lock, [this] { return static_cast<bool>(job_); });
      job_();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  bool done_ = false;
  std::thread thread_;
};

/// Whether a forked child may allocate if other threads of its parent were allocating during the
/// fork. The C library's malloc supports this. GCC 12's sanitizers do not take their allocators'
/// locks before a fork: the child would wait forever for a lock that another thread of the parent
/// held.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMayAllocateAroundFork = false;
#else
inline constexpr bool kMayAllocateAroundFork = true;
#endif

/// Runs `body` in a forked child; true when it returned true there.
inline bool true_in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace baregrad::testing_tools
