// Interrupt checks: when the check is called, and how workers stop.
#include "parallel/interrupt.h"

#include <cstdint>

#include <time.h>

#include "baregrad/parallel.h"
#include "core/fast_tls.h"

namespace baregrad {
namespace parallel {
namespace {

constexpr std::int64_t kPeriodMs = 50;

BAREGRAD_FAST_TLS bool t_worker = false;
BAREGRAD_FAST_TLS bool t_uninterrupted = false;
BAREGRAD_FAST_TLS std::int64_t t_last_ms = -kPeriodMs;
constinit std::atomic<bool> g_abandoned{false};

/// Thrown in workers only, to leave their chunks. The caller gets the exception of the check
/// itself.
struct Abandoned {};

/// From a clock that ticks every few milliseconds and is read in a few nanoseconds.
std::int64_t coarse_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

namespace detail {

constinit std::atomic<void (*)()> g_interrupt_check{nullptr};

void check_interrupt() {
  if (t_worker) {
    if (g_abandoned.load(std::memory_order_relaxed)) throw Abandoned();
    return;
  }
  if (t_uninterrupted) return;
  const std::int64_t now = coarse_ms();
  if (now - t_last_ms < kPeriodMs) return;
  t_last_ms = now;
  if (auto* check = g_interrupt_check.load(std::memory_order_acquire)) check();
}

}  // namespace detail

UninterruptedScope::UninterruptedScope() noexcept : outer_(t_uninterrupted) {
  t_uninterrupted = true;
}
UninterruptedScope::~UninterruptedScope() { t_uninterrupted = outer_; }

void mark_worker_thread() noexcept { t_worker = true; }
void set_abandoned(bool abandoned) noexcept {
  g_abandoned.store(abandoned, std::memory_order_relaxed);
}

}  // namespace parallel

void set_interrupt_check(void (*check)()) noexcept {
  parallel::detail::g_interrupt_check.store(check, std::memory_order_release);
}

}  // namespace baregrad
