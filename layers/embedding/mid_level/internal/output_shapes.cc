#include <keel/layers/embedding/mid_level/internal/output_shapes.h>

#include <algorithm>
#include <iostream>

namespace keel {
namespace {

std::string feature(const std::string& path) { return "TPUEmbedding: feature '" + path + "'"; }

// Returns true if the ranks differ, or dimensions that are known and not 0.
bool disagree(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return true;
  for (int i = 0; i < a.rank(); ++i) {
    const bool both_known = a[i] > 0 && b[i] > 0;
    if (both_known && a[i] != b[i]) return true;
  }
  return false;
}

std::string text(const OptionalShape& shape) { return shape ? str(*shape) : "unknown"; }

}  // namespace

OutputShapes::OutputShapes(const Nest<FeatureConfig>& features)
    : configs_(flatten(features)), paths_(flatten_paths(features)) {
  for (const FeatureConfig& config : configs_) shapes_.push_back(config.output_shape);
}

bool OutputShapes::is_sequence(size_t f) const {
  return configs_[f].max_sequence_length > 0 && !configs_[f].output_shape;
}

Shape OutputShapes::with_length(size_t f, const Shape& shape) const {
  return {shape[0], configs_[f].max_sequence_length};
}

std::vector<Shape> OutputShapes::of_input_shapes(const InputShapes& shapes) const {
  const std::vector<OptionalShape> flat = flatten(shapes);
  if (flat.size() != configs_.size()) {
    throw ValueError("TPUEmbedding.build: requires the shapes of ", configs_.size(),
                     " features, received ", flat.size());
  }
  std::vector<Shape> out;
  for (size_t f = 0; f < flat.size(); ++f) {
    if (!flat[f] || flat[f]->rank() < 1) {
      throw ValueError(feature(paths_[f]),
                       ": the input shape passed to build must have rank 1 or more, received ",
                       text(flat[f]));
    }
    const Shape& shape = *flat[f];
    if (shape.rank() == 1) {
      out.push_back(shape);
    } else if (shape.rank() == 2 && shape[1] != 1 && is_sequence(f)) {
      out.push_back(with_length(f, shape));
    } else {
      out.push_back(shape.drop_last());
    }
  }
  return out;
}

std::vector<Shape> OutputShapes::of_batch_size(int64_t n) const {
  if (n < 0) {
    throw ValueError("TPUEmbedding.build: the batch size must not be negative, received ", n);
  }
  std::vector<Shape> out;
  for (size_t f = 0; f < configs_.size(); ++f) {
    out.push_back(is_sequence(f) ? with_length(f, {n}) : Shape{n});
  }
  return out;
}

Shape OutputShapes::of_input(size_t f, const TensorLike& input) const {
  const Shape shape = input.spec().shape;
  const bool steps = is_sequence(f) && shape.rank() == 2;
  switch (input.layout()) {
    case Layout::kDense:
      if (shape.rank() == 0 || (shape.rank() > 1 && shape[-1] != 1)) {
        throw ValueError(feature(paths_[f]),
                         ": dense ids must have shape [batch] or [..., 1], "
                         "received ",
                         shape);
      }
      return shape.rank() == 1 ? shape : shape.drop_last();
    case Layout::kSparse:
      if (shape.rank() < 2) {
        throw ValueError(feature(paths_[f]), ": sparse ids must have rank 2 or more, received ",
                         shape);
      }
      return steps ? with_length(f, shape) : shape.drop_last();
    case Layout::kRagged:
      break;
  }
  if (shape.rank() != 2) {
    throw ValueError(feature(paths_[f]), ": ragged ids must have rank 2, received ", shape);
  }
  return steps ? with_length(f, shape) : shape.drop_last();
}

std::vector<Shape> OutputShapes::of_inputs(const std::vector<TensorLike>& inputs) const {
  std::vector<Shape> out;
  for (size_t f = 0; f < inputs.size(); ++f) out.push_back(of_input(f, inputs[f]));
  return out;
}

void OutputShapes::check(const std::vector<Shape>& candidates) const {
  for (size_t f = 0; f < shapes_.size(); ++f) {
    if (!shapes_[f]) continue;
    const Shape& known = *shapes_[f];
    const Shape& candidate = candidates[f];
    // Rows of ragged ids may fold into an output shape of larger rank.
    const bool may_fold = candidate.rank() == 1 || candidate.rank() == 2;
    if (may_fold && known.rank() > candidate.rank()) continue;
    if (disagree(known, candidate)) {
      throw ValueError(feature(paths_[f]), ": the output shape must be ", known, ", received ",
                       candidate);
    }
  }
}

void OutputShapes::update(const std::vector<Shape>& candidates) {
  for (size_t f = 0; f < shapes_.size(); ++f) {
    if (!shapes_[f]) shapes_[f] = candidates[f];
    const int64_t length = configs_[f].max_sequence_length;
    // True if max_sequence_length is a dimension of the output shape.
    const bool counts = is_sequence(f) && shapes_[f]->rank() == 2 && (*shapes_[f])[1] == length;
    if (length > 0 && !counts) {
      std::cerr << feature(paths_[f]) << ": max_sequence_length " << length
                << " has no effect; the output shape is " << *shapes_[f] << '\n';
    }
  }
}

std::vector<Shape> OutputShapes::fully_defined() const {
  std::vector<Shape> out;
  for (size_t f = 0; f < shapes_.size(); ++f) {
    if (!shapes_[f] || !shapes_[f]->fully_defined()) {
      throw ValueError(feature(paths_[f]),
                       ": the output shape must be fully defined by its "
                       "FeatureConfig, by build or by the inputs, received ",
                       text(shapes_[f]));
    }
    out.push_back(*shapes_[f]);
  }
  return out;
}

}  // namespace keel
