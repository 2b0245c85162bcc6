// The table of backends, and the translation between the engine's calls and the plain interface.
#include "backends/registry.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "backends/cpu/execute.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "core/device_hooks.h"
#include "core/message.h"
#include "ops/attr_types.h"

namespace baregrad::backends {

namespace {

constexpr int kMostDevices = 16;

[[noreturn]] void throw_status(const baregrad_status& status, std::size_t requested = 0) {
  const std::string text(status.message);
  switch (status.code) {
    case BAREGRAD_VALUE_ERROR:
      throw ValueError(text);
    case BAREGRAD_INDEX_ERROR:
      throw IndexError(text);
    case BAREGRAD_OUT_OF_MEMORY:
      throw OutOfMemory(text, requested, 0);
    case BAREGRAD_UNSUPPORTED:
      throw ValueError(text);
    default:
      throw Error(text);
  }
}

/// call(status) reports its errors as exceptions.
template <class F>
void checked(const F& call, std::size_t requested = 0) {
  baregrad_status status{};
  if (call(&status) != BAREGRAD_OK) throw_status(status, requested);
}

// ---- Memory

/// Memory of one device, as the engine's allocators are. It counts what is live.
class DeviceAllocator final : public Allocator {
 public:
  void bind(const baregrad_backend& backend, int device) noexcept {
    backend_ = &backend;
    device_ = device;
  }
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    checked(
        [&](baregrad_status* status) {
          return backend_->allocate(backend_->self, device_, bytes, &block, status);
        },
        bytes);
    const std::size_t live = live_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
    }
    allocations_.fetch_add(1);
    return block;
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    if (block == nullptr) return;
    backend_->release(backend_->self, device_, block, bytes);
    live_.fetch_sub(bytes);
  }
  AllocatorStats stats() const noexcept override {
    AllocatorStats stats;
    stats.live_bytes = live_.load();
    stats.peak_bytes = peak_.load();
    stats.reserved_bytes = stats.live_bytes;
    stats.allocations = allocations_.load();
    return stats;
  }
  void reset_peak() noexcept override { peak_.store(live_.load()); }
  std::string_view name() const noexcept override { return backend_->name; }

 private:
  const baregrad_backend* backend_ = nullptr;
  int device_ = 0;
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> allocations_{0};
};

/// A backend as core sees it.
class Hooks final : public detail::DeviceHooks {
 public:
  explicit Hooks(const baregrad_backend& backend) : backend_(backend) {
    for (int i = 0; i < kMostDevices; ++i) {
      allocators_[static_cast<std::size_t>(i)].bind(backend, i);
    }
  }
  const baregrad_backend& backend() const noexcept { return backend_; }

  int count() override {
    const int count = backend_.device_count(backend_.self);
    return count < kMostDevices ? count : kMostDevices;
  }
  std::string info(int index) override {
    char text[512] = {};
    backend_.info(backend_.self, index, text, sizeof text);
    return text;
  }
  Allocator& allocator(int index) override { return allocators_[static_cast<std::size_t>(index)]; }
  void copy_to_host(int index, void* to, const void* from, std::size_t bytes) override {
    checked([&](baregrad_status* status) {
      return backend_.copy_to_host(backend_.self, index, to, from, bytes, status);
    });
  }
  void copy_from_host(int index, void* to, const void* from, std::size_t bytes) override {
    checked([&](baregrad_status* status) {
      return backend_.copy_from_host(backend_.self, index, to, from, bytes, status);
    });
  }
  void synchronize(int index) override {
    checked([&](baregrad_status* status) { return backend_.wait(backend_.self, index, status); });
  }

 private:
  const baregrad_backend& backend_;
  std::array<DeviceAllocator, kMostDevices> allocators_;
};

std::array<std::atomic<Hooks*>, kNumDeviceTypes> g_backends{};

const baregrad_backend& backend_of(Device device) {
  const auto& place = g_backends[static_cast<std::size_t>(device.type)];
  Hooks* hooks = place.load(std::memory_order_acquire);
  if (hooks == nullptr) [[unlikely]] {
    detail::hooks_of(device, "backend");  // looks for it, and throws where there is none
    hooks = place.load(std::memory_order_acquire);
  }
  return hooks->backend();
}

// ---- Calls

baregrad_view plain(const kernels::View& v) {
  return {v.data, v.shape, v.strides, v.ndim, static_cast<std::uint8_t>(v.dtype), v.packed};
}

kernels::View view_from(const baregrad_view& v) {
  return {v.data, static_cast<DType>(v.dtype), v.ndim, v.shape, v.strides, v.packed != 0};
}

std::vector<baregrad_view> plain(std::span<const kernels::View> views) {
  std::vector<baregrad_view> out;
  out.reserve(views.size());
  for (const kernels::View& v : views) out.push_back(plain(v));
  return out;
}

std::vector<kernels::View> views_from(const baregrad_view* views, std::uint32_t count) {
  std::vector<kernels::View> out;
  out.reserve(count);
  for (std::uint32_t k = 0; k < count; ++k) out.push_back(view_from(views[k]));
  return out;
}

void report(baregrad_status* status, int code, const char* text) noexcept {
  status->code = code;
  std::size_t n = 0;
  for (; text[n] != '\0' && n + 1 < sizeof status->message; ++n) status->message[n] = text[n];
  status->message[n] = '\0';
}

std::int32_t execute_on_host(const baregrad_call* call, baregrad_status* status) {
  try {
    const std::vector<kernels::View> in = views_from(call->inputs, call->input_count);
    const std::vector<kernels::View> out = views_from(call->outputs, call->output_count);
    const kernels::Call run{static_cast<OpId>(call->op),
                            AttrsRef(static_cast<AttrKind>(call->attr_kind), call->attrs),
                            in,
                            out,
                            call->who,
                            static_cast<DType>(call->compute),
                            {call->random_seed, call->random_position}};
    kernels::check_values(run);
    kernels::execute(run);
    return BAREGRAD_OK;
  } catch (const IndexError& e) {
    report(status, BAREGRAD_INDEX_ERROR, e.what());
  } catch (const ValueError& e) {
    report(status, BAREGRAD_VALUE_ERROR, e.what());
  } catch (const OutOfMemory& e) {
    report(status, BAREGRAD_OUT_OF_MEMORY, e.what());
  } catch (const std::exception& e) {
    report(status, BAREGRAD_FAILED, e.what());
  }
  return status->code;
}

void copy_attrs_of(std::uint8_t kind, void* to, const void* from) {
  copy_attrs(to, AttrsRef(static_cast<AttrKind>(kind), from));
}

std::uint32_t itemsize_of(std::uint8_t dtype) {
  return static_cast<std::uint32_t>(itemsize(static_cast<DType>(dtype)));
}

constexpr baregrad_host kHost{BAREGRAD_BACKEND_ABI, execute_on_host, copy_attrs_of, itemsize_of};

// ---- Finding backends

/// The folder of the engine's own code: of the program, the shared library or the Python module.
std::string own_folder() {
  Dl_info here{};
  if (dladdr(&kHost, &here) == 0 || here.dli_fname == nullptr) return {};
  const std::string path = here.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

/// Where a library of the engine is looked for: beside the engine's own code, in backends/ there
/// (the Python package), above it (the tests
/// of a build) and in lib/ (an installed program), then wherever the loader looks.
std::vector<std::string> places_of(const char* library) {
  std::vector<std::string> places;
  const std::string folder = own_folder();
  for (const char* at : {"", "backends/", "../", "../lib/"}) {
    const std::string path = folder + at + library;
    if (!folder.empty() && access(path.c_str(), R_OK) == 0) places.push_back(path);
  }
  places.emplace_back(library);
  return places;
}

/// Looks for the library of a type when a device of it is first asked for. Returns why there is
/// none, or nothing.
std::string find_backend(DeviceType type) {
  if (type != DeviceType::Sim) return message("there is no backend for ", name(type));
  const char* wanted = std::getenv("BAREGRAD_SIM");
  if (wanted == nullptr || std::string_view(wanted) != "1") {
    return "it is for tests; BAREGRAD_SIM=1 in the environment makes it available";
  }
  const char* path = std::getenv("BAREGRAD_SIM_LIBRARY");
  try {
    add_backend_library(path != nullptr ? path : places_of("libbaregrad_sim.so")[0].c_str());
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

[[maybe_unused]] const bool g_finder_set = (detail::set_device_finder(find_backend), true);

}  // namespace

const baregrad_host& host_services() noexcept { return kHost; }

void add_backend(const baregrad_backend& backend) {
  if (backend.abi != BAREGRAD_BACKEND_ABI) {
    throw ValueError(message("backend ", backend.name, ": made for version ", backend.abi,
                             " of the interface; this engine has version ", BAREGRAD_BACKEND_ABI));
  }
  const std::uint32_t type = backend.device_type;
  if (type == 0 || type >= kNumDeviceTypes) {
    throw ValueError(message("backend ", backend.name, ": there is no device type ", type));
  }
  auto* hooks = new Hooks(backend);  // process lifetime
  Hooks* expected = nullptr;
  if (!g_backends[type].compare_exchange_strong(expected, hooks)) {
    delete hooks;
    throw ValueError(message("backend ", backend.name, ": devices of type ",
                             name(static_cast<DeviceType>(type)), " have a backend already"));
  }
  detail::set_device_hooks(static_cast<DeviceType>(type), hooks);
}

void add_backend_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw IoError(message("backend: cannot open ", path, ": ", dlerror()));
  auto* entry = reinterpret_cast<baregrad_backend_entry>(dlsym(library, "baregrad_open_backend"));
  if (entry == nullptr) {
    throw IoError(message("backend: ", path, " exports no baregrad_open_backend()"));
  }
  const baregrad_backend* backend = entry(&kHost);
  if (backend == nullptr) {
    throw ValueError(message("backend: ", path, " cannot work with this engine"));
  }
  add_backend(*backend);
}

void execute(Device device, const kernels::Call& call) {
  const baregrad_backend& backend = backend_of(device);
  const std::vector<baregrad_view> in = plain(call.in);
  const std::vector<baregrad_view> out = plain(call.out);
  const baregrad_call run{static_cast<std::uint16_t>(call.op),
                          static_cast<std::uint8_t>(call.attrs.kind()),
                          static_cast<std::uint8_t>(call.compute),
                          static_cast<std::uint32_t>(attrs_size(call.attrs.kind())),
                          call.attrs.data(),
                          op_name(call.op),
                          call.who,
                          in.data(),
                          out.data(),
                          static_cast<std::uint32_t>(in.size()),
                          static_cast<std::uint32_t>(out.size()),
                          call.random.seed,
                          call.random.position};
  std::vector<std::uint8_t> dtypes;
  dtypes.reserve(in.size());
  for (const baregrad_view& v : in) dtypes.push_back(v.dtype);
  if (backend.supports(backend.self, run.op, dtypes.data(), run.input_count) == 0) {
    throw ValueError(message(call.who, ": the backend ", backend.name, " has no kernel for it"));
  }
  checked([&](baregrad_status* status) {
    return backend.execute(backend.self, device.index, &run, status);
  });
}

void copy_across(Device to_device, void* to, Device from_device, const void* from,
                 std::size_t bytes) {
  const baregrad_backend& backend = backend_of(to_device);
  checked([&](baregrad_status* status) {
    return backend.copy_across(backend.self, to_device.index, to, from_device.index, from, bytes,
                               status);
  });
}

bool supports(Device device, OpId op, std::span<const DType> inputs) {
  if (device.is_cpu()) return true;
  const baregrad_backend& backend = backend_of(device);
  std::vector<std::uint8_t> dtypes;
  dtypes.reserve(inputs.size());
  for (const DType dtype : inputs) dtypes.push_back(static_cast<std::uint8_t>(dtype));
  return backend.supports(backend.self, static_cast<std::uint16_t>(op), dtypes.data(),
                          static_cast<std::uint32_t>(dtypes.size())) != 0;
}

std::uint64_t time_stamp(Device device) {
  const baregrad_backend& backend = backend_of(device);
  std::uint64_t now = 0;
  checked([&](baregrad_status* status) {
    return backend.time_stamp(backend.self, device.index, &now, status);
  });
  return now;
}

}  // namespace baregrad::backends
