#include <keel/layers/embedding/tables/internal/host_lookup.h>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/internal/position_pool.h>

namespace keel {
namespace {

// The arguments of the lookup of one feature.
struct Lookup {
  const std::string& path;
  const FeatureConfig& feature;
  const TensorLike& input;
  const std::optional<TensorLike>& weights;
};

void check(const Lookup& lookup, LookupRules rules) {
  const auto& [path, feature, input, weights] = lookup;
  const auto refuse = [&where = path](const char* what) {
    throw ValueError("TPUEmbedding: feature '", where, "': ", what);
  };
  const bool dense = input.layout() == Layout::kDense;
  if (weights) {
    if (dense) refuse("received weights for dense ids; only sparse and ragged ids accept weights");
    if (weights->layout() != input.layout()) {
      refuse("weights and ids must have the same layout, both sparse or both ragged");
    }
    if (feature.max_sequence_length > 0)
      refuse(
          "received weights for a sequence feature; set max_sequence_length to 0 or omit the "
          "weights");
  }
  if (feature.max_sequence_length == 0) return;
  if (dense) refuse("a sequence feature requires sparse or ragged ids, received dense ones");
  if (rules == LookupRules::kV0 && input.layout() == Layout::kSparse && !feature.output_shape &&
      input.spec().shape.rank() > 2) {
    refuse("a sequence feature requires sparse ids of rank 2");
  }
}

IdRule rule_for(const Lookup& lookup, LookupRules rules) {
  if (rules == LookupRules::kV0 || lookup.input.layout() != Layout::kSparse) {
    return IdRule::kStrict;
  }
  const TensorSpec spec = lookup.input.spec();
  const bool safe = lookup.feature.validate_weights_and_indices || spec.shape.rank() > 2;
  return safe && !is_sequence(lookup.feature, spec) ? IdRule::kPrune : IdRule::kStrict;
}

Tensor look_up(const Lookup& lookup, const TableLookup& table_of, const HostLookupOptions& options,
               LookupCounter::Part& counted) {
  const LookupRules rules = options.rules;
  const auto& [path, feature, input, weights] = lookup;
  check(lookup, rules);
  const int64_t dim = feature.table->dim;
  if (input.is_symbolic()) {
    const Shape shape = bags_output_shape(path, feature, input.spec(), false);
    return Tensor::symbolic({.shape = shape + Shape{dim}, .dtype = DType::kFloat32});
  }
  FeatureBags bags = to_bags(path, feature, input, weights, rule_for(lookup, rules), false);
  counted.invalid = bags.invalid_ids;
  counted.samples = bags.output_shape.size();
  if (options.statistics != nullptr) {
    counted.ids = bags.ids;
    counted.table = options.table_index(feature.table);
  }
  const Shape shape = bags.output_shape + Shape{dim};
  if (feature.table->dynamic && !options.look_up_keys) {
    throw NotImplementedError("TPUEmbedding: feature '", path, "': table '", feature.table->name,
                              "' has dynamic ids, which this lookup does not support");
  }
  const Tensor table = feature.table->dynamic ? options.look_up_keys(feature.table, bags)
                                              : table_of(feature.table, bags.ids);
  const bool dense = input.layout() == Layout::kDense;
  if (dense && bags.invalid_ids.dropped == 0) {
    return ops::reshape(ops::gather(table, bags.ids), shape);
  }
  const bool is_max = feature.table->combiner == "max";
  const bool trains_weights = weights && GradientTape::watches(weights->values());
  if (!dense && (is_max || trains_weights)) {
    const Tensor rows = ops::gather(table, bags.ids);
    return ops::reshape(pool_positions(PositionPool(feature.table->combiner, bags), rows,
                                       trains_weights ? weights->values() : Tensor()),
                        shape);
  }
  // Each sample of dense ids or of a sequence has at most one id, so its sum is the row, or zeros.
  const kernels::Combiner combiner =
      dense || bags.sequence ? kernels::Combiner::kSum : lookup_combiner(*feature.table);
  return ops::reshape(ops::embedding_pool(table, bags.ids, bags.row_splits, bags.weights, combiner),
                      shape);
}

}  // namespace

Tensors host_embedding_lookup(const Tensors& features, const FeatureWeights& weights,
                              const Nest<FeatureConfig>& feature_config,
                              const TableLookup& table_of, const HostLookupOptions& options) {
  assert_same_structure(feature_config, features);
  if (weights) assert_same_structure(features, *weights);
  const std::vector<FeatureConfig> configs = flatten(feature_config);
  const std::vector<std::string> paths = flatten_paths(feature_config);
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(configs.size());
  std::vector<LookupCounter::Part> counted(configs.size());
  std::vector<Shape> shapes;
  Tensors out = map_structure(features, [&](const TensorLike& input) -> TensorLike {
    const size_t i = shapes.size();
    Tensor found =
        look_up({paths[i], configs[i], input, flat_weights[i]}, table_of, options, counted[i]);
    shapes.push_back(found.shape());
    return found;
  });
  check_equal_rows(paths, configs, shapes);
  // Count only after all checks have passed, so that a failed lookup counts nothing.
  if (options.counter != nullptr) {
    std::vector<IdCounts> invalid_ids;
    for (const LookupCounter::Part& part : counted) invalid_ids.push_back(part.invalid);
    options.counter->add(invalid_ids);
  }
  if (options.statistics != nullptr && !any_symbolic(features)) options.statistics->add(counted);
  return out;
}

}  // namespace keel
