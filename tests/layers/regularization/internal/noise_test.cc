// Tests layers/regularization/regularization.cc.
// Functions shared by the noise layers.
#include <keel/layers/regularization/internal/noise.h>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/regularization/regularization.h>

namespace keel::noise_test {

using Make = LayerHandle<Layer> (*)();

class NoiseTest : public testing::TestWithParam<Make> {
 protected:
  LayerHandle<Layer> make() const { return GetParam()(); }
  static Tensor ones() { return Tensor::full<float>({40, 50, 20}, 1); }
  static std::vector<float> perturbed(const LayerHandle<Layer>& layer) {
    return layer(ones(), {.training = true}).to_vector<float>();
  }
};

TEST_P(NoiseTest, IsForTrainingOnlyAndKeepsMasks) {
  const auto layer = make();
  const Tensor x = ones().with_mask(Tensor::full<bool>({40, 50}, true));
  EXPECT_EQ(layer(x).id(), x.id());
  EXPECT_TRUE(layer(x).mask());
  EXPECT_TRUE(layer(x, {.training = true}).mask());
}

TEST_P(NoiseTest, DiffersByCallAndRepeatsForASeed) {
  const auto a = make(), b = make();
  const std::vector<float> first = perturbed(a), second = perturbed(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(perturbed(b), first);
  EXPECT_EQ(perturbed(b), second);
}

TEST_P(NoiseTest, TheNumberOfCallsRestoresTheSequence) {
  const auto layer = make();
  perturbed(layer);
  ASSERT_EQ(layer->variables().size(), 1u);
  EXPECT_TRUE(layer->weights().empty());
  const Variable calls = layer->variables()[0];
  EXPECT_EQ(calls.name(), "seed_generator_state");
  EXPECT_EQ(calls.read().item<int64_t>(), 1);
  const std::vector<float> second = perturbed(layer);
  calls.assign(Tensor::full<int64_t>({1}, 1));
  EXPECT_EQ(perturbed(layer), second);
}

TEST_P(NoiseTest, ResultsDoNotDependOnTheNumberOfWorkers) {
  const auto a = make(), b = make();
  const int workers = num_workers();
  set_num_workers(1);
  const std::vector<float> alone = perturbed(a);
  set_num_workers(3);
  const std::vector<float> together = perturbed(b);
  set_num_workers(workers);
  EXPECT_EQ(alone, together);
}

TEST_P(NoiseTest, ReplicasGetDifferentNoise) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const auto layer = make();
  const auto x = strategy.distribute_values_from_function([](int) { return ones(); });
  const auto y = strategy.run([&](const Tensor& t) { return layer(t, {.training = true}); }, x);
  EXPECT_NE(y[0].to_vector<float>(), y[1].to_vector<float>());
}

TEST_P(NoiseTest, SymbolicCallsDrawNothing) {
  const auto layer = make();
  const Tensor y = layer(layers::input({.shape = {kUnknown, 3}}), {.training = true});
  EXPECT_EQ(y.shape(), Shape({kUnknown, kUnknown, 3}));
  EXPECT_EQ(layer->variables()[0].read().item<int64_t>(), 0);
}

TEST_P(NoiseTest, NeedsFloatingInputs) {
  EXPECT_THROW(make()(Tensor::full<int32_t>({1, 2, 3}, 1), {.training = true}), TypeError);
}

INSTANTIATE_TEST_SUITE_P(
    AllLayers, NoiseTest,
    testing::Values([] { return LayerHandle<Layer>(layers::AlphaDropout({.seed = 1})); },
                    [] { return LayerHandle<Layer>(layers::Dropout({.seed = 1})); },
                    [] { return LayerHandle<Layer>(layers::GaussianDropout({.seed = 1})); },
                    [] {
                      return LayerHandle<Layer>(layers::GaussianNoise({.stddev = 0.5, .seed = 1}));
                    },
                    [] { return LayerHandle<Layer>(layers::SpatialDropout1D({.seed = 1})); }),
    [](const auto& one) { return one.param()->class_name(); });

TEST(NoiseShapeTest, UnknownDimensionsComeFromTheInput) {
  EXPECT_EQ(noise::shape_for({2, 3, 4}, {kUnknown, 1, 4}, "layer"), Shape({2, 1, 4}));
  EXPECT_THROW(noise::shape_for({2, 3}, {kUnknown, 2}, "layer"), ValueError);
  EXPECT_THROW(noise::shape_for({2, 3}, {kUnknown}, "layer"), ValueError);
}

}  // namespace keel::noise_test
