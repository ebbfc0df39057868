#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <keel/framework/initializers.h>
#include <keel/framework/random.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

struct Moments {
  double mean = 0, stddev = 0, min = 0, max = 0, count = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments out = {.min = std::numeric_limits<double>::infinity(),
                 .max = -std::numeric_limits<double>::infinity(),
                 .count = static_cast<double>(values.size())};
  for (double v : values) {
    out.mean += v / out.count;
    out.min = std::min(out.min, v);
    out.max = std::max(out.max, v);
  }
  double variance = 0;
  for (double v : values) variance += (v - out.mean) * (v - out.mean) / out.count;
  out.stddev = std::sqrt(variance);
  return out;
}

void expect_within(const std::string& what, double low, double high, double got,
                   Comparison& result) {
  if (low <= got && got <= high) return;
  result.report(what, str(low, " to ", high), str(got));
}

// Compares mean and standard deviation within six standard errors. The normal distribution has the
// longest tails of all distributions here; its standard deviation has the error stddev / sqrt(2 n).
void compare_moments(double mean, double stddev, const Moments& got, Comparison& result) {
  const double error = 6 * stddev / std::sqrt(got.count);
  expect_within("mean", mean - error, mean + error, got.mean, result);
  const double spread = error / std::numbers::sqrt2;
  expect_within("standard deviation", stddev - spread, stddev + spread, got.stddev, result);
}

// Expects the numbers to fill [low, high], in float32, up to one hundredth of its width, because
// thousands of draws may leave gaps.
void compare_range(double low, double high, const Moments& got, Comparison& result) {
  const double rounding = 1e-6 * std::max(std::abs(low), std::abs(high));
  const double part = 0.01 * (high - low);
  expect_within("smallest", low - rounding, low + part, got.min, result);
  expect_within("largest", high - part, high + rounding, got.max, result);
}

// Returns the largest |W W^T - scale I| (or W^T W) of the draw as a matrix.
double gram_error(const Array& draw, Fields& theory) {
  const std::vector<int64_t> shape = integers_of(theory.need("flatten_to"));
  const bool of_rows = theory.need("gram_identity_of").string() == "W W^T";
  const double scale = theory.need("gram_scale").number();
  if (shape.size() != 2 || shape[0] * shape[1] != static_cast<int64_t>(draw.values.size())) {
    throw ValueError("flatten_to: is not a matrix shape with the size of the draw");
  }
  const int64_t vectors = of_rows ? shape[0] : shape[1], length = of_rows ? shape[1] : shape[0];
  const int64_t next_vector = of_rows ? shape[1] : 1, next_element = of_rows ? 1 : shape[1];
  double worst = 0;
  for (int64_t i = 0; i < vectors; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t k = 0; k < length; ++k) {
        product += draw.values[i * next_vector + k * next_element] *
                   draw.values[j * next_vector + k * next_element];
      }
      worst = std::max(worst, std::abs(product - (i == j ? scale : 0)));
    }
  }
  return worst;
}

void compare_with_theory(Fields& theory, const Array& draw, Comparison& result) {
  const Moments got = moments_of(draw.values);
  const std::string kind = theory.need("kind").string();
  const double mean = theory.number("mean", 0), stddev = theory.need("stddev").number();
  if (kind == "orthogonal") {
    const double scale = theory.need("gram_scale").number();
    theory.find("gain");
    expect_within("largest error of the Gram matrix", 0, 1e-5 * scale, gram_error(draw, theory),
                  result);
    expect_within("standard deviation", 0.99 * stddev, 1.01 * stddev, got.stddev, result);
    return;
  }
  compare_moments(mean, stddev, got, result);
  if (kind == "uniform") {
    const double limit = theory.number("limit", 0);
    compare_range(theory.number("min", mean - limit), theory.number("max", mean + limit), got,
                  result);
  } else if (kind == "truncated_normal") {
    const double bound = theory.need("bound").number();
    theory.find("sampling_sigma");
    compare_range(mean - bound, mean + bound, got, result);
  } else if (kind == "normal") {
    const double farthest = std::max(got.max - mean, mean - got.min);
    expect_within("farthest from the mean", 3 * stddev, 7 * stddev, farthest, result);
  } else {
    throw ValueError("unknown kind of theory '", kind, "'");
  }
}

}  // namespace

void replay_initializer(Fields& fields, Comparison& result) {
  const Config named = class_and_config(fields);
  const Config& shape = fields.need("shape");
  for (const char* unused : {"fan_in", "fan_out", "empirical_gram_max_err"}) fields.find(unused);
  Fields empirical(fields.need("empirical"), "empirical");
  const Initializer initializer(
      initializers::registry().make(named["class_name"].string(), named["config"]));
  set_random_seed(1);
  const Array draw = array_of(initializer(Shape(integers_of(shape))));
  result.compare("number of elements", empirical.integer("n", 0),
                 static_cast<int64_t>(draw.values.size()));
  if (const Config* found = fields.find("theory")) {
    Fields theory(*found, "theory");
    compare_with_theory(theory, draw, result);
    theory.finish();
    return;
  }
  // Initializers that draw nothing: the values equal Keras's.
  if (const Config* exact = fields.find("exact")) {
    result.compare("value", golden_array(*exact), draw);
  }
  const Moments got = moments_of(draw.values);
  Array expected = {.shape = {4}};
  for (const char* key : {"mean", "min", "max", "stddev"}) {
    expected.values.push_back(empirical.need(key).number());
  }
  result.compare("mean, smallest, largest, standard deviation", expected,
                 {.shape = {4}, .values = {got.mean, got.min, got.max, got.stddev}});
}

}  // namespace keel::conformance
