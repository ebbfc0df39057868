#include <keel/framework/base/internal/crc32c.h>

#include <string>

#include <gtest/gtest.h>

namespace keel::crc32c_test {

TEST(Crc32cTest, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending += static_cast<char>(i);
    descending += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(ascending), 0x46DD794EU);
  EXPECT_EQ(crc32c(descending), 0x113FDB5CU);
}

TEST(Crc32cTest, IsTheSameWithAndWithoutAnInstructionForIt) {
  std::string bytes;
  for (int i = 0; i < 1500; ++i) {
    EXPECT_EQ(crc32c(bytes), crc32c_internal::portable_crc32c(bytes)) << i << " bytes";
    bytes += static_cast<char>(i * 131 + i / 7);
  }
}

TEST(Crc32cTest, MasksAsInRecordFiles) {
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8U);
  EXPECT_EQ(masked_crc32c("123456789"), ((0xE3069283U >> 15) | (0xE3069283U << 17)) + 0xA282EAD8U);
}

}  // namespace keel::crc32c_test
