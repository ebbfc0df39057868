// AutocastScope: what the matrix products of a layer's call take (Keras's scope of that name).
#pragma once

namespace keel {

// While alive, the matrix products that this thread asks for (ops::matmul, ops::dense, ops::einsum)
// take float32 operands rounded to bfloat16, or as they are. Each op keeps
// what it was made with, for its gradients and for replays of a graph. Scopes nest.
class AutocastScope {
 public:
  explicit AutocastScope(bool bfloat16_products);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  static bool bfloat16_products();  // false outside of any

 private:
  const bool previous_;
};

}  // namespace keel
