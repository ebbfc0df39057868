// Recurrent layers and wrappers in the files of Keras, and in a serving plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/core/lambda.h>
#include <keel/layers/core/reversible_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/recurrent/conv_lstm.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/rnn.h>
#include <keel/layers/regularization/spatial_dropout.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/wrappers/spectral_normalization.h>
#include <keel/layers/wrappers/wrappers.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::recurrent_files_test {

using testing::HasSubstr;
using testing_support::expect_same_bits;
using testing_support::message_of;
using testing_support::normal;
using testing_support::TemporaryFolder;
using Names = std::vector<std::string>;

layers::StackedRNNCells cells() {
  return layers::StackedRNNCells(
      {.cells = {layers::LSTMCell({.units = 3}), layers::GRUCell({.units = 2}),
                 layers::LSTMCell({.units = 4})}});
}

// Expects that a model predicts the same after a trip through each kind of file, and in a plan.
void expect_round_trips(const ModelHandle& model, const Tensor& x) {
  const TemporaryFolder folder;
  const Tensor expected = model(x);
  for (const char* name : {"model.keras", "model.h5"}) {
    SCOPED_TRACE(name);
    const std::string path = folder / name;
    save_model(model, path);
    const ModelHandle loaded = load_model(path);
    expect_same_bits(loaded(x), expected);
    const ServingPlan plan(loaded);
    expect_same_bits(plan(x).tensor(), expected);
  }
}

Functional sequence_model() {
  const Tensor x = layers::input({.shape = {5, 3}, .name = "x"});
  const Tensors encoded =
      layers::RNN({.cell = cells(), .return_state = true, .name = "encoder"})(Tensors(x));
  const Tensor decoded =
      layers::RNN({.cell = cells(), .return_sequences = true, .name = "decoder"})(
          Tensors::list({x, encoded[1], encoded[2], encoded[3]}))
          .tensor();
  const layers::Bidirectional both(
      {.layer = layers::RNN({.cell = layers::GRUCell({.units = 2}), .name = "cells"}),
       .name = "both"});
  return Functional({.inputs = x, .outputs = both(decoded), .name = "sequences"});
}

TEST(RecurrentFilesTest, StackedCellsKeepTheirPredictions) {
  expect_round_trips(sequence_model(), normal({4, 5, 3}, 1));
}

TEST(RecurrentFilesTest, GroupsOfCellsAreNamedAsInKeras) {
  const TemporaryFolder folder;
  const Functional model = sequence_model();
  save_weights(model, folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  EXPECT_EQ(file.children("layers/rnn/cell/cells"),
            (Names{"gru_cell", "lstm_cell", "lstm_cell_1"}));
  EXPECT_EQ(file.children("layers/rnn_1/cell/cells/lstm_cell_1/vars"), (Names{"0", "1", "2"}));
  EXPECT_EQ(file.spec("layers/rnn/cell/cells/gru_cell/vars/0").shape, Shape({3, 6}));
  EXPECT_TRUE(file.has("layers/bidirectional/forward_layer/cell/vars/0"));
  EXPECT_TRUE(file.children("layers/rnn/vars").empty());
}

TEST(RecurrentFilesTest, ConvLSTMsKeepTheirPredictions) {
  const Tensor x = layers::input({.shape = {3, 6, 5, 2}, .name = "x"});
  const Tensor a = layers::ConvLSTM2D({.filters = 3,
                                       .kernel_size = {3, 2},
                                       .padding = "same",
                                       .return_sequences = true,
                                       .name = "a"})(x);
  const Tensor b = layers::SpatialDropout2D({.rate = 0.25})(
      layers::ConvLSTM2D({.filters = 2, .kernel_size = 2, .strides = 2, .name = "b"})(a));
  const Functional model({.inputs = x, .outputs = b, .name = "frames"});
  expect_round_trips(model, normal({2, 3, 6, 5, 2}, 1));
  const TemporaryFolder folder;
  save_weights(model, folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  EXPECT_EQ(file.spec("layers/conv_lstm2d/cell/vars/0").shape, Shape({3, 2, 2, 12}));
  EXPECT_EQ(file.spec("layers/conv_lstm2d_1/cell/vars/1").shape, Shape({2, 2, 2, 8}));
  save_weights(model, folder / "b.h5");
  const Hdf5File legacy(folder / "b.h5");
  EXPECT_EQ(legacy.string_list("a", "weight_names"),
            (Names{"a/conv_lstm_cell/kernel:0", "a/conv_lstm_cell/recurrent_kernel:0",
                   "a/conv_lstm_cell/bias:0"}));
}

Sequential normalized_model() {
  return Sequential(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}, .name = "in"}),
                  layers::SpectralNormalization(
                      {.layer = layers::Dense({.units = 2, .name = "inner"}), .name = "outer"})},
       .name = "normalized"});
}

// Keras's wrapper holds the kernel as an attribute of its own, so its group contains the kernel,
// too.
TEST(RecurrentFilesTest, SpectralNormalizationStoresTheKernelTwice) {
  const TemporaryFolder folder;
  const Sequential model = normalized_model();
  const Tensor x = normal({4, 3}, 1);
  model(x, {.training = true});
  expect_round_trips(model, x);
  save_weights(model, folder / "a.weights.h5");
  {
    const Hdf5File file(folder / "a.weights.h5");
    const std::string group = "layers/spectral_normalization";
    EXPECT_EQ(file.spec(group + "/vars/0").shape, Shape({3, 2}));
    EXPECT_EQ(file.spec(group + "/vars/1").shape, Shape({1, 2}));
    EXPECT_EQ(file.spec(group + "/layer/vars/0").shape, Shape({3, 2}));
    EXPECT_EQ(file.spec(group + "/layer/vars/1").shape, Shape({2}));
  }
  const Sequential other = normalized_model();
  load_weights(other, folder / "a.weights.h5");
  expect_same_bits(other(x), model(x));
  save_weights(model, folder / "b.h5");
  const Hdf5File legacy(folder / "b.h5");
  EXPECT_EQ(legacy.string_list("outer", "weight_names"),
            (Names{"outer/inner/kernel:0", "outer/inner/bias:0", "outer/vector_u:0"}));
}

TEST(RecurrentFilesTest, ReversibleEmbeddingsKeepTheirDirection) {
  const Tensor ids = layers::input({.shape = {4}, .dtype = DType::kInt64, .name = "ids"});
  const layers::ReversibleEmbedding table({.input_dim = 5,
                                           .output_dim = 3,
                                           .tie_weights = false,
                                           .logit_soft_cap = 2,
                                           .name = "table"});
  const Functional model(
      {.inputs = ids, .outputs = table(table(ids), {.reverse = true}), .name = "language"});
  expect_round_trips(model, Tensor::from<int64_t>({0, 1, 2, 3, 4, 3, 2, 1}, {2, 4}));
}

TEST(RecurrentFilesTest, LambdasAreReadByTheNamesOfTheirFunctions) {
  layers::register_lambda_function("recurrent_files_test_halve",
                                   [](const Tensors& x, const LambdaCall& call) {
                                     return Tensors(x.tensor() * call.arguments["by"].number());
                                   });
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  const layers::Lambda halve({.function = "recurrent_files_test_halve",
                              .arguments = Config::dict({{"by", 0.5}}),
                              .name = "halve"});
  const Functional model({.inputs = x, .outputs = halve(x), .name = "lambdas"});
  expect_round_trips(model, normal({2, 3}, 1));
}

}  // namespace keel::recurrent_files_test
