#include <keel/savedmodel/keras/internal/signature_files.h>

#include <absl/strings/str_cat.h>

#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {
namespace {

constexpr const char* kArchiveMetadata = "metadata.json";
constexpr int64_t kMaxMetadataBytes = int64_t{1} << 26;

Config default_to_config(const Tensor& value) {
  if (!value) return {};
  return visit_any(value.dtype(), [&]<class T>(const T&) -> Config {
    if constexpr (std::same_as<T, float>) {
      const auto wide = value.cast(DType::kFloat64);
      if (value.rank() == 0) return wide.item<double>();
      return encode(wide.to_vector<double>());
    } else if constexpr (std::same_as<T, int64_t> || std::same_as<T, std::string>) {
      if (value.rank() == 0) return value.item<T>();
      return encode(value.to_vector<T>());
    } else {
      throw TypeError("signature: unsupported dtype of a default value: ", value.dtype());
    }
  });
}

template <class T>
Tensor tensor_from(const Config& config, const Shape& shape) {
  if (!config.is_list()) {
    T value = {};
    decode(config, value);
    return Tensor::scalar(value);
  }
  std::vector<T> values;
  decode(config, values);
  return Tensor::from(values, shape);
}

Tensor default_from_config(const Config& config, const Shape& shape, DType dtype) {
  if (config.is_null()) return {};
  if (dtype == DType::kString) return tensor_from<std::string>(config, shape);
  if (dtype == DType::kInt64) return tensor_from<int64_t>(config, shape);
  return tensor_from<double>(config, shape).cast(DType::kFloat32);
}

Config feature_to_config(const std::string& name, const ExampleFeature& feature) {
  Config out = Config::dict({{"kind", data::name_of(feature.feature)},
                             {"dtype", encode(data::dtype_of(feature.feature))}});
  if (const auto* fixed = std::get_if<data::FixedLenFeature>(&feature.feature)) {
    out.set("shape", encode(fixed->shape));
    out.set("default_value", default_to_config(fixed->default_value));
  }
  out.set("input", feature.input.empty() ? name : feature.input);
  return out;
}

ExampleFeature feature_from_config(const Config& config) {
  ExampleFeature out;
  DType dtype = DType::kFloat32;
  decode(config["dtype"], dtype);
  const std::string& kind = config["kind"].string();
  if (kind == "FixedLenFeature") {
    data::FixedLenFeature fixed{.dtype = dtype};
    decode(config["shape"], fixed.shape);
    fixed.default_value = default_from_config(config["default_value"], fixed.shape, dtype);
    out.feature = std::move(fixed);
  } else if (kind == "VarLenFeature") {
    out.feature = data::VarLenFeature{dtype};
  } else if (kind == "RaggedFeature") {
    out.feature = data::RaggedFeature{dtype};
  } else {
    throw ValueError("signature: unknown kind of feature '", kind, "'");
  }
  out.input = config["input"].string();
  return out;
}

}  // namespace

void check_signatures(const Model& model, const SignatureSpecs& specs) {
  for (const auto& [name, features] : specs) {
    naming_file(absl::StrCat("signature '", name, "'"), "features", [&] {
      data::FeatureSpecs parsed;
      // NOLINTNEXTLINE(clang-analyzer-*): false positive for a captured structured binding
      for (const auto& [feature, spec] : features) parsed.emplace(feature, spec.feature);
      const data::ExampleParser checked(std::move(parsed));
      to_json(to_config({{name, features}}));
      return check_signature(model, features);
    });
  }
}

Config to_config(const SignatureSpecs& specs) {
  Config out = Config::dict();
  for (const auto& [name, features] : specs) {
    Config inner = Config::dict();
    for (const auto& [feature, spec] : features)
      inner.set(feature, feature_to_config(feature, spec));
    out.set(name, Config::dict({{"features", std::move(inner)}}));
  }
  return out;
}

SignatureSpecs signature_specs_from(const Config& config) {
  SignatureSpecs out;
  for (const auto& [name, signature] : config.entries()) {
    ExampleFeatures& features = out[name];
    for (const auto& [feature, spec] : signature["features"].entries()) {
      features[feature] = feature_from_config(spec);
    }
  }
  return out;
}

void add_signatures(const SignatureSpecs& specs, Hdf5Contents& contents) {
  if (specs.empty()) return;
  contents.texts.push_back({"/", kSignaturesKey, to_json(to_config(specs))});
}

void add_signatures(const SignatureSpecs& specs, Config& archive_metadata) {
  if (!specs.empty()) archive_metadata.set(kSignaturesKey, to_config(specs));
}

SignatureSpecs read_signature_specs(const std::string& path) {
  std::string json;
  const bool archive = begins_with_zip(path);
  if (archive) {
    const ZipFile zip(path);
    if (!zip.has(kArchiveMetadata)) return {};
    json = zip.read(kArchiveMetadata, kMaxMetadataBytes);
  } else {
    const Hdf5File file(path);
    if (!file.has_attribute("/", kSignaturesKey)) return {};
    json = file.string_attribute("/", kSignaturesKey);
  }
  return naming_file(path, kSignaturesKey, [&] {
    const Config config = parse_json(json);
    if (!archive) return signature_specs_from(config);
    const Config* const stored = config.is_dict() ? config.find(kSignaturesKey) : nullptr;
    return stored == nullptr ? SignatureSpecs() : signature_specs_from(*stored);
  });
}

}  // namespace keel
