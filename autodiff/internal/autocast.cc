#include <keel/autodiff/internal/autocast.h>

#include <keel/autodiff/internal/thread_state.h>

namespace keel {

AutocastScope::AutocastScope(ProductOperands operands) : previous_(thread_state.product_operands) {
  thread_state.product_operands = operands;
}
AutocastScope::~AutocastScope() { thread_state.product_operands = previous_; }
ProductOperands AutocastScope::operands() { return thread_state.product_operands; }

}  // namespace keel
