#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/simple_rnn.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::bidirectional_test {

using layers::Bidirectional;
using layers::SimpleRNN;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::sequence;
using Floats = std::vector<float>;

// h = x + h_before, so that states are sums of the steps.
SimpleRNN adder(bool sequences, bool state = false) {
  return SimpleRNN({.units = 1,
                    .activation = "linear",
                    .kernel_initializer = "ones",
                    .recurrent_initializer = "ones",
                    .return_sequences = sequences,
                    .return_state = state});
}

TEST(BidirectionalTest, MergesBothDirections) {
  const Tensor x = sequence({1, 2, 4});
  const auto merged = [&](const std::string& mode) {
    return Bidirectional({.layer = adder(true), .merge_mode = mode})(x).to_vector<float>();
  };
  EXPECT_EQ(merged("concat"), Floats({1, 7, 3, 6, 7, 4}));
  EXPECT_EQ(merged("sum"), Floats({8, 9, 11}));
  EXPECT_EQ(merged("mul"), Floats({7, 18, 28}));
  EXPECT_EQ(merged("ave"), Floats({4, 4.5, 5.5}));
}

TEST(BidirectionalTest, WithoutMergingReturnsBoth) {
  const Bidirectional both({.layer = adder(true), .merge_mode = {}});
  const Tensors result = both(Tensors(sequence({1, 2, 4})));
  ASSERT_EQ(result.items().size(), 2u);
  EXPECT_EQ(result[0].tensor().to_vector<float>(), Floats({1, 3, 7}));
  EXPECT_EQ(result[1].tensor().to_vector<float>(), Floats({7, 6, 4}));
}

TEST(BidirectionalTest, StatesFollowTheOutput) {
  const Bidirectional both({.layer = adder(false, true), .merge_mode = "sum"});
  const Tensor one = Tensor::from<float>({10}, {1, 1}), other = Tensor::from<float>({100}, {1, 1});
  const Tensors result = both(Tensors(sequence({1, 2, 4})), {.initial_state = {one, other}});
  ASSERT_EQ(result.items().size(), 3u);
  EXPECT_EQ(result[0].tensor().item<float>(), 124);
  EXPECT_EQ(result[1].tensor().item<float>(), 17);
  EXPECT_EQ(result[2].tensor().item<float>(), 107);
  EXPECT_THROW(both(Tensors(sequence({1})), {.initial_state = {one}}), ValueError);
}

TEST(BidirectionalTest, MaskedStepsAreZeroInSequences) {
  const Tensor x = sequence({1, 2, 4}).with_mask(Tensor::from<bool>({true, true, false}, {1, 3}));
  const Tensor y = Bidirectional({.layer = adder(true)})(x);
  EXPECT_EQ(y.to_vector<float>(), Floats({1, 3, 3, 2, 0, 0}));
  EXPECT_EQ(y.mask().to_vector<bool>(), std::vector({true, true, false}));
  EXPECT_EQ(Bidirectional({.layer = adder(false)})(x).to_vector<float>(), Floats({3, 3}));
}

TEST(BidirectionalTest, LayersAreCopiesNamedByDirection) {
  const layers::GRU gru({.units = 3, .name = "gru"});
  const Bidirectional both({.layer = gru, .name = "both"});
  both(Tensor::zeros({2, 4, 5}));
  EXPECT_FALSE(gru->built());
  std::vector<std::string> paths;
  for (const Variable& v : both->weights()) paths.push_back(v.path());
  EXPECT_EQ(
      paths,
      std::vector<std::string>(
          {"both/forward_gru/gru_cell/kernel", "both/forward_gru/gru_cell/recurrent_kernel",
           "both/forward_gru/gru_cell/bias", "both/backward_gru/gru_cell/kernel",
           "both/backward_gru/gru_cell/recurrent_kernel", "both/backward_gru/gru_cell/bias"}));
  EXPECT_TRUE(both->backward_layer()->loop().go_backwards);
}

TEST(BidirectionalTest, AnExplicitBackwardLayerIsUsed) {
  const layers::LSTM backward({.units = 2, .go_backwards = true, .name = "own"});
  const Bidirectional both({.layer = layers::GRU({.units = 3}), .backward_layer = backward});
  EXPECT_EQ(both(Tensor::zeros({2, 4, 5})).shape(), Shape({2, 5}));
  EXPECT_TRUE(backward->built());
}

TEST(BidirectionalTest, ConfigsKeepBothLayers) {
  const Bidirectional both(
      {.layer = layers::GRU({.units = 3, .name = "gru"}), .merge_mode = {}, .name = "both"});
  const Config config = layers::serialize(*both);
  EXPECT_EQ(config["config"]["layer"]["config"]["name"].string(), "forward_gru");
  EXPECT_EQ(config["config"]["backward_layer"]["config"]["name"].string(), "backward_gru");
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
}

TEST(BidirectionalTest, StatefulLayersAreResetTogether) {
  const SimpleRNN rnn({.units = 1,
                       .activation = "linear",
                       .kernel_initializer = "ones",
                       .recurrent_initializer = "ones",
                       .stateful = true});
  const Bidirectional both({.layer = rnn});
  const Tensor x = sequence({1, 2});
  both(x);
  EXPECT_EQ(both(x).to_vector<float>(), Floats({6, 6}));
  both->reset_states();
  EXPECT_EQ(both(x).to_vector<float>(), Floats({3, 3}));
}

TEST(BidirectionalTest, RunsInGraphs) {
  const Tensor x = layers::input({.shape = {kUnknown, 1}});
  const Tensor y = Bidirectional({.layer = adder(true)})(x);
  EXPECT_EQ(y.shape(), Shape({kUnknown, kUnknown, 2}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(sequence({1, 2})).to_vector<float>(), Floats({1, 3, 3, 2}));
}

TEST(BidirectionalTest, RejectsIncompatibleLayers) {
  EXPECT_THROW(Bidirectional(BidirectionalOptions{}), ValueError);
  EXPECT_THROW(Bidirectional({.layer = layers::Dense({.units = 1})}), ValueError);
  EXPECT_THROW(Bidirectional({.layer = adder(true), .merge_mode = "max"}), ValueError);
  EXPECT_THROW(Bidirectional({.layer = adder(true), .backward_layer = adder(true)}), ValueError);
  const SimpleRNN backward({.units = 1, .go_backwards = true});
  EXPECT_THROW(Bidirectional({.layer = adder(true), .backward_layer = backward}), ValueError);
  EXPECT_THROW(Bidirectional({.layer = backward}), ValueError);
}

TEST(BidirectionalTest, GradientsMatchFiniteDifferences) {
  const layers::GRU gru({.units = 2, .return_sequences = true, .dtype = DType::kFloat64});
  testing_support::expect_gradients_are_slopes(
      Bidirectional({.layer = gru, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 3, 2}));
}

TEST(BidirectionalTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "Bidirectional",
       .config = R"({"layer": {"class_name": "GRU", "config": {"units": 3}}, "merge_mode": "sum"})",
       .inputs = float_spec({2, 4, 5}),
       .output = float_spec({2, 3}),
       .trainable_weights = 6,
       .weights = 6});
}

}  // namespace keel::bidirectional_test
