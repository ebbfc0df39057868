#include <keel/savedmodel/keras/internal/keras_archive.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/internal/skip_initialization.h>
#include <keel/layers/internal/naming.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/keras_vocabularies.h>
#include <keel/savedmodel/keras/internal/keras_weights_h5.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {
namespace {

constexpr const char* kMetadata = "metadata.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.weights.h5";
constexpr int64_t kMaxConfigBytes = int64_t{1} << 30;

// Files of this library have this date, so that equal models give equal files.
constexpr const char* kOwnDate = "1980-01-01@00:00:00";

Config metadata() { return Config::dict({{"keras_version", "3.8.0"}, {"date_saved", kOwnDate}}); }

void write_archive(const char* caller, const std::string& path, const Config& about,
                   const Config& config, const Hdf5Contents& weights,
                   const std::map<std::string, std::string>& assets = {}) {
  distribute::ProcessGroup& group = distribute::processes();
  const auto unzipped = write_temporary_hdf5(caller, path, weights);
  distribute::run_collectively(group, caller, [&] {
    if (group.rank() != 0) return;
    ZipWriter zip(path);
    zip.add(kMetadata, to_json(about));
    zip.add(kConfig, to_json(config));
    zip.add_file(kWeights, unzipped->path());
    for (const auto& [entry, text] : assets) zip.add(entry, text);
    zip.finish();
  });
}

}  // namespace

void write_keras_archive(const Model& model, const std::string& path,
                         const KerasArchiveWriteOptions& options) {
  Config about = metadata();
  add_signatures(options.signatures, about);
  const Hdf5Contents weights = keras_weights_contents(model, options.min_count);
  std::map<std::string, std::string> assets;
  Config config = without_vocabularies(to_keras_archive(model), options.vocabulary_assets, assets);
  const Config compiled = model.get_compile_config();
  if (is_worth_saving(compiled)) config.set("compile_config", to_compile_config(compiled));
  write_archive("save_model", path, about, config, weights, assets);
}

namespace {

// The unpacked weights of an archive.
class ArchivedWeights {
 public:
  // Unpacks the weights, which checks them against the checksum of the archive. With `tables`,
  // weights that are stored without compression are read in the archive.
  ArchivedWeights(const ZipFile& zip, const std::string& path,
                  const std::shared_ptr<MappedTables>& tables = nullptr)
      : stored_(tables == nullptr ? std::nullopt : zip.stored(kWeights)),
        unzipped_(stored_ ? nullptr : extracted(zip)),
        file_(stored_ ? *stored_ : FilePart{.path = unzipped_->path()},
              absl::StrCat(path, ", ", kWeights)) {
    if (stored_) {
      file_.map_tables(tables);
    } else if (tables != nullptr) {
      tables->copied(kWeights, std::filesystem::file_size(unzipped_->path()),
                     "the archive compresses it");
    }
  }
  const Hdf5File& file() const { return file_; }

 private:
  static std::unique_ptr<const TemporaryFile> extracted(const ZipFile& zip) {
    auto out = std::make_unique<const TemporaryFile>(
        std::filesystem::temp_directory_path() / "keel-weights", TemporaryFile::kPrivate);
    zip.extract(kWeights, *out);
    return out;
  }

  const std::optional<FilePart> stored_;
  const std::unique_ptr<const TemporaryFile> unzipped_;
  Hdf5File file_;
};

std::string keras_version_of(const ZipFile& zip) {
  if (!zip.has(kMetadata)) return {};
  const Config metadata = parse_json(zip.read(kMetadata, kMaxConfigBytes));
  if (!metadata.is_dict()) return {};
  const Config* const version = metadata.find("keras_version");
  if (version == nullptr || !version->is_string()) return {};
  const Config* const date = metadata.find("date_saved");
  const bool is_own = date != nullptr && *date == Config(kOwnDate);
  return version->string() + (is_own ? kExplicitTraining : "");
}

}  // namespace

ModelHandle read_keras_archive(const std::string& path, const KerasArchiveReadOptions& options) {
  const ZipFile zip(path);
  const std::string json = zip.read(kConfig, kMaxConfigBytes);
  const ArchivedWeights weights(zip, path, options.mapped_tables);
  ModelHandle model = naming_file(path, kConfig, [&] {
    const MemoryLimit limit(most_bytes_of_model(path));
    std::optional<SkipInitialization> skip;
    if (options.mapped_tables != nullptr) skip.emplace();
    const Config config = with_vocabularies(zip, weights.file(), parse_json(json));
    ModelHandle made = model_from_keras(
        config, {.safe_mode = options.safe_mode, .keras_version = keras_version_of(zip)});
    const Config* const stored = config.find("compile_config");
    if (options.compile && stored != nullptr) {
      const Config compiled = from_training_config(*stored, keras_version_of(zip));
      if (!compiled.is_null()) made->compile_from_config(compiled);
    }
    return made;
  });
  read_keras_weights(weights.file(), *model, false);
  return model;
}

std::vector<std::string> read_archive_weights(const std::string& path, const Model& model,
                                              bool skip_mismatch) {
  return read_keras_weights(ArchivedWeights(ZipFile(path), path).file(), model, skip_mismatch);
}

// ---- FeatureSpace.

namespace {

constexpr const char* kSpaceModule = "keras.src.layers.preprocessing.feature_space";

// The preprocessor of a feature and the group of its weights.
struct Preprocessor {
  LayerHandle<Layer> layer;
  std::string vars;  // "/preprocessors/normalization_1/vars"
  std::vector<StateEntry> weights;
};

// Returns the preprocessors in the order of the features in a config, which names their groups.
std::vector<Preprocessor> preprocessors(const FeatureSpaceLayer& space, const Config& features) {
  std::vector<Preprocessor> out;
  std::map<std::string, int> used;
  for (const auto& [feature_name, feature] : features.entries()) {
    const LayerHandle<Layer> layer = space.preprocessor(feature_name);
    std::string group = to_snake_case(layer->class_name());
    if (const int k = used[group]++; k > 0) group += "_" + std::to_string(k);
    std::vector<StateEntry> weights = layer->state_entries();
    std::erase_if(weights,
                  [](const StateEntry& entry) { return entry.kind != StateEntry::Kind::kWeight; });
    std::ranges::stable_partition(weights, &StateEntry::trainable);
    out.push_back({.layer = layer,
                   .vars = "/preprocessors/" + group + "/vars",
                   .weights = std::move(weights)});
  }
  return out;
}

Config space_object(const char* class_name, Config config) {
  return Config::dict({{"module", kSpaceModule},
                       {"class_name", class_name},
                       {"config", std::move(config)},
                       {"registered_name", class_name}});
}

// Returns the config in the form of archives.
Config to_archive(const FeatureSpaceLayer& space) {
  Config config = space.get_config();
  Config features = Config::dict();
  for (const auto& [feature_name, feature] : config["features"].entries()) {
    Config own = feature["config"];
    own.set("preprocessor", to_keras_archive(own["preprocessor"]));
    features.set(feature_name, space_object("Feature", std::move(own)));
  }
  Config::List crosses;
  for (const Config& cross : config["crosses"].items()) {
    crosses.push_back(space_object("Cross", cross["config"]));
  }
  config.set("features", std::move(features));
  config.set("crosses", std::move(crosses));
  Config out = space_object("FeatureSpace", std::move(config));
  out.set("module", "keras.utils");
  return out;
}

// Assigns the weights of the preprocessors after checking all of them.
void read_weights(const Hdf5File& file, const std::vector<Preprocessor>& all) {
  std::map<std::string, std::string> named;  // groups by the name of their layer
  const char* const folder = "/preprocessors";
  const std::vector<std::string> groups =
      file.has(folder) ? file.children(folder) : std::vector<std::string>();
  for (const std::string& child : groups) {
    const std::string vars = absl::StrCat(folder, "/", child, "/vars");
    if (!file.has(vars) || !file.has_attribute(vars, "name")) continue;
    named.emplace(file.string_attribute(vars, "name"), vars);
  }
  std::vector<std::pair<const StateEntry*, Tensor>> values;
  for (const Preprocessor& each : all) {
    const auto found = named.find(each.layer->name());
    const std::string& vars = found == named.end() ? each.vars : found->second;
    for (size_t i = 0; i < each.weights.size(); ++i) {
      const StateEntry& entry = each.weights[i];
      const std::string dataset = absl::StrCat(vars, "/", i);
      const std::string what = absl::StrCat(file.path(), ": layer '", each.layer->name(),
                                            "', weight '", entry.name, "'");
      if (!file.has(dataset)) throw ValueError(what, " is not in the file: there is no ", dataset);
      const std::string problem = spec_mismatch(entry.spec, file.spec(dataset));
      if (!problem.empty()) throw ValueError(what, problem, " in ", dataset);
      values.emplace_back(&entry, file.read(dataset, entry.spec.dtype));
      if (entry.check) entry.check(values.back().second);
    }
  }
  for (const auto& [entry, value] : values) entry->set(value);
}

}  // namespace

void write_feature_space_archive(const FeatureSpaceLayer& space, const std::string& path) {
  require_no_replica("save_feature_space");
  space.get_inputs();  // throws before adapt()
  const Config config = to_archive(space);
  Hdf5Contents contents;
  const auto add = [&](const std::string& vars, const std::string& name) {
    contents.groups.push_back(vars);
    contents.texts.push_back({.object = vars, .attribute = "name", .text = name});
  };
  add("/vars", space.name());
  for (Preprocessor& each : preprocessors(space, config["config"]["features"])) {
    add(each.vars, each.layer->name());
    add_idf_weights(*each.layer, each.vars.substr(0, each.vars.rfind('/')), contents);
    for (size_t i = 0; i < each.weights.size(); ++i) {
      contents.datasets.push_back(
          {.path = absl::StrCat(each.vars, "/", i), .get = std::move(each.weights[i].get)});
    }
  }
  write_archive("save_feature_space", path, metadata(), config, contents);
}

utils::FeatureSpace read_feature_space_archive(const std::string& path) {
  const ZipFile zip(path);
  const ArchivedWeights weights(zip, path);
  Config config;
  utils::FeatureSpace space = naming_file(path, kConfig, [&] {
    const MemoryLimit limit(most_bytes_of_model(path));
    const Config stored = parse_json(zip.read(kConfig, kMaxConfigBytes));
    config = plain_config(with_vocabularies(zip, weights.file(), stored),
                          {.keras_version = keras_version_of(zip)});
    const Config* const class_name = config.is_dict() ? config.find("class_name") : nullptr;
    if (class_name == nullptr || *class_name != Config("FeatureSpace")) {
      throw ValueError("the root is not a FeatureSpace; use load_model()");
    }
    return utils::FeatureSpace(kAdopt, FeatureSpaceLayer::from_config(config["config"]));
  });
  read_weights(weights.file(), preprocessors(*space, config["config"]["features"]));
  return space;
}

}  // namespace keel
