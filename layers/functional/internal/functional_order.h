// Keras's order of the layers and calls of a functional model.
#pragma once

#include <memory>
#include <vector>

#include <keel/autodiff/operation.h>

namespace keel {

// Returns the operations of the graph in the order in which Keras lists them: by depth from the
// outputs, deepest first, then in the order in which a traversal from the outputs reaches them. The
// order determines how weights are matched in files. `inputs` are the declared inputs; inputs that
// no output depends on have depth 0 and precede the others of that depth.
std::vector<std::shared_ptr<Operation>> order_by_depth(const Tensors& inputs,
                                                       const Tensors& outputs);

// Returns the nodes in the order in which Keras runs them: by depth from the outputs, deepest
// first.
std::vector<std::shared_ptr<const GraphNode>> calls_by_depth(const Tensors& outputs);

}  // namespace keel
