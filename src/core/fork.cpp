// Calls the participants around each fork.
#include "core/fork.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "core/made_once.h"

namespace baregrad::detail {
namespace {

struct ForkRegistry {
  std::mutex mutex;
  std::vector<ForkParticipant*> participants;
};

constinit Eternal<ForkRegistry> g_fork_registry;
ForkRegistry& registry() noexcept { return g_fork_registry.value; }

void before_fork() {
  registry().mutex.lock();
  for (ForkParticipant* participant : registry().participants) participant->before_fork();
}

void after_fork(bool in_child) {
  auto& participants = registry().participants;
  for (auto it = participants.rbegin(); it != participants.rend(); ++it) {
    (*it)->after_fork(in_child);
  }
  registry().mutex.unlock();
}

// At load, before there is a second thread.
[[maybe_unused]] const int g_fork_handlers = pthread_atfork(
    &before_fork, [] { after_fork(false); }, [] { after_fork(true); });

}  // namespace

void add_fork_participant(ForkParticipant& participant) {
  std::lock_guard lock(registry().mutex);
  registry().participants.push_back(&participant);
}

void remove_fork_participant(ForkParticipant& participant) noexcept {
  std::lock_guard lock(registry().mutex);
  std::erase(registry().participants, &participant);
}

}  // namespace baregrad::detail
