// Counts threads that read modules without the interpreter's lock, and makes changes of modules
// wait for them.
#include "module_use.h"

#include <atomic>

#include <pthread.h>
#include <unistd.h>

namespace baregrad::python {
namespace {

constinit std::atomic<int> g_module_uses{0};
constinit std::atomic<bool> g_module_changing{false};
// Of this thread: its uses, which count in g_module_uses, and its changes. Changes may nest:
// objects dropped by a change may run Python code.
constinit thread_local int t_module_uses = 0;
constinit thread_local int t_module_changes = 0;

// In the child of a fork the other threads are gone.
[[maybe_unused]] const int g_module_fork_handler = pthread_atfork(nullptr, nullptr, [] {
  g_module_uses = t_module_uses;
  g_module_changing = t_module_changes > 0;
});

/// Changes are rare and uses take milliseconds, so polling is good enough.
void wait_a_little() noexcept { usleep(50); }

void enter_uses(int count) noexcept {
  while (true) {
    g_module_uses.fetch_add(count);
    if (!g_module_changing.load() || t_module_changes > 0) break;
    g_module_uses.fetch_sub(count);
    while (g_module_changing.load()) wait_a_little();
  }
  t_module_uses += count;
}

int leave_uses() noexcept {
  const int count = std::exchange(t_module_uses, 0);
  g_module_uses.fetch_sub(count);
  return count;
}

}  // namespace

ModuleUse::ModuleUse() noexcept { enter_uses(1); }
ModuleUse::~ModuleUse() {
  --t_module_uses;
  g_module_uses.fetch_sub(1);
}

ModulePause::ModulePause() noexcept : paused_(t_module_uses == 0 ? 0 : leave_uses()) {}
ModulePause::~ModulePause() {
  if (paused_ != 0) enter_uses(paused_);
}

ModuleChange::ModuleChange() noexcept {
  if (t_module_changes > 0) {
    ++t_module_changes;
    return;
  }
  // A thread must not wait for its own reads.
  paused_ = leave_uses();
  const bool first = !g_module_changing.exchange(true);
  if (!first || g_module_uses.load() != 0) {
    const LockReleased release;
    for (bool mine = first; !mine; mine = !g_module_changing.exchange(true)) wait_a_little();
    while (g_module_uses.load() != 0) wait_a_little();
  }
  t_module_changes = 1;
}
ModuleChange::~ModuleChange() {
  if (--t_module_changes > 0) return;
  g_module_changing.store(false);
  if (paused_ == 0) return;
  const LockReleased release;
  enter_uses(paused_);
}

}  // namespace baregrad::python
