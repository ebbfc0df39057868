#include <keel/autodiff/internal/autocast.h>

#include <keel/autodiff/internal/thread_state.h>

namespace keel {

AutocastScope::AutocastScope(bool bfloat16_products) : previous_(thread_state.bfloat16_products) {
  thread_state.bfloat16_products = bfloat16_products;
}
AutocastScope::~AutocastScope() { thread_state.bfloat16_products = previous_; }
bool AutocastScope::bfloat16_products() { return thread_state.bfloat16_products; }

}  // namespace keel
