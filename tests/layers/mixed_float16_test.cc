// Tests the policy mixed_float16: products in layers, and the loss scale of compiled models.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/convolution/conv.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/loss_scale.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"

namespace keel::mixed_float16_test {

using layers::Dense;
using testing_support::TemporaryFolder;

constexpr char kMixed[] = "mixed_float16";

class GlobalPolicy {
 public:
  explicit GlobalPolicy(const DTypePolicy& policy) { set_dtype_policy(policy); }
  ~GlobalPolicy() { set_dtype_policy(previous_); }
  GlobalPolicy(const GlobalPolicy&) = delete;
  GlobalPolicy& operator=(const GlobalPolicy&) = delete;

 private:
  const DTypePolicy previous_ = dtype_policy();
};

// 1 + 2^-12 rounds to 1, 70000 to infinity and 2^-26 to 0; 2^-24 is kept.
TEST(MixedFloat16Test, OperandsOfProductsAreRounded) {
  const Dense layer({.units = 1, .kernel_initializer = "ones", .dtype = kMixed});
  const auto output = [&](float x) { return layer(Tensor::full<float>({1, 1}, x)).item<float>(); };
  EXPECT_EQ(output(1 + 0x1p-12F), 1);
  EXPECT_EQ(output(1 + 0x1p-10F), 1 + 0x1p-10F);
  EXPECT_EQ(output(65519), 65504);
  EXPECT_EQ(output(70000), INFINITY);
  EXPECT_EQ(output(-0x1p-26F), 0);
  EXPECT_EQ(output(0x1p-24F), 0x1p-24F);
  EXPECT_EQ(output(0x3p-25F), 0x1p-23F) << "ties go to even";
}

TEST(MixedFloat16Test, GradientsUnderflowWithoutALossScale) {
  for (const bool scales : {false, true}) {
    const Dense layer({.units = 1, .kernel_initializer = "ones", .dtype = kMixed});
    const Tensor x = Tensor::full<float>({1, 1}, 1);
    layer(x);
    GradientTape tape;
    const Tensor loss = ops::scale(layer(x), 0x1p-30 * (scales ? 0x1p15 : 1.0));
    const Gradient g = tape.gradient(loss, {layer->kernel()})[0];
    EXPECT_EQ(g.dense().item<float>(), scales ? 0x1p-15F : 0.0F);
  }
}

TEST(MixedFloat16Test, ConvolutionsRoundTheirOperands) {
  const layers::Conv1D layer(
      {.filters = 1, .kernel_size = 1, .kernel_initializer = "ones", .dtype = kMixed});
  EXPECT_EQ(layer(Tensor::full<float>({1, 1, 1}, 1 + 0x1p-12F)).item<float>(), 1);
}

Sequential small_model() {
  return Sequential(
      {.layers = {Dense({.units = 8,
                         .activation = "relu",
                         .kernel_initializer = initializers::glorot_uniform(1)}),
                  Dense({.units = 1, .kernel_initializer = initializers::glorot_uniform(2)})}});
}

TEST(MixedFloat16Test, CompiledModelsScaleTheLossAndLearn) {
  const TemporaryFolder folder;
  const GlobalPolicy global(kMixed);
  const Sequential model = small_model();
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.01}), .loss = "mse"});
  const auto* scaling = dynamic_cast<const LossScaleOptimizer*>(&*model->optimizer());
  ASSERT_NE(scaling, nullptr);
  EXPECT_EQ(scaling->name(), "loss_scale_optimizer");
  EXPECT_EQ(model->get_compile_config()["optimizer"]["class_name"].string(), "Adam");
  std::vector<float> values(64), wanted(64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i) / 32 - 1;
    wanted[i] = std::abs(values[i]);
  }
  const Tensor x = Tensor::from(values, {64, 1}), y = Tensor::from(wanted, {64, 1});
  model->fit(x, y, {.epochs = 150, .batch_size = 32});
  EXPECT_LT(model->evaluate(x, y).at("loss"), 5e-3);
  // The scale and the state of the inner optimizer survive a trip through the file.
  scaling->wrapper_variables()[3].assign(Tensor::scalar(64.0F));
  for (const char* name : {"model.keras", "model.h5"}) {
    save_model(model, folder / name);
    const ModelHandle again = load_model(folder / name);
    const auto* read = dynamic_cast<const LossScaleOptimizer*>(&*again->optimizer());
    ASSERT_NE(read, nullptr) << name;
    EXPECT_EQ(read->dynamic_scale(), 64) << name;
    EXPECT_EQ(read->iterations(), scaling->iterations()) << name;
    EXPECT_EQ(again->layers()[0]->dtype_policy().name(), kMixed) << name;
  }
}

TEST(MixedFloat16Test, OtherModelsAndOtherChoicesKeepTheirOptimizer) {
  const Sequential plain = small_model();
  plain->compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_EQ(plain->optimizer()->class_name(), "SGD");
  const GlobalPolicy global(kMixed);
  const Sequential model = small_model();
  model->compile({.optimizer = "sgd", .loss = "mse", .auto_scale_loss = false});
  EXPECT_EQ(model->optimizer()->class_name(), "SGD");
  const optimizers::LossScaleOptimizer own({.inner_optimizer = optimizers::get("sgd")});
  model->compile({.optimizer = own, .loss = "mse"});
  EXPECT_EQ(&*model->optimizer(), &*own);
}

}  // namespace keel::mixed_float16_test
