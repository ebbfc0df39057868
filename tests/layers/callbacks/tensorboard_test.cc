// Tests layers/callbacks/internal/event_file.cc and png.cc.
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/profile.h>
#include <keel/layers/callbacks/internal/event_file.h>
#include <keel/layers/callbacks/logging.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/event_reader.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::tensorboard_test {

using testing::StartsWith;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

namespace fs = std::filesystem;

constexpr float kRate = 1.0F / 1024;

using Steps = std::vector<int64_t>;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  if (!fs::exists(folder)) return out;
  for (const auto& file : fs::directory_iterator(folder)) out.push_back(file.path());
  return out;
}

// Returns the values of the only file in a folder, by tag.
std::map<std::string, std::map<int64_t, float>> scalars_in(const fs::path& folder) {
  std::map<std::string, std::map<int64_t, float>> out;
  const std::vector<fs::path> files = files_in(folder);
  EXPECT_EQ(files.size(), 1U) << folder;
  if (files.empty()) return out;
  for (const ReadEvent& event : read_events(files[0])) {
    for (const auto& value : event.values) {
      if (value.is_scalar) out[value.tag][event.step] = value.scalar;
    }
  }
  return out;
}

std::map<std::string, std::map<int64_t, ReadHistogram>> histograms_in(const fs::path& folder) {
  std::map<std::string, std::map<int64_t, ReadHistogram>> out;
  for (const ReadEvent& event : read_events(files_in(folder).at(0))) {
    for (const auto& value : event.values) {
      if (value.is_histogram) out[value.tag][event.step] = value.histogram;
    }
  }
  return out;
}

Steps steps_of(const std::map<int64_t, float>& values) {
  Steps out;
  for (const auto& entry : values) out.push_back(entry.first);
  return out;
}

Sequential compiled_model() {
  Sequential model({.layers = {layers::Dense({.units = 1, .name = "first"}),
                               layers::Dense({.units = 1, .name = "second"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = kRate}), .loss = "mse"});
  return model;
}

const Tensor kX = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6, 1});

History fit(const Sequential& model, const TensorBoardOptions& options, int64_t epochs = 2) {
  return model->fit(kX, kX,
                    {.epochs = epochs,
                     .batch_size = 2,
                     .seed = 1,
                     .verbose = Verbose::kSilent,
                     .callbacks = {callbacks::TensorBoard(options)},
                     .validation_data = {kX, kX}});
}

TEST(TensorBoardTest, EpochLogsAreTrainAndValidationScalars) {
  const TemporaryFolder folder;
  const History history = fit(compiled_model(), {.log_dir = folder / "logs"});
  const auto train = scalars_in(folder / "logs/train");
  EXPECT_EQ(train.size(), 2U);
  EXPECT_EQ(train.at("epoch_learning_rate"), (std::map<int64_t, float>{{0, kRate}, {1, kRate}}));
  const auto validation = scalars_in(folder / "logs/validation");
  EXPECT_EQ(validation.size(), 2U);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(train.at("epoch_loss").at(epoch), static_cast<float>(history["loss"][epoch]));
    EXPECT_EQ(validation.at("epoch_loss").at(epoch),
              static_cast<float>(history["val_loss"][epoch]));
  }
  EXPECT_EQ(steps_of(validation.at("evaluation_loss_vs_iterations")), Steps({3, 6}));
}

TEST(TensorBoardTest, FilesStartWithTheVersionAndAreNamedByTimeAndHost) {
  const TemporaryFolder folder;
  fit(compiled_model(), {.log_dir = folder.path()});
  const fs::path file = files_in(folder / "train").at(0);
  EXPECT_THAT(file.filename().string(), StartsWith("events.out.tfevents.1")) << file;
  const std::vector<ReadEvent> events = read_events(file);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  for (const ReadEvent& event : events) EXPECT_GT(event.wall_time, 1.7e9);
}

TEST(TensorBoardTest, EachFitCreatesNewFiles) {
  const TemporaryFolder folder;
  const Sequential model = compiled_model();
  fit(model, {.log_dir = folder.path()});
  fit(model, {.log_dir = folder.path()});
  EXPECT_EQ(files_in(folder / "train").size(), 2U);
  EXPECT_EQ(files_in(folder / "validation").size(), 2U);
}

TEST(TensorBoardTest, BatchValuesAreWrittenAtTheGivenFrequency) {
  const TemporaryFolder folder;
  const auto batch_steps = [&](const std::string& name, const auto& update_freq) {
    fit(compiled_model(), {.log_dir = folder / name, .update_freq = update_freq});
    const auto scalars = scalars_in(folder / (name + "/train"));
    return scalars.contains("batch_loss") ? steps_of(scalars.at("batch_loss")) : Steps();
  };
  EXPECT_EQ(batch_steps("epoch", std::string("epoch")), Steps());
  EXPECT_EQ(batch_steps("batch", std::string("batch")), Steps({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(batch_steps("four", int64_t{4}), Steps({4}));
}

TEST(TensorBoardTest, WeightsAreHistogramsEveryFewEpochs) {
  const TemporaryFolder folder;
  const Sequential model = compiled_model();
  fit(model, {.log_dir = folder.path(), .histogram_freq = 2}, 3);
  const auto histograms = histograms_in(folder / "train");
  EXPECT_EQ(histograms.size(), 4U);
  const auto& kernel = histograms.at("second/kernel/histogram");
  ASSERT_EQ(kernel.size(), 2U);
  ASSERT_TRUE(kernel.contains(0) && kernel.contains(2));
  const double weight = model->get_layer("second")->weights().at(0).read().item<float>();
  EXPECT_EQ(kernel.at(2).num, 1);
  EXPECT_EQ(kernel.at(2).min, weight);
  EXPECT_EQ(kernel.at(2).max, weight);
  EXPECT_EQ(kernel.at(2).sum, weight);
  EXPECT_EQ(kernel.at(2).sum_squares, weight * weight);
}

std::map<std::string, ReadImage> images_in(const fs::path& folder) {
  std::map<std::string, ReadImage> out;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (!fs::is_regular_file(file)) continue;
    for (const ReadEvent& event : read_events(file.path())) {
      for (const auto& value : event.values) {
        if (value.is_image) out[value.tag] = value.image;
      }
    }
  }
  return out;
}

TEST(TensorBoardTest, WeightsAreImagesOnRequest) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {layers::Dense({.units = 3, .name = "wide"}),
                                     layers::Dense({.units = 1, .name = "last"})}});
  model->compile({.optimizer = "sgd", .loss = "mse"});
  fit(model, {.log_dir = folder.path(), .histogram_freq = 1, .write_images = true}, 1);
  const auto images = images_in(folder / "train");
  EXPECT_EQ(images.size(), 4U);
  const ReadImage& kernel = images.at("last/kernel/image/0");
  EXPECT_EQ(kernel.height, 1);
  EXPECT_EQ(kernel.width, 3);
  EXPECT_EQ(kernel.channels, 1);
  EXPECT_THAT(kernel.file, StartsWith("\x89PNG\r\n"));
}

TEST(TensorBoardTest, StepsPerSecondAreScalarsOnRequest) {
  const TemporaryFolder folder;
  fit(compiled_model(),
      {.log_dir = folder.path(), .write_steps_per_second = true, .update_freq = "batch"});
  const auto train = scalars_in(folder / "train");
  EXPECT_EQ(steps_of(train.at("epoch_steps_per_second")), Steps({0, 1}));
  EXPECT_EQ(train.at("batch_steps_per_second").size(), 6U);
  for (const auto& [_, value] : train.at("epoch_steps_per_second")) EXPECT_GT(value, 0);
}

TEST(TensorBoardTest, EmbeddingTablesAreFilesOfTheProjector) {
  const TemporaryFolder folder;
  const Sequential model(
      {.layers = {layers::Embedding({.input_dim = 3,
                                     .output_dim = 2,
                                     .embeddings_initializer = initializers::constant(0.5),
                                     .name = "words"}),
                  layers::Dense({.units = 1})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0.0}), .loss = "mse"});
  const Tensor ids = Tensor::from<int64_t>({0, 1, 2}, {3});
  model->fit(
      ids, Tensor::zeros({3, 1}),
      {.verbose = Verbose::kSilent,
       .callbacks = {callbacks::TensorBoard({.log_dir = folder.path(),
                                             .embeddings_freq = 1,
                                             .embeddings_metadata = {{"words", "w.tsv"}}})}});
  EXPECT_EQ(read_bytes(folder / "train/words.tsv"), "0.5\t0.5\n0.5\t0.5\n0.5\t0.5\n");
  EXPECT_EQ(read_bytes(folder / "train/projector_config.pbtxt"),
            "embeddings {\n  tensor_name: \"words/embeddings\"\n  tensor_path: \"words.tsv\"\n"
            "  metadata_path: \"w.tsv\"\n}\n");
}

TEST(TensorBoardTest, BatchesAreTracedInChromesFormat) {
  const TemporaryFolder folder;
  fit(compiled_model(),
      {.log_dir = folder.path(), .profile_batch = std::pair<int64_t, int64_t>(2, 3)});
  EXPECT_FALSE(profile::is_running());
  const Config trace = parse_json(read_bytes(folder / "train/plugins/profile/2/local.trace.json"));
  int dense = 0;
  for (const Config& event : trace["traceEvents"].items()) {
    EXPECT_EQ(event["ph"].string(), "X");
    EXPECT_GE(event["dur"].number(), 0);
    dense += event["name"].string() == "Dense" && event["cat"].string() == "forward" ? 1 : 0;
  }
  EXPECT_EQ(dense, 4) << "two layers, batches 2 and 3";
  const TemporaryFolder other;
  fit(compiled_model(), {.log_dir = other.path(), .profile_batch = int64_t{100}});
  EXPECT_FALSE(fs::exists(other / "train/plugins"));
}

TEST(TensorBoardTest, EvaluateIsWrittenByIterations) {
  const TemporaryFolder folder;
  const Sequential model = compiled_model();
  const callbacks::TensorBoard board({.log_dir = folder.path()});
  const Logs logs = model->evaluate(kX, kX, {.verbose = Verbose::kSilent, .callbacks = {board}});
  const auto validation = scalars_in(folder / "validation");
  EXPECT_EQ(validation.at("evaluation_loss_vs_iterations").at(0),
            static_cast<float>(logs.at("loss")));
  EXPECT_FALSE(fs::exists(folder / "train"));
}

TEST(TensorBoardTest, AResumedRunContinuesCountingBatches) {
  const TemporaryFolder folder;
  const callbacks::TensorBoard first({.log_dir = folder / "a", .update_freq = "batch"});
  first->on_train_begin();
  for (int64_t batch = 0; batch < 3; ++batch) first->on_train_batch_end(batch, {{"loss", 1}});
  const callbacks::TensorBoard second({.log_dir = folder / "b", .update_freq = "batch"});
  second->on_train_begin();
  second->set_state(first->state());
  second->on_train_batch_end(0, {{"loss", 1}});
  second->on_train_end({});
  EXPECT_EQ(steps_of(scalars_in(folder / "b/train").at("batch_loss")), Steps({4}));
}

TEST(TensorBoardTest, WrongOptionsAndFoldersAreErrors) {
  const TemporaryFolder folder;
  EXPECT_THROW(callbacks::TensorBoard({.histogram_freq = -1}), ValueError);
  EXPECT_THROW(callbacks::TensorBoard({.embeddings_freq = -1}), ValueError);
  EXPECT_THROW(callbacks::TensorBoard({.profile_batch = int64_t{-1}}), ValueError);
  const std::pair<int64_t, int64_t> reversed = {3, 2};
  EXPECT_THROW(callbacks::TensorBoard({.profile_batch = reversed}), ValueError);
  EXPECT_THROW(callbacks::TensorBoard({.update_freq = "step"}), ValueError);
  EXPECT_THROW(callbacks::TensorBoard({.update_freq = int64_t{0}}), ValueError);
  write_bytes(folder / "file", "");
  EXPECT_THROW(fit(compiled_model(), {.log_dir = folder / "file"}), IoError);
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

bool value_is_large(double value) { return std::abs(value) > 1e-9; }

TEST(EventFileTest, HistogramsCountValuesByBucket) {
  const TemporaryFolder folder;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EventFile file(folder.path());
  file.add_histogram("h", Tensor::from<float>({-2, 0, 0, 0.5F, 3, NAN, kInfinity}, {7}), 5);
  file.add_histogram("none", Tensor::zeros({0}), 6);
  file.add_histogram("integers", Tensor::from<int64_t>({1, 1}, {2}), 7);
  file.flush();
  const auto histograms = histograms_in(folder.path());
  const ReadHistogram& h = histograms.at("h").at(5);
  EXPECT_EQ(h.num, 5);
  EXPECT_EQ(h.min, -2);
  EXPECT_EQ(h.max, 3);
  EXPECT_EQ(h.sum, 1.5);
  EXPECT_EQ(h.sum_squares, 13.25);
  ASSERT_EQ(h.limits.size(), h.counts.size());
  double total = 0;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    const double below = i == 0 ? -std::numeric_limits<double>::max() : h.limits[i - 1];
    int expected = 0;
    for (const double value : {-2.0, 0.0, 0.0, 0.5, 3.0}) {
      expected += value >= below && value < h.limits[i] ? 1 : 0;
    }
    EXPECT_EQ(h.counts[i], expected) << "below " << h.limits[i];
    total += h.counts[i];
    // Adjacent empty buckets are merged; other buckets grow by 10 %.
    if (h.counts[i] > 0 && value_is_large(below)) {
      EXPECT_NEAR(h.limits[i] / below, below > 0 ? 1.1 : 1 / 1.1, 1e-9);
    }
  }
  EXPECT_EQ(total, 5);
  EXPECT_EQ(histograms.at("none").at(6).num, 0);
  EXPECT_EQ(histograms.at("integers").at(7).sum, 2);
}

// A picture of one white pixel: the header chunk, a stored block of two bytes and the checksums,
// as Python's zlib computes them.
TEST(EventFileTest, ImagesArePngFiles) {
  const TemporaryFolder folder;
  EventFile file(folder.path());
  file.add_image("white", Tensor::full<float>({1, 1, 1}, 7), 1);
  file.add_image("large", Tensor::full<float>({300, 300, 3}, -1), 1);
  file.flush();
  const auto images = images_in(folder.path());
  const std::string header("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0", 29);
  EXPECT_EQ(images.at("white").file.substr(0, 29), header);
  EXPECT_EQ(hex(images.at("white").file.substr(29)),
            "3a7e9b550000000d494441547801010200fdff00ff01010100608712b50000000049454e44ae426082");
  // 300 rows of 901 bytes need five blocks of at most 65535.
  EXPECT_EQ(images.at("large").file.size(), 8U + 25 + 12 + 2 + 5 * 5 + 300 * 901 + 4 + 12);
}

TEST(EventFileTest, TheTestReaderReadsFilesOfTensorFlow) {
  const char* const data = std::getenv("KEEL_DATA_DIR");
  const fs::path folder =
      (data != nullptr ? fs::path(data) : fs::path(KEEL_SOURCE_DIR) / "../shared/data") /
      "../interop/events";
  if (!fs::exists(folder)) GTEST_SKIP() << "no data: " << folder;
  int histograms = 0, scalars = 0;
  for (const fs::path& file : files_in(folder)) {
    const std::vector<ReadEvent> events = read_events(file);
    EXPECT_THAT(events.at(0).file_version, StartsWith("brain.Event:")) << file;
    for (const ReadEvent& event : events) {
      for (const auto& value : event.values) {
        histograms += value.is_histogram ? 1 : 0;
        scalars += value.is_scalar ? 1 : 0;
      }
    }
  }
  EXPECT_GT(scalars + histograms, 0);
}

TEST(TensorBoardTest, AnIncompleteStateIsRejected) {
  const TemporaryFolder folder;
  EXPECT_THROW(callbacks::TensorBoard({.log_dir = folder.path()})->set_state({}), ValueError);
}

TEST(TensorBoardTest, AProfileOfAFailedBatchIsStopped) {
  const TemporaryFolder folder;
  {
    const callbacks::TensorBoard board({.log_dir = folder.path(), .profile_batch = int64_t{1}});
    board->on_train_begin();
    board->on_train_batch_begin(0);
    EXPECT_TRUE(profile::is_running());
  }
  EXPECT_FALSE(profile::is_running());
}

}  // namespace keel::tensorboard_test
