#include <keel/framework/internal/stft_initializer.h>

#include <gtest/gtest.h>

#include "tests/support/initializers.h"

namespace keel::stft_initializer_test {

using testing_support::initializer_from_json;

TEST(STFTInitializerTest, IsAScaledWindowTimesAWave) {
  const Initializer real = initializer_from_json(
      R"({"class_name": "STFT", "config": {"side": "real", "window": null, "scaling": null}})");
  const std::vector<float> cosines = real({4, 1, 3}).to_vector<float>();
  const std::vector<float> expected = {1, 1, 1, 1, 0, -1, 1, -1, 1, 1, 0, -1};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(cosines[i], expected[i], 1e-6);
  const Initializer imag = initializer_from_json(
      R"({"class_name": "STFT", "config": {"side": "imag", "window": "hann", "periodic": true,)"
      R"( "scaling": "spectrum"}})");
  // The window is 0, 0.5, 1, 0.5, whose sum is 2.
  EXPECT_NEAR(imag({4, 1, 3}).to_vector<float>()[4], -0.25, 1e-6);
  EXPECT_THROW(real({4, 3}), ValueError);
  EXPECT_THROW(initializer_from_json(R"({"class_name": "STFT", "config": {"side": "left"}})"),
               ValueError);
  EXPECT_THROW(initializer_from_json(R"({"class_name": "STFT", "config": {"window": "flat"}})"),
               ValueError);
  EXPECT_THROW(initializer_from_json(R"({"class_name": "STFT", "config": {"scaling": "x"}})"),
               ValueError);
}

}  // namespace keel::stft_initializer_test
