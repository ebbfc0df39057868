// Maps the results of a graph's nodes to their replacements in a rewritten copy of the graph.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <keel/autodiff/graph.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// A map from symbolic tensors to their replacements.
class NodeResults {
 public:
  // Adds replacements for all results of a node. `results` is flattened in the order of the node's
  // own results.
  void add(const GraphNode& node, const Tensors& results);
  // Adds the replacement of one result.
  void add(const TensorLike& result, const TensorLike& by);

  // Returns the replacement, or null if there is none.
  const TensorLike* find(const TensorLike& result) const;
  // Returns `tensors` with each symbolic tensor and its mask replaced. Throws ValueError with the
  // text of `missing` for a tensor without a replacement.
  Tensors replaced(const Tensors& tensors,
                   const std::function<std::string(const TensorLike&)>& missing) const;

 private:
  std::map<std::pair<const GraphNode*, int>, TensorLike> results_;
};

}  // namespace keel
