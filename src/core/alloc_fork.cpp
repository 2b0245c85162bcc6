// Keeps allocators usable in a forked child: their locks are taken around the fork.
#include <algorithm>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "core/alloc_internal.h"

namespace baregrad::detail {
namespace {

struct ForkRegistry {
  std::mutex mutex;
  std::vector<ForkParticipant*> participants;

  ForkRegistry();
};

ForkRegistry& registry() {
  static ForkRegistry& instance = *new ForkRegistry;
  return instance;
}

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

ForkRegistry::ForkRegistry() {
  pthread_atfork(
      &before_fork, [] { after_fork(false); }, [] { after_fork(true); });
}

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
