#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include <keel/callbacks.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/saving_callbacks.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::backup_and_restore_test {

using callbacks::BackupAndRestore;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

constexpr int64_t kRows = 45, kBatch = 10, kEpochs = 4;  // last of five steps has 5 rows

Tensors features() {
  std::vector<int64_t> ids;
  std::vector<float> numbers;
  for (int64_t i = 0; i < kRows; ++i) {
    ids.push_back(i * i % 11);
    for (int64_t k = 1; k <= 3; ++k) numbers.push_back(static_cast<float>(i * k % 17) / 7);
  }
  return Tensors(
      {{"id", Tensor::from(ids, {kRows})}, {"numbers", Tensor::from(numbers, {kRows, 3})}});
}

Tensor labels() {
  std::vector<float> out;
  for (int64_t i = 0; i < kRows; ++i) out.push_back(static_cast<float>(i * i % 11 % 2));
  return Tensor::from(out, {kRows, 1});
}

// A model with all kinds of state: random numbers, moving averages, tables, slots, metrics.
Functional make_model() {
  set_random_seed(5);
  const Tensors in =
      Tensors({{"id", layers::input({.shape = {}, .dtype = DType::kInt64, .name = "id"})},
               {"numbers", layers::input({.shape = {3}, .name = "numbers"})}});
  const Table table = make_table({.vocabulary_size = 11, .dim = 4, .name = "ids"});
  const layers::TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>({{"id", FeatureConfig{.table = table}}}),
       .optimizer = optimizers::Adagrad({.learning_rate = 0.1})});
  const Tensors found = embedding(Tensors({{"id", in["id"]}}));
  const layers::Concatenate joined({});
  Tensor x = joined(Tensors::list({found["id"], in["numbers"]})).tensor();
  x = layers::BatchNormalization({.momentum = 0.9})(x);
  x = layers::Dense({.units = 16, .activation = "relu"})(x);
  x = layers::Dropout({.rate = 0.3})(x);
  const Functional model(
      {.inputs = in, .outputs = layers::Dense({.units = 1, .activation = "sigmoid"})(x)});
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.02}),
                  .loss = "binary_crossentropy",
                  .metrics = {"auc", metrics::F1Score({.threshold = 0.5})}});
  return model;
}

// Callbacks with state, and one that changes the learning rate at the start of each epoch.
std::vector<CallbackHandle> stateful_callbacks() {
  return {callbacks::LearningRateScheduler(
              {.schedule = [](int64_t, double rate) { return 0.9 * rate; }}),
          callbacks::ReduceLROnPlateau(
              {.monitor = "val_loss", .factor = 0.5, .patience = 1, .min_delta = 10}),
          callbacks::EarlyStopping(
              {.monitor = "val_auc", .patience = 10, .restore_best_weights = true})};
}

struct Outcome {
  std::vector<Tensor> weights;
  std::vector<Logs> epochs;
};

// Runs fit as a separate program would, with these additional callbacks.
Outcome run(const std::vector<CallbackHandle>& more, std::optional<int64_t> steps = {}) {
  const Functional model = make_model();
  std::vector<CallbackHandle> all = stateful_callbacks();
  all.insert(all.end(), more.begin(), more.end());
  Outcome out;
  all.push_back(callbacks::Lambda(
      {.on_epoch_end = [&](int64_t, Logs& logs) { out.epochs.push_back(logs); }}));
  model->fit(features(), labels(),
             {.epochs = kEpochs,
              .batch_size = kBatch,
              .verbose = Verbose::kSilent,
              .callbacks = all,
              .validation_data = {features(), labels()},
              .steps_per_epoch = steps});
  for_each_state_entry(*model, [&](const std::string&, const StateEntry& entry) {
    out.weights.push_back(entry.get());
  });
  for (const Variable& v : model->trainable_variables()) {
    for (const Variable& slot : model->optimizer()->slots(v)) out.weights.push_back(slot.read());
  }
  return out;
}

struct Crash {};
CallbackHandle crash_at(int64_t at_epoch, int64_t at_step) {
  auto epoch = std::make_shared<int64_t>(0);
  return callbacks::Lambda({.on_epoch_begin = [=](int64_t e) { *epoch = e; },
                            .on_train_batch_begin =
                                [=](int64_t step) {
                                  if (*epoch == at_epoch && step == at_step) throw Crash();
                                }});
}
CallbackHandle no_crash() { return crash_at(-1, -1); }

void expect_same_end(const Outcome& received, const Outcome& expected) {
  ASSERT_EQ(received.weights.size(), expected.weights.size());
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(received.weights[i].raw(), expected.weights[i].raw())) << i;
  }
  ASSERT_LE(received.epochs.size(), expected.epochs.size());
  for (size_t i = 1; i <= received.epochs.size(); ++i) {
    EXPECT_EQ(received.epochs[received.epochs.size() - i],
              expected.epochs[expected.epochs.size() - i]);
  }
}

// A run that crashes at this step and is resumed ends with the result of an uninterrupted run.
void expect_exact_resume(const TemporaryFolder& folder, BackupAndRestoreOptions options,
                         int64_t crash_epoch, int64_t crash_step, size_t epochs_left,
                         std::optional<int64_t> steps = {}) {
  options.backup_dir = folder / "backup";
  const Outcome expected = run({}, steps);
  EXPECT_EQ(expected.epochs.size(), static_cast<size_t>(kEpochs));
  EXPECT_THROW(run({crash_at(crash_epoch, crash_step), BackupAndRestore(options)}, steps), Crash);
  const Outcome resumed = run({no_crash(), BackupAndRestore(options)}, steps);
  EXPECT_EQ(resumed.epochs.size(), epochs_left);
  expect_same_end(resumed, expected);
}

TEST(BackupAndRestoreTest, ARunResumedAfterAnEpochEndsWithTheSameBits) {
  const TemporaryFolder folder;
  expect_exact_resume(folder, {}, 2, 1, 2);
}

// Backups are made after steps 3, 6, ...; the last one follows two steps of the third epoch.
TEST(BackupAndRestoreTest, ARunResumedWithinAnEpochEndsWithTheSameBits) {
  const TemporaryFolder folder;
  expect_exact_resume(folder, {.save_freq = 3}, 2, 4, 2);
}

// Each replica has its own moving averages and metrics.
TEST(BackupAndRestoreTest, ReplicasResumeWithTheSameBits) {
  const TemporaryFolder folder;
  distribute::TPUStrategy tpu({.num_cores = 3});
  const auto scope = tpu.scope();
  expect_exact_resume(folder, {.save_freq = 4}, 2, 3, 2);
}

TEST(BackupAndRestoreTest, ABackupAfterTheLastStepOfAnEpochStillEndsTheEpoch) {
  const TemporaryFolder folder;
  expect_exact_resume(folder, {.save_freq = 5}, 2, 0, 3);
}

TEST(BackupAndRestoreTest, EpochsThatContinueInTheDatasetResume) {
  const TemporaryFolder folder;
  expect_exact_resume(folder, {.save_freq = 2}, 2, 2, 2, 3);
}

TEST(BackupAndRestoreTest, ACrashDuringAResumedRunCanBeResumed) {
  const TemporaryFolder folder;
  const BackupAndRestoreOptions options = {.backup_dir = folder / "backup", .save_freq = 2};
  const Outcome expected = run({});
  EXPECT_THROW(run({crash_at(0, 3), BackupAndRestore(options)}), Crash);
  EXPECT_THROW(run({crash_at(1, 4), BackupAndRestore(options)}), Crash);
  EXPECT_THROW(run({crash_at(3, 2), BackupAndRestore(options)}), Crash);
  expect_same_end(run({no_crash(), BackupAndRestore(options)}), expected);
}

// A scheduler's termination signal arrives in the middle of the third epoch.
TEST(BackupAndRestoreTest, ARunEndedByASignalResumesWithTheSameBits) {
  const TemporaryFolder folder;
  const BackupAndRestoreOptions options = {.backup_dir = folder / "backup"};
  const auto raise_at = [](int64_t at_epoch, int64_t at_step) {
    auto epoch = std::make_shared<int64_t>(0);
    return callbacks::Lambda({.on_epoch_begin = [=](int64_t e) { *epoch = e; },
                              .on_train_batch_begin =
                                  [=](int64_t step) {
                                    if (*epoch == at_epoch && step == at_step) std::raise(SIGTERM);
                                  }});
  };
  const Outcome expected = run({});
  const callbacks::TerminateOnSignal terminate({});
  const Outcome cut = run({raise_at(2, 3), BackupAndRestore(options), terminate});
  EXPECT_EQ(terminate->signal(), SIGTERM);
  EXPECT_EQ(cut.epochs.size(), 3U);  // the last one has four steps
  const callbacks::TerminateOnSignal again({});
  const Outcome resumed = run({raise_at(-1, -1), BackupAndRestore(options), again});
  EXPECT_EQ(again->signal(), std::nullopt);
  EXPECT_EQ(resumed.epochs.size(), 2U);
  expect_same_end(resumed, expected);
  EXPECT_FALSE(std::filesystem::exists(folder / "backup"));
}

TEST(BackupAndRestoreTest, BackupsAreRemovedAtTheEndUnlessTheyAreKept) {
  const TemporaryFolder folder;
  run({BackupAndRestore({.backup_dir = folder / "removed"})});
  EXPECT_FALSE(std::filesystem::exists(folder / "removed"));
  run({BackupAndRestore({.backup_dir = folder / "kept", .delete_checkpoint = false})});
  EXPECT_TRUE(std::filesystem::exists(folder / "kept/checkpoint"));
  // All epochs are done: the state is that of the end, and no step runs.
  const Outcome again =
      run({BackupAndRestore({.backup_dir = folder / "kept", .delete_checkpoint = false})});
  EXPECT_TRUE(again.epochs.empty());
}

TEST(BackupAndRestoreTest, OneOrTwoBackupsAreKept) {
  const TemporaryFolder folder;
  for (const bool two : {false, true}) {
    const std::string name = folder / (two ? "two" : "one");
    const BackupAndRestoreOptions options = {
        .backup_dir = name, .save_freq = 1, .double_checkpoint = two};
    EXPECT_THROW(run({crash_at(1, 2), BackupAndRestore(options)}), Crash);
    int64_t backups = 0, progress = 0;
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      backups += entry.path().filename().string().starts_with("backup-") ? 1 : 0;
      progress += entry.path().filename().string().starts_with("progress-") ? 1 : 0;
    }
    EXPECT_EQ(backups, two ? 2 : 1);
    EXPECT_EQ(progress, two ? 2 : 1);
  }
}

TEST(BackupAndRestoreTest, ADamagedBackupIsRejected) {
  const TemporaryFolder folder;
  const BackupAndRestoreOptions options = {.backup_dir = folder / "backup"};
  EXPECT_THROW(run({crash_at(1, 2), BackupAndRestore(options)}), Crash);
  const std::string path = folder / "backup/progress-backup-1.h5";
  std::string bytes = read_bytes(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes(path, bytes);
  EXPECT_THROW(run({no_crash(), BackupAndRestore(options)}), IoError);
}

TEST(BackupAndRestoreTest, OtherCallbacksReplicasAndModelsAreRejected) {
  const TemporaryFolder folder;
  const BackupAndRestoreOptions options = {.backup_dir = folder / "backup"};
  EXPECT_THROW(run({crash_at(1, 2), BackupAndRestore(options)}), Crash);
  const callbacks::ModelCheckpoint other({.filepath = folder / "m.h5"});
  EXPECT_THROW(run({other, BackupAndRestore(options)}), ValueError);
  distribute::TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  EXPECT_THROW(run({no_crash(), BackupAndRestore(options)}), ValueError);
}

// Stores the state it is given, and has a state with these names.
template <int kKind>
class Stateful final : public Callback {
 public:
  explicit Stateful(std::vector<std::string> names) : names_(std::move(names)) {}
  State state() const override {
    State out;
    for (const std::string& name : names_) out[name] = Tensor::scalar<int64_t>(0);
    return out;
  }
  void set_state(const State&) override { FAIL() << "restored the state of another callback"; }

 private:
  const std::vector<std::string> names_;
};

// A model of one weight w, which is `at` when fit begins.
float after_refusal(const std::vector<CallbackHandle>& callbacks, float at, bool is_refused) {
  const Sequential model(
      {.layers = {layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizers::Adagrad({}), .loss = "mse"});
  const Tensor x = Tensor::from<float>({1}, {1, 1});
  model(x);
  model->weights()[0].assign(Tensor::from<float>({at}, {1, 1}));
  const FitOptions options = {.epochs = 2, .verbose = Verbose::kSilent, .callbacks = callbacks};
  if (is_refused) {
    EXPECT_THROW(model->fit(x, x, options), ValueError);
  } else {
    EXPECT_THROW(model->fit(x, x, options), Crash);
  }
  return model->weights()[0].read().item<float>();
}

TEST(BackupAndRestoreTest, OtherCallbacksInTheSamePlaceAreRejectedBeforeAnythingIsRestored) {
  const TemporaryFolder folder;
  const BackupAndRestore backup({.backup_dir = folder / "backup"});
  const auto own = make_callback<Stateful<1>>(std::vector<std::string>{"a"});
  after_refusal({own, crash_at(1, 0), backup}, 0, false);
  const std::vector<std::vector<CallbackHandle>> others = {
      {make_callback<Stateful<2>>(std::vector<std::string>{"a"}), no_crash(), backup},
      {make_callback<Stateful<1>>(std::vector<std::string>{"a", "b"}), no_crash(), backup},
      {callbacks::EarlyStopping({.monitor = "loss"}), no_crash(), backup},
      {no_crash(), own, backup},
      {own, own, backup},
  };
  for (const auto& other : others) EXPECT_EQ(after_refusal(other, 7, true), 7);
}

TEST(BackupAndRestoreTest, FewerCallbacksThanTheBackupHasAreRejected) {
  const TemporaryFolder folder;
  const BackupAndRestore backup({.backup_dir = folder / "backup"});
  const auto own = make_callback<Stateful<1>>(std::vector<std::string>{"a"});
  after_refusal({crash_at(1, 0), backup, own}, 0, false);
  EXPECT_EQ(after_refusal({no_crash(), backup}, 7, true), 7);
}

TEST(BackupAndRestoreTest, OptionsOutOfRangeAreRejected) {
  EXPECT_THROW(BackupAndRestore({}), ValueError);
  EXPECT_THROW(BackupAndRestore({.backup_dir = "a", .save_freq = 0}), ValueError);
}

}  // namespace keel::backup_and_restore_test
