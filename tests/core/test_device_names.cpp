// Device: names, the default device, and reading elements from any device.
#include <thread>

#include <gtest/gtest.h>

#include "baregrad/device.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/print.h"
#include "tests/any_device.h"
#include "tests/message_of.h"

namespace baregrad {
namespace {

using test::any_device;

TEST(Device, NamesAreReadBack) {
  for (const Device device : {Device(), Device(DeviceType::Cuda, 0), Device(DeviceType::Sim, 3)}) {
    EXPECT_EQ(device_from_name(to_string(device)), device);
  }
  EXPECT_EQ(device_from_name("cuda"), Device(DeviceType::Cuda, 0));
}

TEST(Device, ErrorsNameTheCaller) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:64", "cpu:1"}) {
    EXPECT_EQ(message_of<ValueError>([&] {
                static_cast<void>(device_from_name(text));
              }).find("device_from_name: "),
              0U);
    EXPECT_EQ(message_of<ValueError>([&] {
                static_cast<void>(device_from_name(text, "zeros"));
              }).find("zeros: "),
              0U);
  }
  const Device none(DeviceType::Cuda, 63);
  EXPECT_EQ(message_of<ValueError>([&] { set_default_device(none); }).find("set_default_device: "),
            0U);
}

TEST(Device, DefaultIsOfTheThreadAndOfTheScope) {
  const Device before = default_device();
  {
    const DefaultDeviceScope scope{Device()};
    EXPECT_TRUE(default_device().is_cpu());
    set_default_device(any_device());
    EXPECT_EQ(default_device(), any_device());
    EXPECT_EQ(zeros({2}).device(), any_device());
    std::thread([] { EXPECT_TRUE(default_device().is_cpu()); }).join();
  }
  EXPECT_EQ(default_device(), before);
}

TEST(Device, ElementsAreReadFromAnyDevice) {
  const Tensor x = arange(6, DType::Float32, any_device()).reshape({2, 3});
  EXPECT_EQ(to_string(x), "[[0. 1. 2.]\n [3. 4. 5.]]");
  EXPECT_EQ(to_string(x.mT()), "[[0. 3.]\n [1. 4.]\n [2. 5.]]");
  EXPECT_EQ(to_string(x[1][2]), "5.0");
  EXPECT_EQ(x.mT().to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.expand({2, 2, 3}).to_vector<float>().size(), 12U);
  EXPECT_EQ(x[1][2].item<double>(), 5);
}

}  // namespace
}  // namespace baregrad
