#include <keel/savedmodel/keras/internal/keras_archive.h>

#include <filesystem>
#include <memory>
#include <optional>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/internal/skip_initialization.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/keras_vocabularies.h>
#include <keel/savedmodel/keras/internal/keras_weights_h5.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {
namespace {

constexpr const char* kMetadata = "metadata.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.weights.h5";
constexpr int64_t kMaxConfigBytes = int64_t{1} << 30;

// Readers ignore the version. The date is omitted so that equal models give equal files.
Config metadata() {
  return Config::dict({{"keras_version", "3.8.0"}, {"date_saved", "1980-01-01@00:00:00"}});
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
  if (!compiled.is_null() && !compiled["optimizer"].is_null()) {
    config.set("compile_config", to_compile_config(compiled));
  }
  distribute::ProcessGroup& group = distribute::processes();
  const auto unzipped = write_temporary_hdf5("save_model", path, weights);
  distribute::run_collectively(group, "save_model", [&] {
    if (group.rank() != 0) return;
    ZipWriter zip(path);
    zip.add(kMetadata, to_json(about));
    zip.add(kConfig, to_json(config));
    zip.add_file(kWeights, unzipped->path());
    for (const auto& [entry, text] : assets) zip.add(entry, text);
    zip.finish();
  });
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
        file_(stored_ ? *stored_ : FilePart{.path = unzipped_->path()}, str(path, ", ", kWeights)) {
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
  const Config* const version = metadata.is_dict() ? metadata.find("keras_version") : nullptr;
  return version != nullptr && version->is_string() ? version->string() : "";
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
      const Config compiled = from_training_config(*stored);
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

}  // namespace keel
