// The graph behind symbolic tensors. It records which operation produced each tensor and from
// which inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <keel/autodiff/operation.h>

namespace keel {

// One call of an operation on symbolic inputs. Immutable. Nodes are numbered by `sequence` in the
// order in which the process creates them.
class GraphNode {
 public:
  // Use make_outputs() to create nodes.
  GraphNode(std::shared_ptr<Operation> op, Tensors in, CallOptions how, Specs out);

  const std::shared_ptr<Operation> operation;
  const Tensors inputs;
  const CallOptions options;  // as passed by the caller; replaying the graph passes them again
  const Specs output_specs;
  const uint64_t sequence;
};

// While a NoGraphScope is alive on this thread, symbolic calls infer specs but record no nodes.
// A layer's call() runs under one, so a layer is one node regardless of the ops inside it.
class NoGraphScope {
 public:
  NoGraphScope();
  ~NoGraphScope();
  NoGraphScope(const NoGraphScope&) = delete;
  NoGraphScope& operator=(const NoGraphScope&) = delete;
  // Returns true if this thread is inside a NoGraphScope.
  static bool active();
};

// Records a node for operation(inputs) and returns its outputs, symbolic tensors with these specs.
// Under a NoGraphScope, records nothing, and the outputs have no producer.
Tensors make_outputs(std::shared_ptr<Operation> operation, const Tensors& inputs,
                     const Specs& specs, const CallOptions& options = {});

// Returns a symbolic tensor with this spec, including its components if it is ragged or sparse.
// `output` is its position among the outputs of `producer` in flattening order. `producer` may be
// null.
TensorLike make_symbolic(const TensorSpec& spec, const std::shared_ptr<const GraphNode>& producer,
                         int output);

// Returns the nodes that produced `tensors`, which are the inputs of a node or the outputs of a
// graph. The producers of the symbolic leaves come first, in flattening order. The producers of
// symbolic masks attached to leaves (Tensor::with_mask) follow.
std::vector<std::shared_ptr<const GraphNode>> producers_of(const Tensors& tensors);

// Returns the nodes that `outputs` depend on, producers before consumers. The order is depth first
// from each output in flattening order, with the inputs of a node in order. Throws ValueError if an
// output or a symbolic input of a node has no producer, that is, if no layer or op returned it.
std::vector<std::shared_ptr<const GraphNode>> topological_order(const Tensors& outputs);

}  // namespace keel
