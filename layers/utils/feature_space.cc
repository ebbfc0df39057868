#include <keel/layers/utils/feature_space.h>

#include <algorithm>

#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/layers/registry.h>
#include <keel/layers/utils/internal/feature_kinds.h>

namespace keel {
namespace {

// Returns true if a layer learns its state by adapt() and was not given it.
bool learns(const Layer& layer) {
  for (const auto& [class_name, key] : {std::pair{"Normalization", "mean"},
                                        {"Discretization", "bin_boundaries"},
                                        {"IntegerLookup", "vocabulary"},
                                        {"StringLookup", "vocabulary"},
                                        {"TextVectorization", "vocabulary"}}) {
    if (layer.class_name() == class_name) return layer.get_config()[key].is_null();
  }
  return false;
}

// Calls adapt() if the layer has class T.
template <class T>
bool adapt_as(Layer& layer, const data::Dataset& batches) {
  auto* const found = dynamic_cast<T*>(&layer);
  if (found != nullptr) found->adapt(batches);
  return found != nullptr;
}

// Returns the number of categories that a preprocessor returns, if it is known.
std::optional<int64_t> categories_of(const Layer& layer) {
  if (const auto* lookup = dynamic_cast<const StringLookupLayer*>(&layer)) {
    return lookup->vocabulary_size();
  }
  if (const auto* lookup = dynamic_cast<const IntegerLookupLayer*>(&layer)) {
    return lookup->vocabulary_size();
  }
  for (const auto& [class_name, key] : {std::pair{"CategoryEncoding", "num_tokens"},
                                        {"Discretization", "num_bins"},
                                        {"HashedCrossing", "num_bins"},
                                        {"Hashing", "num_bins"}}) {
    if (layer.class_name() != class_name) continue;
    const Config config = layer.get_config();
    if (!config[key].is_null()) return config[key].integer();
    return std::ssize(config["bin_boundaries"].items()) + 1;
  }
  return {};
}

// Returns the tensor in another shape. A symbolic tensor has no producer, because it is used inside
// the call of a layer.
Tensor in_shape(const Tensor& x, const Shape& shape) {
  if (!x.is_symbolic()) return x.reshaped(shape);
  return Tensor::symbolic({.shape = shape, .dtype = x.dtype()});
}

// Returns a column of shape [], [batch] or [batch, ...] with at least two axes.
Tensor as_column(const Tensor& x) {
  if (x.rank() == 0) return in_shape(x, {1, 1});
  return x.rank() == 1 ? in_shape(x, x.shape() + Shape{1}) : x;
}

TensorLike without_batch(const TensorLike& x) {
  if (x.layout() != Layout::kDense || x.tensor().rank() == 0 || x.tensor().dim(0) != 1) return x;
  return in_shape(x.tensor(), x.tensor().shape().without(0));
}

}  // namespace

FeatureSpaceLayer::FeatureSpaceLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  if (options_.features.empty()) {
    throw ValueError("FeatureSpace ", name(), ": there are no features; pass at least one");
  }
  if (options_.output_mode != "concat" && options_.output_mode != "dict") {
    throw ValueError("FeatureSpace ", name(),
                     ": output_mode must be 'concat' or 'dict', received '", options_.output_mode,
                     "'");
  }
  for (const auto& [feature_name, feature] : options_.features) add_feature(feature_name, feature);
  for (const utils::Cross& cross : options_.crosses) add_cross(cross);
  if (adaptable_.empty()) finish();
}

void FeatureSpaceLayer::add_feature(const std::string& feature_name,
                                    const utils::Feature& feature) {
  const utils::Feature whole = feature.kind().empty()
                                   ? feature
                                   : utils::feature_of_kind(feature.kind(), options_.hashing_dim,
                                                            options_.num_discretization_bins);
  if (!whole.preprocessor()) {
    throw ValueError("FeatureSpace ", name(), ": feature '", feature_name,
                     "' has the unknown kind '", feature.kind(), "'");
  }
  const std::string& mode = whole.output_mode();
  if (mode != "float" && mode != "int" && mode != "one_hot") {
    throw ValueError("FeatureSpace ", name(), ": output_mode of feature '", feature_name,
                     "' must be 'float', 'int' or 'one_hot', received '", mode, "'");
  }
  const LayerHandle<Layer> layer = track(whole.preprocessor()(feature_name + "_preprocessor"));
  if (learns(*layer)) adaptable_.push_back(feature_name);
  features_.insert(
      {feature_name, Part{.dtype = whole.dtype(), .layer = layer, .output_mode = mode}});
}

void FeatureSpaceLayer::add_cross(const utils::Cross& cross) {
  for (const std::string& feature_name : cross.feature_names) {
    if (!features_.contains(feature_name)) {
      throw ValueError("FeatureSpace ", name(), ": cross '", cross.name(),
                       "' has the unknown feature '", feature_name, "'");
    }
  }
  if (cross.feature_names.size() < 2) {
    throw ValueError("FeatureSpace ", name(), ": cross '", cross.name(),
                     "' must have at least two features");
  }
  if (cross.output_mode != "int" && cross.output_mode != "one_hot") {
    throw ValueError("FeatureSpace ", name(), ": output_mode of cross '", cross.name(),
                     "' must be 'int' or 'one_hot', received '", cross.output_mode, "'");
  }
  const layers::HashedCrossing layer = track(layers::HashedCrossing(
      {.num_bins = cross.crossing_dim.value_or(options_.crossing_dim), .name = cross.name()}));
  crosses_.insert(
      {cross.name(),
       Part{.names = cross.feature_names, .layer = layer, .output_mode = cross.output_mode}});
}

void FeatureSpaceLayer::adapt(const data::Dataset& dataset) {
  for (const std::string& feature_name : adaptable_) {
    data::Dataset columns = dataset.map(
        [feature_name](const Tensors& row) -> Tensors { return row.at(feature_name).leaf(); });
    const std::unique_ptr<data::Iterator> first = columns.iterator();
    const std::optional<Tensors> element = first->next();
    if (!element) throw ValueError("FeatureSpace ", name(), ": adapt() received no data");
    if (element->leaf().spec().shape.rank() == 0) columns = columns.batch(32);
    columns = columns.map([](const Tensors& x) -> Tensors {
      return x.leaf().layout() == Layout::kDense ? as_column(x.tensor()) : x;
    });
    Layer& layer = *features_.at(feature_name).layer;
    [[maybe_unused]] const bool adapted = adapt_as<NormalizationLayer>(layer, columns) ||
                                          adapt_as<DiscretizationLayer>(layer, columns) ||
                                          adapt_as<StringLookupLayer>(layer, columns) ||
                                          adapt_as<IntegerLookupLayer>(layer, columns) ||
                                          adapt_as<TextVectorizationLayer>(layer, columns);
  }
  finish();
}

void FeatureSpaceLayer::add_encoder(const std::string& part_name, Part& part,
                                    const TensorSpec& spec) const {
  const bool integer = spec.dtype == DType::kInt32 || spec.dtype == DType::kInt64;
  if (part.output_mode != "one_hot") {
    if (options_.output_mode == "concat" && !is_floating(spec.dtype)) {
      throw ValueError("FeatureSpace ", name(), ": '", part_name, "' has dtype ", spec.dtype,
                       " and cannot be concatenated; set its output_mode to 'one_hot', or that of ",
                       "the space to 'dict'");
    }
    return;
  }
  const std::optional<int64_t> count = categories_of(*part.layer);
  if (!integer || !count) {
    throw ValueError("FeatureSpace ", name(), ": '", part_name, "' has output_mode 'one_hot', but ",
                     "its preprocessor returns ",
                     integer ? "an unknown number of categories" : str(spec.dtype),
                     "; use output_mode 'int' or 'float'");
  }
  part.encoder =
      std::make_shared<CategoryEncodingLayer>(CategoryEncodingOptions{.num_tokens = *count});
}

void FeatureSpaceLayer::finish() {
  Tensors::Dict inputs;
  std::map<std::string, TensorSpec> specs;  // of the preprocessed features
  for (auto& [feature_name, part] : features_) {
    const Tensor input = layers::input({.shape = {1}, .dtype = part.dtype, .name = feature_name});
    inputs.emplace(feature_name, input);
    const TensorSpec spec = part.layer->compute_output_spec(input.spec()).leaf();
    add_encoder(feature_name, part, spec);
    specs.emplace(feature_name, spec);
  }
  for (auto& [cross_name, part] : crosses_) {
    Specs::Items crossed;
    for (const std::string& feature_name : part.names) crossed.push_back(specs.at(feature_name));
    add_encoder(cross_name, part, part.layer->compute_output_spec(Specs::list(crossed)).leaf());
  }
  Tensors encoded = encode(inputs);
  inputs_ = std::move(inputs);
  encoded_ = std::move(encoded);
  finished_ = true;
}

Tensors FeatureSpaceLayer::encode(const Tensors::Dict& columns) const {
  Tensors::Dict preprocessed, all;
  Tensors::Items in_order;
  const auto add = [&](const std::string& part_name, const Part& part, Tensors value) {
    if (part.encoder != nullptr) value = (*part.encoder)(value);
    in_order.push_back(value);
    all.insert_or_assign(part_name, std::move(value));
  };
  for (const auto& [feature_name, part] : features_) {
    const Tensors value = part.layer(columns.at(feature_name));
    preprocessed.emplace(feature_name, value);
    add(feature_name, part, value);
  }
  for (const auto& [cross_name, part] : crosses_) {
    Tensors::Items crossed;
    for (const std::string& feature_name : part.names) {
      crossed.push_back(preprocessed.at(feature_name));
    }
    add(cross_name, part, part.layer(Tensors::list(std::move(crossed))));
  }
  if (options_.output_mode == "dict") return all;
  if (in_order.size() == 1) return in_order[0];
  return layers::Concatenate({.name = name() + "_concatenate"})(Tensors::list(std::move(in_order)));
}

Tensors FeatureSpaceLayer::call(const Tensors& inputs, const CallContext&) {
  check_finished();
  Tensors::Dict columns;
  bool one_row = false;
  for (const auto& [feature_name, part] : features_) {
    const TensorLike& x = inputs.at(feature_name).leaf();
    if (x.layout() != Layout::kDense) {
      throw TypeError("FeatureSpace ", name(), ": feature '", feature_name, "' must be dense");
    }
    one_row = one_row || x.tensor().rank() == 0;
    Tensor column = as_column(x.tensor());
    if (is_floating(part.dtype) && column.dtype() != part.dtype) {
      column = column.is_symbolic()
                   ? Tensor::symbolic({.shape = column.shape(), .dtype = part.dtype})
                   : column.cast(part.dtype);
    }
    columns.emplace(feature_name, column);
  }
  const Tensors out = encode(columns);
  return one_row ? map_structure(out, without_batch) : out;
}

void FeatureSpaceLayer::check_finished() const {
  if (!finished_) {
    throw RuntimeError("FeatureSpace ", name(), ": the preprocessor of '", adaptable_[0],
                       "' has no state; call adapt() first");
  }
}

Tensors FeatureSpaceLayer::get_inputs() const {
  check_finished();
  return inputs_;
}

Tensors FeatureSpaceLayer::get_encoded_features() const {
  check_finished();
  return encoded_;
}

LayerHandle<Layer> FeatureSpaceLayer::preprocessor(const std::string& feature_name) const {
  const auto found = features_.find(feature_name);
  if (found == features_.end()) {
    throw ValueError("FeatureSpace ", name(), ": there is no feature '", feature_name, "'");
  }
  return found->second.layer;
}

Config FeatureSpaceLayer::get_config() const {
  Config features = Config::dict();
  for (const auto& [feature_name, part] : features_) {
    features.set(
        feature_name,
        Config::dict({{"class_name", "Feature"},
                      {"config", Config::dict({{"dtype", keel::encode(part.dtype)},
                                               {"preprocessor", layers::serialize(*part.layer)},
                                               {"output_mode", part.output_mode}})}}));
  }
  Config crosses = Config::list({});
  for (const utils::Cross& cross : options_.crosses) {
    crosses.push_back(Config::dict(
        {{"class_name", "Cross"},
         {"config",
          Config::dict({{"feature_names", keel::encode(cross.feature_names)},
                        {"crossing_dim", cross.crossing_dim.value_or(options_.crossing_dim)},
                        {"output_mode", cross.output_mode}})}}));
  }
  return Config::dict({{"name", name()},
                       {"features", std::move(features)},
                       {"output_mode", options_.output_mode},
                       {"crosses", std::move(crosses)},
                       {"crossing_dim", options_.crossing_dim},
                       {"hashing_dim", options_.hashing_dim},
                       {"num_discretization_bins", options_.num_discretization_bins}});
}

std::shared_ptr<FeatureSpaceLayer> FeatureSpaceLayer::from_config(const Config& config) {
  auto out = std::make_shared<FeatureSpaceLayer>(utils::feature_space_options(config));
  // The statistics of Normalization are weights, which a file assigns later.
  const auto is_normalization = [&](const std::string& feature_name) {
    return out->features_.at(feature_name).layer->class_name() == "Normalization";
  };
  if (std::ranges::all_of(out->adaptable_, is_normalization)) out->finish();
  return out;
}

KEEL_REGISTER(Layer, FeatureSpaceLayer)

}  // namespace keel
