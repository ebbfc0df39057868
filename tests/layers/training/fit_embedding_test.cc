#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/training/training_options.h>
#include <keel/optimizers/sgd.h>

namespace keel::fit_embedding_test {

constexpr int64_t kIds = 11;

// Bags of ids, one of them empty, and labels.
struct Bags {
  explicit Bags(int64_t rows) {
    std::vector<std::vector<int64_t>> bags;
    std::vector<float> labels;
    for (int64_t i = 0; i < rows; ++i) {
      bags.emplace_back();
      for (int64_t k = 0; k < i % 4; ++k) bags.back().push_back((i * 5 + k * 3) % kIds);
      labels.push_back(static_cast<float>(i * 5 % kIds < 5));
    }
    x = Tensors::dict({{"bag", RaggedTensor::from_rows(bags)}});
    y = Tensor::from(labels, {rows});
  }
  Tensors x = {};
  Tensor y;
};

// Sums rows of ones and applies one unit, under the current strategy.
Functional make_model(const std::string& activation) {
  const Table table = make_table({.vocabulary_size = kIds, .dim = 4, .initializer = "ones"});
  const layers::TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>({{"bag", FeatureConfig{.table = table}}}),
       .optimizer = optimizers::SGD({.learning_rate = 0.5})});
  const Tensors in =
      Tensors::dict({{"bag", layers::ragged_input({.dtype = DType::kInt64, .name = "bag"})}});
  const layers::Dense head({.units = 1, .activation = activation, .kernel_initializer = "ones"});
  return Functional({.inputs = in, .outputs = head(embedding(in)["bag"].tensor())});
}

// Returns predictions after training on `rows` rows in batches of 8.
Tensor trained(distribute::Strategy& strategy, int64_t rows) {
  const auto scope = strategy.scope();
  const Functional model = make_model("sigmoid");
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0.5}),
                  .loss = "binary_crossentropy",
                  .metrics = {"auc"}});
  const Bags bags(rows);
  model->fit(bags.x, bags.y,
             {.epochs = 3, .batch_size = 8, .seed = 2, .verbose = Verbose::kSilent});
  return model->predict(bags.x, {.batch_size = 5, .verbose = Verbose::kSilent}).tensor();
}

TEST(FitEmbeddingTest, EnginesTrainTablesAsOneReplica) {
  distribute::TPUStrategy tpu({.num_cores = 4});
  for (const int64_t rows : {16, 13, 10, 9}) {  // last batches of 8, 5, 2 and 1 rows
    const Tensor expected = trained(distribute::Strategy::current(), rows);
    const Tensor received = trained(tpu, rows);
    ASSERT_EQ(received.shape(), Shape({rows, 1}));
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT_NEAR(received.data<float>()[i], expected.data<float>()[i], 1e-5) << rows << " " << i;
    }
    EXPECT_NE(received.data<float>()[1], received.data<float>()[2]);
  }
}

TEST(FitEmbeddingTest, AScaledLossIsRejectedBeforeTablesAreTrained) {
  distribute::TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Functional model = make_model("linear");
  model->compile({.optimizer = optimizers::SGD({.loss_scale_factor = 2}), .loss = "mse"});
  const Bags bags(8);
  const auto predictions = [&] {
    const PredictOptions quietly = {.verbose = Verbose::kSilent};
    return model->predict(bags.x, quietly).tensor().to_vector<float>();
  };
  const std::vector<float> before = predictions();
  EXPECT_THROW(model->fit(bags.x, bags.y, {.verbose = Verbose::kSilent}), NotImplementedError);
  EXPECT_EQ(predictions(), before);
}

}  // namespace keel::fit_embedding_test
