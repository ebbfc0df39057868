// Tests savedmodel/checkpoint/internal/checkpoint_file.cc.
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::checkpoint_test {

using distribute::TPUStrategy;
using layers::Dense;
using optimizers::Adam;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::normal;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::weights_of;
using testing_support::write_bytes;
using Keys = std::vector<std::string>;

// A model, its optimizer and a counter, with new random weights each time.
struct Training {
  Sequential model{SequentialOptions{
      .layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}), Dense({.units = 4}),
                 layers::Dropout({.rate = 0.5, .seed = 3}), Dense({.units = 1})}}};
  Adam adam{optimizers::Adam({.learning_rate = 0.1})};
  Variable epoch{Tensor::scalar<int64_t>(0), {.name = "epoch", .trainable = false}};

  Checkpoint checkpoint() const {
    return Checkpoint(
        {.model = model, .optimizers = {{"adam", adam}}, .variables = {{"epoch", epoch}}});
  }
  void step() const {
    GradientTape tape;
    const Tensor y = model(normal({8, 3}, 4), {.training = true});
    const std::vector<Variable> variables = model->trainable_variables();
    adam->apply_gradients(tape.gradient(ops::mean(ops::square(y)), variables), variables);
    epoch.assign_add(Tensor::scalar<int64_t>(1));
  }
};

TEST(CheckpointTest, TrainingContinuesWithTheSameBits) {
  const TemporaryFolder folder;
  const Training first;
  for (int i = 0; i < 3; ++i) first.step();
  first.adam->set_learning_rate(0.05);
  first.checkpoint().write(folder / "a.h5", 3);
  for (int i = 0; i < 2; ++i) first.step();

  const Training second;
  const RestoreStatus status = second.checkpoint().restore(folder / "a.h5");
  EXPECT_EQ(status.step, 3);
  EXPECT_EQ(status.path, folder / "a.h5");
  EXPECT_NO_THROW(status.assert_consumed());
  EXPECT_EQ(second.adam->iterations(), 3);
  EXPECT_EQ(second.adam->learning_rate(), 0.05);
  EXPECT_EQ(second.epoch.read().item<int64_t>(), 3);
  for (int i = 0; i < 2; ++i) second.step();
  EXPECT_EQ(weights_of(*second.model), weights_of(*first.model));
}

TEST(CheckpointTest, KeysFollowFromTheStructure) {
  const TemporaryFolder folder;
  const Training run;
  run.step();
  run.checkpoint().write(folder / "a.h5", 1);
  const Hdf5File file(folder / "a.h5");
  Keys keys;
  for (const std::string& name : file.children("entries")) {
    keys.push_back(file.string_attribute("entries/" + name, "key"));
  }
  for (const char* key :
       {"model/dense/kernel", "model/dense_1/bias", "model/dense_1/bias/velocity",
        "optimizers/adam/iteration", "optimizers/adam/learning_rate", "variables/epoch"}) {
    EXPECT_NE(std::ranges::find(keys, key), keys.end()) << key;
  }
  EXPECT_EQ(file.integer_attribute("/", "entries"), static_cast<int64_t>(keys.size()));
}

// A value that shares the memory of an optimizer is copied when it is read.
TEST(CheckpointTest, ValuesAreReadOneAfterTheOther) {
  const TemporaryFolder folder;
  std::map<std::string, Variable> variables;
  for (const char* name : {"a", "b", "c"}) {
    const Tensor row = normal({64}, static_cast<uint64_t>(name[0]));
    variables.emplace(name, Variable(row.repeated(4096), {.name = name}));  // 1 MiB
  }
  {
    const MemoryLimit limit(size_t{3} << 19);
    Checkpoint({.variables = variables}).write(folder / "a.h5", 1);
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.read("/entries/2").to_vector<float>(),
            variables.at("c").read().to_vector<float>());
}

TEST(CheckpointTest, AScheduleOfTheRateIsNotInTheFile) {
  const TemporaryFolder folder;
  const Training saved;
  saved.checkpoint().write(folder / "a.h5", 0);
  const Adam adam({.learning_rate = std::make_shared<optimizers::schedules::CosineDecaySchedule>(
                       optimizers::schedules::CosineDecayOptions{.initial_learning_rate = 0.5,
                                                                 .decay_steps = 10})});
  const Training run;
  const Checkpoint checkpoint({.model = run.model, .optimizers = {{"adam", adam}}});
  const RestoreStatus status = checkpoint.restore(folder / "a.h5", {.partial = true});
  EXPECT_EQ(status.unused, (Keys{"optimizers/adam/learning_rate", "variables/epoch"}));
  EXPECT_EQ(adam->learning_rate(), 0.5);
}

TEST(CheckpointTest, MissingEntriesOfBothSidesAreListed) {
  const TemporaryFolder folder;
  const Training saved;
  Checkpoint({.model = saved.model}).write(folder / "a.h5", 0);
  const Training run;
  const std::string refusal =
      message_of<ValueError>([&] { run.checkpoint().restore(folder / "a.h5"); });
  EXPECT_THAT(refusal, AllOf(HasSubstr("no value for [model/dense/kernel/momentum"),
                             HasSubstr("and 1 more"), HasSubstr("RestoreOptions::partial")));
  const RestoreStatus status = run.checkpoint().restore(folder / "a.h5", {.partial = true});
  EXPECT_EQ(status.missing.size(), 4U * 2 + 3);  // slots, iteration, learning rate, epoch
  EXPECT_EQ(status.missing[0], "model/dense/kernel/momentum");
  EXPECT_TRUE(status.unused.empty());
  const std::string message = message_of<ValueError>([&] { status.assert_consumed(); });
  EXPECT_THAT(message, HasSubstr("model/dense/kernel/momentum"));
  EXPECT_EQ(weights_of(*run.model), weights_of(*saved.model));

  run.step();
  run.checkpoint().write(folder / "b.h5", 1);
  const Checkpoint weights({.model = saved.model});
  EXPECT_THAT(message_of<ValueError>([&] { weights.restore(folder / "b.h5"); }),
              HasSubstr("values that nothing uses [model/dense/bias/momentum"));
  EXPECT_NE(weights_of(*run.model), weights_of(*saved.model));  // nothing has changed
  const RestoreStatus other = weights.restore(folder / "b.h5", {.partial = true});
  EXPECT_EQ(other.unused.size(), 11U);
  EXPECT_THROW(other.assert_consumed(), ValueError);
}

Sequential dense_stack(const std::vector<int64_t>& units) {
  SequentialOptions options;
  options.layers.push_back(LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}));
  for (int64_t n : units) options.layers.push_back(Dense({.units = n}));
  return Sequential(std::move(options));
}

TEST(CheckpointTest, MissingWeightsAreAnErrorThatNamesThem) {
  const TemporaryFolder folder;
  Checkpoint({.model = dense_stack({2})}).write(folder / "a.h5", 0);
  const Sequential larger = dense_stack({2, 5});
  const std::vector<float> before = weights_of(*larger);
  const Checkpoint checkpoint({.model = larger});
  const std::string message = message_of<ValueError>([&] { checkpoint.restore(folder / "a.h5"); });
  EXPECT_THAT(message, HasSubstr("model/dense_1/kernel, model/dense_1/bias"));
  EXPECT_EQ(weights_of(*larger), before);
  const RestoreStatus status = checkpoint.restore(folder / "a.h5", {.allow_missing_weights = true});
  EXPECT_EQ(status.missing, (Keys{"model/dense_1/kernel", "model/dense_1/bias"}));
}

TEST(CheckpointTest, AnotherShapeIsAnErrorAndNothingChanges) {
  const TemporaryFolder folder;
  Checkpoint({.model = dense_stack({2, 4})}).write(folder / "a.h5", 0);
  const Sequential other = dense_stack({2, 5});
  const std::vector<float> before = weights_of(*other);
  const std::string message =
      message_of<ValueError>([&] { Checkpoint({.model = other}).restore(folder / "a.h5"); });
  for (const char* part : {"model/dense_1/kernel", "(2, 5)", "(2, 4)"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_EQ(weights_of(*other), before);
}

TEST(CheckpointTest, ADamagedFileIsAnErrorAndNothingChanges) {
  const TemporaryFolder folder;
  const Training run;
  run.step();
  run.checkpoint().write(folder / "a.h5", 1);
  const std::string bytes = read_bytes(folder / "a.h5");
  const std::vector<float> before = weights_of(*run.model);
  for (size_t i = 0; i < bytes.size(); i += 97) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write_bytes(folder / "b.h5", damaged);
    EXPECT_THROW(run.checkpoint().restore(folder / "b.h5"), IoError) << i;
    write_bytes(folder / "b.h5", bytes.substr(0, i));
    EXPECT_THROW(run.checkpoint().restore(folder / "b.h5"), IoError) << i;
  }
  EXPECT_EQ(weights_of(*run.model), before);
  EXPECT_THROW(run.checkpoint().restore(folder / "none.h5"), IoError);
}

TEST(CheckpointTest, OtherSealedFilesAreRejected) {
  const TemporaryFolder folder;
  Hdf5Writer file(folder / "a.h5");
  file.write("x", Tensor::scalar<float>(1));
  file.commit({.seal = true});
  EXPECT_THROW(Checkpoint({}).restore(folder / "a.h5"), IoError);
}

TEST(CheckpointTest, AModelWithoutWeightsYetIsAnError) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {Dense({.units = 2})}});
  const Checkpoint checkpoint({.model = model});
  const std::string message =
      message_of<RuntimeError>([&] { checkpoint.write(folder / "a.h5", 0); });
  EXPECT_THAT(message, HasSubstr("call the model once"));
  EXPECT_THROW(checkpoint.restore(folder / "a.h5"), RuntimeError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
}

TEST(CheckpointTest, WritingInAReplicaIsAnError) {
  const TemporaryFolder folder;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Checkpoint checkpoint({.model = dense_stack({2})});
  EXPECT_THROW(strategy.run([&] { checkpoint.write(folder / "a.h5", 0); }), RuntimeError);
  EXPECT_THROW(strategy.run([&] { checkpoint.restore(folder / "a.h5"); }), RuntimeError);
}

TEST(CheckpointTest, AnotherDtypeOrANewerVersionIsAnError) {
  const TemporaryFolder folder;
  const Variable whole(Tensor::scalar<int64_t>(1), {.name = "n", .trainable = false});
  const Variable real(Tensor::scalar<double>(1), {.name = "n", .trainable = false});
  Checkpoint({.variables = {{"n", whole}}}).write(folder / "a.h5", 0);
  EXPECT_THROW(Checkpoint({.variables = {{"n", real}}}).restore(folder / "a.h5"), ValueError);
  Hdf5Writer file(folder / "b.h5");
  file.write_attribute("/", "format", "keel-checkpoint");
  file.write_attribute("/", "format_version", int64_t{99});
  file.commit({.seal = true});
  const std::string message = message_of<IoError>([&] { Checkpoint({}).restore(folder / "b.h5"); });
  EXPECT_THAT(message, HasSubstr("99"));
}

// Statistics and random state have a value per replica.
TEST(CheckpointTest, CheckpointsRestoreWithAnotherNumberOfReplicas) {
  const TemporaryFolder folder;
  const auto make = [] {
    return Sequential({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}),
                                  layers::BatchNormalization({}), layers::Dropout({.rate = 0.5})}});
  };
  const auto mean_of = [](const Sequential& model) {
    return model->non_trainable_variables()[0].read().to_vector<float>();
  };
  std::vector<float> mean;
  {
    TPUStrategy strategy({.num_cores = 4});
    const auto scope = strategy.scope();
    const Sequential model = make();
    strategy.run([&] { model(normal({8, 3}, 4), {.training = true}); });
    Checkpoint({.model = model}).write(folder / "a.h5", 0);
    mean = mean_of(model);
  }
  const Sequential alone = make();
  EXPECT_NO_THROW(Checkpoint({.model = alone}).restore(folder / "a.h5").assert_consumed());
  EXPECT_EQ(mean_of(alone), mean);
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Sequential pair = make();
  EXPECT_NO_THROW(Checkpoint({.model = pair}).restore(folder / "a.h5").assert_consumed());
  EXPECT_EQ(mean_of(pair), mean);
}

// Two optimizers, each with one layer.
struct Split {
  Sequential model = dense_stack({2, 1});
  Adam wide{optimizers::Adam({.learning_rate = 0.1})};
  optimizers::Adagrad deep{optimizers::Adagrad({.learning_rate = 0.2})};

  Checkpoint checkpoint() const {
    return Checkpoint({.model = model, .optimizers = {{"wide", wide}, {"deep", deep}}});
  }
  void step() const {
    GradientTape tape;
    const Tensor loss = ops::mean(ops::square(model(normal({8, 3}, 4))));
    const std::vector<Variable> v = model->trainable_variables();
    const std::vector<Gradient> g = tape.gradient(loss, v);
    wide->apply_gradients({g[0], g[1]}, {v[0], v[1]});
    deep->apply_gradients({g[2], g[3]}, {v[2], v[3]});
  }
};

TEST(CheckpointTest, EachOfTwoOptimizersGetsItsOwnSlotsBack) {
  const TemporaryFolder folder;
  const Split first;
  first.step();
  first.checkpoint().write(folder / "a.h5", 1);
  const Split second;
  EXPECT_NO_THROW(second.checkpoint().restore(folder / "a.h5").assert_consumed());
  EXPECT_TRUE(second.wide->slots(second.model->trainable_variables()[2]).empty());
  first.step();
  second.step();
  EXPECT_EQ(weights_of(*second.model), weights_of(*first.model));
}

TEST(CheckpointTest, TwoOptimizersMayKeepTheSameSlotOfOneVariable) {
  const TemporaryFolder folder;
  const Sequential model = dense_stack({1});
  const Adam a({}), b({});
  const Checkpoint checkpoint({.model = model, .optimizers = {{"a", a}, {"b", b}}});
  const std::vector<Variable> variables = model->trainable_variables();
  a->build(variables);
  b->build(variables);
  const Variable in_a = a->slots(variables[1])[0];
  const Variable in_b = b->slots(variables[1])[0];
  in_a.assign(Tensor::full<float>({1}, 1));
  in_b.assign(Tensor::full<float>({1}, 2));
  checkpoint.write(folder / "a.h5", 0);
  for (const Variable& v : {in_a, in_b}) v.assign(Tensor::zeros({1}));
  EXPECT_NO_THROW(checkpoint.restore(folder / "a.h5").assert_consumed());
  EXPECT_EQ(in_a.read().item<float>(), 1);
  EXPECT_EQ(in_b.read().item<float>(), 2);
}

// A ranker whose table has Adagrad accumulators, on the host or in an engine.
struct Ranker {
  optimizers::Adagrad adagrad{optimizers::Adagrad({.learning_rate = 0.1, .epsilon = 1e-7})};
  Functional model = make(adagrad);

  static Functional make(const optimizers::Adagrad& adagrad) {
    const Table table = make_table({.vocabulary_size = 7, .dim = 2, .name = "users"});
    const Tensor id = layers::input({.dtype = DType::kInt64, .name = "id"});
    const layers::TPUEmbedding embedding(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = adagrad});
    const Tensor y = Dense({.units = 1})(embedding(Tensors(id)).tensor());
    return Functional({.inputs = id, .outputs = y});
  }
  Checkpoint checkpoint() const {
    return Checkpoint({.model = model, .optimizers = {{"adagrad", adagrad}}});
  }
  void step(const Tensor& ids, int replicas) const {
    GradientTape tape;
    const Tensor y = model(ids);
    const Tensor loss = ops::scale(ops::mean(ops::square(ops::shift(y, -1))), 1.0 / replicas);
    const std::vector<Variable> variables = model->trainable_variables();
    adagrad->apply_gradients(tape.gradient(loss, variables), variables);
  }
  Tensor table() const { return value("users"); }
  Tensor accumulator() const { return value("users/accumulator"); }
  Tensor value(const std::string& name) const {
    for (const StateEntry& e : model->get_layer("tpu_embedding")->state_entries()) {
      if (e.name == name) return e.get();
    }
    return {};
  }
};

const Tensor kIds = Tensor::from<int64_t>({3, 6}, {2});

TEST(CheckpointTest, EngineSlotsRestoreIntoTheHostOptimizer) {
  const TemporaryFolder folder;
  std::vector<float> table, accumulator;
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    clear_session();
    const Ranker ranker;
    for (int i = 0; i < 3; ++i) strategy.run([&] { ranker.step(kIds, 2); });
    ranker.checkpoint().write(folder / "a.h5", 3);
    table = ranker.table().to_vector<float>();
    accumulator = ranker.accumulator().to_vector<float>();
  }
  clear_session();
  const Ranker ranker;
  EXPECT_NO_THROW(ranker.checkpoint().restore(folder / "a.h5").assert_consumed());
  EXPECT_EQ(ranker.adagrad->iterations(), 3);
  const Variable users = ranker.model->get_layer("tpu_embedding")->trainable_variables()[0];
  EXPECT_EQ(users.read().to_vector<float>(), table);
  EXPECT_EQ(ranker.adagrad->slots(users)[0].read().to_vector<float>(), accumulator);
}

TEST(CheckpointTest, HostOptimizerSlotsRestoreIntoAnEngine) {
  const TemporaryFolder folder;
  clear_session();
  const Ranker host;
  for (int i = 0; i < 3; ++i) host.step(kIds, 1);
  host.checkpoint().write(folder / "a.h5", 3);
  const Variable users = host.model->get_layer("tpu_embedding")->trainable_variables()[0];

  TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  clear_session();
  const Ranker ranker;
  EXPECT_NO_THROW(ranker.checkpoint().restore(folder / "a.h5").assert_consumed());
  EXPECT_EQ(ranker.table().to_vector<float>(), users.read().to_vector<float>());
  EXPECT_EQ(ranker.accumulator().to_vector<float>(),
            host.adagrad->slots(users)[0].read().to_vector<float>());
}

}  // namespace keel::checkpoint_test
