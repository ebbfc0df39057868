// Tests autodiff/keras_ops/, autodiff/keras_ops/internal/, layers/keras_ops/ and
// framework/kernels/linalg/ with the records of Keras's functions, and compares their gradients
// with finite differences.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/conformance/golden_replay.h"
#include "tests/conformance/ops_arguments.h"
#include "tests/conformance/replay_program.h"

namespace keel::conformance::ops_replay_test {

constexpr int kParts = 8;

// One of kParts parts of the records, so that shards of the tests share them.
class OpsTest : public testing::TestWithParam<int> {
 protected:
  static std::vector<GoldenRecord> records() {
    std::vector<GoldenRecord> out;
    const Config file = read_json_file(KEEL_SOURCE_DIR "/tests/cases/keras_surface.json");
    for (GoldenRecord& record : golden_records(file)) {
      const bool own = static_cast<int>(record.index) % kParts == GetParam();
      if (record.section == "ops" && own && missing_part(record).empty()) {
        out.push_back(std::move(record));
      }
    }
    return out;
  }
};

TEST_P(OpsTest, MatchesKeras) {
  for (const GoldenRecord& record : records()) {
    EXPECT_EQ(replay_golden_record(record), "") << record.name();
  }
}

// Returns the weighted sum of the results for one element changed by `step`.
double shifted_sum(const GoldenRecord& record, const std::string& name, size_t part,
                   int64_t element, double step) {
  OpArguments arguments(record.fields["arguments"], true);
  Tensor& x = arguments.tensors(name)[part];
  std::vector<double> values = x.to_vector<double>();
  values[element] += step;
  x = Tensor::from(values, x.shape());
  const auto outputs = op_adapters().at(op_name(record.fields))(arguments);
  return weighted_sum(outputs, record.fields["coef"]).cast(DType::kFloat64).item<double>();
}

// Returns the gradients of the tensors of an argument in float64.
std::vector<Tensor> gradients_of(const GoldenRecord& record, const std::string& name) {
  OpArguments arguments(record.fields["arguments"], true);
  GradientTape tape;
  const std::vector<Tensor>& sources = arguments.tensors(name);
  for (const Tensor& x : sources) tape.watch(x);
  const auto outputs = op_adapters().at(op_name(record.fields))(arguments);
  const Tensor total = weighted_sum(outputs, record.fields["coef"]);
  std::vector<Tensor> out;
  for (const Gradient& gradient : tape.input_gradient(total, sources)) {
    const Tensor& x = sources[out.size()];
    out.push_back(gradient ? gradient.dense() : ops::zeros_like(x));
  }
  return out;
}

// The step is small enough for an error of 1e-9 and large enough for a rounding error of 1e-10.
constexpr double kStep = 1e-5;

void expect_finite_differences(const GoldenRecord& record, const std::string& name) {
  const std::vector<Tensor> gradients = gradients_of(record, name);
  for (size_t part = 0; part < gradients.size(); ++part) {
    const std::vector<double> values = gradients[part].cast(DType::kFloat64).to_vector<double>();
    for (size_t i = 0; i < values.size(); i += 1 + values.size() / 8) {
      const auto at = static_cast<int64_t>(i);
      const double difference = (shifted_sum(record, name, part, at, kStep) -
                                 shifted_sum(record, name, part, at, -kStep)) /
                                (2 * kStep);
      if (!(std::abs(difference) < 1000)) continue;  // a jump between the two points
      EXPECT_NEAR(values[i], difference, 1e-5 + 1e-5 * std::abs(difference))
          << record.name() << ": element " << i << " of " << name;
    }
  }
}

TEST_P(OpsTest, GradientsAreFiniteDifferences) {
  for (const GoldenRecord& record : records()) {
    const Config* gradients = record.fields.find("gradients");
    // These functions read one triangle, but have a gradient for the whole matrix.
    const bool one_triangle = record.class_name().starts_with("cholesky");
    if (gradients == nullptr || one_triangle) continue;
    for (const auto& [name, value] : gradients->entries()) expect_finite_differences(record, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, OpsTest, testing::Range(0, kParts));

}  // namespace keel::conformance::ops_replay_test
