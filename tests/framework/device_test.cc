#include <keel/framework/device.h>

#include <gtest/gtest.h>

#include <keel/framework/tensor.h>

namespace keel::device_test {

TEST(DeviceTest, HasTheNameOfTensorFlow) {
  EXPECT_EQ(Device().name(), "/device:CPU:0");
  EXPECT_EQ(Device{3}.name(), "/device:TPU:3");
  EXPECT_TRUE(Device().is_host());
  EXPECT_FALSE(Device{0}.is_host());
}

TEST(DeviceTest, ScopesNest) {
  EXPECT_TRUE(current_device().is_host());
  {
    const DeviceScope outer(Device{1});
    {
      const DeviceScope inner(Device{2});
      EXPECT_EQ(current_device(), Device{2});
    }
    EXPECT_EQ(current_device(), Device{1});
  }
  EXPECT_TRUE(current_device().is_host());
}

}  // namespace keel::device_test
