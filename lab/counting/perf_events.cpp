// libpfm4 translates event names to codes, and the kernel counts.
#include "lab/counting/perf_events.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace baregrad::lab {
namespace {

// The part of libpfm4's interface that is used.
constexpr int kUserMode = 8;   // PFM_PLM3
constexpr int kPerfEvent = 1;  // PFM_OS_PERF_EVENT
struct Encoding {              // pfm_perf_encode_arg_t
  perf_event_attr* attributes;
  char** full_name;
  std::size_t size;
  int index;
  int cpu;
  int flags;
};

// The kernel's generic names: it maps them to events of the processor.
struct NamedEvent {
  const char* name;
  std::optional<double> Counts::*field;
};
constexpr const char* kInstructions = "perf::INSTRUCTIONS";
constexpr NamedEvent kEvents[] = {
    {kInstructions, &Counts::instructions},
    {"perf::L1-DCACHE-LOADS", &Counts::loads},
    {"perf::L1-DCACHE-STORES", &Counts::stores},
    {"perf::L1-DCACHE-LOAD-MISSES", &Counts::l1_load_misses},
    {"perf::L1-DCACHE-STORE-MISSES", &Counts::l1_store_misses},
    {"perf::LLC-LOAD-MISSES", &Counts::ll_load_misses},
    {"perf::LLC-STORE-MISSES", &Counts::ll_store_misses},
    {"perf::L1-ICACHE-LOAD-MISSES", &Counts::l1i_misses},
    {"perf::BRANCHES", &Counts::branches},
    {"perf::BRANCH-MISSES", &Counts::mispredictions},
};

// A processor has at least four counters per thread, of which the kernel may use one.
constexpr std::size_t kAtOnce = 3;

/// Enough calls to make the cost of entering the kernel twice negligible.
int calls_per_count(const Body& body) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 2e-3;
  constexpr int kMost = 10000;
  const Clock::time_point start = Clock::now();
  int calls = 0;
  do {
    body();
    ++calls;
  } while (calls < kMost && std::chrono::duration<double>(Clock::now() - start).count() < kSeconds);
  return calls;
}

}  // namespace

PerfEvent::~PerfEvent() { ::close(descriptor_); }

void PerfEvent::start() const {
  ::ioctl(descriptor_, PERF_EVENT_IOC_RESET, 0);
  ::ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0);
}

std::optional<double> PerfEvent::stop() const {
  ::ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0);
  struct {
    std::uint64_t value;
    std::uint64_t enabled;
    std::uint64_t running;
  } seen{};
  if (::read(descriptor_, &seen, sizeof seen) != sizeof seen) return std::nullopt;
  if (seen.running == 0 || seen.running < seen.enabled) return std::nullopt;
  return static_cast<double>(seen.value);
}

std::unique_ptr<PerfEvents> open_libpfm(std::string& why) {
  constexpr const char* kLibrary = "libpfm.so.4";
  // Never closed: the library has global state.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = fmt::format("{} cannot be opened, which names the events: Debian's package libpfm4",
                      kLibrary);
    return nullptr;
  }
  const auto initialize = reinterpret_cast<int (*)()>(::dlsym(library, "pfm_initialize"));
  const auto encode =
      reinterpret_cast<PerfEvents::Encode>(::dlsym(library, "pfm_get_os_event_encoding"));
  if (initialize == nullptr || encode == nullptr || initialize() != 0) {
    why = fmt::format("{} does not start", kLibrary);
    return nullptr;
  }
  return std::unique_ptr<PerfEvents>(new PerfEvents(encode));
}

std::unique_ptr<PerfEvents> PerfEvents::open(std::string& why) {
  std::unique_ptr<PerfEvents> events = open_libpfm(why);
  if (events && !events->event(kInstructions, why)) events = nullptr;
  return events;
}

std::unique_ptr<PerfEvent> PerfEvents::event(const char* name, std::string& why) const {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  Encoding encoding{&attributes, nullptr, sizeof encoding, 0, 0, 0};
  if (encode_(name, kUserMode, kPerfEvent, &encoding) != 0) {
    why = fmt::format("libpfm4 knows no event {} of this machine", name);
    return nullptr;
  }
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const long descriptor = ::syscall(SYS_perf_event_open, &attributes, /*pid=*/0, /*cpu=*/-1,
                                    /*group=*/-1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) {
    why = fmt::format("perf_event_open of {}: {} ({})", name, std::strerror(errno),
                      strerrorname_np(errno));
    return nullptr;
  }
  return std::make_unique<PerfEvent>(static_cast<int>(descriptor));
}

Counts PerfEvents::count(const Body& body, int warm_ups) const {
  for (int i = 0; i < warm_ups; ++i) body();
  const int calls = calls_per_count(body);
  Counts counts;
  const std::span<const NamedEvent> all = kEvents;
  for (std::size_t at = 0; at < all.size(); at += kAtOnce) {
    const std::span<const NamedEvent> some = all.subspan(at, std::min(kAtOnce, all.size() - at));
    std::string why;
    std::vector<std::unique_ptr<PerfEvent>> counters;
    for (const NamedEvent& each : some) counters.push_back(event(each.name, why));
    for (const auto& counter : counters) {
      if (counter) counter->start();
    }
    for (int i = 0; i < calls; ++i) body();
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::optional<double> seen = counters[i] ? counters[i]->stop() : std::nullopt;
      if (seen) counts.*some[i].field = *seen / calls;
    }
  }
  return counts;
}

}  // namespace baregrad::lab
