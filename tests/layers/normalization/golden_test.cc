#include "tests/layers/golden/normalization_golden.h"

namespace keel {
namespace {

TEST(NormalizationGoldenTest, LayersAgreeWithKerasInValuesAndGradients) {
  for (const auto& golden : testing_support::kNormalizationGolden)
    testing_support::expect_golden(golden);
}

}  // namespace
}  // namespace keel
