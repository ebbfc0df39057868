// prefetch: loads memory into the caches. Functions whose only effect is a prefetch must call it
// instead of __builtin_prefetch: GCC regards them as functions without effects and deletes their
// calls.
#pragma once

namespace keel {

[[gnu::always_inline]] inline void prefetch(const void* address) {
  asm volatile("");  // an effect that GCC does not delete
  __builtin_prefetch(address);
}

}  // namespace keel
