// Tests layers/recurrent/gru.cc, lstm.cc and simple_rnn.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/recurrent.h>
#include <keel/layers/recurrent/simple_rnn.h>

#include "tests/support/layer_contract.h"

namespace keel::recurrent_cell_test {

using layers::GRUCell;
using layers::LSTMCell;
using layers::SimpleRNNCell;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using Floats = std::vector<float>;

Tensor one(float value) { return Tensor::from<float>({value}, {1, 1}); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

TEST(RecurrentCellTest, SimpleRNNCellMatchesItsFormula) {
  const SimpleRNNCell cell(
      {.units = 1, .kernel_initializer = "ones", .recurrent_initializer = "ones"});
  const Tensors result = cell(Tensors::list({one(0.5F), one(0.25F)}));
  EXPECT_FLOAT_EQ(result[0].tensor().item<float>(), std::tanh(0.75F));
  EXPECT_EQ(result[1].items().size(), 1u);
}

TEST(RecurrentCellTest, LSTMCellMatchesItsFormula) {
  const LSTMCell cell({.units = 1, .kernel_initializer = "ones", .recurrent_initializer = "ones"});
  const Tensors result = cell(Tensors::list({one(0.5F), one(0.25F), one(2)}));
  const float z = 0.75F;
  const float carry = sigmoid(z + 1) * 2 + sigmoid(z) * std::tanh(z);
  EXPECT_FLOAT_EQ(result[1][1].tensor().item<float>(), carry);
  EXPECT_FLOAT_EQ(result[0].tensor().item<float>(), sigmoid(z) * std::tanh(carry));
}

TEST(RecurrentCellTest, UnitForgetBiasAffectsTheForgetGateOnly) {
  const LSTMCell cell({.units = 2});
  cell->build(Specs::list(
      {TensorSpec{.shape = {1, 3}}, TensorSpec{.shape = {1, 2}}, TensorSpec{.shape = {1, 2}}}));
  EXPECT_EQ(cell->bias().read().to_vector<float>(), Floats({0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(RecurrentCellTest, GRUCellMatchesBothFormulas) {
  const float x = 0.5F, h = 0.25F;
  const float gate = sigmoid(x + h);
  for (const bool after : {true, false}) {
    const GRUCell cell({.units = 1,
                        .kernel_initializer = "ones",
                        .recurrent_initializer = "ones",
                        .reset_after = after});
    const float candidate = std::tanh(x + gate * h);
    EXPECT_FLOAT_EQ(cell(Tensors::list({one(x), one(h)}))[0].tensor().item<float>(),
                    gate * h + (1 - gate) * candidate);
    EXPECT_EQ(cell->bias().shape(), after ? Shape({2, 3}) : Shape({3}));
  }
}

// The state bias of the candidate is multiplied by the reset gate.
TEST(RecurrentCellTest, ResetAfterHasABiasOfTheState) {
  const GRUCell cell({.units = 1, .kernel_initializer = "zeros", .recurrent_initializer = "zeros"});
  const Tensors inputs = Tensors::list({one(0), one(0)});
  cell(inputs);
  cell->bias().assign(Tensor::from<float>({0, 0, 0, 0, 0, 3}, {2, 3}));
  EXPECT_FLOAT_EQ(cell(inputs)[0].tensor().item<float>(), 0.5F * std::tanh(0.5F * 3));
}

TEST(RecurrentCellTest, UseBiasFalseHasNoBias) {
  const GRUCell cell({.units = 1, .use_bias = false});
  cell(Tensors::list({one(1), one(1)}));
  EXPECT_EQ(cell->weights().size(), 2u);
}

TEST(RecurrentCellTest, ALayerRunsItsCell) {
  const layers::LSTM lstm({.units = 3});
  const Tensor x = Initializer("glorot_uniform")({2, 4, 5});
  const Tensor expected = lstm(x);
  Tensors state = Tensors::list({Tensor::zeros({2, 3}), Tensor::zeros({2, 3})});
  for (int64_t t = 0; t < 4; ++t) {
    const Tensor step = ops::squeeze(ops::slice(x, 1, t, 1), 1);
    state = lstm->cell()(Tensors::list({step, state[0], state[1]}))[1];
  }
  EXPECT_EQ(state[0].tensor().to_vector<float>(), expected.to_vector<float>());
}

// If the state is dropped too, each gate of a call has its own masks.
TEST(RecurrentCellTest, RecurrentDropoutHasAMaskForEachGate) {
  const Tensor x = Tensor::full<float>({2, 5}, 1), h = Tensor::full<float>({2, 4}, 1);
  for (const double rate : {0.0, 0.5}) {
    const GRUCell cell({.units = 4, .dropout = 0.5, .recurrent_dropout = rate});
    cell(Tensors::list({x, h}));
    const auto masks = cell->draw_masks(x, h, true);
    EXPECT_EQ(masks.inputs.size(), rate == 0 ? 1u : 3u);
    EXPECT_EQ(masks.states.size(), rate == 0 ? 0u : 3u);
    EXPECT_TRUE(cell->draw_masks(x, h, false).inputs.empty());
  }
}

TEST(RecurrentCellTest, AllGatesSeeTheirMasks) {
  const Tensor x = Tensor::full<float>({2, 5}, 1), h = Tensor::full<float>({2, 4}, 1);
  for (const bool after : {true, false}) {
    const GRUCell cell({.units = 4, .recurrent_dropout = 0.5, .reset_after = after});
    const Tensors inputs = Tensors::list({x, h});
    cell(inputs);
    RecurrentCell::Masks ones;
    ones.states = std::vector<Tensor>(3, Tensor::full<float>({2, 4}, 1));
    const Tensor projected = cell->project(x, {});
    EXPECT_EQ(cell->make_step(ones)(projected, {h})[0].to_vector<float>(),
              cell->make_step({})(projected, {h})[0].to_vector<float>());
    for (int gate = 0; gate < 3; ++gate) {
      RecurrentCell::Masks masks = ones;
      masks.states[gate] = Tensor::zeros({2, 4});
      EXPECT_NE(cell->make_step(masks)(projected, {h})[0].to_vector<float>(),
                cell->make_step({})(projected, {h})[0].to_vector<float>());
    }
  }
}

TEST(RecurrentCellTest, RejectsIncompatibleInputs) {
  const LSTMCell cell({.units = 2}), other({.units = 2});
  const Tensor x = Tensor::zeros({1, 3}), h = Tensor::zeros({1, 2});
  EXPECT_THROW(cell(Tensors::list({x, h})), ValueError);
  EXPECT_THROW(other(Tensors::list({Tensor::zeros({1, 2, 3}), h, h})), ValueError);
  EXPECT_THROW(LSTMCell({.units = -1}), ValueError);
}

TEST(RecurrentCellTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GRUCell",
                         .config = R"({"units": 3, "reset_after": false})",
                         .inputs = float_spec_pair({2, 3}),
                         .output = Specs::list({float_spec({2, 3}), float_spec({2, 3})}),
                         .trainable_weights = 3,
                         .weights = 3});
  expect_layer_contract(
      {.class_name = "LSTMCell",
       .config = R"({"units": 3})",
       .inputs = Specs::list({float_spec({2, 5}), float_spec({2, 3}), float_spec({2, 3})}),
       .output = Specs::list({float_spec({2, 3}), float_spec({2, 3}), float_spec({2, 3})}),
       .trainable_weights = 3,
       .weights = 3});
  expect_layer_contract({.class_name = "SimpleRNNCell",
                         .config = R"({"units": 3, "use_bias": false})",
                         .inputs = float_spec_pair({2, 3}),
                         .output = Specs::list({float_spec({2, 3}), float_spec({2, 3})}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::recurrent_cell_test
