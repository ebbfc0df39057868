#include <keel/savedmodel/tool/model_file.h>

#include <absl/strings/str_cat.h>
#include <filesystem>
#include <iostream>

#include <keel/framework/base/internal/text.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>
#include <keel/savedmodel/keras/internal/keras_h5_optimizer.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

namespace keel::tool {
namespace {

bool has_list(const Hdf5File& file, const char* name) {
  return file.has_attribute("/", name) || file.has_attribute("/", std::string(name) + "0");
}

// Calls use(path) for each dataset in the order of the names.
template <class Use>
void for_each_dataset(const Hdf5File& file, const std::string& group, const Use& use) {
  for (const std::string& child : file.children(group.empty() ? "/" : group)) {
    const std::string path = absl::StrCat(group, group.empty() ? "" : "/", child);
    if (file.is_group(path)) {
      for_each_dataset(file, path, use);
    } else {
      use(path);
    }
  }
}

void check_row(const std::string& name, const TensorSpec& spec, int64_t row) {
  if (spec.shape.rank() == 0) {
    throw ValueError(name, ": the value is a scalar and has no rows; omit --row");
  }
  if (row < 0 || row >= spec.shape[0]) {
    throw ValueError(name, ": has rows 0 to ", spec.shape[0] - 1, ", received ", row,
                     "; pass one of its rows");
  }
}

Tensor row_of(const Tensor& value, int64_t row) {
  return slice_rows(TensorLike(value), row, row + 1).tensor();
}

StoredValue stored(std::string name, const StateEntry& entry) {
  const TensorSpec spec = entry.spec;
  const auto row = [name, entry](int64_t r) {
    check_row(name, entry.spec, r);
    if (!entry.rows) return row_of(entry.get(), r);
    if (entry.rows->get) return entry.rows->get(r, r + 1);
    Tensor out = Tensor::uninitialized(entry.spec.shape.with(0, 1), DType::kFloat32);
    entry.rows->read(r, r + 1, out.mutable_data<float>().data());
    return out;
  };
  return {.name = std::move(name), .spec = spec, .get = entry.get, .row = row};
}

std::string without_suffix(const std::string& name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

StoredValues values_of_checkpoint(const std::string& path) {
  const auto reader = std::make_shared<const CheckpointReader>(path);
  StoredValues out;
  for (const auto& [key, entry] : reader->index()) {
    const TensorSpec spec = entry.spec;
    const auto row = [reader, key, spec](int64_t r) {
      check_row(key, spec, r);
      Tensor found;
      if (spec.dtype == DType::kString) return row_of(reader->read(key), r);
      reader->read_rows(key, r, r + 1, [&](int64_t, const Tensor& values) { found = values; });
      return found;
    };
    const bool is_state = key.starts_with("optimizers/") || !entry.optimizer.empty();
    (is_state ? out.optimizer : out.weights)
        .push_back({.name = key,
                    .spec = spec,
                    .get = [reader, key] { return reader->read(key); },
                    .row = row});
  }
  return out;
}

}  // namespace

std::string value_text(const Tensor& value, int64_t i) {
  return visit_any(value.dtype(), [&]<class T>(T) -> std::string {
    const T element = value.data<T>()[i];
    if constexpr (std::is_same_v<T, std::string>) {
      return to_json(element);
    } else if constexpr (std::is_same_v<T, bool>) {
      return element ? "true" : "false";
    } else {
      return number_text(element);
    }
  });
}

const char* describe(FileKind kind) {
  switch (kind) {
    case FileKind::kArchive:
      return "model, Keras archive";
    case FileKind::kLegacyModel:
      return "model, Keras legacy HDF5";
    case FileKind::kLegacyWeights:
      return "weights, Keras legacy HDF5";
    case FileKind::kWeights:
      return "weights, Keras 3 HDF5";
    case FileKind::kCheckpoint:
      return "checkpoint";
  }
  return "";
}

std::string file_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  const std::optional<std::string> latest = latest_checkpoint(path);
  if (!latest) {
    throw IoError(
        path,
        ": the path is a folder without checkpoints; pass a model file or a folder of checkpoints");
  }
  return *latest;
}

FileKind kind_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw IoError(path, ": no such file; check the path");
  if (begins_with_zip(path)) return FileKind::kArchive;
  const Hdf5File file(path);
  if (file.has_attribute("/", "format")) return FileKind::kCheckpoint;
  if (file.has_attribute("/", "model_config")) return FileKind::kLegacyModel;
  if (has_list(file, "layer_names")) return FileKind::kLegacyWeights;
  for (const std::string& child : file.children("/")) {
    // In files that Keras wrote on Windows, the name of a group is its whole path.
    const std::string first = child.substr(0, child.find('\\'));
    if (first == "layers" || first == "_layer_checkpoint_dependencies" || first == "vars") {
      return FileKind::kWeights;
    }
  }
  throw IoError(path,
                ": the file contains neither a model, nor weights, nor a checkpoint; pass a file "
                "that Keel or Keras wrote");
}

LoadedModel load_whole_model(const std::string& caller, const std::string& path) {
  const FileKind kind = kind_of_file(path);
  if (!has_model(kind)) {
    throw ValueError(caller, ": requires a model, but ", path, " contains ", describe(kind));
  }
  try {
    return {.model = load_model(path)};
  } catch (const Error& error) {
    // If the error is neither in the training configuration nor in the state of the optimizer, this
    // throws again.
    return {.model = load_model(path, {.compile = false}), .not_compiled = error.what()};
  }
}

void load_weights_into(const std::string& caller, const ModelHandle& model, const std::string& path,
                       bool by_name) {
  for (const std::string& line : load_weights(model, path, {.by_name = by_name})) {
    std::cerr << caller << ": " << line << '\n';
  }
}

StoredValues values_of(const Model& model) {
  StoredValues out;
  std::vector<LayerWeights> layers = weights_by_layer(model);
  layers.push_back(top_level_weights(model));
  for (const LayerWeights& layer : layers) {
    for (const NamedWeight& weight : layer.weights) {
      const std::string name = without_suffix(weight.name);
      const bool complete = name.starts_with(layer.layer + "/");
      out.weights.push_back(stored(complete ? name : layer.layer + "/" + name, weight.entry));
    }
  }
  if (model.optimizer() == nullptr || has_new_optimizer(model)) return out;
  for (const OptimizerState& state : optimizer_state(model)) {
    StateEntry entry;
    entry.spec = state.spec;
    entry.get = state.get;
    out.optimizer.push_back(stored(state.name, entry));
  }
  return out;
}

bool has_new_optimizer(const Model& model) {
  return model.optimizer() != nullptr && model.optimizer()->iterations() == 0;
}

StoredValues values_of(const std::string& path, FileKind kind) {
  if (kind == FileKind::kCheckpoint) return values_of_checkpoint(path);
  const auto file = std::make_shared<const Hdf5File>(path);
  StoredValues out;
  for_each_dataset(*file, "", [&](const std::string& name) {
    const TensorSpec spec = file->spec(name);
    const auto row = [file, name, spec](int64_t r) {
      check_row(name, spec, r);
      if (spec.dtype == DType::kString) return row_of(file->read(name), r);
      return file->read_rows(name, r, 1);
    };
    const bool is_state = name.starts_with("optimizer");
    (is_state ? out.optimizer : out.weights)
        .push_back({.name = without_suffix(name),
                    .spec = spec,
                    .get = [file, name] { return file->read(name); },
                    .row = row});
  });
  return out;
}

}  // namespace keel::tool
