#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/optimizers/adam.h>

#include "tests/support/errors.h"

namespace keel::mixed_bfloat16_test {

using layers::Dense;
using testing::HasSubstr;
using testing_support::message_of;

constexpr char kMixed[] = "mixed_bfloat16";

Tensor ramp(const Shape& shape) {
  std::vector<float> values(shape.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1.7F * static_cast<float>(i));
  return Tensor::from(values, shape);
}

class GlobalPolicy {
 public:
  explicit GlobalPolicy(const DTypePolicy& policy) : before_(dtype_policy()) {
    set_dtype_policy(policy);
  }
  ~GlobalPolicy() { set_dtype_policy(before_); }
  GlobalPolicy(const GlobalPolicy&) = delete;
  GlobalPolicy& operator=(const GlobalPolicy&) = delete;

 private:
  const DTypePolicy before_;
};

TEST(MixedBFloat16Test, VariablesAndResultsAreFloat32) {
  const Dense layer({.units = 3, .dtype = kMixed});
  const Tensor y = layer(ramp({2, 5}));
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_EQ(layer->kernel().dtype(), DType::kFloat32);
  EXPECT_EQ(layer->dtype(), DType::kFloat32);
  EXPECT_EQ(layer->dtype_policy().name(), kMixed);
}

TEST(MixedBFloat16Test, DenseMultipliesRoundedOperandsAndAddsTheBiasAsItIs) {
  const Dense layer({.units = 3,
                     .kernel_initializer = "ones",
                     .bias_initializer = initializers::constant(0.1),
                     .dtype = kMixed});
  // 1 + 2^-9 is not representable in bfloat16.
  const Tensor y = layer(Tensor::full<float>({1, 2}, 1 + 0x1p-9F));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(3, 2 + 0.1F));
}

// For each kind of layer that multiplies, the policy changes the results, but by less than 0.05.
TEST(MixedBFloat16Test, EveryMultiplyingLayerUsesThePolicy) {
  const auto check = [](const auto& make, const Tensors& input) {
    const auto mixed = make(DTypePolicy(kMixed)), plain = make(DTypePolicy(DType::kFloat32));
    const std::vector<float> y = mixed(input).tensor().template to_vector<float>();
    (void)plain(input);
    for (size_t i = 0; i < mixed->weights().size(); ++i) {
      plain->weights()[i].assign(mixed->weights()[i].read());
    }
    const std::vector<float> exact = plain(input).tensor().template to_vector<float>();
    double largest = 0;
    for (size_t i = 0; i < y.size(); ++i)
      largest = std::max<double>(largest, std::abs(y[i] - exact[i]));
    EXPECT_GT(largest, 0) << mixed->class_name();
    EXPECT_LT(largest, 0.05) << mixed->class_name();
  };
  const Tensor x = ramp({4, 6});
  check([](const DTypePolicy& p) { return Dense({.units = 3, .dtype = p}); }, x);
  check(
      [](const DTypePolicy& p) {
        return layers::EinsumDense({.equation = "ab,bc->ac", .output_shape = {3}, .dtype = p});
      },
      x);
  check([](const DTypePolicy& p) { return layers::FeatureCross({.dtype = p}); },
        Tensors::list({x, ramp({4, 6})}));
  const Tensor steps = ramp({2, 3, 4});
  check(
      [](const DTypePolicy& p) {
        return layers::MultiHeadAttention({.num_heads = 2, .key_dim = 4, .dtype = p});
      },
      Tensors::list({steps, steps}));
}

TEST(MixedBFloat16Test, PairsOfFeaturesAreNotRounded) {
  const Tensor x = ramp({4, 3, 8});
  const layers::DotInteraction mixed({.dtype = kMixed}), plain({.dtype = DType::kFloat32});
  EXPECT_EQ(mixed(x).to_vector<float>(), plain(x).to_vector<float>());
  const layers::DotInteraction all({.skip_gather = true, .dtype = kMixed}),
      all_plain({.skip_gather = true, .dtype = DType::kFloat32});
  EXPECT_EQ(all(x).to_vector<float>(), all_plain(x).to_vector<float>());
}

TEST(MixedBFloat16Test, NewLayersUseTheGlobalPolicy) {
  const GlobalPolicy global(kMixed);
  const Dense layer({.units = 1});
  EXPECT_EQ(layer->dtype_policy().name(), kMixed);
  const Dense exact({.units = 1, .dtype = DType::kFloat32});
  EXPECT_EQ(exact->dtype_policy().name(), "float32");
}

class ProductOutside final : public TensorLayer {
 public:
  ProductOutside() : TensorLayer("ProductOutside") {}
  Dense inner = track(Dense({.units = 2, .kernel_initializer = "ones", .dtype = kMixed}));
  bool rounds = true;

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    const Tensor y = inner(x);
    rounds = AutocastScope::bfloat16_products();
    return y;
  }
};

TEST(MixedBFloat16Test, ALayerPolicyAppliesDuringItsCallOnly) {
  const auto outer = make_layer<ProductOutside>();
  outer(ramp({1, 2}));
  EXPECT_FALSE(outer->rounds);
}

TEST(MixedBFloat16Test, GraphsAndPlansMatchLayers) {
  const Tensor input = layers::input({.shape = {6}, .name = "x"});
  const Dense one({.units = 8, .activation = "relu", .dtype = kMixed}),
      two({.units = 2, .dtype = kMixed});
  const Functional model({.inputs = input, .outputs = two(one(input))});
  const Tensor x = ramp({5, 6});
  const std::vector<float> expected = two(one(x)).to_vector<float>();
  EXPECT_EQ(model(x).to_vector<float>(), expected);
  // Plans call such layers, because they have no packed weights for them.
  const ServingPlan plan(model);
  EXPECT_EQ(plan(x).tensor().to_vector<float>(), expected);
  EXPECT_EQ(plan.called_layers(), (std::vector<std::string>{one->name(), two->name()}));
}

TEST(MixedBFloat16Test, ConfigsRoundTripInTheFormOfKeras) {
  const Dense layer({.units = 3, .name = "head", .dtype = kMixed});
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(config["config"]["dtype"], encode(DTypePolicy(kMixed)));
  const auto same = layers::deserialize(config);
  EXPECT_EQ(same->dtype_policy().name(), kMixed);
  EXPECT_EQ(layers::serialize(*same), config);
  // The input that a Sequential of Keras writes before such a layer.
  const auto input = layers::deserialize(parse_json(
      R"({"class_name": "InputLayer",
          "config": {"name": "in", "dtype": "bfloat16", "batch_shape": [null, 3]}})"));
  EXPECT_EQ(dynamic_cast<const InputLayer&>(*input).spec().dtype, DType::kFloat32);
}

TEST(MixedBFloat16Test, FilesOfPureHalfPoliciesAreRejected) {
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                layers::deserialize(parse_json(
                    R"({"class_name": "Dense", "config": {"name": "d", "units": 2,
            "dtype": {"module": "keras", "class_name": "DTypePolicy",
                      "config": {"name": "float16"}, "registered_name": null}}})"));
              }),
              HasSubstr("use 'mixed_float16'"));
}

// Returns the mean squared error of y = |x| for x in [-1, 1] after some hundred steps of Adam.
double trained_error(const DTypePolicy& policy) {
  const Dense one({.units = 16,
                   .activation = "relu",
                   .kernel_initializer = initializers::glorot_uniform(1),
                   .dtype = policy});
  const Dense two(
      {.units = 1, .kernel_initializer = initializers::glorot_uniform(2), .dtype = policy});
  std::vector<float> values(64), wanted(64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i) / 32 - 1;
    wanted[i] = std::abs(values[i]);
  }
  const Tensor x = Tensor::from(values, {64, 1}), y = Tensor::from(wanted, {64, 1});
  const auto adam = optimizers::Adam({.learning_rate = 0.01});
  double error = 0;
  for (int step = 0; step < 300; ++step) {
    GradientTape tape;
    const Tensor difference = two(one(x)) - y;
    const Tensor loss = ops::mean(difference * difference);
    const std::vector<Variable> variables = {one->kernel(), one->bias(), two->kernel(),
                                             two->bias()};
    adam->apply_gradients(tape.gradient(loss, variables), variables);
    error = loss.item<float>();
  }
  return error;
}

TEST(MixedBFloat16Test, TrainingEndsAsCloseAsWithFloat32) {
  EXPECT_LT(trained_error(DType::kFloat32), 1e-3);
  EXPECT_LT(trained_error(kMixed), 1e-3);
}

}  // namespace keel::mixed_bfloat16_test
