#include <keel/layers/embedding/mid_level/internal/core_of_device.h>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/device.h>

namespace keel::core_of_device_test {

constexpr CoresOfHosts kTwoOfFour = {.hosts = 2, .cores_of_each = 4};

TEST(CoreOfDeviceTest, WithoutATaskTheNumberCountsAllCores) {
  EXPECT_EQ(core_of_device("/device:TPU:0", kTwoOfFour), 0);
  EXPECT_EQ(core_of_device("/device:TPU:7", kTwoOfFour), 7);
  EXPECT_EQ(core_of_device("/TPU:3", kTwoOfFour), 3);
  EXPECT_EQ(core_of_device("/device:tpu:3", kTwoOfFour), 3);
  EXPECT_EQ(core_of_device(Device{.core = 5}.name(), kTwoOfFour), 5);
}

TEST(CoreOfDeviceTest, WithATaskTheNumberCountsItsHostsCores) {
  EXPECT_EQ(core_of_device("/task:1/device:TPU:0", kTwoOfFour), 4);
  EXPECT_EQ(core_of_device("/job:worker/replica:0/task:1/device:TPU:3", kTwoOfFour), 7);
}

TEST(CoreOfDeviceTest, UnknownCoresAreErrors) {
  for (const char* device :
       {"", "TPU:0", "/device:CPU:0", "/task:0/device:CPU:0", "/device:TPU:8", "/device:TPU:-1",
        "/device:TPU:", "/device:TPU", "/device:TPU:1x", "/task:2/device:TPU:0",
        "/task:0/device:TPU:4", "/task:0", "/device:TPU:0/device:TPU:1", "//", "/nothing",
        "/device:TPU:99999999999999999999"}) {
    EXPECT_THROW(core_of_device(device, kTwoOfFour), ValueError) << device;
  }
}

}  // namespace keel::core_of_device_test
