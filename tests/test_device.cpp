// BAREGRAD_TEST_DEVICE=sim runs a test program on that device: new tensors are made there.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "baregrad/device.h"

namespace {

class DeviceOfTheTests final : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("BAREGRAD_TEST_DEVICE");
    if (name != nullptr) scope_.emplace(baregrad::device_from_name(name));
  }
  void TearDown() override {
    if (!scope_) return;
    baregrad::synchronize(baregrad::default_device());  // errors that no test waited for
    std::printf("%s\n", baregrad::device_info(baregrad::default_device()).c_str());
    scope_.reset();
  }

 private:
  std::optional<baregrad::DefaultDeviceScope> scope_;
};

[[maybe_unused]] const auto* const g_environment =
    ::testing::AddGlobalTestEnvironment(new DeviceOfTheTests);

}  // namespace
