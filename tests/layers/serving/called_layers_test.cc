// Layers and operations without a kernel, which plans call.
// Tests layers/serving/steps/row_function.cc.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/wrappers/wrappers.h>

#include "tests/layers/serving/models.h"
#include "tests/support/tensors.h"

namespace keel::called_layers_test {

using testing_support::values_of;

using namespace serving_test;  // NOLINT: the models are what these tests are about
using Names = std::vector<std::string>;

Functional model_of(const Tensor& x, const Tensor& y) {
  return Functional({.inputs = x, .outputs = y});
}

// Expects the results of the plan to stay unchanged while the model changes.
void expect_weights_of_their_moment(const ModelHandle& model, const Tensors& batch,
                                    const Names& called) {
  const std::vector<float> before = values_of(model(batch));
  const ServingPlan plan(model);
  EXPECT_EQ(plan.called_layers(), called);
  for (const Variable& v : model->weights()) v.assign(v.read() * 3.0 + 0.5);
  EXPECT_NE(values_of(model(batch)), before);
  EXPECT_EQ(values_of(plan(batch)), before) << plan.summary();
}

// Computes y = x . scale; has no plan() and is not registered for files.
class Scale final : public TensorLayer {
 public:
  Scale() : TensorLayer(std::string("Scale")) {}

 private:
  void build_weights(const TensorSpec& x) override {
    scale_ = add_weight({.name = "scale", .shape = {x.shape[-1]}, .initializer = "ones"});
  }
  Tensor call(const Tensor& x, const CallContext&) override { return x * scale_.read(); }

  Variable scale_;
};

TEST(CalledLayers, KeepTheWeightsOfPlanCreation) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const layers::Dense first({.units = 4});
  const layers::LayerNormalization norm({.name = "norm"});
  expect_weights_of_their_moment(model_of(x, layers::Dense({.units = 2})(norm(norm(first(x))))),
                                 random_floats({5, 4}, 1), {"norm", "norm"});
  const layers::Dense half({.units = 4, .name = "half", .dtype = "mixed_bfloat16"});
  expect_weights_of_their_moment(model_of(x, layers::Dense({.units = 2})(half(x))),
                                 random_floats({5, 4}, 1), {"half"});
  const auto own = make_layer<Scale>();
  expect_weights_of_their_moment(model_of(x, own(x)), random_floats({5, 4}, 1), {own->name()});
}

TEST(CalledLayers, KeepTheWeightsOfNestedLayers) {
  const Tensor x = layers::input({.shape = {3, 4}, .name = "x"});
  const layers::GRU gru({.units = 5, .name = "gru"});
  expect_weights_of_their_moment(model_of(x, layers::Dense({.units = 2})(gru(x))),
                                 random_floats({6, 3, 4}, 1), {"gru"});
  const layers::MultiHeadAttention attention({.num_heads = 2, .key_dim = 3, .name = "attention"});
  const Tensor seen = attention(Tensors::list({x, x})).tensor();
  expect_weights_of_their_moment(model_of(x, layers::Dense({.units = 2})(seen)),
                                 random_floats({6, 3, 4}, 1), {"attention"});
  const Sequential tower({.layers = {layers::Dense({.units = 3}), make_layer<Scale>()}});
  const layers::TimeDistributed steps({.layer = tower, .name = "steps"});
  expect_weights_of_their_moment(model_of(x, steps(x)), random_floats({6, 3, 4}, 1), {"steps"});
}

TEST(CalledLayers, KeepTheTablesOfPlanCreation) {
  const Tensor ids = layers::input({.shape = {4}, .dtype = DType::kInt64, .name = "ids"});
  const layers::Embedding masked(
      {.input_dim = 9, .output_dim = 3, .mask_zero = true, .name = "masked"});
  expect_weights_of_their_moment(model_of(ids, masked(ids)), random_ids({6, 4}, 9, 1), {"masked"});

  const RaggedTensor bags = layers::ragged_input({.dtype = DType::kInt64, .name = "bags"});
  const layers::TPUEmbedding sequences(
      {.feature_config = FeatureConfig{.table = table(9, 3), .max_sequence_length = 2},
       .name = "sequences"});
  const Tensor rows = sequences(Tensors(bags)).tensor();
  const Functional model({.inputs = bags, .outputs = layers::Dense({.units = 2})(rows)});
  expect_weights_of_their_moment(model, RaggedTensor::from_rows<int64_t>({{1, 2, 3}, {}, {8}}),
                                 {"sequences"});
}

TEST(CalledLayers, KeepTheirWeightsWhileTheModelIsTrained) {
  const Tensor ids = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "ids"});
  const Tensor rows = layers::Embedding({.input_dim = 20, .output_dim = 4, .mask_zero = true})(ids);
  const Tensor norm = layers::LayerNormalization({})(rows);
  const Tensor y = layers::Dense({.units = 1})(layers::Flatten({})(norm));
  const Functional model({.inputs = ids, .outputs = y});
  model->compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = random_ids({64, 3}, 20, 1), labels = random_floats({64, 1}, 2);
  const Tensor batch = random_ids({5, 3}, 20, 3);
  const std::vector<float> before = values_of(model(batch));
  const ServingPlan plan{ModelHandle(model)};
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::jthread server([&] {
    do {
      if (values_of(plan(batch)) != before) ++wrong;
    } while (!done);
  });
  model->fit(x, labels, {.epochs = 5, .batch_size = 16, .verbose = Verbose::kSilent});
  done = true;
  server.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(values_of(model(batch)), before);
}

TEST(CalledLayers, LeaveTheModelsVariablesAlone) {
  const Tensor x = layers::input({.shape = {50}, .name = "x"});
  const layers::Dropout dropout({.rate = 0.5, .seed = 1});
  const Functional model = model_of(x, dropout(x, {.training = true}));
  const Tensor batch = Tensor::full<float>({2, 50}, 1);
  const ServingPlan plan{ModelHandle(model)};
  const std::vector<float> first = values_of(plan(batch)), second = values_of(plan(batch));
  EXPECT_NE(first, second);
  EXPECT_EQ(values_of(model(batch)), first);
  EXPECT_EQ(values_of(model(batch)), second);
}

TEST(CalledLayers, WithTablesOfAnEngineAreRejected) {
  distribute::TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Tensor ids = layers::input({.shape = {}, .dtype = DType::kInt64, .name = "ids"});
  const layers::TPUEmbedding rows(
      {.feature_config = FeatureConfig{.table = table(5, 4)}, .optimizer = tpu::SGD()});
  const Tensor y = rows(Tensors(ids), {.training = true}).tensor();
  EXPECT_THROW(ServingPlan{ModelHandle(model_of(ids, y))}, RuntimeError);
}

// Expects the results of the model for batches of several sizes, including a single row.
void expect_results_of(const ModelHandle& model, const Shape& row, const Names& called) {
  const ServingPlan plan(model);
  EXPECT_EQ(plan.called_layers(), called) << plan.summary();
  for (int64_t rows : {1, 2, 6, 130}) {
    const Tensor batch = random_floats(Shape{rows} + row, 1);
    const Tensor expected = model(batch), received = plan(batch).tensor();
    EXPECT_EQ(received.shape(), expected.shape()) << plan.summary();
    EXPECT_EQ(values_of(received), values_of(expected)) << plan.summary();
  }
}

TEST(CalledLayers, MayReturnOtherNumbersOfRows) {
  const Tensor x = layers::input({.shape = {3, 4}, .name = "x"});
  const Tensor steps = layers::Dense({.units = 5, .name = "step"})(ops::reshape(x, {-1, 4}));
  // Once a result has the rows of the batch, the layers that follow are planned again.
  const Tensor y = layers::Dense({.units = 2})(ops::reshape(steps, {-1, 3, 5}));
  expect_results_of(model_of(x, y), {3, 4}, {"Reshape", "step", "Reshape"});
  // Without the second reshape, the number of result rows is unknown when the plan is created.
  const ServingPlan plan{ModelHandle(model_of(x, steps))};
  const Tensor batch = random_floats({6, 3, 4}, 1);
  EXPECT_EQ(plan(batch).tensor().shape(), Shape({18, 5}));
}

TEST(CalledLayers, MayReturnOneRowForAllOfTheBatch) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const Tensor mean = ops::mean(x, {0}, true);
  const Tensor y = layers::Subtract({.name = "minus"})(Tensors::list({x, mean})).tensor();
  expect_results_of(model_of(x, layers::Dense({.units = 2})(y)), {4}, {"Mean", "minus"});
}

TEST(CalledLayers, MayMakeGroupsOfRows) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const Tensor pairs = layers::Dense({.units = 6, .name = "pairs"})(ops::reshape(x, {-1, 8}));
  const Tensor y = layers::Dense({.units = 2})(ops::reshape(pairs, {-1, 3}));
  const ServingPlan plan{ModelHandle(model_of(x, y))};
  EXPECT_EQ(plan.called_layers(), Names({"Reshape", "pairs", "Reshape"}));
  const Tensor batch = random_floats({6, 4}, 1);
  EXPECT_EQ(values_of(plan(batch)), values_of(model_of(x, y)(batch)));
}

// Selects the rows whose first number is positive.
class Positive final : public TensorLayer {
 public:
  Positive() : TensorLayer(std::string("Positive"), "positive") {}

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    const int64_t width = x.dim(1);
    if (x.is_symbolic()) {
      return Tensor::symbolic({.shape = {kUnknown, width}, .dtype = DType::kFloat32});
    }
    std::vector<float> kept;
    for (int64_t r = 0; r < x.dim(0); ++r) {
      const auto row = x.data<float>().subspan(r * width, width);
      if (row[0] > 0) kept.insert(kept.end(), row.begin(), row.end());
    }
    return Tensor::from(kept, {std::ssize(kept) / width, width});
  }
};

TEST(CalledLayers, MayReturnDataDependentRows) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const Tensor y = layers::Dense({.units = 2, .name = "last"})(make_layer<Positive>()(x));
  expect_results_of(model_of(x, y), {4}, {"positive", "last"});
}

TEST(CalledLayers, OfAnInputOfFixedSizeReturnItsRows) {
  const Tensor x = layers::input({.shape = {4}, .name = "x", .batch_size = 2});
  const layers::LayerNormalization norm({.name = "norm"});
  const Functional model = model_of(x, layers::Dense({.units = 2})(norm(x)));
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_EQ(plan.called_layers(), Names({"norm"}));
  const Tensor batch = random_floats({2, 4}, 1);
  EXPECT_EQ(values_of(plan(batch)), values_of(model(batch)));
}

TEST(CalledLayers, ResultsThatAreNotRowsRejectCallerBuffers) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const auto run = [](const Functional& model) {
    const ServingPlan plan{ModelHandle(model)};
    const Tensor batch = random_floats({6, 4}, 1);
    const TensorView view = view_of(TensorLike(batch));
    std::vector<float> first(24, 7), second(24, 7);
    const std::vector<std::span<float>> outputs = {first, second};
    EXPECT_THROW(plan.run({&view, 1}, outputs), NotImplementedError);
    EXPECT_EQ(first, std::vector<float>(24, 7)) << "written before the error";
  };
  run(Functional({.inputs = x, .outputs = Tensors::list({x, ops::mean(x, {0}, true)})}));
  run(Functional({.inputs = x, .outputs = Tensors::list({x, make_layer<Positive>()(x)})}));
}

}  // namespace keel::called_layers_test
