// NodeResults maps the tensors of a graph to those of a rewritten copy of the graph.
#pragma once

#include <map>
#include <string>
#include <utility>

#include <keel/autodiff/operation.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The map from original tensors to their replacements.
class NodeResults {
 public:
  // Adds the replacements of all results of a node, in flattening order, or of one tensor.
  void add(const GraphNode& node, const Tensors& results);
  // Adds the replacement of one result.
  void add(const TensorLike& result, const TensorLike& by);

  // Returns the replacement of a tensor, or null if there is none.
  const TensorLike* find(const TensorLike& result) const;
  // Returns `tensors` with each symbolic tensor and its mask replaced. Throws ValueError with the
  // message missing(tensor) if a tensor has no replacement.
  Tensors replaced(const Tensors& tensors,
                   FunctionRef<std::string(const TensorLike&)> missing) const;

 private:
  std::map<std::pair<const GraphNode*, int>, TensorLike> results_;
};

}  // namespace keel
