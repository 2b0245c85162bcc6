// Devices: names, the default, what is not there.
#include <string>

#include <gtest/gtest.h>

#include "baregrad/device.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"

namespace baregrad {
namespace {

TEST(Device, NamesAreReadAndWritten) {
  EXPECT_EQ(device_from_name("cpu"), Device());
  EXPECT_EQ(device_from_name("cuda"), Device(DeviceType::Cuda, 0));
  EXPECT_EQ(device_from_name("cuda:3"), Device(DeviceType::Cuda, 3));
  EXPECT_EQ(to_string(Device(DeviceType::Cuda, 3)), "cuda:3");
  EXPECT_EQ(to_string(Device()), "cpu");
  for (const char* wrong :
       {"", "gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:x", "cuda:1 ", "cuda:999"}) {
    EXPECT_THROW(static_cast<void>(device_from_name(wrong)), ValueError) << wrong;
  }
}

TEST(Device, TheCpuIsAlwaysThere) {
  EXPECT_TRUE(is_available(DeviceType::Cpu));
  EXPECT_EQ(device_count(DeviceType::Cpu), 1);
  synchronize(Device());
  EXPECT_EQ(zeros({2}).device(), Device());
}

TEST(Device, WhatIsNotThereIsRefusedByName) {
  if (is_available(DeviceType::Cuda)) return;
  EXPECT_EQ(device_count(DeviceType::Cuda), 0);
  try {
    static_cast<void>(zeros({2}, DType::Float32, Device(DeviceType::Cuda, 0)));
    FAIL() << "a tensor on a device that is not there";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:0"), std::string::npos) << error.what();
  }
  EXPECT_THROW(DefaultDeviceScope(Device(DeviceType::Cuda, 0)), ValueError);
  EXPECT_EQ(default_device(), Device());
}

TEST(Device, ACopyToTheSameDeviceIsTheTensor) {
  const Tensor x = ones({2});
  EXPECT_TRUE(x.to(Device()).is_same(x));
  EXPECT_TRUE(x.cpu().is_same(x));
}

}  // namespace
}  // namespace baregrad
