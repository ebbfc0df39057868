// Tests layers/recurrent/.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/recurrent.h>
#include <keel/layers/recurrent/simple_rnn.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::recurrent_layer_test {

using layers::GRU;
using layers::LSTM;
using layers::SimpleRNN;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::sequence;
using testing_support::with_mask;
using Floats = std::vector<float>;

// h = x + h_before, so that states are sums of the steps.
SimpleRNNOptions adder() {
  return {.units = 1,
          .activation = "linear",
          .kernel_initializer = "ones",
          .recurrent_initializer = "ones"};
}

// Returns its input with a mask for two sequences of three steps.
class SomeSteps final : public Layer {
 public:
  SomeSteps() : Layer("SomeSteps") {}
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override {
    return {Tensor::from<bool>({true, false, true, false, true, true}, {2, 3})};
  }

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }
};

TEST(RecurrentLayerTest, ReturnsTheLastOutputOrAll) {
  SimpleRNNOptions options = adder();
  EXPECT_EQ(SimpleRNN(options)(sequence({1, 2, 4})).to_vector<float>(), Floats({7}));
  options.return_sequences = true;
  const Tensor all = SimpleRNN(options)(sequence({1, 2, 4}));
  EXPECT_EQ(all.shape(), Shape({1, 3, 1}));
  EXPECT_EQ(all.to_vector<float>(), Floats({1, 3, 7}));
}

TEST(RecurrentLayerTest, GoBackwardsReturnsOutputsInReverse) {
  SimpleRNNOptions options = adder();
  options.go_backwards = true;
  options.return_sequences = true;
  EXPECT_EQ(SimpleRNN(options)(sequence({1, 2, 4})).to_vector<float>(), Floats({4, 6, 7}));
}

TEST(RecurrentLayerTest, StartsFromTheInitialState) {
  const SimpleRNN rnn(adder());
  const Tensor start = Tensor::from<float>({10}, {1, 1});
  EXPECT_EQ(rnn(sequence({1, 2}), {.initial_state = {start}}).to_vector<float>(), Floats({13}));
  EXPECT_EQ(rnn(Tensors::list({sequence({1, 2}), start})).tensor().to_vector<float>(),
            Floats({13}));
  EXPECT_THROW(rnn(sequence({1}), {.initial_state = {start, start}}), ValueError);
  EXPECT_THROW(rnn(sequence({1}), {.initial_state = {Tensor::zeros({1, 2})}}), ValueError);
}

TEST(RecurrentLayerTest, ReturnsTheStatesAfterTheOutput) {
  const LSTM lstm({.units = 2, .return_sequences = true, .return_state = true});
  const Tensors result = lstm(Tensors(Tensor::full<float>({3, 4, 5}, 0.5F)));
  ASSERT_EQ(result.items().size(), 3u);
  EXPECT_EQ(result[0].tensor().shape(), Shape({3, 4, 2}));
  const Tensor last = ops::squeeze(ops::slice(result[0].tensor(), 1, 3, 1), 1);
  EXPECT_EQ(result[1].tensor().to_vector<float>(), last.to_vector<float>());
  EXPECT_EQ(result[2].tensor().shape(), Shape({3, 2}));
}

TEST(RecurrentLayerTest, StatesOfOneBatchContinueInTheNext) {
  const LSTM whole({.units = 2, .return_state = true, .name = "whole"});
  const Tensor x = Initializer("glorot_uniform")({3, 6, 4});
  const Tensors expected = whole(Tensors(x));
  const Tensors first = whole(Tensors(ops::slice(x, 1, 0, 2)));
  const Tensors second = whole(Tensors(ops::slice(x, 1, 2, 4)),
                               {.initial_state = {first[1].tensor(), first[2].tensor()}});
  EXPECT_EQ(second[0].tensor().to_vector<float>(), expected[0].tensor().to_vector<float>());
}

TEST(RecurrentLayerTest, StatefulKeepsItsStatesUntilTheyAreReset) {
  SimpleRNNOptions options = adder();
  options.stateful = true;
  const SimpleRNN rnn(options);
  EXPECT_EQ(rnn(sequence({1, 2})).to_vector<float>(), Floats({3}));
  EXPECT_EQ(rnn(sequence({4})).to_vector<float>(), Floats({7}));
  EXPECT_EQ(rnn->states().size(), 1u);
  EXPECT_EQ(rnn->weights().size(), 3u);
  rnn->reset_states();
  EXPECT_EQ(rnn(sequence({4})).to_vector<float>(), Floats({4}));
}

TEST(RecurrentLayerTest, StatefulRequiresAFixedBatchSize) {
  SimpleRNNOptions options = adder();
  options.stateful = true;
  const SimpleRNN unknown(options), rnn(options);
  EXPECT_THROW(unknown(layers::input({.shape = {2, 1}})), ValueError);
  rnn(sequence({1}));
  EXPECT_THROW(rnn(Tensor::zeros({2, 1, 1})), ValueError);
}

TEST(RecurrentLayerTest, NoGradientReachesThePreviousBatch) {
  SimpleRNNOptions options = adder();
  options.stateful = true;
  const SimpleRNN rnn(options);
  const Tensor before = sequence({1}), now = sequence({2});
  rnn(before);
  rnn->reset_states();
  GradientTape tape;
  tape.watch(before);
  tape.watch(now);
  rnn(before);
  const auto gradients = tape.input_gradient(rnn(now), {before, now});
  EXPECT_FALSE(gradients[0]);
  EXPECT_EQ(gradients[1].dense().to_vector<float>(), Floats({1}));
}

TEST(RecurrentLayerTest, MaskedStepsKeepTheStateAndRepeatTheOutput) {
  SimpleRNNOptions options = adder();
  options.return_sequences = true;
  options.return_state = true;
  const SimpleRNN rnn(options);
  const Tensor x = with_mask(sequence({1, 2, 4, 8}), {false, true, false, true});
  const Tensors result = rnn(Tensors(x));
  EXPECT_EQ(result[0].tensor().to_vector<float>(), Floats({0, 2, 2, 10}));
  EXPECT_EQ(result[1].tensor().to_vector<float>(), Floats({10}));
  EXPECT_EQ(result[0].tensor().mask().to_vector<bool>(), x.mask().to_vector<bool>());
  EXPECT_FALSE(result[1].tensor().mask());
}

TEST(RecurrentLayerTest, OutputsOfMaskedStepsMayBeZero) {
  SimpleRNNOptions options = adder();
  options.return_sequences = true;
  options.zero_output_for_mask = true;
  const Tensor x = with_mask(sequence({1, 2, 4}), {true, false, true});
  EXPECT_EQ(SimpleRNN(options)(x).to_vector<float>(), Floats({1, 0, 5}));
  options.return_sequences = false;
  const Tensor ends = with_mask(sequence({1, 2, 4}), {true, true, false});
  const Tensor last = SimpleRNN(options)(ends);
  EXPECT_EQ(last.to_vector<float>(), Floats({0}));
  EXPECT_FALSE(last.mask());
}

TEST(RecurrentLayerTest, MasksAreReversedWithTheSteps) {
  SimpleRNNOptions options = adder();
  options.go_backwards = true;
  options.return_sequences = true;
  const Tensor x = with_mask(sequence({1, 2, 4}), {true, true, false});
  EXPECT_EQ(SimpleRNN(options)(x).to_vector<float>(), Floats({0, 2, 3}));
}

TEST(RecurrentLayerTest, PaddedSequencesEndLikeShortOnes) {
  const Sequential model(
      {.layers = {layers::Embedding({.input_dim = 9, .output_dim = 3, .mask_zero = true}),
                  GRU({.units = 4})}});
  const Tensor padded = model(Tensor::from<int64_t>({5, 2, 0, 0}, {1, 4}));
  const Tensor exact = model(Tensor::from<int64_t>({5, 2}, {1, 2}));
  EXPECT_EQ(padded.to_vector<float>(), exact.to_vector<float>());
}

TEST(RecurrentLayerTest, SpecsFollowFromUnknownRowsAndSteps) {
  const GRU gru({.units = 4, .return_sequences = true, .return_state = true});
  const auto specs =
      flatten(gru->compute_output_spec(TensorSpec{.shape = {kUnknown, kUnknown, 3}}));
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].shape, Shape({kUnknown, kUnknown, 4}));
  EXPECT_EQ(specs[1].shape, Shape({kUnknown, 4}));
}

TEST(RecurrentLayerTest, InitialStatesArePartOfTheGraph) {
  const Tensor x = layers::input({.shape = {2, 1}}), start = layers::input({.shape = {1}});
  const SimpleRNN rnn(adder());
  const Functional model(
      {.inputs = Tensors::list({x, start}), .outputs = rnn(x, {.initial_state = {start}})});
  const Tensor y =
      model(Tensors::list({sequence({1, 2}), Tensor::from<float>({5}, {1, 1})})).tensor();
  EXPECT_EQ(y.to_vector<float>(), Floats({8}));
}

TEST(RecurrentLayerTest, RejectsInputsWithoutSteps) {
  const SimpleRNN rnn(adder());
  EXPECT_THROW(rnn(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(rnn(Tensor::zeros({2, 0, 3})), ValueError);
  EXPECT_THROW(rnn(layers::input({.shape = {2, kUnknown}})), ValueError);
}

TEST(RecurrentLayerTest, RejectsOptionsOutOfRange) {
  EXPECT_THROW(SimpleRNN({.units = 0}), ValueError);
  EXPECT_THROW(GRU({.units = 1, .dropout = 1.5}), ValueError);
  EXPECT_THROW(LSTM({.units = 1, .recurrent_dropout = -0.1}), ValueError);
}

TEST(RecurrentLayerTest, DropsInputsAndStatesInTrainingOnly) {
  const Tensor x = Tensor::full<float>({4, 3, 5}, 1);
  for (const bool recurrent : {false, true}) {
    const LSTM lstm({.units = 6,
                     .dropout = recurrent ? 0 : 0.5,
                     .recurrent_dropout = recurrent ? 0.5 : 0,
                     .seed = 3});
    const Floats quiet = lstm(x).to_vector<float>();
    EXPECT_EQ(lstm(x).to_vector<float>(), quiet);
    const Floats first = lstm(x, {.training = true}).to_vector<float>();
    EXPECT_NE(first, quiet);
    EXPECT_NE(lstm(x, {.training = true}).to_vector<float>(), first);
  }
}

TEST(RecurrentLayerTest, AMaskOfInputsIsTheSameForAllSteps) {
  SimpleRNNOptions options = adder();
  options.dropout = 0.5;
  options.seed = 1;
  options.return_sequences = true;
  const SimpleRNN rnn(options);
  const Floats y = rnn(Tensor::full<float>({64, 3, 1}, 1), {.training = true}).to_vector<float>();
  int dropped = 0;
  for (size_t row = 0; row < 64; ++row) {
    const bool kept = y[3 * row] != 0;
    dropped += !kept;
    const Floats expected = kept ? Floats{2, 4, 6} : Floats{0, 0, 0};
    EXPECT_EQ(Floats(y.begin() + 3 * row, y.begin() + 3 * row + 3), expected);
  }
  EXPECT_GT(dropped, 16);
  EXPECT_LT(dropped, 48);
}

TEST(RecurrentLayerTest, EqualSeedsDropTheSameElements) {
  const Tensor x = Tensor::full<float>({4, 3, 5}, 1);
  const auto run = [&] {
    const GRU gru({.units = 3,
                   .kernel_initializer = "ones",
                   .recurrent_initializer = "ones",
                   .dropout = 0.3,
                   .recurrent_dropout = 0.3,
                   .seed = 7});
    return gru(x, {.training = true}).to_vector<float>();
  };
  EXPECT_EQ(run(), run());
}

TEST(RecurrentLayerTest, RegularizersCountOnce) {
  const SimpleRNN rnn({.units = 2,
                       .kernel_initializer = "ones",
                       .recurrent_initializer = "ones",
                       .kernel_regularizer = regularizers::l1(1),
                       .recurrent_regularizer = regularizers::l2(1),
                       .activity_regularizer = regularizers::l1(0)});
  rnn(Tensor::zeros({1, 2, 3}));
  const auto losses = rnn->losses();
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses[1].item<float>(), 6);
  EXPECT_EQ(losses[2].item<float>(), 4);
}

TEST(RecurrentLayerTest, WeightsAreNamedByLayerAndCell) {
  const LSTM lstm({.units = 2, .name = "memory"});
  lstm(Tensor::zeros({1, 2, 3}));
  std::vector<std::string> paths;
  for (const Variable& v : lstm->weights()) paths.push_back(v.path());
  EXPECT_EQ(paths, std::vector<std::string>({"memory/lstm_cell/kernel",
                                             "memory/lstm_cell/recurrent_kernel",
                                             "memory/lstm_cell/bias"}));
  EXPECT_EQ(lstm->sublayer_attributes(), std::vector<std::string>{"cell"});
}

TEST(RecurrentLayerTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 3, 3});
  const auto check = [&](const LayerHandle<Layer>& layer) {
    testing_support::expect_gradients_are_slopes(layer, x);
  };
  check(SimpleRNN({.units = 2, .return_sequences = true, .dtype = DType::kFloat64}));
  check(LSTM({.units = 2, .go_backwards = true, .dtype = DType::kFloat64}));
  check(GRU({.units = 2, .return_sequences = true, .dtype = DType::kFloat64}));
  check(GRU({.units = 2, .reset_after = false, .dtype = DType::kFloat64}));
  check(Sequential(
      {.layers = {make_layer<SomeSteps>(),
                  LSTM({.units = 2, .return_sequences = true, .dtype = DType::kFloat64})}}));
}

TEST(RecurrentLayerTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GRU",
                         .config = R"({"units": 4, "dropout": 0.5, "return_sequences": true})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 5, 4}),
                         .trainable_weights = 3,
                         .weights = 3});
  expect_layer_contract(
      {.class_name = "LSTM",
       .config = R"({"units": 4, "recurrent_dropout": 0.5, "return_state": true})",
       .inputs = float_spec({2, 5, 3}),
       .output = Specs::list({float_spec({2, 4}), float_spec({2, 4}), float_spec({2, 4})}),
       .trainable_weights = 3,
       .weights = 3});
  expect_layer_contract({.class_name = "SimpleRNN",
                         .config = R"({"units": 4, "go_backwards": true})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 4}),
                         .trainable_weights = 3,
                         .weights = 3});
}

}  // namespace keel::recurrent_layer_test
