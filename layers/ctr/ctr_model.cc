#include <keel/layers/ctr/ctr_model.h>

#include <keel/layers/activation/activation.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {
namespace {

using layers::Concatenate;
using layers::Dense;

Tensors list_of(const std::vector<Tensor>& tensors) {
  return Tensors::list(Tensors::Items(tensors.begin(), tensors.end()));
}

Tensor hidden_layers(Tensor x, const CtrModelOptions& options) {
  for (int64_t units : options.hidden) {
    x = Dense({.units = units, .activation = "relu"})(x);
    if (options.dropout > 0) x = layers::Dropout({.rate = options.dropout})(x);
  }
  return x;
}

std::vector<Tensor> dense_leaves(const Tensors& nest) {
  std::vector<Tensor> out;
  for (const TensorLike& t : flatten(nest)) out.push_back(t.tensor());
  return out;
}

// The inputs of the towers.
struct Parts {
  std::vector<Tensor> embedded;  // [batch, dim] each
  std::vector<Tensor> wide;      // [batch, 1] each; wide_deep only
  Tensor numeric;                // [batch, columns], or empty
};

Tensor joined(const Parts& parts) {
  std::vector<Tensor> all = parts.embedded;
  if (parts.numeric) all.push_back(parts.numeric);
  return Concatenate({})(list_of(all)).tensor();
}

Tensor wide_deep_logit(const Parts& parts, const CtrModelOptions& options) {
  std::vector<Tensor> terms = parts.wide;
  terms.push_back(Dense({.units = 1})(hidden_layers(joined(parts), options)));
  return layers::Add({})(list_of(terms)).tensor();
}

Tensor dlrm_logit(const Parts& parts, const CtrModelOptions& options) {
  std::vector<Tensor> vectors = parts.embedded;
  if (parts.numeric) {
    const Tensor bottom = Dense({.units = 64, .activation = "relu"})(parts.numeric);
    vectors.push_back(Dense({.units = options.embedding_dim, .activation = "relu"})(bottom));
  }
  std::vector<Tensor> top = vectors;
  if (vectors.size() > 1) top.push_back(layers::DotInteraction({})(list_of(vectors)).tensor());
  if (parts.numeric) top.push_back(parts.numeric);
  return Dense({.units = 1})(hidden_layers(Concatenate({})(list_of(top)).tensor(), options));
}

Tensor dcn_logit(const Parts& parts, const CtrModelOptions& options) {
  const Tensor x0 = joined(parts);
  Tensor x = x0;
  for (int i = 0; i < 2; ++i) x = layers::FeatureCross({})(list_of({x0, x})).tensor();
  const Tensor deep = hidden_layers(x0, options);
  return Dense({.units = 1})(Concatenate({})(list_of({x, deep})).tensor());
}

}  // namespace

CtrModel make_ctr_model(const CtrFeatures& features, const CtrModelOptions& options) {
  const bool wide = options.model == "wide_deep";
  if (!wide && options.model != "dlrm" && options.model != "dcn") {
    throw ValueError("make_ctr_model: model must be wide_deep, dlrm or dcn, received '",
                     options.model, "'");
  }
  Tensors::Dict ids;
  Nest<FeatureConfig>::Dict deep_config, wide_config;
  std::set<std::string> tables;
  for (const CtrFeatures::IdColumn& column : features.id_columns()) tables.insert(column.table);
  for (const CtrFeatures::IdColumn& column : features.id_columns()) {
    const std::string& name = column.name;
    const bool strings = column.dynamic && column.dynamic->key == KeyType::kString;
    ids.emplace(name, layers::input({.dtype = strings ? DType::kString : DType::kInt64,
                                     .name = column.table + "_id"}));
    const auto feature = [&](int64_t dim, const Initializer& initializer,
                             const std::string& table) {
      return FeatureConfig{.table = make_table({.vocabulary_size = column.vocabulary_size,
                                                .dim = dim,
                                                .initializer = initializer,
                                                .combiner = "sum",
                                                .name = table,
                                                .storage_dtype = options.storage_dtype,
                                                .dynamic = column.dynamic})};
    };
    deep_config.emplace(name, feature(options.embedding_dim, "random_uniform", column.table));
    if (!wide) continue;
    std::string wide_table = column.table + "_wide";
    while (!tables.insert(wide_table).second) wide_table += '_';
    wide_config.emplace(name, feature(1, "zeros", wide_table));
  }
  Nest<FeatureConfig>::Dict config = {{"deep", deep_config}};
  if (wide) config.emplace("wide", wide_config);
  const layers::TPUEmbedding embedding({.feature_config = Nest<FeatureConfig>(config),
                                        .optimizer = options.embedding_optimizer,
                                        .name = "embedding"});
  const Tensors id_inputs(std::move(ids));
  Tensors::Dict looked_up = {{"deep", id_inputs}};
  if (wide) looked_up.emplace("wide", id_inputs);
  const Tensors activations = embedding(Tensors(std::move(looked_up)));

  std::vector<Tensor> embedded = dense_leaves(activations["deep"]);
  if (options.embedding_dropout > 0) {
    for (Tensor& rows : embedded) rows = layers::Dropout({.rate = options.embedding_dropout})(rows);
  }
  Parts parts{.embedded = std::move(embedded),
              .wide = wide ? dense_leaves(activations["wide"]) : std::vector<Tensor>{},
              .numeric = {}};
  Tensors::Dict inputs = {{"ids", id_inputs}};
  if (features.num_numeric() > 0) {
    parts.numeric = layers::input({.shape = {features.num_numeric()}, .name = "numeric"});
    inputs.emplace("numeric", parts.numeric);
  }
  const Tensor logit = options.model == "dlrm"  ? dlrm_logit(parts, options)
                       : options.model == "dcn" ? dcn_logit(parts, options)
                                                : wide_deep_logit(parts, options);
  const Tensor probability = layers::Activation({.activation = "sigmoid"})(logit);
  return {.model = Functional({.inputs = Tensors(std::move(inputs)),
                               .outputs = probability,
                               .name = features.unused_layer_name(options.model)}),
          .embedding = embedding};
}

Functional make_serving_model(const CtrFeatures& features, const Functional& model) {
  const Tensors raw = features.raw_inputs();
  return Functional(
      {.inputs = raw, .outputs = model(features(raw)), .name = "serving_" + model->name()});
}

}  // namespace keel
