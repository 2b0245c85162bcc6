// Device: names, the default, and the table of what is available.
#include "baregrad/device.h"

#include <array>
#include <atomic>
#include <charconv>
#include <utility>

#include "baregrad/error.h"
#include "core/device_hooks.h"
#include "core/fast_tls.h"
#include "core/message.h"

namespace baregrad {

namespace {

constexpr const char* kDeviceNames[kNumDeviceTypes] = {"cpu", "cuda", "sim"};
constexpr int kMostDevices = 64;

std::array<std::atomic<detail::DeviceHooks*>, kNumDeviceTypes> g_hooks{};
std::atomic<detail::DeviceFinder> g_finder{nullptr};

BAREGRAD_FAST_TLS Device g_default_device{};

/// Null where there are none; `reason` is then set to why.
detail::DeviceHooks* find_hooks(DeviceType type, std::string* reason = nullptr) {
  auto& slot = g_hooks[static_cast<std::size_t>(type)];
  if (slot.load(std::memory_order_acquire) == nullptr) {
    const detail::DeviceFinder find = g_finder.load(std::memory_order_acquire);
    std::string why = find == nullptr ? std::string() : find(type);
    if (reason != nullptr) *reason = std::move(why);
  }
  return slot.load(std::memory_order_acquire);
}

std::string not_available(Device device, const std::string& reason) {
  return message("the device ", to_string(device), " is not available", reason.empty() ? "" : ": ",
                 reason);
}

}  // namespace

const char* name(DeviceType type) noexcept { return kDeviceNames[static_cast<int>(type)]; }

std::string to_string(Device device) {
  if (device.is_cpu()) return "cpu";
  return message(name(device.type), ":", static_cast<int>(device.index));
}

Device device_from_name(std::string_view text, const char* who) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  for (int type = 0; type < kNumDeviceTypes; ++type) {
    if (kind != kDeviceNames[type]) continue;
    int index = 0;
    if (colon != std::string_view::npos) {
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data() + colon + 1, end, index);
      if (read.ec != std::errc() || read.ptr != end || index < 0 || index >= kMostDevices) break;
    }
    if (type == 0 && index != 0) break;
    return {static_cast<DeviceType>(type), index};
  }
  throw ValueError(
      message(who, ": \"", text, "\" names no device; known are cpu, cuda, cuda:N, sim"));
}

bool is_available(DeviceType type) { return device_count(type) > 0; }

int device_count(DeviceType type) {
  if (type == DeviceType::Cpu) return 1;
  detail::DeviceHooks* hooks = find_hooks(type);
  return hooks == nullptr ? 0 : hooks->count();
}

std::string device_info(Device device) {
  if (device.is_cpu()) return "cpu: the processor of this machine";
  std::string reason;
  detail::DeviceHooks* hooks = find_hooks(device.type, &reason);
  if (hooks == nullptr) return not_available(device, reason);
  return detail::hooks_of(device, "device_info").info(device.index);
}

void synchronize(Device device) {
  if (!device.is_cpu()) detail::hooks_of(device, "synchronize").synchronize(device.index);
}

Device default_device() noexcept { return g_default_device; }

void set_default_device(Device device) {
  if (!device.is_cpu()) detail::hooks_of(device, "set_default_device");
  g_default_device = device;
}

DefaultDeviceScope::DefaultDeviceScope(Device device) : previous_(g_default_device) {
  if (!device.is_cpu()) detail::hooks_of(device, "DefaultDeviceScope");
  g_default_device = device;
}

DefaultDeviceScope::~DefaultDeviceScope() { g_default_device = previous_; }

namespace detail {

DeviceHooks& hooks_of(Device device, const char* who) {
  std::string reason;
  DeviceHooks* hooks = device.is_cpu() ? nullptr : find_hooks(device.type, &reason);
  const int count = hooks == nullptr ? 0 : hooks->count();
  if (device.index < count) return *hooks;
  if (count == 0) throw ValueError(message(who, ": ", not_available(device, reason)));
  throw ValueError(message(who, ": there is no device ", to_string(device), "; ", count, " of ",
                           name(device.type), " ", count == 1 ? "is" : "are", " there"));
}

bool set_device_hooks(DeviceType type, DeviceHooks* hooks) noexcept {
  DeviceHooks* expected = nullptr;
  return g_hooks[static_cast<std::size_t>(type)].compare_exchange_strong(expected, hooks,
                                                                         std::memory_order_release);
}

void set_device_finder(DeviceFinder find) noexcept {
  g_finder.store(find, std::memory_order_release);
}

}  // namespace detail
}  // namespace baregrad
