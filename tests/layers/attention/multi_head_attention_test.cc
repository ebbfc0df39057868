// Tests layers/attention/internal/heads.cc.
#include <keel/layers/attention/multi_head_attention.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::multi_head_attention_test {

using layers::MultiHeadAttention;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using testing_support::glorot_uniform;
using testing_support::with_mask;
using Floats = std::vector<float>;

Tensor run(const MultiHeadAttention& layer, const Tensors& inputs,
           const MultiHeadAttentionCallOptions& options = {}) {
  return layer(inputs, options).tensor();
}

// Returns the scores [batch, heads, tq, tv] of a call.
Tensor scores(const MultiHeadAttention& layer, const Tensors& inputs,
              MultiHeadAttentionCallOptions options = {}) {
  options.return_attention_scores = true;
  return layer(inputs, options)[1].tensor();
}

// Computes the expected output head by head with matrices.
TEST(MultiHeadAttentionTest, IsTheSumOfItsHeads) {
  const MultiHeadAttention layer({.num_heads = 3, .key_dim = 2, .value_dim = 4});
  const Tensor query = glorot_uniform({1, 2, 5}), value = glorot_uniform({1, 6, 7}),
               key = glorot_uniform({1, 6, 3});
  const Tensor y = run(layer, Tensors::list({query, value, key}));
  ASSERT_EQ(y.shape(), Shape({1, 2, 5}));
  const std::vector<Variable> w = layer->weights();
  ASSERT_EQ(w.size(), 8u);
  for (size_t i = 1; i < 8; i += 2) w[i].assign(glorot_uniform(w[i].shape()));
  const auto head = [](const Tensor& x, const Variable& kernel, const Variable& bias, int64_t h) {
    return ops::matmul(x, ops::squeeze(ops::slice(kernel, 1, h, 1), 1)) + ops::slice(bias, 0, h, 1);
  };
  Tensor sum = ops::broadcast_to(w[7], {1, 2, 5});
  for (int64_t h = 0; h < 3; ++h) {
    const Tensor q = head(query, w[0], w[1], h), k = head(key, w[2], w[3], h);
    const Tensor weights = ops::softmax(ops::matmul(q, k, false, true) / std::sqrt(2.0));
    const Tensor mixed = ops::matmul(weights, head(value, w[4], w[5], h));
    sum = sum + ops::matmul(mixed, ops::squeeze(ops::slice(w[6], 0, h, 1), 0));
  }
  expect_near(run(layer, Tensors::list({query, value, key})), sum, {.absolute = 1e-5});
}

TEST(MultiHeadAttentionTest, WeightsMatchKeras) {
  const MultiHeadAttention layer({.num_heads = 3, .key_dim = 2, .name = "mha"});
  const Tensor x = glorot_uniform({2, 4, 5});
  run(layer, Tensors::list({x, x}));
  std::vector<std::string> found;
  for (const Variable& v : layer->weights()) found.push_back(str(v.path(), v.shape()));
  EXPECT_EQ(found,
            std::vector<std::string>(
                {"mha/query/kernel(5, 3, 2)", "mha/query/bias(3, 2)", "mha/key/kernel(5, 3, 2)",
                 "mha/key/bias(3, 2)", "mha/value/kernel(5, 3, 2)", "mha/value/bias(3, 2)",
                 "mha/attention_output/kernel(3, 2, 5)", "mha/attention_output/bias(5,)"}));
  EXPECT_EQ(layer->sublayer_attributes(),
            std::vector<std::string>({"query_dense", "key_dense", "value_dense", "output_dense"}));
}

TEST(MultiHeadAttentionTest, OutputShapeAndBiasAreOptions) {
  const Tensor x = glorot_uniform({2, 4, 5});
  const MultiHeadAttention one(
      {.num_heads = 2, .key_dim = 2, .use_bias = false, .output_shape = 7});
  EXPECT_EQ(run(one, Tensors::list({x, x})).shape(), Shape({2, 4, 7}));
  EXPECT_EQ(one->weights().size(), 4u);
  const MultiHeadAttention two({.num_heads = 2, .key_dim = 2, .output_shape = Axes({3, 2})});
  EXPECT_EQ(run(two, Tensors::list({x, x})).shape(), Shape({2, 4, 3, 2}));
}

TEST(MultiHeadAttentionTest, MasksHideStepsOfKeysFromQueries) {
  const MultiHeadAttention layer({.num_heads = 2, .key_dim = 2});
  const Tensor query = glorot_uniform({1, 2, 3}), value = glorot_uniform({1, 3, 3});
  const auto visible = [](const Tensor& s) {
    std::string out;
    for (float w : s.to_vector<float>()) out += w > 0 ? '1' : '0';
    return out;
  };
  const Tensors plain = Tensors::list({query, value});
  EXPECT_EQ(visible(scores(layer, plain)), "111111111111");
  EXPECT_EQ(visible(scores(layer, plain, {.use_causal_mask = true})), "100110100110");
  const Tensor some = Tensor::from<bool>({true, false, true, false, true, true}, {1, 2, 3});
  EXPECT_EQ(visible(scores(layer, plain, {.attention_mask = some})), "101011101011");
  EXPECT_EQ(visible(scores(layer, plain, {.attention_mask = some, .use_causal_mask = true})),
            "100010100010");
  const Tensor by_head = Tensor::from<bool>({true, true, false, false, true, true}, {1, 2, 1, 3});
  EXPECT_EQ(visible(scores(layer, plain, {.attention_mask = by_head})), "110110011011");
  const Tensor hidden = with_mask(value, {true, true, false});
  EXPECT_EQ(visible(scores(layer, Tensors::list({query, hidden}))), "110110110110");
  EXPECT_EQ(visible(scores(layer, Tensors::list({query, value, hidden}))), "110110110110");
}

// The mask of a query that hides all steps hides none in Keras, if scores are returned.
TEST(MultiHeadAttentionTest, TheOutputHasTheMaskOfTheQuery) {
  const MultiHeadAttention layer({.num_heads = 1, .key_dim = 2});
  const Tensor bare = glorot_uniform({1, 2, 3}), value = glorot_uniform({1, 4, 3});
  const Tensor query = with_mask(bare, {false, true});
  const Tensors result = layer(Tensors::list({query, value}), {.return_attention_scores = true});
  EXPECT_EQ(result[0].tensor().mask().to_vector<bool>(), std::vector({false, true}));
  EXPECT_FALSE(result[1].tensor().mask());
  const Tensors plain = layer(Tensors::list({bare, value}), {.return_attention_scores = true});
  EXPECT_EQ(result[1].tensor().to_vector<float>(), plain[1].tensor().to_vector<float>());
}

TEST(MultiHeadAttentionTest, DropsWeightsInTrainingOnlyAndReturnsThemUndropped) {
  const MultiHeadAttention layer({.num_heads = 2, .key_dim = 2, .dropout = 0.5, .seed = 1});
  const Tensor x = glorot_uniform({2, 4, 5});
  const Tensors inputs = Tensors::list({x, x});
  const Tensors quiet = layer(inputs, {.return_attention_scores = true});
  const Tensors loud = layer(inputs, {.training = true, .return_attention_scores = true});
  EXPECT_NE(quiet[0].tensor().to_vector<float>(), loud[0].tensor().to_vector<float>());
  EXPECT_EQ(quiet[1].tensor().to_vector<float>(), loud[1].tensor().to_vector<float>());
}

// With one attention axis of two, the other is a batch axis.
TEST(MultiHeadAttentionTest, AttendsOverTheAxesGiven) {
  const Tensor x = glorot_uniform({2, 3, 4, 5});
  const MultiHeadAttention last({.num_heads = 2, .key_dim = 3, .attention_axes = 2});
  const Tensor y = run(last, Tensors::list({x, x}));
  const MultiHeadAttention flat({.num_heads = 2, .key_dim = 3});
  const Tensor rows = ops::reshape(x, {6, 4, 5});
  run(flat, Tensors::list({rows, rows}));
  for (size_t i = 0; i < 8; ++i) flat->weights()[i].assign(last->weights()[i]);
  expect_near(ops::reshape(y, {6, 4, 5}), run(flat, Tensors::list({rows, rows})),
              {.absolute = 1e-5});
  EXPECT_EQ(scores(last, Tensors::list({x, x})).shape(), Shape({2, 3, 2, 4, 4}));
}

TEST(MultiHeadAttentionTest, AttendsOverAllAxesByDefault) {
  const Tensor x = glorot_uniform({2, 3, 4, 5});
  const MultiHeadAttention all({.num_heads = 2, .key_dim = 3});
  const Tensor y = run(all, Tensors::list({x, x}));
  const MultiHeadAttention flat({.num_heads = 2, .key_dim = 3});
  const Tensor rows = ops::reshape(x, {2, 12, 5});
  run(flat, Tensors::list({rows, rows}));
  for (size_t i = 0; i < 8; ++i) flat->weights()[i].assign(all->weights()[i]);
  expect_near(ops::reshape(y, {2, 12, 5}), run(flat, Tensors::list({rows, rows})),
              {.absolute = 1e-5});
  EXPECT_EQ(scores(all, Tensors::list({x, x})).shape(), Shape({2, 2, 3, 4, 3, 4}));
}

TEST(MultiHeadAttentionTest, GraphsKeepHowItWasCalled) {
  const Tensor x = layers::input({.shape = {kUnknown, 3}});
  const Tensor mask = layers::input({.shape = {kUnknown, kUnknown}, .dtype = DType::kBool});
  const MultiHeadAttention layer({.num_heads = 2, .key_dim = 2});
  const Tensors result =
      layer(Tensors::list({x, x}),
            {.attention_mask = mask, .return_attention_scores = true, .use_causal_mask = true});
  EXPECT_EQ(result[0].tensor().shape(), Shape({kUnknown, kUnknown, 3}));
  EXPECT_EQ(result[1].tensor().shape(), Shape({kUnknown, 2, kUnknown, kUnknown}));
  const Functional model({.inputs = Tensors::list({x, mask}), .outputs = result});
  const Tensor batch = glorot_uniform({1, 2, 3});
  const Tensor all = Tensor::full({1, 2, 2}, true);
  const Tensor weights = model(Tensors::list({batch, all}))[1].tensor();
  EXPECT_EQ(
      weights.to_vector<float>(),
      scores(layer, Tensors::list({batch, batch}), {.use_causal_mask = true}).to_vector<float>());
}

TEST(MultiHeadAttentionTest, ReadsTheConfigsOfKeras) {
  const Config config = parse_json(R"({"class_name": "MultiHeadAttention", "config": {
      "name": "mha", "num_heads": 2, "key_dim": 4, "value_dim": 4, "dropout": 0.0,
      "use_bias": true, "use_gate": false, "output_shape": null, "attention_axes": [1],
      "sliding_window": null, "activity_regularizer": null, "seed": null}})");
  const auto layer = layers::deserialize(config);
  const Tensor x = glorot_uniform({2, 3, 5});
  EXPECT_EQ(layer(Tensors::list({x, x})).tensor().shape(), Shape({2, 3, 5}));
}

TEST(MultiHeadAttentionTest, RejectsOptionsOutOfRange) {
  EXPECT_THROW(MultiHeadAttention({.num_heads = 0, .key_dim = 1}), ValueError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 0}), ValueError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 1, .value_dim = -1}), ValueError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 1, .dropout = -1}), ValueError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 1, .output_shape = 0}), ValueError);
}

TEST(MultiHeadAttentionTest, RejectsIncompatibleInputs) {
  const MultiHeadAttention layer({.num_heads = 1, .key_dim = 1});
  const Tensor x = glorot_uniform({2, 3, 4});
  EXPECT_THROW(layer(Tensors(x)), ValueError);
  EXPECT_THROW(layer(Tensors::list({x, glorot_uniform({2, 4})})), ValueError);
  EXPECT_THROW(layer(Tensors::list({glorot_uniform({2, 4}), glorot_uniform({2, 4})})), ValueError);
  EXPECT_THROW(layer(Tensors::list({x, x, glorot_uniform({2, 5, 4})})), ValueError);
  const MultiHeadAttention first({.num_heads = 1, .key_dim = 1, .attention_axes = 0});
  EXPECT_THROW(first(Tensors::list({x, x})), ValueError);
}

// Causal attention from a sequence to itself.
class SelfAttention final : public TensorLayer {
 public:
  SelfAttention() : TensorLayer("SelfAttention") {}

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    return attention_(Tensors::list({x, x}), {.use_causal_mask = true}).tensor();
  }
  const MultiHeadAttention attention_ =
      track(MultiHeadAttention({.num_heads = 2, .key_dim = 2, .dtype = DType::kFloat64}));
};

TEST(MultiHeadAttentionTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(make_layer<SelfAttention>(),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(MultiHeadAttentionTest, FlashAttentionGivesTheSameResults) {
  const Tensor query = glorot_uniform({2, 70, 6}), value = glorot_uniform({2, 80, 6});
  const Tensor steps = Tensor::full<bool>({2, 80}, true);
  const Tensor masked = value.with_mask(steps);
  const Tensor heads = Tensor::full<bool>({2, 2, 70, 80}, true);
  for (const std::optional<int64_t> window :
       {std::optional<int64_t>(), std::optional<int64_t>(9)}) {
    const auto layer = [&](std::optional<bool> flash) {
      return MultiHeadAttention({.num_heads = 2,
                                 .key_dim = 3,
                                 .sliding_window = window,
                                 .flash_attention = flash,
                                 .kernel_initializer = initializers::glorot_uniform(3)});
    };
    const MultiHeadAttention with = layer(true), without = layer(false), chosen = layer({});
    for (const bool causal : {false, true}) {
      for (const Tensor& mask : {Tensor(), heads}) {
        const Tensors inputs = Tensors::list({query, masked});
        const MultiHeadAttentionCallOptions options = {.attention_mask = mask,
                                                       .use_causal_mask = causal};
        const Tensor expected = run(without, inputs, options);
        expect_near(run(with, inputs, options), expected, {.absolute = 1e-5});
        expect_near(run(chosen, inputs, options), expected, {.absolute = 1e-5});
      }
    }
  }
}

TEST(MultiHeadAttentionTest, ASlidingWindowHidesStepsOutsideOfIt) {
  const MultiHeadAttention layer({.num_heads = 1, .key_dim = 2, .sliding_window = 2});
  const Tensor x = glorot_uniform({1, 4, 3});
  const Floats weights = scores(layer, Tensors::list({x, x})).to_vector<float>();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(weights[4 * i + j] != 0, std::abs(i - j) < 2) << i << " " << j;
    }
  }
}

TEST(MultiHeadAttentionTest, AGateMultipliesTheHeads) {
  const MultiHeadAttention layer(
      {.num_heads = 2, .key_dim = 2, .use_bias = false, .use_gate = true});
  const Tensor x = glorot_uniform({1, 3, 4});
  run(layer, Tensors::list({x, x}));
  const std::vector<Variable> weights = layer->weights();
  ASSERT_EQ(weights.size(), 5U);
  weights[2].assign(Tensor::zeros(weights[2].shape()));  // sigmoid(0) = 1 / 2
  const Tensor half = run(layer, Tensors::list({x, x}));
  weights[2].assign(Tensor::full<float>(weights[2].shape(), 0));
  const MultiHeadAttention plain({.num_heads = 2, .key_dim = 2, .use_bias = false});
  run(plain, Tensors::list({x, x}));
  const size_t same[] = {0, 1, 3, 4};
  for (size_t i = 0; i < 4; ++i) plain->weights()[i].assign(weights[same[i]].read());
  expect_near(half * 2, run(plain, Tensors::list({x, x})), {.absolute = 1e-6});
}

TEST(MultiHeadAttentionTest, RejectsFlashAttentionWhereTheWeightsAreNeeded) {
  EXPECT_THROW(
      MultiHeadAttention({.num_heads = 1, .key_dim = 2, .dropout = 0.5, .flash_attention = true}),
      ValueError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 2, .sliding_window = 0}), ValueError);
  const MultiHeadAttention layer({.num_heads = 1, .key_dim = 2, .flash_attention = true});
  const Tensor x = glorot_uniform({1, 4, 3});
  EXPECT_THROW(scores(layer, Tensors::list({x, x})), ValueError);
  EXPECT_EQ(layer->get_config().find("flash_attention"), nullptr);
}

TEST(MultiHeadAttentionTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "MultiHeadAttention",
                         .config = R"({"num_heads": 2, "key_dim": 3, "output_shape": 5})",
                         .inputs = float_spec_pair({2, 3, 4}),
                         .output = float_spec({2, 3, 5}),
                         .trainable_weights = 8,
                         .weights = 8});
}

}  // namespace keel::multi_head_attention_test
