// The graph behind symbolic tensors: which operation made which, from what.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <keel/autodiff/operation.h>

namespace keel {

// One call of an operation on symbolic inputs. Immutable.
class GraphNode {
 public:
  GraphNode(std::shared_ptr<Operation> op, Tensors in, CallOptions how, Specs out);

  const std::shared_ptr<Operation> operation;
  const Tensors inputs;
  const CallOptions options;  // as the caller gave them; replaying the graph repeats them
  const Specs output_specs;
  const uint64_t sequence;  // grows with every node made in the process
};

// While alive on this thread, symbolic calls infer specs but record no nodes.
// A layer's call() runs under one, so a layer is one node whatever it does inside.
class NoGraphScope {
 public:
  NoGraphScope();
  ~NoGraphScope();
  NoGraphScope(const NoGraphScope&) = delete;
  NoGraphScope& operator=(const NoGraphScope&) = delete;
  static bool active();
};

// Symbolic tensors of these specs, as produced by `operation(inputs)`. Under NoGraphScope they have
// no producer.
Tensors make_outputs(std::shared_ptr<Operation> operation, const Tensors& inputs,
                     const Specs& specs, const CallOptions& options = {});

// A symbolic tensor of this spec, with its parts if it is ragged or sparse.
TensorLike make_symbolic(const TensorSpec& spec, const std::shared_ptr<const GraphNode>& producer,
                         int output);

// The nodes that made a node's inputs, or outputs of a graph: of each leaf in flattening order,
// then of the masks that the caller gave leaves (Tensor::with_mask), which are results of nodes
// too.
std::vector<std::shared_ptr<const GraphNode>> producers_of(const Tensors& tensors);

// Nodes that `outputs` depend on, producers before consumers: depth first from each output in
// flattening order, inputs of a node in order.
// ValueError if something on the way comes from no node (it is no result of a layer).
std::vector<std::shared_ptr<const GraphNode>> topological_order(const Tensors& outputs);

}  // namespace keel
