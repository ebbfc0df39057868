// Tests layers/serving/steps/planner.cc, tensor_view.cc, internal/lookup_step.cc, steps.cc and
// workspace.cc.
#include <keel/layers/serving/serving_plan.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/functional/sequential.h>

#include "tests/layers/serving/models.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::serving_plan_test {

using testing::HasSubstr;
using testing::Not;
using testing_support::message_if_any;
using testing_support::values_of;

using namespace serving_test;  // NOLINT: the models are what these tests are about

TEST(ServingPlan, MatchesTheModelBitForBitForAnyBatchSize) {
  const Functional model = dlrm();
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_EQ(plan.called_layers(), std::vector<std::string>());
  for (int64_t rows : {1, 2, 7, 32, 96, 97, 300}) {
    const Tensors batch = dlrm_batch(rows);
    EXPECT_EQ(values_of(plan(batch)), values_of(model(batch))) << rows;
  }
}

TEST(ServingPlan, ARowHasTheSameBitsInAnyBatch) {
  const ServingPlan plan{ModelHandle(dlrm(24))};
  const Tensors batch = dlrm_batch(200);
  const std::vector<float> all = values_of(plan(batch));
  for (int64_t row : {0, 5, 96, 199}) {
    EXPECT_EQ(values_of(plan(slice_rows(batch, row, row + 1)))[0], all[row]);
  }
}

TEST(ServingPlan, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  const ServingPlan plan{ModelHandle(dlrm())};
  const Tensors batch = dlrm_batch(500);
  set_num_workers(1);
  const std::vector<float> one = values_of(plan(batch));
  set_num_workers(2);
  EXPECT_EQ(values_of(plan(batch)), one);
  set_num_workers(before);
}

TEST(ServingPlan, RunsOnCallerBuffersInFlatteningOrder) {
  const Functional model = dlrm();
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_EQ(plan.input_names(),
            (std::vector<std::string>{"id0", "id1", "id2", "id3", "id4", "numbers"}));
  EXPECT_EQ(plan.output_specs()[0].shape, Shape({kUnknown, 1}));
  const Tensors batch = dlrm_batch(3);
  std::vector<TensorView> views;
  for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
  std::vector<float> scores(3);
  const std::span<float> output = scores;
  plan.run(views, {&output, 1});
  EXPECT_EQ(scores, values_of(model(batch)));
}

TEST(ServingPlan, KeepsTheWeightsOfItsCreation) {
  const Sequential model({.layers = {layers::Dense({.units = 2})}});
  const Tensor x = random_floats({3, 4}, 1);
  const std::vector<float> before = model(x).to_vector<float>();
  const ServingPlan plan{ModelHandle(model)};
  for (const Variable& v : model->weights()) v.assign(Tensor::zeros(v.shape()));
  EXPECT_EQ(values_of(plan(x)), before);
}

TEST(ServingPlan, AcceptsEmptyBatches) {
  const ServingPlan plan{ModelHandle(dlrm())};
  EXPECT_EQ(plan(dlrm_batch(0)).tensor().shape(), Shape({0, 1}));
}

TEST(ServingPlan, IgnoresExtraKeysAndConvertsNumbers) {
  const Functional model = dlrm();
  const ServingPlan plan{ModelHandle(model)};
  Tensors::Dict batch = dlrm_batch(4).entries();
  const std::vector<float> expected = values_of(model(Tensors(batch)));
  batch["id1"] = batch["id1"].tensor().cast(DType::kInt32);
  batch["numbers"] = batch["numbers"].tensor().cast(DType::kFloat64);
  batch["label"] = Tensor::zeros({4});
  EXPECT_EQ(values_of(plan(Tensors(batch))), expected);
}

TEST(ServingPlan, ServesConcurrentThreads) {
  const Functional model = dlrm();
  const ServingPlan plan{ModelHandle(model)};
  std::vector<Tensors> batches;
  std::vector<std::vector<float>> expected;
  for (uint32_t i = 0; i < 4; ++i) {
    batches.push_back(dlrm_batch(1 + 40 * i, i));
    expected.push_back(values_of(model(batches.back())));
  }
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 30; ++i) {
        const size_t which = (t + i) % batches.size();
        if (values_of(plan(batches[which])) != expected[which]) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

// Runs a plan of the DLRM on the views of a valid batch after `spoil` has modified them.
template <class Fn>
std::string error_of(const Fn& spoil) {
  const ServingPlan plan{ModelHandle(dlrm())};
  const Tensors batch = dlrm_batch(3);
  std::vector<TensorView> views;
  for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
  std::vector<float> scores(3, 7);
  std::vector<std::span<float>> outputs = {scores};
  spoil(views, outputs);
  try {
    plan.run(views, outputs);
  } catch (const Error& e) {
    EXPECT_EQ(scores, std::vector<float>(3, 7)) << "written before the error";
    return e.what();
  }
  return "no error";
}

TEST(ServingPlan, RejectsInvalidArgumentsBeforeWriting) {
  const std::vector<int64_t> odd = {1, 50, 2};
  EXPECT_EQ(error_of([&](auto& in, auto&) { in[1].data = odd.data(); }),
            "TPUEmbedding: feature 'id1': id 50 at position 1 is outside the table of 50 rows");
  EXPECT_EQ(error_of([](auto& in, auto&) { in.pop_back(); }),
            "ServingPlan: requires 6 inputs, received 5");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].shape = {3, 8}; }),
            "ServingPlan: input 'numbers' must have shape (?, 7), received (3, 8)");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].dtype = DType::kInt32; }),
            "ServingPlan: input 'numbers' must be float32, received int32");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].layout = Layout::kSparse; }),
            "ServingPlan: input 'numbers' must be dense, received a sparse tensor");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[2].data = nullptr; }),
            "ServingPlan: input 'id2': TensorView::data must not be null");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[2].shape = {2}, in[2].rows = in[2].values = 2; }),
            "ServingPlan: input 'id2' has 2 rows, but input 'id0' has 3; all inputs must have the "
            "same number of rows");
  EXPECT_EQ(error_of([](auto&, auto& out) { out.clear(); }),
            "ServingPlan: requires a buffer for each of 1 outputs, received 0");
  EXPECT_EQ(error_of([](auto&, auto& out) { out[0] = out[0].first(2); }),
            "ServingPlan: output 0 requires 3 floats, received a buffer of 2");
}

TEST(ServingPlan, RejectsInconsistentViews) {
  const std::string numbers = "ServingPlan: input 'numbers': ";
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].rows = 0; }),
            numbers + "shape (3, 7) has 3 rows, but TensorView::rows is 0");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].shape = {1, 7}; }),
            numbers + "shape (1, 7) has 1 rows, but TensorView::rows is 3");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].shape = {1, 7}, in[5].values = 7; }),
            numbers + "shape (1, 7) has 1 rows, but TensorView::rows is 3");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].values = 20; }),
            numbers + "shape (3, 7) has 21 values, but TensorView::values is 20");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[5].shape = {kUnknown, 7}, in[5].rows = -1; }),
            numbers + "shape must be fully defined, received (?, 7)");
  EXPECT_EQ(error_of([](auto& in, auto&) { in[0].values = 2; }),
            "ServingPlan: input 'id0': shape (3,) has 3 values, but TensorView::values is 2");
}

TEST(ServingPlan, RejectsInconsistentRaggedAndSparseViews) {
  const RaggedTensor bags = layers::ragged_input({.dtype = DType::kInt64, .name = "bags"});
  const SparseTensor words =
      layers::sparse_input({.shape = {kUnknown}, .dtype = DType::kInt64, .name = "words"});
  const Nest<FeatureConfig>::Dict features = {{"bags", FeatureConfig{.table = table(9, 4)}},
                                              {"words", FeatureConfig{.table = table(9, 4)}}};
  const Tensors rows = layers::TPUEmbedding({.feature_config = Nest<FeatureConfig>(features)})(
      Tensors({{"bags", bags}, {"words", words}}));
  const ServingPlan plan{
      ModelHandle(Functional({.inputs = Tensors({{"bags", bags}, {"words", words}}),
                              .outputs = concatenated({rows["bags"], rows["words"]})}))};
  const RaggedTensor ragged = RaggedTensor::from_rows<int64_t>({{1, 2}, {3}});
  const SparseTensor sparse = {
      Tensor::from<int64_t>({0, 0, 1, 2}, {2, 2}), Tensor::from<int64_t>({4, 5}, {2}), {2, 3}};
  const auto error = [&](const auto& spoil) -> std::string {
    std::vector<TensorView> views = {view_of(ragged), view_of(sparse)};
    spoil(views);
    std::vector<float> memory(16);
    const std::span<float> output = memory;
    return message_if_any<ValueError>([&] { plan.run(views, {&output, 1}); });
  };
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_EQ(error([](auto& in) { in[0].shape = {2}; }),
            "ServingPlan: input 'bags': shape (2,) has 2 values, but TensorView::values is 3");
  EXPECT_EQ(error([](auto& in) { in[0].rows = -1; }),
            "ServingPlan: input 'bags': TensorView::rows is -1");
  EXPECT_EQ(error([](auto& in) { in[1].shape = {5, 3}; }),
            "ServingPlan: input 'words': shape (5, 3) has 5 rows, but TensorView::rows is 2");
  EXPECT_EQ(error([](auto& in) { in[1].rows = 5; }),
            "ServingPlan: input 'words': shape (2, 3) has 2 rows, but TensorView::rows is 5");
  EXPECT_EQ(error([](auto& in) { in[1].values = -1; }),
            "ServingPlan: input 'words': TensorView::values is -1");
}

TEST(ServingPlan, RejectsFractionalIds) {
  const ServingPlan plan{ModelHandle(dlrm())};
  Tensors::Dict batch = dlrm_batch(2).entries();
  batch["id0"] = Tensor::zeros({2});
  EXPECT_THROW(plan(Tensors(batch)), TypeError);
}

class OwnModel final : public Model {
 public:
  OwnModel() : Model("OwnModel") {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }
};

TEST(ServingPlan, RejectsModelsWithoutKnownInputs) {
  EXPECT_THROW(ServingPlan(ModelHandle(Sequential({.layers = {layers::Dense({.units = 1})}}))),
               ValueError);
  EXPECT_THROW(ServingPlan(ModelHandle(make_layer<OwnModel>())), ValueError);
}

TEST(ServingPlan, RejectsTablesThatAnEngineHolds) {
  distribute::TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Tensor id = layers::input({.shape = {}, .dtype = DType::kInt64, .name = "id"});
  const Tensor row = layers::TPUEmbedding(
      {.feature_config = FeatureConfig{.table = table(5, 4)}, .optimizer = tpu::SGD()})(id);
  const Functional model({.inputs = id, .outputs = row});
  EXPECT_THROW(ServingPlan{ModelHandle(model)}, RuntimeError);
}

TEST(ServingPlan, SummaryNamesTheStepsAndLayers) {
  const std::string text = ServingPlan{ModelHandle(dlrm())}.summary();
  EXPECT_THAT(text, HasSubstr("lookups in 5 tables"));
  EXPECT_THAT(text, HasSubstr("product 31 x 33, relu"));
  // The parts of the Concatenate are written directly to their place.
  EXPECT_THAT(text, Not(HasSubstr("copy")));
}

}  // namespace keel::serving_plan_test
