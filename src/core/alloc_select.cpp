// Which allocator new tensors use: that of an AllocatorScope of this thread, else that of
// BAREGRAD_ALLOC.
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "core/alloc_internal.h"
#include "core/fork.h"
#include "core/made_once.h"

namespace baregrad {
namespace {

constexpr std::size_t kDefaultArenaMib = 1024;

BAREGRAD_FAST_TLS Allocator* t_scoped = nullptr;
constinit std::atomic<Allocator*> g_default{nullptr};

/// Process-lifetime arenas by size, so that a name always means the same allocator.
struct NamedArenas final : detail::ForkParticipant {
  std::mutex mutex;
  std::map<std::size_t, std::unique_ptr<ArenaAllocator>> by_mib;

  NamedArenas() { detail::add_fork_participant(*this); }
  ~NamedArenas() { detail::remove_fork_participant(*this); }
  NamedArenas(const NamedArenas&) = delete;
  NamedArenas& operator=(const NamedArenas&) = delete;
  void before_fork() noexcept override { mutex.lock(); }
  void after_fork(bool) noexcept override { mutex.unlock(); }
};

constinit MadeOnce<NamedArenas> g_named_arenas;

Allocator& named_arena(std::size_t mib) {
  NamedArenas& arenas = g_named_arenas.get();
  {
    std::lock_guard lock(arenas.mutex);
    if (const auto found = arenas.by_mib.find(mib); found != arenas.by_mib.end()) {
      return *found->second;
    }
  }
  // Built outside the lock (see add_fork_participant); if two threads race, the first one wins.
  const std::size_t most = SIZE_MAX >> 20;
  auto arena = std::make_unique<ArenaAllocator>(mib > most ? SIZE_MAX : mib << 20);
  std::lock_guard lock(arenas.mutex);
  return *arenas.by_mib.try_emplace(mib, std::move(arena)).first->second;
}

[[noreturn]] void throw_unknown(std::string_view source, std::string_view name) {
  throw ValueError(std::string(source) + ": unknown allocator '" + std::string(name) +
                   "'; accepted are 'system', 'pool', 'arena' and 'arena:MIB' with MIB a whole "
                   "number of mebibytes, at least 1 (" +
                   std::to_string(kDefaultArenaMib) + " when left out)");
}

Allocator& find_allocator(std::string_view source, std::string_view name) {
  if (name == "system") return system_allocator();
  if (name == "pool") return pool_allocator();
  if (name == "arena") return named_arena(kDefaultArenaMib);
  constexpr std::string_view kPrefix = "arena:";
  if (name.substr(0, kPrefix.size()) != kPrefix) throw_unknown(source, name);
  const std::string_view digits = name.substr(kPrefix.size());
  std::size_t mib = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), mib);
  if (error != std::errc() || end != digits.data() + digits.size() || mib == 0) {
    throw_unknown(source, name);
  }
  return named_arena(mib);
}

// Read once: later changes of the environment have no effect.
constinit MadeOnce<const std::string> g_setting;

Allocator& process_default() {
  const std::string& setting = g_setting.get([] {
    const char* value = std::getenv("BAREGRAD_ALLOC");
    return new std::string(value == nullptr || *value == '\0' ? "pool" : value);
  });
  Allocator& chosen = find_allocator("BAREGRAD_ALLOC", setting);
  g_default.store(&chosen, std::memory_order_release);
  return chosen;
}

}  // namespace

Allocator& current_allocator() {
  if (t_scoped != nullptr) return *t_scoped;
  Allocator* chosen = g_default.load(std::memory_order_acquire);
  return chosen != nullptr ? *chosen : process_default();
}

Allocator& allocator_by_name(std::string_view name) {
  return find_allocator("allocator_by_name", name);
}

AllocatorScope::AllocatorScope(Allocator& allocator) noexcept : previous_(t_scoped) {
  t_scoped = &allocator;
}

AllocatorScope::~AllocatorScope() { t_scoped = previous_; }

}  // namespace baregrad
