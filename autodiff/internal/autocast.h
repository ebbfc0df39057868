// AutocastScope selects the operand precision of matrix products inside a layer's call, as the
// Keras scope of that name does.
#pragma once

#include <cstdint>

namespace keel {

// How matrix products read their float32 operands.
enum class ProductOperands : uint8_t {
  kUnchanged,
  kBFloat16,  // rounded to the nearest bfloat16
  kFloat16,   // rounded to the nearest float16; from 65520 on to infinity
};

// While an AutocastScope is alive, matrix products on this thread (ops::matmul, ops::dense,
// ops::einsum, convolutions) round their float32 operands as the scope says. Each op stores the
// setting it was created with and applies it to its gradients and to replays of a graph. Scopes
// nest; the innermost one applies.
class AutocastScope {
 public:
  // Opens a scope on this thread until the object is destroyed.
  explicit AutocastScope(ProductOperands operands);
  // Rounds operands to bfloat16 if `bfloat16_products`, and uses them unchanged otherwise.
  explicit AutocastScope(bool bfloat16_products)
      : AutocastScope(bfloat16_products ? ProductOperands::kBFloat16
                                        : ProductOperands::kUnchanged) {}
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  // Returns the setting of this thread's innermost scope, kUnchanged outside of any scope.
  static ProductOperands operands();
  // Returns true if the operands are rounded to bfloat16.
  static bool bfloat16_products() { return operands() == ProductOperands::kBFloat16; }

 private:
  const ProductOperands previous_;
};

}  // namespace keel
