// The queue of a pretend device: a thread that runs commands one after the other, later than they
// were made.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

namespace sim {

/// An error as the interface reports it; code 0 is none.
struct Error {
  std::int32_t code = 0;
  std::string message;
};

/// Thread-safe, and never destroyed: its thread may outlive everything but the process.
class Queue {
 public:
  using Command = std::function<Error()>;

  /// Each command waits up to `delay_us` microseconds before it runs.
  Queue(std::string device, std::uint32_t delay_us);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Appends a command; waits while the queue is full. `name` is static text: the op of a launch,
  /// or null for what is no launch.
  void add(const char* name, Command command);
  /// Until all commands added so far have run.
  void wait();
  /// The first error since the last call, which is forgotten.
  Error take_error();
  /// Commands that have not run yet.
  std::size_t waiting() const;

 private:
  struct Entry {
    const char* name;
    std::uint64_t launch;
    Command command;
  };
  void work();
  void keep(const Error& error, const Entry& entry);

  const std::string device_;
  const std::uint32_t delay_us_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool started_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t launches_ = 0;
  std::array<const char*, 6> recent_{};  // the last launches, a ring
  Error error_;
};

}  // namespace sim
