// One feature of any kind (dense, sparse, ragged; pooled or sequence; weighted or not) as bags of
// ids: the one form in which tables are looked up, on the engine and on the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Weights by id, packed like the features; unset, and an empty leaf: ones.
using FeatureWeights = std::optional<Nest<std::optional<TensorLike>>>;

// Odd ids that did not become errors.
struct IdCounts {
  int64_t dropped = 0;
  int64_t replaced = 0;  // by the default row
};

// Sample s pools the ids at positions [row_splits[s], row_splits[s + 1]); without row_splits, as of
// dense ids that are all in their table, it is the row of the id at position s.
struct FeatureBags {
  Tensor ids;          // int64 [n]
  Tensor row_splits;   // int64 [samples + 1], or empty
  Tensor weights;      // float32 [n], or empty for ones
  Shape output_shape;  // of the result without dim; its size is the number of samples
  bool sequence = false;
  IdCounts invalid_ids = {};
};

// What is let through where the feature's IdPolicy is the default one.
enum class IdRule {
  kStrict,  // every id must lie in the table
  kPrune,   // negative ids are left out; and, under any policy, weights <= 0 unless the combiner
            // is sum
};

// True if the feature's rows become sequence steps for inputs of this layout.
bool is_sequence(const FeatureConfig& feature, const TensorSpec& input);

// Says on stderr that max_sequence_length has no effect, where it is set and inputs of this layout
// have none of it: output_shape is set, or a sparse input has a rank above 2.
void warn_of_unused_length(const std::string& path, const FeatureConfig& feature,
                           const TensorSpec& input);

// ValueError, with `path`: an id that is no integer or outside the table; weights for dense
// input, of another kind than the ids, with other positions, or NaN or infinite; ragged input whose
// rank is not 2; a row count that does not fit output_shape. `pooled_dense`: as on an engine, a
// dense input's last dimension must be 1 and goes away, and dense and sparse inputs must fit
// output_shape (else every id keeps its place in the shape, and output_shape is for ragged ids).
FeatureBags to_bags(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
                    const std::optional<TensorLike>& weights, IdRule rule, bool pooled_dense);

// ValueError, with the paths of two features, unless the features of one call have the same number
// of rows: the first dimension of their results. Those with an output_shape of their own are left
// out.
void check_equal_rows(const std::vector<std::string>& paths,
                      const std::vector<FeatureConfig>& features,
                      const std::vector<Shape>& output_shapes);

// Shape of the result without dim for an input of this spec; unknown dimensions stay unknown.
// ValueError as above.
Shape bags_output_shape(const std::string& path, const FeatureConfig& feature,
                        const TensorSpec& input, bool pooled_dense);

}  // namespace keel
