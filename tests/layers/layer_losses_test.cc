// Tests layers/internal/activity_loss_scale.cc.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>

namespace keel::layer_losses_test {

// Adds a tenth of the sum of its input to the losses.
class Penalty final : public Layer {
 public:
  Penalty() : Layer("Penalty") {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override {
    add_loss(ops::sum(inputs.tensor()) * 0.1);
    return inputs;
  }
};

float sum_of(const std::vector<Tensor>& losses) {
  float sum = 0;
  for (const Tensor& loss : losses) sum += loss.item<float>();
  return sum;
}

layers::Dense regularized_dense() {
  return layers::Dense({.units = 1,
                        .kernel_initializer = initializers::constant(2),
                        .bias_initializer = initializers::constant(3),
                        .kernel_regularizer = regularizers::l2(0.5),
                        .bias_regularizer = regularizers::l1(0.1)});
}

TEST(LayerLossesTest, RegularizersOfTrainableWeightsAreComputedOnDemand) {
  const layers::Dense dense = regularized_dense();
  EXPECT_TRUE(dense->losses().empty());
  dense(Tensor::zeros({1, 2}));
  EXPECT_FLOAT_EQ(sum_of(dense->losses()), 0.5F * 8 + 0.3F);
  dense->kernel().assign(Tensor::zeros({2, 1}));
  EXPECT_FLOAT_EQ(sum_of(dense->losses()), 0.3F);
  dense->set_trainable(false);
  EXPECT_TRUE(dense->losses().empty());
}

TEST(LayerLossesTest, RegularizersHaveGradients) {
  const layers::Dense dense = regularized_dense();
  dense(Tensor::zeros({1, 2}));
  GradientTape tape;
  const std::vector<Tensor> losses = dense->losses();
  const auto gradients = tape.gradient(losses[0] + losses[1], dense->trainable_variables());
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), std::vector<float>({2, 2}));
  EXPECT_EQ(gradients[1].dense().to_vector<float>(), std::vector<float>({0.1F}));
}

TEST(LayerLossesTest, ActivityRegularizersSeeTheResult) {
  const layers::Dense dense(
      {.units = 2, .kernel_initializer = "ones", .activity_regularizer = regularizers::l1(0.5)});
  dense(Tensor::from<float>({1, -3}, {2, 1}));
  EXPECT_FLOAT_EQ(sum_of(dense->losses()), 0.5F * (1 + 1 + 3 + 3) / 2) << "for each of two rows";
}

TEST(LayerLossesTest, OnlyLossesOfTheLastCallCount) {
  const Sequential model({.layers = {make_layer<Penalty>(), make_layer<Penalty>()}});
  model(Tensor::full({1, 2}, 1.0F));
  EXPECT_FLOAT_EQ(sum_of(model->losses()), 0.4F);
  EXPECT_EQ(model->losses().size(), 2U);
  const auto other = make_layer<Penalty>();
  other(Tensor::full({1}, 30.0F));
  EXPECT_FLOAT_EQ(sum_of(model->losses()), 0.4F);
  model(Tensor::full({1, 2}, 2.0F));
  EXPECT_FLOAT_EQ(sum_of(model->losses()), 0.8F);
}

TEST(LayerLossesTest, MustBeScalars) {
  class Wrong final : public Layer {
   public:
    Wrong() : Layer("Wrong") {}

   private:
    Tensors call(const Tensors& inputs, const CallContext&) override {
      add_loss(inputs.tensor());
      return inputs;
    }
  };
  EXPECT_THROW(make_layer<Wrong>()(Tensor::zeros({2})), ValueError);
}

TEST(LayerLossesTest, ConstraintsBelongToTheWeight) {
  const layers::Embedding embedding({.input_dim = 2,
                                     .output_dim = 2,
                                     .embeddings_regularizer = "l2",
                                     .embeddings_constraint = "non_neg"});
  embedding(Tensor::from<int64_t>({1}, {1}));
  const auto& constraint = embedding->embeddings().constraint();
  ASSERT_TRUE(constraint);
  EXPECT_EQ(constraint(Tensor::from<float>({-1, 2}, {2})).to_vector<float>(),
            std::vector<float>({0, 2}));
  EXPECT_EQ(embedding->losses().size(), 1U);
}

TEST(LayerLossesTest, RegularizersRoundTripThroughConfigs) {
  const layers::Dense dense = regularized_dense();
  const Config config = dense->get_config();
  EXPECT_EQ(to_json(config["kernel_regularizer"]),
            R"({"class_name": "L2", "config": {"l2": 0.5}})");
  EXPECT_TRUE(config["kernel_constraint"].is_null());
  EXPECT_THROW(layers::Dense({.units = 1, .kernel_regularizer = "l7"}), ValueError);
}

}  // namespace keel::layer_losses_test
