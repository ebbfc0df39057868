// Tests layers/attention/internal/attention_inputs.cc.
#include <keel/layers/attention/attention.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::attention_test {

using layers::AdditiveAttention;
using layers::Attention;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using Floats = std::vector<float>;

Tensor rows(const Floats& values, int64_t steps) {
  const auto dim = static_cast<int64_t>(values.size()) / steps;
  return Tensor::from(values, {1, steps, dim});
}

Tensor masked(const Tensor& x, const std::vector<bool>& mask) {
  return x.with_mask(Tensor::from<bool>(mask, {1, x.dim(1)}));
}

// A query of zeros gives all values the same weight.
Tensor query() { return rows({0, 0}, 2); }
Tensor value() { return rows({1, 3, 8}, 3); }

TEST(AttentionTest, WeighsValuesByTheirProductWithTheQuery) {
  const Attention attention({});
  const Tensors result =
      attention(Tensors::list({rows({1}, 1), rows({0, 2}, 2)}), {.return_attention_scores = true});
  const float weight = 1 / (1 + std::exp(-2.0F));
  EXPECT_FLOAT_EQ(result[0].tensor().item<float>(), 2 * weight);
  EXPECT_EQ(result[1].tensor().shape(), Shape({1, 1, 2}));
  EXPECT_FLOAT_EQ(result[1].tensor().data<float>()[1], weight);
}

TEST(AttentionTest, KeysDefaultToValues) {
  const Attention attention({});
  const Tensor key = rows({0, 0, 100}, 3);
  const Tensor y = attention(Tensors::list({rows({1}, 1), value(), key})).tensor();
  EXPECT_FLOAT_EQ(y.item<float>(), 8);
}

TEST(AttentionTest, ScaleAndConcatScoresHaveScalarWeights) {
  const Attention attention({.use_scale = true, .score_mode = "concat"});
  const Tensors inputs = Tensors::list({rows({1}, 1), rows({0, 2}, 2)});
  attention(inputs);
  ASSERT_EQ(attention->weights().size(), 2u);
  EXPECT_EQ(attention->weights()[0].path(), attention->name() + "/scale");
  EXPECT_EQ(attention->weights()[0].shape(), Shape());
  attention->weights()[0].assign(Tensor::scalar<float>(0.5F));
  attention->weights()[1].assign(Tensor::scalar<float>(3));
  const float difference = 3 * (std::tanh(1.5F) - std::tanh(0.5F));
  EXPECT_FLOAT_EQ(attention(inputs).tensor().item<float>(), 2 / (1 + std::exp(-difference)));
}

TEST(AttentionTest, MaskedValuesHaveNoWeight) {
  const Attention attention({});
  const Tensor y =
      attention(Tensors::list({query(), masked(value(), {true, true, false})})).tensor();
  EXPECT_EQ(y.to_vector<float>(), Floats({2, 2}));
  EXPECT_FALSE(y.mask());
}

TEST(AttentionTest, MaskedQueriesGiveZeros) {
  const Attention attention({});
  const Tensor y = attention(Tensors::list({masked(query(), {false, true}), value()})).tensor();
  EXPECT_EQ(y.to_vector<float>(), Floats({0, 4}));
  EXPECT_EQ(y.mask().to_vector<bool>(), std::vector({false, true}));
}

TEST(AttentionTest, ACausalMaskHidesWhatComesLater) {
  const Attention attention({});
  const Tensor y =
      attention(Tensors::list({rows({0, 0, 0}, 3), value()}), {.use_causal_mask = true}).tensor();
  EXPECT_EQ(y.to_vector<float>(), Floats({1, 2, 4}));
  const Tensor both =
      attention(Tensors::list({rows({0, 0, 0}, 3), masked(value(), {true, false, true})}),
                {.use_causal_mask = true})
          .tensor();
  EXPECT_EQ(both.to_vector<float>(), Floats({1, 1, 4.5}));
}

TEST(AttentionTest, DropsWeightsInTrainingOnly) {
  const Attention attention({.dropout = 0.5, .seed = 2});
  const Tensors inputs = Tensors::list({rows(Floats(64, 0), 64), rows({1, 1}, 2)});
  const Floats quiet = attention(inputs).tensor().to_vector<float>();
  EXPECT_EQ(quiet, Floats(64, 1));
  int changed = 0;
  for (float y : attention(inputs, {.training = true}).tensor().to_vector<float>()) {
    EXPECT_TRUE(y == 0 || y == 1 || y == 2) << y;
    changed += y != 1;
  }
  EXPECT_GT(changed, 8);
}

TEST(AttentionTest, GraphsKeepHowItWasCalled) {
  const Tensor q = layers::input({.shape = {kUnknown, 1}});
  const Tensor v = layers::input({.shape = {kUnknown, 1}});
  const Attention attention({});
  const Tensors result =
      attention(Tensors::list({q, v}), {.return_attention_scores = true, .use_causal_mask = true});
  EXPECT_EQ(result[0].tensor().shape(), Shape({kUnknown, kUnknown, 1}));
  EXPECT_EQ(result[1].tensor().shape(), Shape({kUnknown, kUnknown, kUnknown}));
  const Functional model({.inputs = Tensors::list({q, v}), .outputs = result});
  const Tensors y = model(Tensors::list({query(), value()}));
  EXPECT_EQ(y[0].tensor().to_vector<float>(), Floats({1, 2}));
  EXPECT_EQ(y[1].tensor().to_vector<float>(), Floats({1, 0, 0, 0.5, 0.5, 0}));
}

TEST(AttentionTest, RejectsIncompatibleArguments) {
  EXPECT_THROW(Attention({.score_mode = "cosine"}), ValueError);
  EXPECT_THROW(Attention({.dropout = 2}), ValueError);
  const Attention attention({});
  EXPECT_THROW(attention(Tensors(query())), ValueError);
  EXPECT_THROW(attention(Tensors::list({query()})), ValueError);
  EXPECT_THROW(attention(Tensors::list({query(), query(), query(), query()})), ValueError);
  EXPECT_THROW(attention(Tensors::list({query(), Tensor::zeros({1, 2})})), ValueError);
  EXPECT_THROW(attention(Tensors({{"query", Tensors(query())}})), ValueError);
}

TEST(AdditiveAttentionTest, ScoresAreTanhOfSums) {
  const AdditiveAttention attention({});
  const Tensors inputs = Tensors::list({rows({1}, 1), rows({0, 2}, 2)});
  attention(inputs);
  ASSERT_EQ(attention->weights().size(), 1u);
  EXPECT_EQ(attention->weights()[0].shape(), Shape({1}));
  attention->weights()[0].assign(Tensor::from<float>({3}, {1}));
  const float difference = 3 * (std::tanh(3.0F) - std::tanh(1.0F));
  EXPECT_FLOAT_EQ(attention(inputs).tensor().item<float>(), 2 / (1 + std::exp(-difference)));
  EXPECT_TRUE(AdditiveAttention({.use_scale = false})->weights().empty());
}

// Attends from a sequence to itself.
class SelfAttention final : public TensorLayer {
 public:
  explicit SelfAttention(LayerHandle<Layer> attention)
      : TensorLayer("SelfAttention"), attention_(track(std::move(attention))) {}

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    return attention_(Tensors::list({x, x, x})).tensor();
  }
  const LayerHandle<Layer> attention_;
};

TEST(AttentionTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 3, 2});
  const auto check = [&](const LayerHandle<Layer>& attention) {
    testing_support::expect_gradients_are_slopes(make_layer<SelfAttention>(attention), x);
  };
  check(Attention({.use_scale = true, .dtype = DType::kFloat64}));
  check(Attention({.use_scale = true, .score_mode = "concat", .dtype = DType::kFloat64}));
  check(AdditiveAttention({.dtype = DType::kFloat64}));
}

TEST(AttentionTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "AdditiveAttention",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3, 4}),
                         .output = float_spec({2, 3, 4}),
                         .trainable_weights = 1,
                         .weights = 1});
  expect_layer_contract({.class_name = "Attention",
                         .config = R"({"use_scale": true, "score_mode": "concat"})",
                         .inputs = float_spec_pair({2, 3, 4}),
                         .output = float_spec({2, 3, 4}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::attention_test
