#include <keel/savedmodel/keras/internal/keras_h5.h>

#include <absl/strings/str_cat.h>
#include <optional>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/internal/skip_initialization.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_h5_optimizer.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/keras/internal/signature_files.h>

namespace keel {
namespace {

constexpr const char* kWeights = "/model_weights";

void add_optimizer_weights(const Model& model, Hdf5Contents& out) {
  std::vector<std::string> names;
  for (OptimizerWeight& weight : optimizer_weights(model)) {
    out.datasets.push_back(
        {.path = absl::StrCat(kOptimizerWeights, "/", weight.name), .get = std::move(weight.get)});
    names.push_back(std::move(weight.name));
  }
  out.groups.emplace_back(kOptimizerWeights);
  out.lists.push_back(
      {.object = kOptimizerWeights, .attribute = "weight_names", .values = std::move(names)});
}

}  // namespace

void write_keras_h5(const Model& model, const std::string& path,
                    const KerasH5WriteOptions& options) {
  require_no_replica("save_model");
  require_built("save_model", model);
  const Config config = to_keras_legacy(model);
  const Config compiled = model.get_compile_config();
  const bool trains = is_worth_saving(compiled);

  using Charset = Hdf5Writer::Charset;
  Hdf5Contents contents;
  const std::string version =
      absl::StrCat(kLegacyKerasVersion, has_training(config) ? kExplicitTraining : "");
  contents.texts = {{"/", "keras_version", version},
                    {"/", "backend", kLegacyBackend},
                    {"/", "model_config", to_json(config), Charset::kAscii}};
  if (trains) {
    contents.texts.push_back(
        {"/", "training_config", to_json(to_training_config(compiled)), Charset::kAscii});
  }
  add_signatures(options.signatures, contents);
  add_legacy_weights(model, kWeights, contents, options.min_count);
  if (model.optimizer() != nullptr && trains && options.optimizer_weights)
    add_optimizer_weights(model, contents);
  write_hdf5("save_model", path, contents);
}

namespace {

void compile_model(const Hdf5File& file, const std::string& path, Model& model) {
  if (!file.has_attribute("/", "training_config")) return;
  const std::string json = file.string_attribute("/", "training_config");
  const bool compiled = naming_file(file.path(), "training_config", [&] {
    const MemoryLimit limit(most_bytes_of_model(path));
    const Config config = from_training_config(parse_json(json), keras_version_of(file));
    if (!config.is_null()) model.compile_from_config(config);
    return !config.is_null();
  });
  if (!compiled) return;
  if (!keras_version_of(file).starts_with("1.")) return read_optimizer_weights(file, model);
  // Keras 1 did not name the slots: "Variable_12:0" or "param_3".
  if (!file.has(kOptimizerWeights) || model.optimizer() == nullptr) return;
  leave_optimizer_out(absl::StrCat(file.path(), ", ", kOptimizerWeights),
                      optimizer_state(model).size(),
                      file.string_list(kOptimizerWeights, "weight_names").size());
}

}  // namespace

ModelHandle read_keras_h5(const std::string& path, const KerasH5ReadOptions& options) {
  Hdf5File file(path);
  file.map_tables(options.mapped_tables);
  if (!file.has_attribute("/", "model_config")) {
    throw IoError(
        path, ": the file has no model_config attribute; it does not contain a whole Keras model");
  }
  const std::string json = file.string_attribute("/", "model_config");
  ModelHandle model = naming_file(path, "model_config", [&] {
    const MemoryLimit limit(most_bytes_of_model(path));
    std::optional<SkipInitialization> skip;
    if (options.mapped_tables != nullptr) skip.emplace();
    return model_from_keras(parse_json(json), {.safe_mode = options.safe_mode,
                                               .keras_version = keras_version_of(file)});
  });
  if (!file.has(kWeights)) {
    throw IoError(path, ": the file has no group ", kWeights, "; save the model again");
  }
  read_legacy_weights(file, kWeights, *model);
  if (options.compile) compile_model(file, path, *model);
  return model;
}

}  // namespace keel
