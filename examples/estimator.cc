// Trains, evaluates and exports a click model with an estimator whose tables are in an embedding
// engine, and prints predictions. Run it twice: the second run continues from the checkpoint of the
// first one.
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <keel/layers/core/dense.h>
#include <keel/layers/feature_columns/dense_features.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/savedmodel/estimator/tpu_estimator.h>
#include <keel/savedmodel/saved_model.h>

#include "examples/program.h"

using namespace keel;
using estimator::ModeKeys;

namespace {

struct Flags {
  std::string model_dir;
  int64_t steps = 200;
};

Flags flags;

// Half of the users like even items, the others like odd items. "seen" contains the items that a
// user has looked at before.
data::Dataset clicks(int64_t batch_size) {
  constexpr int64_t kRows = 2048;
  std::vector<std::vector<int64_t>> user, item, seen;
  std::vector<float> label;
  for (int64_t row = 0; row < kRows; ++row) {
    user.push_back({row * 7 % 40});
    item.push_back({row * row % 50});
    seen.push_back(row % 3 == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{row % 50, 3});
    label.push_back((user.back()[0] < 20) == (item.back()[0] % 2 == 0) ? 1.0F : 0.0F);
  }
  const Tensors features = {{"user", RaggedTensor::from_rows(user)},
                            {"item", RaggedTensor::from_rows(item)},
                            {"seen", RaggedTensor::from_rows(seen)}};
  return data::Dataset::from_tensor_slices(
             Tensors::tuple({features, Tensor::from(label, {kRows, 1})}))
      .shuffle(kRows, {.seed = 1})
      .batch(batch_size);
}

std::vector<feature_column::Column> click_columns() {
  const auto user = feature_column::categorical_column_with_identity("user", 40);
  const auto item = feature_column::categorical_column_with_identity("item", 50);
  const auto seen = feature_column::categorical_column_with_identity("seen", 50);
  std::vector<feature_column::Column> out = {tpu::embedding_column(user, 8)};
  for (const auto& column : tpu::shared_embedding_columns({item, seen}, 8)) out.push_back(column);
  return out;
}

estimator::ModelFn model_fn(const std::vector<feature_column::Column>& columns) {
  return [=](const Tensors& features, const Tensors& labels, ModeKeys mode) {
    Tensor x = layers::DenseFeatures({.feature_columns = columns})(features).tensor();
    x = layers::Dense({.units = 16, .activation = "relu"})(x);
    const Tensor click = layers::Dense({.units = 1, .activation = "sigmoid"})(x);
    estimator::EstimatorSpec spec = {.mode = mode, .predictions = click};
    if (mode == ModeKeys::kPredict) return spec;
    spec.loss = losses::BinaryCrossentropy({})->call(labels.tensor(), click);
    spec.optimizer = optimizers::Adagrad({.learning_rate = 0.1});
    spec.eval_metrics = {{"auc", {metrics::AUC({}), labels.tensor(), click}}};
    return spec;
  };
}

int run() {
  const std::string folder = flags.model_dir;
  const auto columns = click_columns();
  estimator::TPUEstimator clicks_estimator({
      .model_fn = model_fn(columns),
      .config = {.model_dir = folder, .cluster = {.num_hosts = 2, .num_cores = 2}},
      .train_batch_size = 256,
      .embedding_config_spec = estimator::EmbeddingConfigSpec(
          {.feature_columns = columns,
           .optimization_parameters = tpu::AdagradParameters{.learning_rate = 0.2},
           .profile_data_directory = folder + "/profiles"}),
  });

  clicks_estimator.train(clicks, {.steps = flags.steps});
  for (const auto& [name, value] : clicks_estimator.evaluate(clicks)) {
    std::cout << name << ' ' << value << '\n';
  }
  const auto predictions = clicks_estimator.predict(clicks).tensor().to_vector<float>();
  const std::string path = clicks_estimator.export_saved_model(
      folder + "/export", {{"user", layers::ragged_input({.dtype = DType::kInt64})},
                           {"item", layers::ragged_input({.dtype = DType::kInt64})},
                           {"seen", layers::ragged_input({.dtype = DType::kInt64})}});
  const Tensors batch = *clicks(256).iterator()->next();
  const ModelHandle loaded = load_model(path, {.compile = false});
  const float served =
      loaded->predict(batch[0], {.verbose = Verbose::kSilent}).tensor().data<float>()[0];
  std::cout << "exported to " << path << "; the first prediction is " << predictions[0]
            << " before the export and " << served << " in the exported model\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tool::CommandLine line(
      "estimator", "estimator: trains, evaluates and exports a click model with an estimator.");
  line.option("--model_dir", &flags.model_dir,
              "folder for the checkpoints; created if it does not exist",
              {.placeholder = "FOLDER", .required = true});
  line.option("--steps", &flags.steps, "steps to train");
  return examples::run_program(line, argc, argv, run);
}
