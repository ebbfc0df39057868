// The order of a functional model's layers.
#pragma once

#include <memory>
#include <vector>

#include <keel/autodiff/graph.h>

namespace keel {

// Operations of the nodes in the order in which Keras lists them, which decides how weights are
// matched in files: by depth from the outputs, deepest first, then by the order in which a walk
// from the outputs meets them. `inputs` are the declared ones, first where nothing reaches them.
std::vector<std::shared_ptr<Operation>> order_by_depth(const Tensors& inputs,
                                                       const Tensors& outputs);

// The nodes in the order in which Keras runs them: by depth from the outputs, deepest first.
std::vector<std::shared_ptr<const GraphNode>> calls_by_depth(const Tensors& outputs);

}  // namespace keel
