#include <keel/framework/matmul_precision.h>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"

namespace keel::matmul_precision_test {

using testing_support::message_of;

class MatmulPrecisionTest : public testing::Test {
 protected:
  ~MatmulPrecisionTest() override { set_matmul_precision(before_); }

 private:
  const MatmulPrecision before_ = matmul_precision();
};

TEST_F(MatmulPrecisionTest, ReturnsTheLastSetting) {
  for (const auto precision : {MatmulPrecision::kHigh, MatmulPrecision::kHighest}) {
    set_matmul_precision(precision);
    EXPECT_EQ(matmul_precision(), precision);
  }
}

TEST_F(MatmulPrecisionTest, IsSetByName) {
  set_matmul_precision("high");
  EXPECT_EQ(matmul_precision(), MatmulPrecision::kHigh);
  set_matmul_precision("highest");
  EXPECT_EQ(matmul_precision(), MatmulPrecision::kHighest);
}

TEST_F(MatmulPrecisionTest, UnknownNamesChangeNothing) {
  set_matmul_precision("high");
  EXPECT_EQ(message_of<ValueError>([&] { set_matmul_precision("tf32"); }),
            "set_matmul_precision: must be 'highest' or 'high', received 'tf32'");
  EXPECT_EQ(matmul_precision(), MatmulPrecision::kHigh);
}

}  // namespace keel::matmul_precision_test
