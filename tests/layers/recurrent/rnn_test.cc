// Tests layers/recurrent/rnn.cc, stacked_rnn_cells.cc and rnn_cell.cc.
#include <keel/layers/recurrent/rnn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/simple_rnn.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::rnn_test {

using layers::GRUCell;
using layers::LSTMCell;
using layers::RNN;
using layers::SimpleRNNCell;
using layers::StackedRNNCells;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::message_of;
using testing_support::normal;
using testing_support::sequence;
using testing_support::with_mask;
using Floats = std::vector<float>;

struct DecayOptions {
  double factor = 0.5;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("factor", self.factor);
  }
};

// A cell with two states, the sum of earlier inputs and their number, and the output sum + 100
// number. In training the output is negative.
class Decay final : public OptionsLayer<DecayOptions, RNNCell> {
 public:
  static constexpr char kClassName[] = "RnnTest>Decay";
  explicit Decay(Options options) : OptionsLayer(kClassName, std::move(options)) {}

  std::vector<Shape> state_shapes(const Shape& input) const override {
    return {input, {input[0], 1}};
  }
  States initial_states(const Shape& input) const override {
    return {Tensor::zeros(input), Tensor::full<float>({input[0], 1}, 1)};
  }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override {
    const auto [x, states] = step_inputs(inputs, 2);
    const Tensor sum = x + states[0] * options_.factor, number = states[1] + 1.0;
    const Tensor output = sum + number * 100;
    return step_result({.output = context.training ? -output : output, .states = {sum, number}});
  }
};

LayerHandle<Decay> decay() { return make_layer<Decay>(DecayOptions{}); }

TEST(RNNTest, RunsACellOfTheUser) {
  const RNN rnn({.cell = decay(), .return_sequences = true, .return_state = true});
  const Tensors result = rnn(Tensors(sequence({8, 4, 2})));
  ASSERT_EQ(result.items().size(), 3u);
  EXPECT_EQ(result[0].tensor().to_vector<float>(), Floats({208, 308, 406}));
  EXPECT_EQ(result[1].tensor().to_vector<float>(), Floats({6}));
  EXPECT_EQ(result[2].tensor().to_vector<float>(), Floats({4}));
  const Tensors trained = rnn(Tensors(sequence({8})), {.training = true});
  EXPECT_EQ(trained[0].tensor().to_vector<float>(), Floats({-208}));
}

TEST(RNNTest, StatefulBeginsWithTheStatesOfTheCell) {
  const RNN rnn({.cell = decay(), .stateful = true});
  EXPECT_EQ(rnn(sequence({8, 4})).to_vector<float>(), Floats({308}));
  EXPECT_EQ(rnn(sequence({0})).to_vector<float>(), Floats({404}));
  ASSERT_EQ(rnn->states().size(), 2u);
  EXPECT_EQ(rnn->states()[1].read().to_vector<float>(), Floats({4}));
}

TEST(RNNTest, MasksKeepAllStatesOfACell) {
  const RNN rnn({.cell = decay(), .return_sequences = true});
  const Tensor x = with_mask(sequence({8, 4, 2}), {true, false, true});
  EXPECT_EQ(rnn(x).to_vector<float>(), Floats({208, 208, 306}));
  const RNN zeros({.cell = decay(), .return_sequences = true, .zero_output_for_mask = true});
  EXPECT_EQ(zeros(x).to_vector<float>(), Floats({208, 0, 306}));
}

TEST(RNNTest, ConfigsNameCellsOfTheUser) {
  layer_registry().add<Decay>();
  const RNN rnn({.cell = make_layer<Decay>(DecayOptions{.factor = 0.25}), .go_backwards = true});
  const Config config = layers::serialize(*rnn);
  EXPECT_EQ(config["config"]["cell"]["config"]["factor"].number(), 0.25);
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
  EXPECT_EQ(copy(sequence({8, 4})).to_vector<float>(), Floats({309}));
}

// Copies the weights of one layer to another.
void copy_weights(const Layer& from, const Layer& to) {
  const std::vector<Variable> a = from.weights(), b = to.weights();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) b[i].assign(a[i].read());
}

TEST(RNNTest, OverACellIsTheLayerOfTheCell) {
  const layers::LSTM lstm({.units = 3, .return_sequences = true, .return_state = true});
  const RNN rnn({.cell = LSTMCell({.units = 3}), .return_sequences = true, .return_state = true});
  const Tensor x = with_mask(normal({2, 4, 5}, 1), {1, 1, 0, 1, 1, 0, 0, 1});
  rnn(Tensors(x));
  const Tensors expected = lstm(Tensors(x));
  copy_weights(*lstm, *rnn);
  const Tensors result = rnn(Tensors(x));
  ASSERT_EQ(result.items().size(), 3u);
  for (int i = 0; i < 3; ++i) expect_same_bits(result[i].tensor(), expected[i].tensor());
}

TEST(RNNTest, StackedCellsAreLayersOneAfterTheOther) {
  const layers::GRU gru({.units = 4, .return_sequences = true});
  const layers::SimpleRNN simple({.units = 3, .return_sequences = true});
  const RNN rnn(
      {.cell = StackedRNNCells({.cells = {GRUCell({.units = 4}), SimpleRNNCell({.units = 3})}}),
       .return_sequences = true});
  const Tensor x = normal({2, 5, 3}, 1);
  const Tensor expected = simple(gru(x));
  rnn(x);
  std::vector<Variable> from = gru->weights();
  for (const Variable& weight : simple->weights()) from.push_back(weight);
  ASSERT_EQ(rnn->weights().size(), from.size());
  for (size_t i = 0; i < from.size(); ++i) rnn->weights()[i].assign(from[i].read());
  testing_support::expect_near(rnn(x), expected, {.absolute = 1e-6});
}

TEST(RNNTest, StatesOfStackedCellsAreNestedByCell) {
  const RNN rnn(
      {.cell = StackedRNNCells({.cells = {LSTMCell({.units = 2}), GRUCell({.units = 3})}}),
       .return_state = true});
  const Tensor x = normal({2, 6, 3}, 1);
  const Tensors whole = rnn(Tensors(x));
  ASSERT_EQ(whole.items().size(), 3u);
  ASSERT_EQ(whole[1].items().size(), 2u);
  EXPECT_EQ(whole[1][1].tensor().shape(), Shape({2, 2}));
  EXPECT_EQ(whole[2].tensor().shape(), Shape({2, 3}));
  // A run continues from the states of another one, flat or nested.
  const Tensors first = rnn(Tensors(ops::slice(x, 1, 0, 2)));
  const Tensor rest = ops::slice(x, 1, 2, 4);
  const Tensors nested = rnn(Tensors::list({rest, first[1], first[2]}));
  expect_same_bits(nested[0].tensor(), whole[0].tensor());
  const Tensors flat =
      rnn(Tensors(rest),
          {.initial_state = {first[1][0].tensor(), first[1][1].tensor(), first[2].tensor()}});
  expect_same_bits(flat[0].tensor(), whole[0].tensor());
  EXPECT_THROW(rnn(Tensors(rest), {.initial_state = {first[2].tensor()}}), ValueError);
}

TEST(RNNTest, StackedCellsCanBeCalledAlone) {
  const StackedRNNCells cells({.cells = {LSTMCell({.units = 2}), GRUCell({.units = 3})}});
  const Tensor x = normal({2, 4}, 1), h = normal({2, 2}, 2), c = normal({2, 2}, 3);
  const Tensor g = normal({2, 3}, 4);
  const Tensors result = cells(Tensors::list({x, Tensors::list({h, c}), g}));
  EXPECT_EQ(result[0].tensor().shape(), Shape({2, 3}));
  const Tensors lstm = cells->cells()[0](Tensors::list({x, h, c}));
  expect_same_bits(result[1][0][1].tensor(), lstm[1][1].tensor());
  const Tensors gru = cells->cells()[1](Tensors::list({lstm[0], g}));
  expect_same_bits(result[0].tensor(), gru[0].tensor());
  EXPECT_THROW(cells(Tensors::list({x, h, c})), ValueError);
}

TEST(RNNTest, PathsAndAttributesAreThoseOfKeras) {
  const StackedRNNCells cells({.cells = {GRUCell({.units = 2, .name = "first"}),
                                         SimpleRNNCell({.units = 2, .name = "second"}),
                                         GRUCell({.units = 2, .name = "third"})},
                               .name = "cells"});
  EXPECT_THAT(cells->sublayer_attributes(),
              ElementsAre("cells/gru_cell", "cells/simple_rnn_cell", "cells/gru_cell_1"));
  const RNN rnn({.cell = cells, .name = "rnn"});
  rnn(Tensor::zeros({1, 2, 2}));
  EXPECT_EQ(rnn->weights()[0].path(), "rnn/cells/first/kernel");
  EXPECT_EQ(rnn->weights()[3].path(), "rnn/cells/second/kernel");
}

TEST(RNNTest, AListOfCellsInAConfigIsStacked) {
  const auto rnn = layers::deserialize(parse_json(
      R"({"class_name": "RNN", "config": {"cell": [
          {"class_name": "GRUCell", "config": {"units": 2}},
          {"class_name": "LSTMCell", "config": {"units": 4}}]}})"));
  EXPECT_EQ(rnn(Tensor::zeros({1, 2, 3})).shape(), Shape({1, 4}));
}

TEST(RNNTest, DropoutOfACellDropsTheSameUnitsInAllSteps) {
  const auto cell = [](double rate) {
    return SimpleRNNCell({.units = 64,
                          .activation = "linear",
                          .kernel_initializer = "identity",
                          .recurrent_initializer = "zeros",
                          .dropout = rate,
                          .seed = 1});
  };
  const RNN rnn(
      {.cell = StackedRNNCells({.cells = {cell(0.5), cell(0.0)}}), .return_sequences = true});
  // The second cell adds nothing: its kernel is the identity, its recurrent kernel is zero.
  const Tensor y = rnn(Tensor::full<float>({1, 3, 64}, 1), {.training = true});
  const Floats values = y.to_vector<float>();
  int dropped = 0;
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(values[i] == 0 || values[i] == 2);
    EXPECT_EQ(values[i], values[64 + i]);
    EXPECT_EQ(values[i], values[128 + i]);
    dropped += values[i] == 0 ? 1 : 0;
  }
  EXPECT_GT(dropped, 10);
  EXPECT_LT(dropped, 54);
}

TEST(RNNTest, ACellMayComputeInAnotherDtype) {
  const RNN rnn({.cell = GRUCell({.units = 2, .dtype = DType::kFloat64}), .return_state = true});
  const Tensors result = rnn(Tensors(normal({2, 3, 4}, 1)));
  EXPECT_EQ(result[0].tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(result[1].tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(rnn->weights()[0].dtype(), DType::kFloat64);
}

TEST(RNNTest, RunsInGraphsWithNestedStates) {
  const Tensor x = layers::input({.shape = {kUnknown, 3}, .name = "x"});
  const RNN encoder(
      {.cell = StackedRNNCells({.cells = {LSTMCell({.units = 2}), GRUCell({.units = 3})}}),
       .return_state = true,
       .name = "encoder"});
  const RNN decoder(
      {.cell = StackedRNNCells({.cells = {LSTMCell({.units = 2}), GRUCell({.units = 3})}}),
       .return_sequences = true,
       .name = "decoder"});
  const Tensors states = encoder(Tensors(x));
  const Tensors y = decoder(Tensors::list({x, states[1], states[2]}));
  EXPECT_EQ(y.tensor().shape(), Shape({kUnknown, kUnknown, 3}));
  const Functional model({.inputs = x, .outputs = y, .name = "translator"});
  const Config config = layers::serialize(*model);
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
  copy_weights(*model, *copy);
  const Tensor batch = normal({2, 4, 3}, 1);
  expect_same_bits(copy(batch), model(batch));
}

TEST(RNNTest, RunsInBothDirectionsAndInTimeDistributed) {
  const RNN rnn(
      {.cell = StackedRNNCells({.cells = {LSTMCell({.units = 2}), GRUCell({.units = 3})}}),
       .return_sequences = true,
       .return_state = true});
  const layers::Bidirectional both({.layer = rnn});
  const Tensor x = normal({2, 4, 5}, 1);
  const Tensors result = both(Tensors(x));
  ASSERT_EQ(result.items().size(), 5u);
  EXPECT_EQ(result[0].tensor().shape(), Shape({2, 4, 6}));
  std::vector<Tensor> states;
  const std::vector<TensorLike> all = flatten(result);
  for (size_t i = 1; i < all.size(); ++i) states.push_back(all[i].tensor());
  ASSERT_EQ(states.size(), 6u);
  const Tensors next = both(Tensors(x), {.initial_state = states});
  const Tensors forward =
      both->forward_layer()(Tensors(x), {.initial_state = {states[0], states[1], states[2]}});
  expect_same_bits(ops::slice(next[0].tensor(), 2, 0, 3), forward[0].tensor());

  const layers::TimeDistributed each({.layer = RNN({.cell = GRUCell({.units = 2})})});
  EXPECT_EQ(each(normal({2, 3, 4, 5}, 1)).shape(), Shape({2, 3, 2}));
}

TEST(RNNTest, RejectsWhatIsNotACell) {
  EXPECT_THAT(message_of<ValueError>([] { RNN(RNNOptions{}); }), HasSubstr("cell is not set"));
  EXPECT_THROW(StackedRNNCells(StackedRNNCellsOptions{}), ValueError);
  EXPECT_THAT(message_of<ValueError>([] {
                layers::deserialize(parse_json(
                    R"({"class_name": "RNN", "config": {"cell": {"class_name": "Dense",
                        "config": {"name": "d", "units": 1}}}})"));
              }),
              HasSubstr("Dense d is not a cell"));
  const RNN rnn({.cell = GRUCell({.units = 2})});
  EXPECT_THROW(rnn(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(rnn(Tensor::zeros({2, 0, 3})), ValueError);
  EXPECT_THROW(rnn(Tensor::zeros({2, 3, 4, 5})), ValueError);
}

TEST(RNNTest, GradientsMatchFiniteDifferences) {
  const RNN rnn(
      {.cell = StackedRNNCells({.cells = {LSTMCell({.units = 2, .dtype = DType::kFloat64}),
                                          GRUCell({.units = 2, .dtype = DType::kFloat64})},
                                .dtype = DType::kFloat64}),
       .return_sequences = true,
       .dtype = DType::kFloat64});
  testing_support::expect_gradients_are_slopes(rnn, testing_support::distinct_doubles({2, 3, 2}));
}

TEST(RNNTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "RNN",
                         .config = R"({"cell": {"class_name": "LSTMCell", "config": {"units": 3}},
                     "return_sequences": true, "go_backwards": true})",
                         .inputs = float_spec({2, 4, 5}),
                         .output = float_spec({2, 4, 3}),
                         .trainable_weights = 3,
                         .weights = 3});
  const TensorSpec x = float_spec({2, 5}), state = float_spec({2, 3});
  expect_layer_contract(
      {.class_name = "StackedRNNCells",
       .config = R"({"cells": [{"class_name": "GRUCell", "config": {"units": 3}}]})",
       .inputs = Specs::list({x, state}),
       .output = Specs::tuple({state, Specs::list({state})}),
       .trainable_weights = 3,
       .weights = 3});
}

}  // namespace keel::rnn_test
