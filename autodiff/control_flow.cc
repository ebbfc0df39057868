#include <keel/autodiff/control_flow.h>

namespace keel {
namespace {

thread_local int depth = 0;

}  // namespace

ControlFlowScope::ControlFlowScope() { ++depth; }
ControlFlowScope::~ControlFlowScope() { --depth; }
bool ControlFlowScope::active() { return depth > 0; }

bool ops::truth(const Tensor& value) {
  if (value.size() != 1) {
    throw ValueError("ops.cond: the condition must have one element, received shape ",
                     value.shape());
  }
  return value.cast(DType::kBool).item<bool>();
}

}  // namespace keel
