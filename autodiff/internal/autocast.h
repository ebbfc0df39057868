// AutocastScope selects the operand precision of matrix products inside a layer's call, as the
// Keras scope of that name does.
#pragma once

namespace keel {

// While an AutocastScope is alive, matrix products on this thread (ops::matmul, ops::dense,
// ops::einsum) round their float32 operands to bfloat16 if `bfloat16_products` is true, and use
// them unchanged otherwise. Each op stores the setting it was created with and applies it to its
// gradients and to replays of a graph. Scopes nest; the innermost one applies.
class AutocastScope {
 public:
  // Opens a scope on this thread until the object is destroyed.
  explicit AutocastScope(bool bfloat16_products);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  // Returns the setting of this thread's innermost scope, false outside of any scope.
  static bool bfloat16_products();

 private:
  const bool previous_;
};

}  // namespace keel
