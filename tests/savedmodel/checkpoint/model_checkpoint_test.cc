#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/saving_callbacks.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::model_checkpoint_test {

using callbacks::ModelCheckpoint;
using std::filesystem::exists;
using testing::HasSubstr;
using testing_support::names_in;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

Sequential line(const MetricsArgument& metrics = {}) {
  Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile(
      {.optimizer = optimizers::SGD({.learning_rate = 0.01}), .loss = "mse", .metrics = metrics});
  return model;
}

// Eight rows in two batches of four.
History fit(const Sequential& model, const std::vector<CallbackHandle>& callbacks,
            int64_t epochs = 3) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {8, 1});
  return model->fit(Tensors(x), Tensors(x),
                    {.epochs = epochs,
                     .batch_size = 4,
                     .shuffle = false,
                     .verbose = Verbose::kSilent,
                     .callbacks = callbacks});
}

TEST(FormatLogsTest, FormatsAsPythonDoes) {
  const Logs logs = {{"epoch", 7}, {"val_loss", 0.31249}, {"auc", 1}};
  EXPECT_EQ(format_logs("m-{epoch:02d}-{val_loss:.2f}.h5", logs), "m-07-0.31.h5");
  EXPECT_EQ(format_logs("{epoch}-{val_loss}-{auc}", logs), "7-0.31249-1.0");
  EXPECT_EQ(format_logs("{epoch:4d}|{val_loss:08.3f}|{val_loss:.1e}", logs),
            "   7|0000.312|3.1e-01");
  EXPECT_EQ(format_logs("{{{epoch}}}", logs), "{7}");
  EXPECT_EQ(format_logs("plain", logs), "plain");
}

TEST(FormatLogsTest, UnknownNamesAndFormatsAreErrors) {
  const Logs logs = {{"epoch", 7}, {"loss", 0.5}};
  for (const char* text : {"{acc}", "{epoch", "epoch}", "{epoch:s}", "{epoch:.d}", "{loss:2x}",
                           "{loss:9999f}", "{loss:d}", "{}"}) {
    EXPECT_THROW(format_logs(text, logs), ValueError) << text;
  }
}

TEST(ModelCheckpointTest, SavesAfterEachEpoch) {
  const TemporaryFolder folder;
  const Sequential model = line();
  fit(model, {ModelCheckpoint({.filepath = folder / "m-{epoch:02d}.h5"})});
  EXPECT_EQ(names_in(folder.path()).size(), 3);
  const Tensors x(Tensor::from<float>({2}, {1, 1}));
  EXPECT_EQ(load_model(folder / "m-03.h5")(x).tensor().item<float>(),
            model(x).tensor().item<float>());
  EXPECT_NE(load_model(folder / "m-01.h5")(x).tensor().item<float>(),
            model(x).tensor().item<float>());
}

TEST(ModelCheckpointTest, SavesAfterTheGivenNumberOfBatches) {
  const TemporaryFolder folder;
  fit(line(), {ModelCheckpoint({.filepath = folder / "m-{epoch}-{batch}.h5", .save_freq = 3})}, 4);
  EXPECT_EQ(names_in(folder.path()).size(), 2);
  EXPECT_TRUE(exists(folder / "m-2-1.h5"));
  EXPECT_TRUE(exists(folder / "m-3-2.h5"));
}

// Adds these values to the logs, one per epoch.
CallbackHandle logging(const std::string& name, std::vector<double> values) {
  struct Logging final : Callback {
    std::string name;
    std::vector<double> values;
    void on_epoch_end(int64_t epoch, Logs& logs) override { logs[name] = values.at(epoch); }
  };
  const Handle<Logging> out = make_callback<Logging>();
  out->name = name;
  out->values = std::move(values);
  return out;
}

TEST(ModelCheckpointTest, SavesOnlyImprovementsOnRequest) {
  const TemporaryFolder folder;
  const ModelCheckpoint checkpoint(
      {.filepath = folder / "m-{epoch}.h5", .monitor = "val_loss", .save_best_only = true});
  fit(line(), {logging("val_loss", {3, 4, 2, std::nan("")}), checkpoint}, 4);
  EXPECT_EQ(names_in(folder.path()).size(), 2);
  EXPECT_TRUE(exists(folder / "m-1.h5"));
  EXPECT_TRUE(exists(folder / "m-3.h5"));
  EXPECT_EQ(checkpoint->best(), 2);
}

TEST(ModelCheckpointTest, GreaterIsBetterForSuchMetricsAndInModeMax) {
  const TemporaryFolder folder;
  const ModelCheckpoint by_name(
      {.filepath = folder / "a-{epoch}.h5", .monitor = "val_r2_score", .save_best_only = true});
  const ModelCheckpoint by_mode({.filepath = folder / "b-{epoch}.h5",
                                 .monitor = "gain",
                                 .save_best_only = true,
                                 .mode = "max",
                                 .initial_value_threshold = 0.65});
  fit(line({metrics::R2Score({})}), {logging("val_r2_score", {0.6, 0.5, 0.7}),
                                     logging("gain", {0.6, 0.5, 0.7}), by_name, by_mode});
  EXPECT_EQ(names_in(folder.path()).size(), 3);
  EXPECT_FALSE(exists(folder / "a-2.h5"));
  EXPECT_TRUE(exists(folder / "b-3.h5"));
}

TEST(ModelCheckpointTest, AutoRequiresAModeForUnknownMetrics) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  const auto gain = logging("gain", {1, 2, 3});
  EXPECT_THROW(
      fit(line(),
          {gain, ModelCheckpoint({.filepath = path, .monitor = "gain", .save_best_only = true})}),
      ValueError);
  EXPECT_FALSE(exists(path));
  fit(line(), {gain, ModelCheckpoint({.filepath = path, .monitor = "gain"})});
  EXPECT_TRUE(exists(path));
}

TEST(ModelCheckpointTest, MakesTheFoldersOfThePath) {
  const TemporaryFolder folder;
  fit(line(),
      {ModelCheckpoint({.filepath = folder / "runs/{epoch}/m.keras"}),
       ModelCheckpoint({.filepath = folder / "w/x/m.weights.h5", .save_weights_only = true})},
      2);
  EXPECT_TRUE(exists(folder / "runs/1/m.keras"));
  EXPECT_TRUE(exists(folder / "runs/2/m.keras"));
  EXPECT_TRUE(exists(folder / "w/x/m.weights.h5"));
  write_bytes(folder / "file", "");
  EXPECT_THROW(fit(line(), {ModelCheckpoint({.filepath = folder / "file/m.h5"})}), IoError);
}

TEST(ModelCheckpointTest, WarnsOnceThatEpochValuesAreUnknownAfterBatches) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from<float>({1, 2}, {2, 1});
  const ModelCheckpoint best({.filepath = folder / "m.h5", .save_best_only = true, .save_freq = 1});
  testing::internal::CaptureStderr();
  for (int run = 0; run < 2; ++run) {
    line()->fit(x, x,
                {.epochs = 2,
                 .batch_size = 1,
                 .verbose = Verbose::kSilent,
                 .callbacks = {best},
                 .validation_data = {x, x}});
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("'val_loss'"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_EQ(names_in(folder.path()).size(), 0);
}

TEST(ModelCheckpointTest, AnIncompleteStateIsRejected) {
  EXPECT_THROW(ModelCheckpoint({.filepath = "a.h5"})->set_state({}), ValueError);
}

TEST(ModelCheckpointTest, SavesWeightsOnlyOnRequest) {
  const TemporaryFolder folder;
  const Sequential model = line();
  fit(model,
      {ModelCheckpoint({.filepath = folder / "w-{epoch}.weights.h5", .save_weights_only = true})},
      2);
  EXPECT_EQ(names_in(folder.path()).size(), 2);
  const Tensors x(Tensor::from<float>({2}, {1, 1}));
  const Sequential same = line();
  same(x);
  load_weights(same, folder / "w-2.weights.h5");
  EXPECT_EQ(same(x).tensor().item<float>(), model(x).tensor().item<float>());
}

TEST(ModelCheckpointTest, WaitsForRareValidations) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from<float>({1, 2}, {2, 1});
  const ModelCheckpoint best({.filepath = folder / "m-{epoch}.h5", .save_best_only = true});
  line()->fit(x, x,
              {.epochs = 4,
               .verbose = Verbose::kSilent,
               .callbacks = {best},
               .validation_data = {x, x},
               .validation_freq = 2});
  EXPECT_EQ(names_in(folder.path()).size(), 2);
  EXPECT_TRUE(exists(folder / "m-2.h5"));
  EXPECT_TRUE(exists(folder / "m-4.h5"));
}

TEST(ModelCheckpointTest, InvalidOptionsAreErrors) {
  EXPECT_THROW(ModelCheckpoint({}), ValueError);
  EXPECT_THROW(ModelCheckpoint({.filepath = "a.h5", .mode = "best"}), ValueError);
  EXPECT_THROW(ModelCheckpoint({.filepath = "a.h5", .save_freq = 0}), ValueError);
  EXPECT_THROW(ModelCheckpoint({.filepath = "a.h5", .save_weights_only = true}), ValueError);
}

TEST(ModelCheckpointTest, AMissingLogValueIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      fit(line(), {ModelCheckpoint({.filepath = folder / "a.h5", .save_best_only = true})}),
      ValueError);
  EXPECT_THROW(fit(line(), {ModelCheckpoint({.filepath = folder / "{acc:.2f}.h5"})}), ValueError);
}

}  // namespace keel::model_checkpoint_test
