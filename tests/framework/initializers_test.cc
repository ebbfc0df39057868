// Tests framework/initializers.cc and internal/orthonormal.cc.
#include <keel/framework/initializers.h>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/initializers.h"

namespace keel::initializers_test {

using testing_support::initializer_from_json;

struct Statistics {
  double mean = 0, stddev = 0, low = 0, high = 0;
};

Statistics statistics(const Tensor& t) {
  const auto values = t.data<float>();
  Statistics out = {.low = std::ranges::min(values), .high = std::ranges::max(values)};
  for (const float v : values) out.mean += v / static_cast<double>(values.size());
  for (const float v : values) {
    out.stddev += (v - out.mean) * (v - out.mean) / static_cast<double>(values.size());
  }
  out.stddev = std::sqrt(out.stddev);
  return out;
}

// The standard deviations and bounds of Keras's documented formulas.
struct ScaledCase {
  std::string name;
  Shape shape;
  double stddev, bound;
};

TEST(InitializersTest, ScaledInitializersHaveTheSpreadOfKeras) {
  const std::vector<ScaledCase> cases = {
      {"glorot_uniform", {200, 300}, 0.0632455532033676, 0.10954451150103323},
      {"glorot_uniform", {300, 50}, 0.07559289460184544, 0.13093073414159542},
      {"glorot_uniform", {5, 40, 60}, 0.0632455532033676, 0.10954451150103323},
      {"glorot_normal", {200, 300}, 0.06324555320336758, 0.14380106448692093},
      {"glorot_normal", {5, 40, 60}, 0.06324555320336758, 0.14380106448692093},
      {"he_uniform", {300, 50}, 0.08164965809277261, 0.1414213562373095},
      {"he_normal", {300, 50}, 0.08164965809277261, 0.18564637597491454},
      {"lecun_uniform", {5, 40, 60}, 0.07071067811865475, 0.1224744871391589},
      {"lecun_normal", {200, 300}, 0.07071067811865475, 0.16077447771479306},
      {"truncated_normal", {200, 300}, 0.04398128305171199, 0.1},
      {"random_uniform", {200, 300}, 0.02886751345948129, 0.05},
      {"he_uniform", {40000}, std::sqrt(2.0 / 40000), std::sqrt(6.0 / 40000)},
  };
  for (const ScaledCase& c : cases) {
    const Statistics s = statistics(Initializer(c.name)(c.shape));
    EXPECT_NEAR(s.mean, 0, 0.03 * c.stddev) << c.name;
    EXPECT_NEAR(s.stddev, c.stddev, 0.02 * c.stddev) << c.name;
    EXPECT_LE(s.high, c.bound * (1 + 1e-6)) << c.name;
    EXPECT_GE(s.low, -c.bound * (1 + 1e-6)) << c.name;
    EXPECT_GT(s.high, 0.98 * c.bound) << c.name;
  }
}

TEST(InitializersTest, VarianceScalingFollowsModeAndDistribution) {
  const Shape shape = {300, 50};
  const auto stddev = [&](const std::string& mode, const std::string& distribution) {
    return statistics(initializers::variance_scaling(0.5, mode, distribution)(shape)).stddev;
  };
  for (const std::string distribution : {"truncated_normal", "untruncated_normal", "uniform"}) {
    EXPECT_NEAR(stddev("fan_in", distribution), 0.040824829046386304, 1e-3);
    EXPECT_NEAR(stddev("fan_out", distribution), 0.1, 2.5e-3);
    EXPECT_NEAR(stddev("fan_avg", distribution), 0.05345224838248488, 1.3e-3);
  }
  const auto high = [&](const std::string& distribution) {
    return statistics(initializers::variance_scaling(0.5, "fan_in", distribution)(shape)).high;
  };
  EXPECT_LE(high("truncated_normal"), 0.09282318798745727 * (1 + 1e-6));
  EXPECT_LE(high("uniform"), 0.07071067811865475 * (1 + 1e-6));
  EXPECT_GT(high("untruncated_normal"), 0.12);
}

TEST(InitializersTest, VarianceScalingRejectsUnknownModes) {
  EXPECT_THROW(initializers::variance_scaling(0), ValueError);
  EXPECT_THROW(initializers::variance_scaling(-1), ValueError);
  EXPECT_THROW(initializers::variance_scaling(1, "fan"), ValueError);
  EXPECT_THROW(initializers::variance_scaling(1, "fan_in", "gamma"), ValueError);
}

TEST(InitializersTest, NormalsTakeMeanAndStddev) {
  const Statistics normal = statistics(initializers::random_normal(0.3, 0.2)({200, 300}));
  EXPECT_NEAR(normal.mean, 0.3, 0.005);
  EXPECT_NEAR(normal.stddev, 0.2, 0.004);
  const Statistics truncated = statistics(initializers::truncated_normal(0.3, 0.2)({200, 300}));
  EXPECT_NEAR(truncated.mean, 0.3, 0.005);
  EXPECT_NEAR(truncated.stddev, 0.17592513220684797, 0.004);
  EXPECT_LE(truncated.high, 0.7 + 1e-6);
  const Statistics uniform = statistics(initializers::random_uniform(-1, 2)({200, 300}));
  EXPECT_NEAR(uniform.mean, 0.5, 0.02);
  EXPECT_NEAR(uniform.stddev, 0.8660254037844387, 0.01);
}

TEST(InitializersTest, ConstantsAreExactInEveryDtype) {
  EXPECT_EQ(initializers::constant(0.1)({2}, DType::kFloat64).to_vector<double>(),
            (std::vector<double>{0.1, 0.1}));
  EXPECT_EQ(initializers::constant(16777217)({1}, DType::kInt64).item<int64_t>(), 16777217);
  EXPECT_EQ(initializers::ones()({2, 1}).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(initializers::zeros()({}, DType::kInt32).item<int32_t>(), 0);
  EXPECT_EQ(Initializer("ones")({1}, DType::kUint8).item<uint8_t>(), 1);
}

TEST(InitializersTest, IdentityIsTheUnitMatrix) {
  const Initializer identity("identity");
  EXPECT_EQ(identity({2, 3}).to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(identity({3, 2}).to_vector<float>(), (std::vector<float>{1, 0, 0, 1, 0, 0}));
  EXPECT_THROW(identity({3}), ValueError);
  const Initializer doubled =
      initializer_from_json(R"({"class_name": "Identity", "config": {"gain": 2.0}})");
  EXPECT_EQ(doubled({2, 2}).to_vector<float>(), (std::vector<float>{2, 0, 0, 2}));
}

// Returns the inner product of vectors i and j along the matrix's longer side.
double product(const Tensor& matrix, int64_t i, int64_t j) {
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  const auto values = matrix.data<float>();
  double out = 0;
  for (int64_t k = 0; k < std::max(rows, columns); ++k) {
    out += rows < columns ? double{values[i * columns + k]} * values[j * columns + k]
                          : double{values[k * columns + i]} * values[k * columns + j];
  }
  return out;
}

TEST(InitializersTest, OrthogonalVectorsHaveTheLengthOfTheGain) {
  for (const Shape& shape : {Shape({20, 30}), Shape({30, 20}), Shape({16, 16}), Shape({7, 1})}) {
    const Tensor matrix = initializers::orthogonal(1.5)(shape);
    for (int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        EXPECT_NEAR(product(matrix, i, j), i == j ? 2.25 : 0, 1e-6) << shape;
      }
    }
  }
  // With more than two dimensions, the matrix is [all but the last dimension, last dimension].
  const Tensor kernel = initializers::orthogonal(1, 3)({5, 4, 6});
  EXPECT_NEAR(product(kernel.reshaped({20, 6}), 2, 2), 1, 1e-6);
  EXPECT_NEAR(product(kernel.reshaped({20, 6}), 2, 5), 0, 1e-6);
  EXPECT_EQ(kernel.to_vector<float>(), initializers::orthogonal(1, 3)({20, 6}).to_vector<float>());
  EXPECT_THROW(initializers::orthogonal()({4}), ValueError);
}

TEST(InitializersTest, FunctionsNameTheirClasses) {
  for (const auto& [made, class_name] : std::vector<std::pair<Initializer, const char*>>{
           {initializers::glorot_uniform(5), "GlorotUniform"},
           {initializers::glorot_normal(5), "GlorotNormal"},
           {initializers::he_uniform(5), "HeUniform"},
           {initializers::he_normal(5), "HeNormal"},
           {initializers::lecun_uniform(5), "LecunUniform"},
           {initializers::lecun_normal(5), "LecunNormal"},
           {initializers::orthogonal(1, 5), "Orthogonal"}}) {
    EXPECT_EQ(made.function().class_name(), class_name);
    EXPECT_EQ(made.function().seed(), 5);
  }
  EXPECT_EQ(initializers::identity(2)({2, 2}).to_vector<float>(), (std::vector<float>{2, 0, 0, 2}));
}

TEST(InitializersTest, RowIdsCountRowsFromTheOffset) {
  EXPECT_EQ(Initializer("row_id")({2, 3}).to_vector<float>(),
            (std::vector<float>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(initializers::row_id(-1)({2, 1, 2}).to_vector<float>(),
            (std::vector<float>{-1, -1, 0, 0}));
  const Initializer read =
      initializer_from_json(R"({"class_name": "RowIdInitializer", "config": {"offset": 5}})");
  EXPECT_EQ(read({2}).to_vector<float>(), (std::vector<float>{5, 6}));
  EXPECT_THROW(initializers::row_id()(Shape{}), ValueError);
}

TEST(InitializersTest, ARangeHasTheNumbersOfTheWhole) {
  const RandomStream stream = {.seed = 3, .purpose = 4};
  for (const std::string& name : initializers::registry().class_names()) {
    const Initializer initializer(name);
    const Shape shape = name == "STFT" ? Shape({7, 1, 11}) : Shape({7, 11});
    std::vector<float> whole(77);
    initializer.function().fill(whole, 0, shape, stream);
    for (const auto& [first, count] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {3, 30}, {12, 1}, {40, 37}, {77, 0}}) {
      std::vector<float> part(count, -9);
      initializer.function().fill(part, first, shape, stream);
      EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(first, count))) << name;
    }
  }
}

TEST(InitializersTest, AnExplicitSeedRepeatsAndOthersFollowTheProgramSeed) {
  const Initializer seeded = initializers::random_normal(0, 1, 5);
  EXPECT_EQ(seeded({4}).to_vector<float>(), seeded({4}).to_vector<float>());
  set_random_seed(1);
  const Initializer free = initializers::random_normal();
  const auto first = free({4}).to_vector<float>();
  EXPECT_NE(free({4}).to_vector<float>(), first);
  set_random_seed(1);
  EXPECT_EQ(free({4}).to_vector<float>(), first);
}

TEST(InitializersTest, NamesMayBeSnakeCaseOrClassNames) {
  for (const std::string& name : initializers::registry().class_names()) {
    EXPECT_EQ(Initializer(name).function().class_name(), name);
  }
  EXPECT_EQ(Initializer("glorot_uniform").function().class_name(), "GlorotUniform");
  EXPECT_EQ(Initializer("variance_scaling").function().class_name(), "VarianceScaling");
  EXPECT_EQ(Initializer("zeros").function().class_name(), "Zeros");
  EXPECT_EQ(Initializer("uniform").function().class_name(), "RandomUniform");
  EXPECT_EQ(Initializer("normal").function().class_name(), "RandomNormal");
  EXPECT_EQ(Initializer("orthogonal").function().class_name(), "Orthogonal");
  EXPECT_EQ(Initializer("OrthogonalInitializer").function().class_name(), "Orthogonal");
}

TEST(InitializersTest, UnknownNamesAreErrors) {
  EXPECT_THROW(Initializer("glorot"), ValueError);
  EXPECT_THROW(Initializer(""), ValueError);
  EXPECT_THROW(initializer_from_json(R"({"class_name": "Orthogonality", "config": {}})"),
               ValueError);
}

TEST(InitializersTest, OnlyNumericDtypesAreSupported) {
  EXPECT_THROW(initializers::zeros()({2}, DType::kString), TypeError);
  EXPECT_THROW(initializers::random_normal()({2}, DType::kBool), TypeError);
}

TEST(InitializersTest, ConfigsMatchKeras) {
  EXPECT_EQ(to_json(encode(Initializer("glorot_uniform"))),
            R"({"class_name": "GlorotUniform", "config": {"seed": null}})");
  EXPECT_EQ(to_json(encode(initializers::truncated_normal(0.0, 0.05, 3))),
            R"({"class_name": "TruncatedNormal", )"
            R"("config": {"seed": 3, "mean": 0.0, "stddev": 0.05}})");
  EXPECT_EQ(to_json(encode(initializers::random_uniform())),
            R"({"class_name": "RandomUniform", )"
            R"("config": {"seed": null, "minval": -0.05, "maxval": 0.05}})");
  EXPECT_EQ(to_json(encode(initializers::variance_scaling())),
            R"({"class_name": "VarianceScaling", "config": {"seed": null, "scale": 1.0, )"
            R"("mode": "fan_in", "distribution": "truncated_normal"}})");
  EXPECT_EQ(to_json(encode(initializers::orthogonal(1.5))),
            R"({"class_name": "Orthogonal", "config": {"seed": null, "gain": 1.5}})");
  EXPECT_EQ(to_json(encode(initializers::constant(2.5))),
            R"({"class_name": "Constant", "config": {"value": 2.5}})");
  EXPECT_EQ(to_json(encode(initializers::zeros())), R"({"class_name": "Zeros", "config": {}})");
}

TEST(InitializersTest, EveryClassRoundTripsThroughItsConfig) {
  for (const std::string& name : initializers::registry().class_names()) {
    const Config config = encode(Initializer(name));
    Initializer back("zeros");
    decode(config, back);
    EXPECT_EQ(encode(back), config);
  }
}

TEST(InitializersTest, BothDialectsOfKerasAreRead) {
  const Initializer modern = initializer_from_json(
      R"({"module": "keras.initializers", "class_name": "HeNormal", "registered_name": null,)"
      R"( "config": {"seed": 7, "input_axes": null, "output_axes": null}})");
  EXPECT_EQ(modern.function().class_name(), "HeNormal");
  EXPECT_EQ(modern.function().seed(), 7);
  const Initializer old = initializer_from_json(
      R"({"class_name": "RandomUniform",)"
      R"( "config": {"minval": -1, "maxval": 1, "seed": null, "dtype": "float32"}})");
  EXPECT_EQ(old.function().class_name(), "RandomUniform");
  EXPECT_EQ(old.function().seed(), std::nullopt);
  EXPECT_EQ(initializer_from_json(R"("he_normal")").function().class_name(), "HeNormal");
  EXPECT_EQ(initializer_from_json(R"({"class_name": "Zeros"})").function().class_name(), "Zeros");
}

TEST(InitializersTest, OtherKeysAndKindsAreErrors) {
  EXPECT_THROW(initializer_from_json(R"({"class_name": "Zeros", "config": {"value": 1}})"),
               ValueError);
  EXPECT_THROW(
      initializer_from_json(R"({"class_name": "HeNormal", "config": {"input_axes": [0]}})"),
      NotImplementedError);
  EXPECT_THROW(initializer_from_json(R"({"config": {}})"), ValueError);
  EXPECT_THROW(initializer_from_json("3"), TypeError);
  EXPECT_THROW(initializer_from_json(R"({"class_name": "Constant", "config": {"value": "x"}})"),
               TypeError);
}

class Countdown final : public InitializerFunction {
 public:
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream&) const override {
    for (float& v : out) v = static_cast<float>(shape.size() - first++);
  }
  std::string class_name() const override { return "Countdown"; }
  Config get_config() const override { return Config::dict(); }
};

TEST(InitializersTest, UsersMayAddClasses) {
  const Initializer own(std::make_shared<Countdown>());
  EXPECT_EQ(own({3}).to_vector<float>(), (std::vector<float>{3, 2, 1}));
  EXPECT_EQ(own({2}, DType::kInt32).to_vector<int32_t>(), (std::vector<int32_t>{2, 1}));
  Registry<InitializerFunction> registry("initializer");
  registry.add("Countdown", [](const Config&) { return std::make_shared<Countdown>(); });
  EXPECT_EQ(registry.make("Countdown", Config::dict())->class_name(), "Countdown");
}

}  // namespace keel::initializers_test
