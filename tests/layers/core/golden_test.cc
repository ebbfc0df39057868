#include "tests/layers/golden/core_golden.h"

namespace keel {
namespace {

TEST(CoreGoldenTest, LayersAgreeWithKerasInValuesAndGradients) {
  for (const auto& golden : testing_support::kCoreGolden) testing_support::expect_golden(golden);
}

}  // namespace
}  // namespace keel
