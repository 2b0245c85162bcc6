// One thread per queue. Errors are kept until somebody asks.
#include "backends/sim/queue.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

namespace sim {

namespace {
constexpr std::size_t kMostWaiting = 4096;
}  // namespace

Queue::Queue(std::string device, std::uint32_t delay_us)
    : device_(std::move(device)), delay_us_(delay_us) {}

void Queue::add(const char* name, Command command) {
  std::unique_lock lock(mutex_);
  if (!started_) {
    std::thread([this] { work(); }).detach();
    started_ = true;
  }
  changed_.wait(lock, [&] { return entries_.size() < kMostWaiting; });
  std::uint64_t launch = 0;
  if (name != nullptr) {
    launch = ++launches_;
    recent_[launch % recent_.size()] = name;
  }
  entries_.push_back({name, launch, std::move(command)});
  ++added_;
  changed_.notify_all();
}

void Queue::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = added_;
  changed_.wait(lock, [&] { return done_ >= until; });
}

Error Queue::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, {});
}

std::size_t Queue::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(added_ - done_);
}

void Queue::work() {
  std::minstd_rand random;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !entries_.empty(); });
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    if (delay_us_ != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % (delay_us_ + 1)));
    }
    const Error error = entry.command();
    entry.command = nullptr;  // what it holds goes before others see that it has run
    lock.lock();
    if (error.code != 0 && error_.code == 0) keep(error, entry);
    ++done_;
    changed_.notify_all();
  }
}

void Queue::keep(const Error& error, const Entry& entry) {
  error_ = error;
  if (entry.name == nullptr) return;
  error_.message += " (" + device_ + ", launch " + std::to_string(entry.launch) + ", " +
                    entry.name + "; reported late. Last launches:";
  const std::uint64_t count = recent_.size();
  for (std::uint64_t n = launches_ < count ? 1 : launches_ - count + 1; n <= launches_; ++n) {
    error_.message += std::string(" ") + recent_[n % count];
  }
  error_.message += ")";
}

}  // namespace sim
