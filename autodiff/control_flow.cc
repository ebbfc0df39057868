#include <keel/autodiff/control_flow.h>

#include <keel/autodiff/internal/thread_state.h>

namespace keel {

ControlFlowScope::ControlFlowScope() { ++thread_state.control_flow_depth; }
ControlFlowScope::~ControlFlowScope() { --thread_state.control_flow_depth; }
bool ControlFlowScope::active() { return thread_state.control_flow_depth > 0; }

bool ops::truth(const Tensor& value) {
  if (value.size() != 1) {
    throw ValueError("ops.cond: the condition must have one element, received shape ",
                     value.shape());
  }
  return value.cast(DType::kBool).item<bool>();
}

}  // namespace keel
