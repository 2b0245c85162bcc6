// Device: where a tensor's memory lies and its ops run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baregrad/export.h"

namespace baregrad {

/// Kinds of devices, one per backend. A new backend adds its name here and in device.cpp.
enum class DeviceType : std::uint8_t { Cpu, Cuda, Sim };
inline constexpr int kNumDeviceTypes = 3;

struct Device {
  DeviceType type = DeviceType::Cpu;
  std::uint8_t index = 0;

  constexpr Device() noexcept = default;
  constexpr Device(DeviceType device_type, int device_index = 0) noexcept
      : type(device_type), index(static_cast<std::uint8_t>(device_index)) {}
  constexpr bool is_cpu() const noexcept { return type == DeviceType::Cpu; }
  friend constexpr bool operator==(const Device&, const Device&) noexcept = default;
};

/// "cpu", "cuda", "sim"
[[nodiscard]] BAREGRAD_API const char* name(DeviceType type) noexcept;
/// "cpu", "cuda:0"
[[nodiscard]] BAREGRAD_API std::string to_string(Device device);
/// Parses "cpu", "cuda" (the first one) or "cuda:1". ValueError for anything else; `who` opens its
/// message. Whether the device is there is not looked at.
[[nodiscard]] BAREGRAD_API Device device_from_name(std::string_view text,
                                                   const char* who = "device_from_name");

/// Whether tensors can be made on devices of this type in this process.
[[nodiscard]] BAREGRAD_API bool is_available(DeviceType type);
/// How many there are; 0 where none is available, 1 for the CPU.
[[nodiscard]] BAREGRAD_API int device_count(DeviceType type);
/// One line about a device: its name, memory, and why it is not available where it is not.
[[nodiscard]] BAREGRAD_API std::string device_info(Device device);
/// Waits until everything that was started on the device has ended; throws its errors. Nothing to
/// wait for on the CPU.
BAREGRAD_API void synchronize(Device device);

/// The device of new tensors of this thread that name none: the innermost scope's, or the one that
/// was set, or the CPU.
[[nodiscard]] BAREGRAD_API Device default_device() noexcept;
/// For this thread, until the scope ends in which it is called. ValueError where the device is not
/// available.
BAREGRAD_API void set_default_device(Device device);

/// While alive, new tensors of this thread are made on `device`. ValueError where it is not there.
class [[nodiscard]] BAREGRAD_API DefaultDeviceScope {
 public:
  explicit DefaultDeviceScope(Device device);
  ~DefaultDeviceScope();
  DefaultDeviceScope(const DefaultDeviceScope&) = delete;
  DefaultDeviceScope& operator=(const DefaultDeviceScope&) = delete;

 private:
  Device previous_;
};

}  // namespace baregrad
