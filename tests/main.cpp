// The main function of the test programs. BAREGRAD_TEST_DEVICE=sim runs one on that device: new
// tensors are made there, also those of rows that are made before the first test.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "baregrad/device.h"

int main(int argc, char** argv) {
  std::optional<baregrad::DefaultDeviceScope> scope;
  const char* name = std::getenv("BAREGRAD_TEST_DEVICE");
  if (name != nullptr) scope.emplace(baregrad::device_from_name(name));
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (name != nullptr) {
    baregrad::synchronize(baregrad::default_device());  // errors that no test waited for
    std::printf("%s\n", baregrad::device_info(baregrad::default_device()).c_str());
  }
  return result;
}
