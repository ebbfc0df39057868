#include <keel/savedmodel/saved_model.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/savedmodel/keras/for_keras.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>
#include <keel/savedmodel/keras/internal/keras_archive.h>
#include <keel/savedmodel/keras/internal/keras_h5.h>
#include <keel/savedmodel/keras/internal/keras_weights_h5.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/model_json.h>

namespace keel {
namespace {

enum class Format { kArchive, kWeights, kLegacy };

Format format_of(const char* caller, const std::string& path) {
  if (path.ends_with(".keras")) return Format::kArchive;
  if (path.ends_with(".weights.h5")) return Format::kWeights;
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) return Format::kLegacy;
  throw ValueError(caller,
                   ": the file's name must end in '.keras', '.weights.h5', '.h5' or '.hdf5', "
                   "received '",
                   path, "'");
}

bool begins_with_hdf5(const std::string& path) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  std::ifstream file(path, std::ios::binary);
  std::array<char, kSignature.size()> start = {};
  return file.read(start.data(), start.size()) &&
         std::string_view(start.data(), start.size()) == kSignature;
}

// Returns the format of a file that is read. Its first bytes are decisive: tf.keras before 2.12
// wrote HDF5 under the name that the caller chose, such as "best.keras".
Format stored_format(const char* caller, const std::string& path) {
  if (begins_with_zip(path)) return Format::kArchive;
  if (!begins_with_hdf5(path)) return format_of(caller, path);
  return path.ends_with(".weights.h5") ? Format::kWeights : Format::kLegacy;
}

// Returns the format of a file of weights. The groups of an HDF5 file tell both layouts apart.
Format stored_weights_format(const char* caller, const std::string& path) {
  const Format format = stored_format(caller, path);
  if (format == Format::kArchive || !begins_with_hdf5(path)) return format;
  const Hdf5File file(path);
  const bool legacy = file.has_attribute("/", "layer_names") ||
                      file.has_attribute("/", "layer_names0") || file.has("/model_weights");
  if (legacy) return Format::kLegacy;
  const bool current = file.has("/layers") || file.has("/vars");
  return current ? Format::kWeights : format;
}

Format whole_model_format(const char* caller, const std::string& path, Format format) {
  if (format == Format::kWeights) {
    throw ValueError(caller, ": a '.weights.h5' file holds only weights, received '", path,
                     "'; use '.keras', or call save_weights and load_weights");
  }
  return format;
}

void check_overwrite(const char* caller, const std::string& path, bool overwrite) {
  distribute::run_collectively(distribute::processes(), caller, [&] {
    if (!overwrite && std::filesystem::exists(path)) {
      throw ValueError(caller, ": ", path, " exists; set overwrite or pass another path");
    }
  });
}

// Returns the format of a whole model after checking the path and the options.
Format checked_format(const std::string& path, const SaveOptions& options) {
  const Format format = whole_model_format("save_model", path, format_of("save_model", path));
  if (options.table_dtype != "float32" && options.table_dtype != "int8") {
    throw ValueError("save_model: table_dtype must be float32 or int8, received '",
                     options.table_dtype, "'");
  }
  check_overwrite("save_model", path, options.overwrite);
  return format;
}

}  // namespace

void check_save_model(const std::string& path, const SaveOptions& options) {
  checked_format(path, options);
  distribute::run_collectively(distribute::processes(), "save_model", [&] {
    // Without commit, AtomicFile removes its file again: this only checks that it can be created.
    if (distribute::processes().rank() == 0) const AtomicFile probe(path);
  });
}

namespace {

// Collects the lookup layers in `layer`.
void add_lookups(const Layer& layer, std::set<const Layer*>& out) {
  if (dynamic_cast<const StringLookupLayer*>(&layer) != nullptr ||
      dynamic_cast<const IntegerLookupLayer*>(&layer) != nullptr) {
    out.insert(&layer);
  }
  for (const auto& child : layer.sublayers()) add_lookups(*child, out);
}

// Returns the names of the lookup layers that `made` has and `model` does not have.
std::set<std::string> new_lookups(const Model& model, const Model& made) {
  std::set<const Layer*> old, all;
  add_lookups(model, old);
  add_lookups(made, all);
  std::set<std::string> out;
  for (const Layer* layer : all) {
    if (!old.contains(layer)) out.insert(layer->name());
  }
  return out;
}

// Writes a model as it is. In archives, the vocabularies of `lookups` are assets.
void write_model(const Model& model, const std::string& path, Format format,
                 const SaveOptions& options, const std::set<std::string>& lookups) {
  check_signatures(model, options.signatures);
  if (format == Format::kArchive) {
    return write_keras_archive(model, path,
                               {.signatures = options.signatures,
                                .min_count = options.min_count,
                                .vocabulary_assets = lookups});
  }
  write_keras_h5(model, path,
                 {.optimizer_weights = options.include_optimizer,
                  .signatures = options.signatures,
                  .min_count = options.min_count});
}

}  // namespace

void check_save_model(const Model& model, const std::string& path, const SaveOptions& options) {
  check_save_model(path, options);
  check_min_count("save_model", model, options.min_count);
  const auto check = [&](const Model& saved) {
    check_signatures(saved, options.signatures);
    to_json(saved);
  };
  // Tables for unbounded ids are only converted once they have rows.
  const bool converts =
      options.for_keras &&
      std::ranges::none_of(all_dynamic_tables(model), [](const NamedDynamicTable& named) {
        return named.table.statistics().size == 0;
      });
  converts ? check(*keras_model_of(model, options.min_count)) : check(model);
}

void save_model(const Model& model, const std::string& path, const SaveOptions& options) {
  const Format format = checked_format(path, options);
  check_min_count("save_model", model, options.min_count);
  const bool in_int8 = options.table_dtype == "int8";
  if (!options.for_keras) {
    if (!in_int8) return write_model(model, path, format, options, {});
    return write_model(*with_int8_tables(model), path, format, options, {});
  }
  const ModelHandle rewritten = keras_model_of(model, options.min_count);
  const std::set<std::string> lookups = new_lookups(model, *rewritten);
  write_model(in_int8 ? *with_int8_tables(*rewritten) : *rewritten, path, format, options, lookups);
}

ModelHandle load_model(const std::string& path, const LoadOptions& options) {
  const saving::CustomObjectScope scope(options.custom_objects);
  const Format format = whole_model_format("load_model", path, stored_format("load_model", path));
  if (format == Format::kArchive) {
    return read_keras_archive(path, {.compile = options.compile,
                                     .safe_mode = options.safe_mode,
                                     .mapped_tables = options.mapped_tables});
  }
  return read_keras_h5(path, {.compile = options.compile,
                              .safe_mode = options.safe_mode,
                              .mapped_tables = options.mapped_tables});
}

void save_feature_space(const FeatureSpaceLayer& space, const std::string& path, bool overwrite) {
  if (!path.ends_with(".keras")) {
    throw ValueError("save_feature_space: the file's name must end in '.keras', received '", path,
                     "'");
  }
  check_overwrite("save_feature_space", path, overwrite);
  write_feature_space_archive(space, path);
}

utils::FeatureSpace load_feature_space(const std::string& path) {
  if (!path.ends_with(".keras") && !begins_with_zip(path)) {
    throw ValueError("load_feature_space: the file's name must end in '.keras', received '", path,
                     "'");
  }
  return read_feature_space_archive(path);
}

void save_weights(const Model& model, const std::string& path, const SaveWeightsOptions& options) {
  const Format format = format_of("save_weights", path);
  if (format == Format::kArchive) {
    throw ValueError("save_weights: a '.keras' file holds a whole model, received '", path,
                     "'; use '.weights.h5', or call save_model");
  }
  check_overwrite("save_weights", path, options.overwrite);
  check_min_count("save_weights", model, options.min_count);
  if (format == Format::kWeights) {
    return write_hdf5("save_weights", path, keras_weights_contents(model, options.min_count));
  }
  require_no_replica("save_weights");
  require_built("save_weights", model);
  Hdf5Contents contents;
  add_legacy_weights(model, "/", contents, options.min_count);
  write_hdf5("save_weights", path, contents);
}

std::vector<std::string> load_weights(const Model& model, const std::string& path,
                                      const LoadWeightsOptions& options) {
  const Format format = stored_weights_format("load_weights", path);
  require_no_replica("load_weights");
  require_built("load_weights", model);
  if (format != Format::kLegacy) {
    if (options.by_name) {
      throw ValueError("load_weights: by_name requires a legacy file ('.h5'), received '", path,
                       "'");
    }
    if (format == Format::kArchive) {
      return read_archive_weights(path, model, options.skip_mismatch);
    }
    return read_keras_weights(Hdf5File(path), model, options.skip_mismatch);
  }
  const Hdf5File file(path);
  const bool alone = file.has_attribute("/", "layer_names") ||
                     file.has_attribute("/", "layer_names0") || !file.has("/model_weights");
  if (alone && !file.has_attribute("/", "layer_names") &&
      !file.has_attribute("/", "layer_names0")) {
    throw IoError(path,
                  ": no weights in the legacy layout of Keras: attribute layer_names is missing; "
                  "pass a file that save_weights of Keras 2 wrote");
  }
  return read_legacy_weights(file, alone ? "/" : "/model_weights", model,
                             {.by_name = options.by_name, .skip_mismatch = options.skip_mismatch});
}

Signatures signatures(const std::string& path) {
  return planned_signatures(load_model(path, {.compile = false}), path);
}

}  // namespace keel
