#include <keel/savedmodel/model_json.h>

#include <absl/strings/str_cat.h>

#include <keel/savedmodel/keras/dialect/keras_dialect.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>

namespace keel {

std::string to_json(const Model& model) {
  Config config = to_keras_archive(model);
  const Config compiled = model.get_compile_config();
  if (is_worth_saving(compiled)) {
    config.set("compile_config", to_compile_config(compiled));
  }
  if (has_training(config))
    config.set("keras_version", absl::StrCat(kLegacyKerasVersion, kExplicitTraining));
  return to_json(config);
}

ModelHandle model_from_json(const std::string& json, const ModelFromJsonOptions& options) {
  const saving::CustomObjectScope scope(options.custom_objects);
  const Config config = parse_json(json);
  if (!config.is_dict() || config.find("class_name") == nullptr ||
      config.find("config") == nullptr) {
    throw ValueError(
        "model_from_json: the text is not the config of a model; it must be an object "
        "with 'class_name' and 'config'");
  }
  const Config* const version = config.find("keras_version");
  const bool has_version = version != nullptr && version->is_string();
  ModelHandle model = model_from_keras(
      config,
      {.safe_mode = options.safe_mode, .keras_version = has_version ? version->string() : ""});
  const Config* const stored = config.find("compile_config");
  if (options.compile && stored != nullptr && !stored->is_null()) {
    const Config compiled = from_training_config(*stored, has_version ? version->string() : "");
    if (!compiled.is_null()) model->compile_from_config(compiled);
  }
  return model;
}

}  // namespace keel
