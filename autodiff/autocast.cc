#include <keel/autodiff/autocast.h>

namespace keel {
namespace {

thread_local bool active = false;

}  // namespace

AutocastScope::AutocastScope(bool bfloat16_products) : previous_(active) {
  active = bfloat16_products;
}
AutocastScope::~AutocastScope() { active = previous_; }
bool AutocastScope::bfloat16_products() { return active; }

}  // namespace keel
