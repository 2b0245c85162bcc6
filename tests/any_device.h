// A device for tests of what works on any: sim where it is available, else the CPU.
#pragma once

#include "baregrad/device.h"

namespace baregrad::test {

inline Device any_device() {
  return is_available(DeviceType::Sim) ? Device(DeviceType::Sim) : Device();
}

}  // namespace baregrad::test
