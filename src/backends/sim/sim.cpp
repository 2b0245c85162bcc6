// The sim backend: a pretend accelerator that shows what a backend must do, and faults, fails and
// answers late where the engine relies on more than the interface promises. Its arithmetic is the
// engine's own CPU backend, on other memory, on another thread.
//
// Environment: BAREGRAD_SIM_DELAY_US delays each command by up to so many microseconds,
// BAREGRAD_SIM_MEMORY_MB limits the memory of each device, BAREGRAD_SIM_SYNC=1 runs each call
// before execute() returns, so that errors are reported where they are made.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/sim/memory.h"
#include "backends/sim/queue.h"

namespace sim {

namespace {

constexpr std::uint32_t kDeviceType = 2;  // baregrad::DeviceType::Sim
constexpr int kDevices = 2;
constexpr std::size_t kMostMemory = std::size_t{64} << 30;

/// Set in the child of a process that has used a device: the device's thread is not there.
std::atomic<bool> g_used{false};
std::atomic<bool> g_forked{false};

struct Device {
  Device(int number, std::size_t limit, std::uint32_t delay_us)
      : memory(limit), queue("sim:" + std::to_string(number), delay_us) {}
  Memory memory;
  Queue queue;
};

/// Process lifetime.
struct Backend {
  const baregrad_host* host;
  bool sync;
  Device* devices[kDevices];
};

// ---- Errors

std::int32_t report(baregrad_status* status, std::int32_t code, const std::string& text) {
  status->code = code;
  const std::size_t n = std::min(text.size(), sizeof status->message - 1);
  std::memcpy(status->message, text.data(), n);
  status->message[n] = '\0';
  return code;
}

std::int32_t report(baregrad_status* status, const Error& error) {
  return error.code == BAREGRAD_OK ? BAREGRAD_OK : report(status, error.code, error.message);
}

/// f(device), with no exception past it.
template <class F>
std::int32_t on_device(void* self, std::int32_t device, baregrad_status* status, const F& f) {
  if (g_forked.load()) {
    return report(status, BAREGRAD_FAILED,
                  "sim: this process was forked from one that had used the device, whose thread "
                  "is not there; start processes with spawn");
  }
  g_used.store(true);
  try {
    return f(*static_cast<Backend*>(self)->devices[device]);
  } catch (const std::bad_alloc&) {
    return report(status, BAREGRAD_OUT_OF_MEMORY, "sim: no host memory for a call");
  } catch (const std::exception& e) {
    return report(status, BAREGRAD_FAILED, std::string("sim: ") + e.what());
  }
}

/// What keeps bytes until a command has run.
using Bytes = std::shared_ptr<std::vector<char>>;

std::int32_t check_range(const Device& device, const void* at, std::size_t bytes,
                         baregrad_status* status, const char* what) {
  if (device.memory.holds(at, bytes)) return BAREGRAD_OK;
  char text[160];
  std::snprintf(text, sizeof text, "sim: %s: %zu bytes at %p are not in one block of the device",
                what, bytes, at);
  return report(status, BAREGRAD_FAILED, text);
}

// ---- Memory

std::int32_t device_count(void*) { return kDevices; }

std::size_t bytes_in_use(const Device& device) { return device.memory.in_use(); }

void info(void* self, std::int32_t device, char* text, std::size_t size) {
  if (g_forked.load()) {
    std::snprintf(text, size, "sim:%d: not available after a fork", device);
    return;
  }
  const Device& d = *static_cast<Backend*>(self)->devices[device];
  std::snprintf(text, size, "sim:%d: a pretend accelerator on the CPU, %zu MiB, %zu KiB in use",
                device, d.memory.limit() >> 20, bytes_in_use(d) >> 10);
}

std::int32_t allocate(void* self, std::int32_t device, std::size_t bytes, void** block,
                      baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    *block = d.memory.take(bytes);
    if (*block == nullptr) {
      // Blocks come back in the order of the queue.
      d.queue.wait();
      *block = d.memory.take(bytes);
    }
    if (*block != nullptr) return static_cast<std::int32_t>(BAREGRAD_OK);
    return report(status, BAREGRAD_OUT_OF_MEMORY,
                  "sim:" + std::to_string(device) + ": no room for " + std::to_string(bytes) +
                      " bytes; " + std::to_string(bytes_in_use(d)) + " of " +
                      std::to_string(d.memory.limit()) + " are in use");
  });
}

void release(void* self, std::int32_t device, void* block, std::size_t bytes) {
  baregrad_status ignored{};
  on_device(self, device, &ignored, [&](Device& d) {
    d.memory.retire(block);
    d.queue.add(nullptr, [&d, block, bytes] {
      d.memory.give_back(block, bytes);
      return Error();
    });
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

// ---- Copies

std::int32_t copy_to_host(void* self, std::int32_t device, void* to, const void* from,
                          std::size_t bytes, baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    if (const auto code = check_range(d, from, bytes, status, "copy_to_host")) return code;
    d.queue.add(nullptr, [&d, to, from, bytes] {
      std::memcpy(to, d.memory.real(from), bytes);
      return Error();
    });
    d.queue.wait();
    return report(status, d.queue.take_error());
  });
}

std::int32_t copy_from_host(void* self, std::int32_t device, void* to, const void* from,
                            std::size_t bytes, baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    if (const auto code = check_range(d, to, bytes, status, "copy_from_host")) return code;
    const char* first = static_cast<const char*>(from);
    const Bytes kept = std::make_shared<std::vector<char>>(first, first + bytes);
    d.queue.add(nullptr, [&d, to, kept] {
      std::memcpy(d.memory.real(to), kept->data(), kept->size());
      return Error();
    });
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

/// The receiving queue waits for the sending one. No two queues can wait for each other: a
/// receiving command is added after the sending command it waits for.
std::int32_t copy_across(void* self, std::int32_t to_device, void* to, std::int32_t from_device,
                         const void* from, std::size_t bytes, baregrad_status* status) {
  return on_device(self, from_device, status, [&](Device& source) {
    Device& target = *static_cast<Backend*>(self)->devices[to_device];
    if (const auto code = check_range(source, from, bytes, status, "copy_across")) return code;
    if (const auto code = check_range(target, to, bytes, status, "copy_across")) return code;
    const auto sent = std::make_shared<std::promise<Bytes>>();
    source.queue.add(nullptr, [&source, from, bytes, sent] {
      const char* first = static_cast<const char*>(source.memory.real(from));
      sent->set_value(std::make_shared<std::vector<char>>(first, first + bytes));
      return Error();
    });
    const auto arrived = std::make_shared<std::future<Bytes>>(sent->get_future());
    target.queue.add(nullptr, [&target, to, arrived] {
      const Bytes kept = arrived->get();
      std::memcpy(target.memory.real(to), kept->data(), kept->size());
      return Error();
    });
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

std::int32_t fill(void* self, std::int32_t device, void* to, std::uint8_t byte, std::size_t bytes,
                  baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    if (const auto code = check_range(d, to, bytes, status, "fill")) return code;
    d.queue.add(nullptr, [&d, to, byte, bytes] {
      std::memset(d.memory.real(to), byte, bytes);
      return Error();
    });
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

// ---- Calls

std::int32_t supports(void*, std::uint16_t, const std::uint8_t*, std::uint32_t) { return 1; }

/// A call that outlives execute(): everything that it points to is its own.
class Launch {
 public:
  Launch(const baregrad_call& call, const baregrad_host& host)
      : call_(call), who_(call.who), attrs_((call.attrs_size + 7) / 8) {
    call_.who = who_.c_str();
    if (call.attrs != nullptr && call.attrs_size != 0) {
      host.copy_attrs(call.attr_kind, attrs_.data(), call.attrs);
      call_.attrs = attrs_.data();
    }
    views_.assign(call.inputs, call.inputs + call.input_count);
    views_.insert(views_.end(), call.outputs, call.outputs + call.output_count);
    std::size_t numbers = 0;
    for (const baregrad_view& v : views_) numbers += 2 * static_cast<std::size_t>(v.ndim);
    dims_.reserve(numbers);  // views point into it
    for (baregrad_view& v : views_) {
      v.shape = keep(v.shape, v.ndim);
      v.strides = keep(v.strides, v.ndim);
    }
    call_.inputs = views_.data();
    call_.outputs = views_.data() + call.input_count;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  const std::vector<baregrad_view>& views() const noexcept { return views_; }

  Error run(const Memory& memory, const baregrad_host& host) {
    for (baregrad_view& v : views_) v.data = memory.real(v.data);
    baregrad_status status{};
    if (host.execute_on_host(&call_, &status) == BAREGRAD_OK) return {};
    return {status.code, status.message};
  }

 private:
  const std::int64_t* keep(const std::int64_t* numbers, std::int32_t count) {
    const std::size_t start = dims_.size();
    dims_.insert(dims_.end(), numbers, numbers + count);
    return dims_.data() + start;
  }

  baregrad_call call_;
  std::string who_;
  std::vector<std::uint64_t> attrs_;
  std::vector<baregrad_view> views_;
  std::vector<std::int64_t> dims_;
};

/// Every element that a view reaches lies in one block of the device.
std::int32_t check_view(const Device& device, const baregrad_view& v, const baregrad_host& host,
                        baregrad_status* status, const char* op) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::int32_t i = 0; i < v.ndim; ++i) {
    if (v.shape[i] == 0) return BAREGRAD_OK;
    const std::int64_t span = v.strides[i] * (v.shape[i] - 1);
    (span < 0 ? low : high) += span;
  }
  const auto width = static_cast<std::int64_t>(host.itemsize(v.dtype));
  return check_range(device, static_cast<char*>(v.data) + low * width,
                     static_cast<std::size_t>((high - low + 1) * width), status, op);
}

std::int32_t execute(void* self, std::int32_t device, const baregrad_call* call,
                     baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    const Backend& backend = *static_cast<Backend*>(self);
    const baregrad_host& host = *backend.host;
    if (const auto code = report(status, d.queue.take_error())) return code;
    const auto launch = std::make_shared<Launch>(*call, host);
    for (const baregrad_view& v : launch->views()) {
      if (const auto code = check_view(d, v, host, status, call->op_name)) return code;
    }
    if (backend.sync) {
      d.queue.wait();
      return report(status, launch->run(d.memory, host));
    }
    d.queue.add(call->op_name, [&d, &host, launch] { return launch->run(d.memory, host); });
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

std::int32_t wait(void* self, std::int32_t device, baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    d.queue.wait();
    return report(status, d.queue.take_error());
  });
}

std::int32_t time_stamp(void* self, std::int32_t device, std::uint64_t* nanoseconds,
                        baregrad_status* status) {
  return on_device(self, device, status, [&](Device& d) {
    d.queue.add(nullptr, [nanoseconds] {
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      *nanoseconds = static_cast<std::uint64_t>(now.tv_sec) * 1000000000U +
                     static_cast<std::uint64_t>(now.tv_nsec);
      return Error();
    });
    d.queue.wait();
    return static_cast<std::int32_t>(BAREGRAD_OK);
  });
}

// ---- Start

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Half of the machine's memory, within the reserved addresses.
std::size_t default_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kMostMemory;
  return std::min(kMostMemory,
                  static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) / 2);
}

void in_child() {
  if (g_used.load()) g_forked.store(true);
}

Backend* make_backend(const baregrad_host& host) {
  const std::uint64_t delay = number_from_environment("BAREGRAD_SIM_DELAY_US", 0);
  const std::uint64_t megabytes = number_from_environment("BAREGRAD_SIM_MEMORY_MB", 0);
  const std::size_t limit =
      megabytes == 0 ? default_limit() : std::min(kMostMemory, std::size_t{megabytes} << 20);
  auto* backend = new Backend{&host, number_from_environment("BAREGRAD_SIM_SYNC", 0) != 0, {}};
  for (int i = 0; i < kDevices; ++i) {
    backend->devices[i] = new Device(i, limit, static_cast<std::uint32_t>(delay));
  }
  pthread_atfork(nullptr, nullptr, in_child);
  return backend;
}

}  // namespace

}  // namespace sim

extern "C" __attribute__((visibility("default"))) const baregrad_backend* baregrad_open_backend(
    const baregrad_host* host) {
  if (host->abi != BAREGRAD_BACKEND_ABI) return nullptr;
  try {
    return new baregrad_backend{BAREGRAD_BACKEND_ABI,
                                sim::kDeviceType,
                                "sim",
                                sim::make_backend(*host),
                                sim::device_count,
                                sim::info,
                                sim::allocate,
                                sim::release,
                                sim::copy_to_host,
                                sim::copy_from_host,
                                sim::copy_across,
                                sim::fill,
                                sim::supports,
                                sim::execute,
                                sim::wait,
                                sim::time_stamp};
  } catch (const std::exception&) {
    return nullptr;
  }
}
