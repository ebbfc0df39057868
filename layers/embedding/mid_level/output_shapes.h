// OutputShapes: the shapes, without dim, of what a mid-level embedding object gives for each
// feature. What a FeatureConfig says stands above what build() is told, that above what the first
// inputs show; the lower ones may only repeat it or fill in what is missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Unset: not even the rank is known.
using OptionalShape = std::optional<Shape>;
using InputShapes = Nest<OptionalShape>;

// All by feature, in flattening order. Errors carry the feature's path.
class OutputShapes {
 public:
  explicit OutputShapes(const Nest<FeatureConfig>& features);

  // What inputs of these shapes give. One [n] is taken as it is; [n, k], k not 1, of a sequence
  // feature without output_shape gives [n, max_sequence_length]; all others lose the last
  // dimension. The structure is not looked at, only the leaves.
  // ValueError for another number of leaves, and a rank that is unknown or 0.
  std::vector<Shape> of_input_shapes(const InputShapes& shapes) const;
  // [n], or [n, max_sequence_length] for a sequence feature without output_shape. ValueError for
  // a negative n.
  std::vector<Shape> of_batch_size(int64_t n) const;
  // Dense [n] as it is, [..., 1] without the 1; sparse without the last dimension, ragged [n];
  // [n, max_sequence_length] for sparse and ragged inputs of rank 2 of a sequence feature without
  // output_shape.
  // ValueError for a dense input of rank 0 or with another last dimension, a sparse one of rank
  // below 2 and a ragged one of another rank.
  std::vector<Shape> of_inputs(const std::vector<TensorLike>& inputs) const;

  // ValueError, with both shapes, if one disagrees with what is known: another rank, or another
  // dimension where both are known and not 0. Of rank 1 or 2 where the known rank is larger, it is
  // not compared: rows of ragged ids may fold into more dimensions.
  void check(const std::vector<Shape>& candidates) const;
  // Takes the shapes of features of which nothing is known. Says on stderr which features'
  // max_sequence_length has no effect.
  void update(const std::vector<Shape>& candidates);
  // The shapes. ValueError unless every dimension of every feature is known.
  std::vector<Shape> fully_defined() const;

 private:
  Shape of_input(size_t feature, const TensorLike& input) const;
  bool is_sequence(size_t feature) const;
  // [n, k] as a sequence of max_sequence_length steps.
  Shape with_length(size_t feature, const Shape& shape) const;

  const std::vector<FeatureConfig> configs_;
  const std::vector<std::string> paths_;
  std::vector<OptionalShape> shapes_;
};

}  // namespace keel
