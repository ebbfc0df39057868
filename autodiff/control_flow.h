// Control flow of eager programs (keras.ops.cond, keras.ops.while_loop). The functions run
// immediately, and tapes record the ops that they execute.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <keel/framework/tensor.h>

namespace keel {

// While a ControlFlowScope is alive, this thread runs a function of cond or while_loop. Calls that
// must be at the top level of a step (tpu::TPUEmbedding::enqueue) are rejected inside one.
class ControlFlowScope {
 public:
  ControlFlowScope();
  ~ControlFlowScope();
  ControlFlowScope(const ControlFlowScope&) = delete;
  ControlFlowScope& operator=(const ControlFlowScope&) = delete;
  // Returns true if this thread is inside a ControlFlowScope.
  static bool active();
};

namespace ops {

// Returns true unless the one element of `value` is 0. Throws ValueError if `value` does not have
// exactly one element and TypeError if it holds strings.
bool truth(const Tensor& value);
// Returns `value`; lets cond and while_loop take a bool.
inline bool truth(bool value) { return value; }

// Returns true_fn() if `pred`, a bool or a tensor of one element, is true, and false_fn()
// otherwise. Both functions must return the same type.
template <class Pred, class TrueFn, class FalseFn>
auto cond(const Pred& pred, TrueFn&& true_fn, FalseFn&& false_fn) -> decltype(true_fn()) {
  const bool chosen = truth(pred);
  const ControlFlowScope scope;
  return chosen ? true_fn() : false_fn();
}

// Repeats vars = body(vars) while condition(vars) is true, at most `maximum_iterations` times, and
// returns the final vars. `condition` returns a bool or a tensor of one element.
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
