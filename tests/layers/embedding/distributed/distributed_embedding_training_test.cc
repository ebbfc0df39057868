// Training, saving and loading of models with a DistributedEmbedding. Stacking does not change the
// bits of the tables, and files can be loaded with every placement and stacking.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/training/training_options.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"

namespace keel::distributed_embedding_training_test {

using distribute::TPUStrategy;
using keras_rs::make_table;
using layers::DistributedEmbedding;
using testing_support::expect_near;
using testing_support::TemporaryFolder;
using testing_support::Tolerance;
using Features = Nest<keras_rs::FeatureConfig>;
using Values = std::vector<float>;
using Names = std::vector<std::string>;

constexpr Tolerance kTolerance = {.absolute = 1e-5, .relative = 1e-5};

constexpr int64_t kBatch = 8;

// Four tables; three of them have one padded dim.
struct Tables {
  keras_rs::Table users, items, shops, words;

  explicit Tables(const EmbeddingOptimizer& optimizer) {
    const auto make = [&](const std::string& name, int64_t rows, int64_t dim) {
      return make_table({.name = name,
                         .vocabulary_size = rows,
                         .embedding_dim = dim,
                         .optimizer = optimizer,
                         .combiner = "mean"});
    };
    users = make("users", 40, 12);
    items = make("items", 10, 14);
    shops = make("shops", 3, 16);
    words = make("words", 21, 3);
  }
  static keras_rs::FeatureConfig feature(const std::string& name, const keras_rs::Table& table,
                                         const Shape& input_shape) {
    return {.name = name,
            .table = table,
            .input_shape = input_shape,
            .output_shape = {input_shape[0], table->embedding_dim}};
  }
  Features features() const {
    return Features({{"user", feature("user", users, {kBatch})},
                     {"seen", feature("seen", items, {kBatch, 3})},
                     {"item", feature("item", items, {kBatch})},
                     {"shop", feature("shop", shops, {kBatch})},
                     {"text", feature("text", words, {kBatch, 3})}});
  }
};

// Rows [begin, end) of a global batch.
Tensors batch(int64_t step, int64_t begin, int64_t end) {
  std::vector<int64_t> user, item, shop;
  std::vector<std::vector<int64_t>> seen, text;
  for (int64_t i = begin; i < end; ++i) {
    user.push_back((i * 7 + step * 3) % 40);
    item.push_back((i * 3 + step) % 10);
    shop.push_back((i + step) % 3);
    seen.emplace_back();
    text.emplace_back();
    for (int64_t k = 0; k < (i + step) % 4; ++k) {
      seen.back().push_back((i * 5 + k * 2) % 10);
      text.back().push_back((i * 11 + k * k + step) % 21);
    }
  }
  const auto dense = [&](const std::vector<int64_t>& ids) -> TensorLike {
    return Tensor::from(ids, {std::ssize(ids)});
  };
  return Tensors({{"user", dense(user)},
                  {"item", dense(item)},
                  {"shop", dense(shop)},
                  {"seen", TensorLike(RaggedTensor::from_rows(seen))},
                  {"text", TensorLike(RaggedTensor::from_rows(text))}});
}

using State = std::map<std::string, Values>;

State state_of(const Layer& layer) {
  State out;
  for (const StateEntry& entry : layer.state_entries()) {
    out[entry.name] = entry.get().to_vector<float>();
  }
  return out;
}

// The activations of the first replica in several steps, and the final tables and slots.
struct Training {
  std::vector<Values> activations = {};
  State state = {};
  size_t stacks = 0;
};

Training trained(const distribute::TPUStrategyOptions& system, const EmbeddingOptimizer& optimizer,
                 const TableStacking& stacking) {
  set_random_seed(17);
  TPUStrategy strategy(system);
  const auto scope = strategy.scope();
  const DistributedEmbedding layer(
      {.feature_configs = Tables(optimizer).features(), .table_stacking = stacking});
  Training out;
  for (int64_t step = 0; step < 4; ++step) {
    const auto seen = strategy.run([&] {
      const int64_t rows = kBatch / strategy.num_replicas_in_sync();
      const int64_t first = current_replica_context()->replica * rows;
      GradientTape tape;
      Tensor loss = Tensor::scalar<float>(0);
      Values values;
      float target = 0.5F;
      for (const TensorLike& t : flatten(layer(batch(step, first, first + rows)))) {
        loss = loss + ops::sum(ops::square(t.tensor() - target));
        target = -target * 1.5F;
        const Values of_feature = t.tensor().to_vector<float>();
        values.insert(values.end(), of_feature.begin(), of_feature.end());
      }
      tape.gradient(loss, layer->trainable_variables());
      return values;
    });
    out.activations.push_back(seen[0]);
  }
  out.state = state_of(*layer);
  out.stacks = layer->table_stacks().size();
  return out;
}

struct Case {
  std::string name;
  EmbeddingOptimizer optimizer;
  size_t slots;
};

std::vector<Case> cases() {
  return {
      {"sgd", tpu::SGD{.learning_rate = 0.1}, 0},
      {"adagrad", tpu::Adagrad{.learning_rate = 0.1}, 1},
      {"adam", tpu::Adam{.learning_rate = 0.1}, 2},
      {"ftrl", tpu::FTRL{.learning_rate = 0.1, .l1_regularization_strength = 0.01}, 2},
      {"sgd by occurrence", tpu::SGD{.learning_rate = 0.1, .use_gradient_accumulation = false}, 0},
      {"adagrad with decay", tpu::Adagrad{.learning_rate = 0.1, .weight_decay_factor = 0.01}, 1}};
}

std::vector<distribute::TPUStrategyOptions> systems() {
  return {{.num_cores = 1}, {.num_cores = 2}, {.num_cores = 4}, {.num_hosts = 2, .num_cores = 2}};
}

TEST(DistributedEmbeddingTrainingTest, StackedTablesGiveTheBitsOfUnstackedOnes) {
  for (const Case& c : cases()) {
    for (const distribute::TPUStrategyOptions& system : systems()) {
      const std::string where = str(c.name, " on ", system.num_hosts, "x", system.num_cores);
      const Training plain = trained(system, c.optimizer, std::nullopt);
      EXPECT_EQ(plain.stacks, 4U);
      EXPECT_EQ(plain.state.size(), 4 * (1 + c.slots)) << c.name;
      const Training automatic = trained(system, c.optimizer, "auto");
      EXPECT_EQ(automatic.stacks, 2U);
      EXPECT_EQ(automatic.activations, plain.activations) << where;
      EXPECT_EQ(automatic.state, plain.state) << where;
      const Training listed = trained(system, c.optimizer, Names{"shops", "users"});
      EXPECT_EQ(listed.stacks, 3U);
      EXPECT_EQ(listed.activations, plain.activations) << where;
      EXPECT_EQ(listed.state, plain.state) << where;
    }
  }
}

TEST(DistributedEmbeddingTrainingTest, StateEntriesHaveTheNamesOfTables) {
  const Training run = trained({.num_cores = 2}, tpu::Adagrad{.learning_rate = 0.1}, "auto");
  for (const char* name : {"users", "items", "shops", "words"}) {
    const std::string key = name + std::string("/embeddings");
    ASSERT_TRUE(run.state.contains(key));
    EXPECT_TRUE(run.state.contains(key + "/accumulators"));
  }
  EXPECT_EQ(run.state.at("users/embeddings").size(), 40U * 12);
  EXPECT_EQ(run.state.at("shops/embeddings/accumulators").size(), 3U * 16);
}

// A ranker with the placement of the current strategy.
struct Ranker {
  optimizers::Adagrad adagrad{optimizers::Adagrad({.learning_rate = 0.1, .epsilon = 1e-7})};
  DistributedEmbedding embedding;
  Functional model;

  explicit Ranker(const TableStacking& stacking = "auto")
      : embedding({.feature_configs = Tables(adagrad).features(), .table_stacking = stacking}),
        model(make(embedding)) {}

  static Functional make(const DistributedEmbedding& embedding) {
    const auto dense = [](const std::string& name) -> TensorLike {
      return layers::input({.dtype = DType::kInt64, .name = name});
    };
    const auto ragged = [](const std::string& name) -> TensorLike {
      return layers::ragged_input({.dtype = DType::kInt64, .name = name});
    };
    const Tensors in({{"user", dense("user")},
                      {"item", dense("item")},
                      {"shop", dense("shop")},
                      {"seen", ragged("seen")},
                      {"text", ragged("text")}});
    const Tensors out = embedding(in);
    Tensors::Items parts;
    for (const TensorLike& t : flatten(out)) parts.emplace_back(t);
    const Tensors all = layers::Concatenate({})(Tensors::list(std::move(parts)));
    return Functional(
        {.inputs = in,
         .outputs = layers::Dense({.units = 1, .activation = "sigmoid"})(all).tensor()});
  }
  void fit(int64_t rows) const {
    model->compile({.optimizer = adagrad, .loss = "binary_crossentropy"});
    Values labels;
    for (int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<float>(i * 5 % 11 < 5));
    model->fit(batch(0, 0, rows), Tensor::from(labels, {rows}),
               {.epochs = 2, .batch_size = kBatch, .seed = 2, .verbose = Verbose::kSilent});
  }
  Values predict() const {
    return model->predict(batch(1, 0, 12), {.verbose = Verbose::kSilent})
        .tensor()
        .to_vector<float>();
  }
  Checkpoint checkpoint() const {
    return Checkpoint({.model = model, .optimizers = {{"adagrad", adagrad}}});
  }
};

TEST(DistributedEmbeddingTrainingTest, FitTrainsSparseCoresAsTheDefaultDevice) {
  const auto fitted = [](distribute::Strategy& strategy) {
    clear_session();
    set_random_seed(3);
    const auto scope = strategy.scope();
    const Ranker ranker;
    ranker.fit(21);  // the last batch has five rows
    return std::pair(ranker.predict(), ranker.embedding->get_embedding_tables());
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 4});
  const auto [expected, expected_tables] = fitted(cpu);
  const auto [received, received_tables] = fitted(tpu);
  expect_near(received, expected, kTolerance);
  for (const auto& [name, values] : expected_tables) {
    expect_near(received_tables.at(name).to_vector<float>(), values.to_vector<float>(), kTolerance);
  }
}

TEST(DistributedEmbeddingTrainingTest, SavedModelsLoadOnEveryPlacement) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.h5";
  TPUStrategy tpu({.num_cores = 2});
  Values expected;
  std::map<std::string, Tensor> tables;
  {
    clear_session();
    const auto scope = tpu.scope();
    const Ranker ranker;
    ranker.fit(16);
    expected = ranker.predict();
    tables = ranker.embedding->get_embedding_tables();
    save_model(ranker.model, path);
  }
  const auto check = [&] {
    clear_session();
    const ModelHandle model = load_model(path);
    expect_near(
        model->predict(batch(1, 0, 12), {.verbose = Verbose::kSilent}).tensor().to_vector<float>(),
        expected, kTolerance);
    for (const auto& layer : model->layers()) {
      const auto* embedding = dynamic_cast<const DistributedEmbeddingLayer*>(&*layer);
      if (embedding == nullptr) continue;
      const auto loaded = embedding->get_embedding_tables();
      ASSERT_EQ(loaded.size(), tables.size());
      for (const auto& [name, values] : tables) {
        EXPECT_EQ(loaded.at(name).to_vector<float>(), values.to_vector<float>()) << name;
      }
      return;
    }
    FAIL() << "no DistributedEmbedding in the loaded model";
  };
  check();
  TPUStrategy other({.num_cores = 4});
  const auto scope = other.scope();
  check();
}

TEST(DistributedEmbeddingTrainingTest, CheckpointsFitEveryPlacementAndStacking) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  const auto after = [&](distribute::Strategy& strategy, const TableStacking& stacking) {
    clear_session();
    const auto scope = strategy.scope();
    const Ranker ranker(stacking);
    EXPECT_NO_THROW(ranker.checkpoint().restore(path).assert_consumed());
    ranker.fit(16);
    return ranker.predict();
  };
  {
    clear_session();
    TPUStrategy tpu({.num_cores = 2});
    const auto scope = tpu.scope();
    const Ranker ranker;
    ranker.fit(16);
    ranker.checkpoint().write(path, 1);
  }
  TPUStrategy two({.num_cores = 2});
  const Values expected = after(two, "auto");
  EXPECT_EQ(after(two, std::nullopt), expected);
  TPUStrategy four({.num_cores = 4});
  expect_near(after(four, Names{"users", "items"}), expected, kTolerance);
  distribute::CPUStrategy cpu;
  expect_near(after(cpu, "auto"), expected, kTolerance);
}

}  // namespace keel::distributed_embedding_training_test
