// Converts the ids of one feature of any layout (dense, sparse or ragged; pooled or sequence;
// weighted or not) to bags of ids. Bags are the form in which the engine and the host look up
// tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// The ids of one feature, grouped by sample. Sample s pools the ids at positions [row_splits[s],
// row_splits[s + 1]). Without row_splits, sample s is the table row of the id at position s; this
// form holds dense ids that are all valid.
struct FeatureBags {
  Tensor ids;          // int64 [n], or string [n] for a table with string ids
  Tensor row_splits;   // int64 [samples + 1], or empty
  Tensor weights;      // float32 [n], or empty for ones
  Shape output_shape;  // of the output, without dim; its size is the number of samples
  bool sequence = false;
  IdCounts invalid_ids = {};
  // Int64 [n]: the position of each weight among the weights of the input; empty if all are kept in
  // their order, and without weights.
  Tensor weight_positions = {};
};

// The ids that are accepted under the default IdPolicy.
enum class IdRule {
  kStrict,  // every id must be in [0, rows)
  kPrune,   // drops negative ids and, under every IdPolicy, weights <= 0 unless the combiner
            // is sum
};

// Returns true if inputs with this spec become sequence steps instead of being pooled.
bool is_sequence(const FeatureConfig& feature, const TensorSpec& input);

// Warns on stderr if max_sequence_length is set but has no effect: output_shape is set, or a sparse
// input has a rank above 2.
void warn_of_unused_length(const std::string& path, const FeatureConfig& feature,
                           const TensorSpec& input);

// Converts the ids of one feature to bags. If `pooled_dense` is true, as on an engine, the last
// dimension of dense inputs must be 1 and is dropped, and dense and sparse inputs must fit
// output_shape. Otherwise dense ids keep their shape, and output_shape applies to ragged ids only.
// For a table with dynamic ids, every id is valid; throws TypeError for ids of another type than
// the table's keys. Throws ValueError, naming `path`, for an id that is not an integer or is
// outside the table; for weights of dense ids; for weights with another layout or other positions
// than the ids; for weights that are NaN or infinite, or of a table with the combiner max; for
// ragged ids whose rank is not 2; and for a number of rows that does not fit output_shape.
FeatureBags to_bags(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
                    const std::optional<TensorLike>& weights, IdRule rule, bool pooled_dense);

// Throws ValueError, naming two features, unless all features of one call have the same number of
// rows, the first dimension of their outputs. Features with their own output_shape are ignored.
void check_equal_rows(const std::vector<std::string>& paths,
                      const std::vector<FeatureConfig>& features,
                      const std::vector<Shape>& output_shapes);

// Returns the shape of the output without dim for an input with this spec. Unknown dimensions stay
// unknown. Throws ValueError under the shape conditions of to_bags.
Shape bags_output_shape(const std::string& path, const FeatureConfig& feature,
                        const TensorSpec& input, bool pooled_dense);

}  // namespace keel
