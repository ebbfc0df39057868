#include "tests/layers/golden/merging_golden.h"

namespace keel {
namespace {

TEST(MergingGoldenTest, LayersAgreeWithKerasInValuesAndGradients) {
  for (const auto& golden : testing_support::kMergingGolden) testing_support::expect_golden(golden);
}

}  // namespace
}  // namespace keel
