// What stands for the results of a graph's nodes in a rewritten copy of the graph.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <keel/autodiff/graph.h>
#include <keel/framework/tensor_like.h>

namespace keel {

class NodeResults {
 public:
  // Flattened, in the order of the node's own.
  void add(const GraphNode& node, const Tensors& results);
  void add(const TensorLike& result, const TensorLike& by);

  // Null if nothing stands for it.
  const TensorLike* find(const TensorLike& result) const;
  // With what stands for each symbolic tensor, and for its mask, in its place. ValueError, with the
  // words of `missing`, for one without.
  Tensors replaced(const Tensors& tensors,
                   const std::function<std::string(const TensorLike&)>& missing) const;

 private:
  std::map<std::pair<const GraphNode*, int>, TensorLike> results_;
};

}  // namespace keel
