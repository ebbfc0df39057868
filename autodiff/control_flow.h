// Control flow of eager programs (keras.ops.cond, keras.ops.while_loop): the functions run at once,
// and tapes record what they do.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <keel/framework/tensor.h>

namespace keel {

// While alive, this thread runs a function of cond or while_loop. What compilers must find at the
// head of a step (tpu::TPUEmbedding::enqueue) refuses to run there.
class ControlFlowScope {
 public:
  ControlFlowScope();
  ~ControlFlowScope();
  ControlFlowScope(const ControlFlowScope&) = delete;
  ControlFlowScope& operator=(const ControlFlowScope&) = delete;
  static bool active();
};

namespace ops {

// True unless the one element of `value` is 0. ValueError for another number of elements, TypeError
// for strings.
bool truth(const Tensor& value);
inline bool truth(bool value) { return value; }

// true_fn() if pred, a bool or a tensor of one element, is true, else false_fn(). Both return the
// same type.
template <class Pred, class TrueFn, class FalseFn>
auto cond(const Pred& pred, TrueFn&& true_fn, FalseFn&& false_fn) -> decltype(true_fn()) {
  const bool chosen = truth(pred);
  const ControlFlowScope scope;
  return chosen ? true_fn() : false_fn();
}

// vars = body(vars) while condition(vars) is true, at most maximum_iterations times.
template <class Condition, class Body, class Vars>
Vars while_loop(Condition&& condition, Body&& body, Vars vars,
                int64_t maximum_iterations = std::numeric_limits<int64_t>::max()) {
  const ControlFlowScope scope;
  for (int64_t i = 0; i < maximum_iterations && truth(condition(std::as_const(vars))); ++i) {
    vars = body(std::move(vars));
  }
  return vars;
}

}  // namespace ops
}  // namespace keel
