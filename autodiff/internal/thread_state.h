// ThreadState: the settings of the scopes that are open on a thread. It is one object, so that its
// members share a cache line and one lookup.
#pragma once

#include <vector>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/replica_context.h>
#include <keel/framework/tensor_like.h>

namespace keel {

class VariableSnapshot;
class CombinedReads;

// Each member is changed only by the scope that its comment names.
struct ThreadState {
  int control_flow_depth = 0;                                      // ControlFlowScope
  int no_graph_depth = 0;                                          // NoGraphScope
  ProductOperands product_operands = ProductOperands::kUnchanged;  // AutocastScope
  const ReplicaContext* replica = nullptr;                         // ReplicaScope
  const VariableSnapshot* snapshot = nullptr;                      // VariableSnapshot::Scope
  const CombinedReads* combined_reads = nullptr;                   // CombinedReads::Scope
  std::vector<Tensors>* unused_inputs = nullptr;                   // ~GraphNode
};

inline constinit thread_local ThreadState thread_state;

}  // namespace keel
