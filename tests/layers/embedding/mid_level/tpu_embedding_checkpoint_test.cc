// Checkpoints of mid-level objects: between engines, and between engine and host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/optimizers/adagrad.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

#include "tests/layers/embedding/mid_level/mid_level_testing.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::mid_level::tpu_embedding_checkpoint_test {

using distribute::TPUStrategy;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using tpu::TPUEmbedding;

// Returns a new 8 x 4 table.
Nest<FeatureConfig> features(const Initializer& initializer) {
  return {{"f", on(make_table({.vocabulary_size = 8,
                               .dim = 4,
                               .initializer = initializer,
                               .combiner = "sum",
                               .name = "t"}))}};
}

Checkpoint checkpoint_of(const tpu::EmbeddingBase& embedding) {
  return Checkpoint({.embeddings = {{"embedding", embedding}}});
}

std::unique_ptr<TPUEmbedding> built(TPUStrategy& strategy, const Initializer& initializer,
                                    const EmbeddingOptimizer& optimizer = "adagrad") {
  const auto scope = strategy.scope();
  auto out = std::make_unique<TPUEmbedding>(features(initializer), optimizer);
  out->build(2);
  return out;
}

std::unique_ptr<TPUEmbedding> on_host(const Initializer& initializer,
                                      const EmbeddingOptimizer& optimizer = "adagrad") {
  return std::make_unique<TPUEmbedding>(features(initializer), optimizer);
}

const Values kOnes(32, 1), kTwos(32, 2);

TEST(SpecRowsE, E27_SavingReadsTheAccelerator) {
  const TemporaryFolder folder;
  const std::string before = folder / "before";
  const std::string after = folder / "after";
  TPUStrategy strategy({.num_cores = 2});
  const auto a = built(strategy, "ones");
  checkpoint_of(*a).write(before, 0);
  distribute::initialize_tpu_system(strategy);
  EXPECT_THROW(checkpoint_of(*a).write(after, 0), RuntimeError);
  const auto b = built(strategy, initializers::constant(2));
  checkpoint_of(*a).write(after, 0);
  const auto read = on_host("zeros");
  checkpoint_of(*read).restore(before);
  read->build();
  EXPECT_EQ(values_of(*read, "t"), kOnes);
  checkpoint_of(*read).restore(after);
  EXPECT_EQ(values_of(*read, "t"), kTwos);
}

TEST(TPUEmbeddingCheckpointTest, ATableInUseWithOtherSlotsSharesItsWeightsOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / "adagrad";
  TPUStrategy strategy({.num_cores = 2});
  const auto a = built(strategy, "ones", "adagrad");
  checkpoint_of(*a).write(path, 0);
  distribute::initialize_tpu_system(strategy);
  const auto b = built(strategy, initializers::constant(2), "adam");
  EXPECT_EQ(values_of(*a, "t"), kTwos);
  EXPECT_THAT(message_of<RuntimeError>([&] { values_of(*a, "t/accumulators"); }),
              HasSubstr("t/accumulators"));
  EXPECT_THROW(checkpoint_of(*a).write(path, 1), RuntimeError);
  EXPECT_THROW(set_state(*a, "t/accumulators", Tensor::zeros({8, 4})), RuntimeError);
  distribute::initialize_tpu_system(strategy);
  const auto c = built(strategy, "zeros", "sgd");
  EXPECT_THAT(message_of<RuntimeError>([&] { values_of(*a, "t/accumulators"); }),
              HasSubstr("t/accumulators"));
}

TEST(SpecRowsE, E28_RestoringWritesTheAccelerator) {
  const TemporaryFolder folder;
  const std::string path = folder / "ones";
  TPUStrategy strategy({.num_hosts = 2, .num_cores = 2});
  {
    const auto a = built(strategy, "ones");
    set_state(*a, "t/accumulators", Tensor::full<float>({8, 4}, 0.75F));
    checkpoint_of(*a).write(path, 3);
  }
  distribute::initialize_tpu_system(strategy);
  const auto b = built(strategy, initializers::constant(2));
  const RestoreStatus status = checkpoint_of(*b).restore(path);
  status.assert_consumed();
  EXPECT_EQ(status.step, 3);
  EXPECT_EQ(values_of(*b, "t"), kOnes);
  EXPECT_EQ(values_of(*b, "t/accumulators"), Values(32, 0.75F));
}

// Fails the test if it runs.
class NeverAsked final : public InitializerFunction {
 public:
  void fill(std::span<float>, int64_t, const Shape&, const RandomStream&) const override {
    ADD_FAILURE() << "the initializer ran";
  }
  std::string class_name() const override { return "NeverAsked"; }
  Config get_config() const override { return Config::dict(); }
};

TEST(SpecRowsE, E29_AnUnbuiltObjectStartsFromRestoredValues) {
  const TemporaryFolder folder;
  const std::string path = folder / "ones";
  TPUStrategy strategy({.num_cores = 2});
  {
    const auto a = built(strategy, "ones");
    checkpoint_of(*a).write(path, 0);
  }
  const Initializer never(std::make_shared<NeverAsked>());
  {
    const auto scope = strategy.scope();
    TPUEmbedding b(features(never), "adagrad");
    EXPECT_THROW(checkpoint_of(b).write(folder / "unbuilt", 0), RuntimeError);
    const RestoreStatus status = checkpoint_of(b).restore(path);
    EXPECT_TRUE(status.missing.empty());
    EXPECT_FALSE(b.built());
    b.build(2);
    EXPECT_EQ(values_of(b, "t"), kOnes);
    EXPECT_EQ(values_of(b, "t/accumulators"), Values(32, 0.1F));
  }
  const auto host = on_host(never);
  checkpoint_of(*host).restore(path);
  EXPECT_EQ(host->embedding_tables()[0].second.read().to_vector<float>(), kOnes);
}

using Names = std::vector<std::pair<std::string, Shape>>;
Names names_of(const tpu::EmbeddingBase& embedding) {
  Names out;
  for (const StateEntry& entry : embedding.tracked()->state_entries()) {
    out.emplace_back(entry.name, entry.spec.shape);
  }
  return out;
}

// Returns the contents of a checkpoint of the object.
Names names_in_file(const tpu::EmbeddingBase& embedding, const char* file) {
  const TemporaryFolder folder;
  const std::string path = folder / file;
  checkpoint_of(embedding).write(path, 0);
  const CheckpointReader reader(path);
  Names out;
  for (const auto& [key, stored] : reader.index()) {
    out.emplace_back(key, stored.spec.shape);
  }
  return out;
}

TEST(SpecRowsE, E30_NamesAndShapesAreTheSameEverywhere) {
  const std::vector<EmbeddingOptimizer> optimizers = {tpu::SGD{}, tpu::Adagrad{}, tpu::Adam{},
                                                      tpu::FTRL{}};
  const std::vector<Names> expected = {
      {{"t", {8, 4}}},
      {{"t", {8, 4}}, {"t/accumulators", {8, 4}}},
      {{"t", {8, 4}}, {"t/momenta", {8, 4}}, {"t/velocities", {8, 4}}},
      {{"t", {8, 4}}, {"t/accumulators", {8, 4}}, {"t/linears", {8, 4}}}};
  for (size_t i = 0; i < optimizers.size(); ++i) {
    TPUStrategy strategy({.num_cores = 2});
    const auto engine = built(strategy, "ones", optimizers[i]);
    EXPECT_EQ(names_of(*engine), expected[i]);
    const auto host = on_host("ones", optimizers[i]);
    EXPECT_EQ(names_of(*host), expected[i]);
    host->build();
    EXPECT_EQ(names_of(*host), expected[i]);
    const Names saved = names_in_file(*engine, "engine");
    EXPECT_EQ(saved.size(), expected[i].size());
    EXPECT_EQ(names_in_file(*host, "host"), saved);
    tpu::TPUEmbeddingForServing serving(features("ones"), optimizers[i]);
    EXPECT_EQ(names_of(serving), expected[i]);
    const auto scope = strategy.scope();
    tpu::TPUEmbeddingV0 v0(features("ones"), optimizers[i]);
    EXPECT_EQ(names_of(v0), expected[i]);
    TPUEmbedding unbuilt(features("ones"), optimizers[i]);
    EXPECT_EQ(names_of(unbuilt), expected[i]);
  }
}

TEST(SpecRowsE, E31_AcceleratorTablesAreServedOnTheHost) {
  const TemporaryFolder folder;
  const std::string path = folder / "ones";
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto engine = built(strategy, "ones");
    checkpoint_of(*engine).write(path, 0);
  }
  tpu::TPUEmbeddingForServing serving(features("zeros"), {});
  const RestoreStatus status = checkpoint_of(serving).restore(path, {.partial = true});
  EXPECT_EQ(status.unused, (std::vector<std::string>{"embeddings/embedding/t/accumulators"}));
  const Tensors out = serving({{"f", fixture::ids({1, 0}, {2})}});
  EXPECT_EQ(out.at("f").tensor().shape(), (Shape{2, 4}));
  EXPECT_EQ(flat(out), Values(8, 1));
}

TEST(TPUEmbeddingCheckpointTest, TrainingContinuesWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string path = folder / "middle";
  const auto train = [](TPUEmbedding& embedding, TPUStrategy& strategy, int steps) {
    for (int i = 0; i < steps; ++i) {
      embedding.enqueue(for_all({{"f", fixture::ids({3, 5}, {2, 1})}}, strategy));
      strategy.run([&] { embedding.apply_gradients(filled_like(embedding.dequeue(), 0.5F)); });
    }
  };
  TPUStrategy one({.num_cores = 2});
  const auto whole = built(one, "ones");
  train(*whole, one, 2);
  checkpoint_of(*whole).write(path, 2);
  train(*whole, one, 2);

  TPUStrategy two({.num_hosts = 2, .num_cores = 1});
  const auto resumed = built(two, "zeros");
  checkpoint_of(*resumed).restore(path).assert_consumed();
  train(*resumed, two, 2);
  EXPECT_EQ(values_of(*resumed, "t"), values_of(*whole, "t"));
  EXPECT_EQ(values_of(*resumed, "t/accumulators"), values_of(*whole, "t/accumulators"));
}

TEST(TPUEmbeddingCheckpointTest, PipelinedUpdatesAreSaved) {
  const TemporaryFolder folder;
  const std::string path = folder / "pipelined";
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(features("ones"), tpu::SGD{.learning_rate = 1.0}, true);
  embedding.enqueue(for_all({{"f", fixture::ids({0}, {1, 1})}}, strategy));
  strategy.run([&] { embedding.apply_gradients(filled_like(embedding.dequeue(), 0.5F)); });
  checkpoint_of(embedding).write(path, 1);
  TPUStrategy other({.num_cores = 1});
  const auto restored = built(other, "zeros", tpu::SGD{});
  checkpoint_of(*restored).restore(path).assert_consumed();
  Values expected = kOnes;
  for (int i = 0; i < 4; ++i) expected[i] = 0;
  EXPECT_EQ(values_of(*restored, "t"), expected);
}

TEST(TPUEmbeddingCheckpointTest, SlotsOfAKerasOptimizerAreSavedBesideTheTablesItTrains) {
  const TemporaryFolder folder;
  const std::string path = folder / "keras";
  const auto make = [](float value, const OptimizerHandle& keras) {
    auto out = on_host(initializers::constant(value), {});
    const Variable table = out->embedding_tables()[0].second;
    keras->apply_gradients({Gradient(Tensor::full<float>({8, 4}, value))}, {table});
    return out;
  };
  const auto checkpoint = [](const TPUEmbedding& embedding, const OptimizerHandle& keras) {
    return Checkpoint({.optimizers = {{"keras", keras}}, .embeddings = {{"embedding", embedding}}});
  };
  const OptimizerHandle first = optimizers::Adagrad({.learning_rate = 0.1});
  const auto a = make(1, first);
  checkpoint(*a, first).write(path, 1);
  const OptimizerHandle second = optimizers::Adagrad({.learning_rate = 0.1});
  const auto b = make(2, second);
  checkpoint(*b, second).restore(path).assert_consumed();
  const auto accumulator = [](const TPUEmbedding& embedding, const OptimizerHandle& keras) {
    // embedding_tables() is not const. The variable of the entry is the same.
    return keras->slots(embedding.tracked()->trainable_variables()[0])[0].read().to_vector<float>();
  };
  EXPECT_EQ(accumulator(*a, first), accumulator(*b, second));
  EXPECT_EQ(values_of(*a, "t"), values_of(*b, "t"));
}

TEST(TPUEmbeddingCheckpointTest, ValuesOfAnotherShapeAreErrors) {
  const auto host = on_host("ones");
  EXPECT_THROW(set_state(*host, "t", Tensor::zeros({7, 4})), ValueError);
  EXPECT_THROW(values_of(*host, "t"), RuntimeError);
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding unbuilt(features("ones"), "sgd");
  EXPECT_THROW(set_state(unbuilt, "t", Tensor::zeros({7, 4})), ValueError);
  EXPECT_THROW(values_of(unbuilt, "t"), RuntimeError);
  const auto entries = unbuilt.tracked()->state_entries();
  unbuilt.build(2);
  EXPECT_EQ(entries[0].get().to_vector<float>(), kOnes);
  entries[0].set(Tensor::full<float>({8, 4}, 2));
  EXPECT_EQ(values_of(unbuilt, "t"), kTwos);
}

}  // namespace keel::mid_level::tpu_embedding_checkpoint_test
