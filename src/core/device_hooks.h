// What core knows of a kind of device: where its memory comes from and how bytes get there and
// back. The backends' registry fills it in.
#pragma once

#include <cstddef>
#include <string>

#include "baregrad/allocator.h"
#include "baregrad/device.h"

namespace baregrad::detail {

/// Thread-safe, process lifetime. Calls are in order with the ops of the device.
class DeviceHooks {
 public:
  virtual int count() = 0;
  virtual std::string info(int index) = 0;
  /// Memory of the device `index`. Its addresses mean nothing to the host.
  virtual Allocator& allocator(int index) = 0;
  /// Waits for the copy and what it depends on; throws errors of earlier calls.
  virtual void copy_to_host(int index, void* to, const void* from, std::size_t bytes) = 0;
  /// The host's bytes are read before it returns.
  virtual void copy_from_host(int index, void* to, const void* from, std::size_t bytes) = 0;
  virtual void synchronize(int index) = 0;

 protected:
  ~DeviceHooks() = default;
};

/// The hooks of a device that is there. ValueError for one that is not, in the name of `who`.
DeviceHooks& hooks_of(Device device, const char* who);
/// Called once per type, before any tensor is made on it; a second call is refused with false.
bool set_device_hooks(DeviceType type, DeviceHooks* hooks) noexcept;
/// Looks for a backend of this type and says why there is none; set by the registry, asked when
/// hooks are first wanted.
using DeviceFinder = std::string (*)(DeviceType);
void set_device_finder(DeviceFinder find) noexcept;

}  // namespace baregrad::detail
