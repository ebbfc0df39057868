// OutputShapes: the output shapes, without dim, of the features of a mid-level embedding object. A
// FeatureConfig takes precedence over the arguments of build(), and those take precedence over the
// first inputs. A source of lower precedence may only repeat known dimensions or fill in unknown
// ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>

namespace keel {

// All shapes are by feature, in flattening order. Errors name the feature's path.
class OutputShapes {
 public:
  // Starts with the output shapes that `features` define.
  explicit OutputShapes(const Nest<FeatureConfig>& features);

  // Returns the output shapes for inputs of these shapes. [n] is unchanged. [n, k] with k != 1 of a
  // sequence feature without output_shape gives [n, max_sequence_length]. All other shapes lose the
  // last dimension. Only the leaves are used; the structure is not checked.
  // Throws ValueError for another number of leaves and for a rank that is unknown or 0.
  std::vector<Shape> of_input_shapes(const InputShapes& shapes) const;
  // Returns [n], or [n, max_sequence_length] for a sequence feature without output_shape. Throws
  // ValueError if n is negative.
  std::vector<Shape> of_batch_size(int64_t n) const;
  // Returns the output shapes for these inputs. Dense [n] is unchanged and dense [..., 1] loses the
  // 1. Sparse inputs lose the last dimension, and ragged inputs give [n]. Sparse and ragged inputs
  // of rank 2 of a sequence feature without output_shape give [n, max_sequence_length].
  // Throws ValueError for a dense input of rank 0 or with another last dimension, for a sparse
  // input of rank below 2, and for a ragged input of rank other than 2.
  std::vector<Shape> of_inputs(const std::vector<TensorLike>& inputs) const;

  // Throws ValueError, naming both shapes, if a candidate disagrees with the known shape: the ranks
  // differ, or two dimensions differ that are both known and not 0. A candidate of rank 1 or 2 is
  // not compared with a known shape of larger rank, because rows of ragged ids may fold into more
  // dimensions.
  void check(const std::vector<Shape>& candidates) const;
  // Sets the shapes of features without a known shape. Warns on stderr about features whose
  // max_sequence_length has no effect.
  void update(const std::vector<Shape>& candidates);
  // Returns all shapes. Throws ValueError unless every dimension is known.
  std::vector<Shape> fully_defined() const;

 private:
  Shape of_input(size_t feature, const TensorLike& input) const;
  bool is_sequence(size_t feature) const;
  // Returns [n, max_sequence_length] for [n, k].
  Shape with_length(size_t feature, const Shape& shape) const;

  const std::vector<FeatureConfig> configs_;
  const std::vector<std::string> paths_;
  std::vector<OptionalShape> shapes_;
};

}  // namespace keel
