#include "layers/embedding/host_lookup.h"

#include "autodiff/graph.h"
#include "autodiff/ops.h"

namespace keel {
namespace {

void check(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
           bool weighted) {
  if (feature.max_sequence_length == 0) return;
  if (weighted) {
    throw ValueError("TPUEmbedding: feature '", path,
                     "': weights are given for a sequence feature");
  }
  if (input.layout() == Layout::kDense) {
    throw ValueError("TPUEmbedding: feature '", path,
                     "': a sequence feature needs sparse or ragged ids, received dense ones");
  }
}

Tensor look_up(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
               const std::optional<TensorLike>& weights, const TableLookup& table_of) {
  check(path, feature, input, weights.has_value());
  const int64_t dim = feature.table->dim;
  if (input.is_symbolic()) {
    const Shape shape = bags_output_shape(path, feature, input.spec(), false);
    return Tensor::symbolic({.shape = shape + Shape{dim}, .dtype = DType::kFloat32});
  }
  const bool safe = input.layout() == Layout::kSparse &&
                    (feature.validate_weights_and_indices || input.spec().shape.rank() > 2);
  const FeatureBags bags = to_bags(
      path, feature, input, weights,
      safe && !is_sequence(feature, input.spec()) ? IdRule::kPrune : IdRule::kStrict, false);
  const Shape shape = bags.output_shape + Shape{dim};
  const Tensor table = table_of(feature.table);
  if (input.layout() == Layout::kDense) {
    return ops::reshape(ops::gather(table, bags.ids), shape);
  }
  const kernels::Combiner combiner =
      bags.sequence ? kernels::Combiner::kSum : combiner_from_name(feature.table->combiner);
  return ops::reshape(ops::embedding_pool(table, bags.ids, bags.row_splits, bags.weights, combiner),
                      shape);
}

}  // namespace

Tensors host_embedding_lookup(const Tensors& features,
                              const std::optional<Nest<std::optional<TensorLike>>>& weights,
                              const Nest<FeatureConfig>& feature_config,
                              const TableLookup& table_of) {
  assert_same_structure(feature_config, features);
  if (weights) assert_same_structure(features, *weights);
  const std::vector<FeatureConfig> configs = flatten(feature_config);
  const std::vector<std::string> paths = flatten_paths(feature_config);
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(configs.size());
  size_t f = 0;
  return map_structure(features, [&](const TensorLike& input) -> TensorLike {
    const size_t i = f++;
    return look_up(paths[i], configs[i], input, flat_weights[i], table_of);
  });
}

}  // namespace keel
