#include <keel/layers/utils/internal/feature_kinds.h>

#include <algorithm>

#include <keel/layers/core/core.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/registry.h>

namespace keel::utils {
namespace {

// Returns a feature whose preprocessor has class T and these options. `name` replaces the name of
// the feature in that of the preprocessor unless it is empty.
template <class T>
Feature with_layer(DType dtype, const std::string& output_mode, const std::string& name,
                   typename T::Options options) {
  const auto make = [name, options](const std::string& default_name) -> LayerHandle<Layer> {
    typename T::Options named = options;
    named.name = name.empty() ? default_name : name + "_preprocessor";
    return LayerHandle<T>(std::move(named));
  };
  return {dtype, make, output_mode};
}

// Decodes the value of a key if it is there and not null.
template <class T>
void take(const Config& config, const char* key, T& value) {
  const Config* const found = config.find(key);
  if (found != nullptr && !found->is_null()) decode(*found, value);
}

Feature feature_from(const Config& config) {
  if (config.is_string()) return config.string();
  const Config& inner = config["config"];
  Config layer = inner["preprocessor"];
  // Keras names the class of its identity by its place in the source.
  if (layer["class_name"] == Config("TFDIdentity")) layer.set("class_name", "Identity");
  DType dtype = DType::kFloat32;
  decode(inner["dtype"], dtype);
  return feature(dtype, layers::deserialize(layer), inner["output_mode"].string());
}

Cross cross_from(const Config& config) {
  std::vector<std::string> names;
  if (config.is_list()) {
    decode(config, names);
    Cross out{};
    out.feature_names = std::move(names);
    return out;
  }
  const Config& inner = config["config"];
  decode(inner["feature_names"], names);
  return {std::move(names), inner["crossing_dim"].integer(), inner["output_mode"].string()};
}

}  // namespace

std::string Cross::name() const {
  std::string out;
  for (const std::string& feature_name : feature_names) {
    out += (out.empty() ? "" : "_X_") + feature_name;
  }
  return out;
}

Feature float_feature(const std::string& name) {
  return with_layer<IdentityLayer>(DType::kFloat32, "float", name, {});
}

Feature float_rescaled(const FloatRescaledOptions& options) {
  return with_layer<RescalingLayer>(DType::kFloat32, "float", options.name,
                                    {.scale = options.scale, .offset = options.offset});
}

Feature float_normalized(const std::string& name) {
  return with_layer<NormalizationLayer>(DType::kFloat32, "float", name, {});
}

Feature float_discretized(const FloatDiscretizedOptions& options) {
  return with_layer<DiscretizationLayer>(
      DType::kFloat32, options.output_mode, options.name,
      {.bin_boundaries = options.bin_boundaries, .num_bins = options.num_bins});
}

Feature integer_categorical(const CategoricalOptions& options) {
  return with_layer<IntegerLookupLayer>(
      DType::kInt32, options.output_mode, options.name,
      {.max_tokens = options.max_tokens, .num_oov_indices = options.num_oov_indices});
}

Feature string_categorical(const CategoricalOptions& options) {
  return with_layer<StringLookupLayer>(
      DType::kString, options.output_mode, options.name,
      {.max_tokens = options.max_tokens, .num_oov_indices = options.num_oov_indices});
}

Feature integer_hashed(const HashedOptions& options) {
  return with_layer<HashingLayer>(DType::kInt32, options.output_mode, options.name,
                                  {.num_bins = options.num_bins});
}

Feature string_hashed(const HashedOptions& options) {
  return with_layer<HashingLayer>(DType::kString, options.output_mode, options.name,
                                  {.num_bins = options.num_bins});
}

Feature feature(DType dtype, const LayerHandle<Layer>& preprocessor, std::string output_mode) {
  return {dtype, [preprocessor](const std::string&) { return preprocessor; },
          std::move(output_mode)};
}

Feature feature_of_kind(const std::string& kind, int64_t hashing_dim,
                        int64_t num_discretization_bins) {
  if (kind == "float") return float_feature();
  if (kind == "float_rescaled") return float_rescaled({});
  if (kind == "float_normalized") return float_normalized();
  if (kind == "float_discretized") return float_discretized({.num_bins = num_discretization_bins});
  if (kind == "integer_categorical") return integer_categorical({});
  if (kind == "string_categorical") return string_categorical({});
  if (kind == "integer_hashed") return integer_hashed({.num_bins = hashing_dim});
  if (kind == "string_hashed") return string_hashed({.num_bins = hashing_dim});
  return {DType::kFloat32, nullptr, ""};
}

FeatureSpaceOptions feature_space_options(const Config& config) {
  FeatureSpaceOptions out;
  for (const auto& [name, feature_config] : config["features"].entries()) {
    out.features.emplace(name, feature_from(feature_config));
  }
  take(config, "output_mode", out.output_mode);
  if (const Config* crosses = config.find("crosses"); crosses != nullptr && !crosses->is_null()) {
    for (const Config& cross : crosses->items()) out.crosses.push_back(cross_from(cross));
  }
  take(config, "crossing_dim", out.crossing_dim);
  take(config, "hashing_dim", out.hashing_dim);
  take(config, "num_discretization_bins", out.num_discretization_bins);
  take(config, "name", out.name);
  return out;
}

}  // namespace keel::utils
