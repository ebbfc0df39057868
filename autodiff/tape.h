// GradientTape: reverse-mode automatic differentiation.
//
//   GradientTape tape;                                  // records the ops of this thread
//   Tensor loss = losses::mean_squared_error(y, model(x));
//   auto gradients = tape.gradient(loss, model->trainable_variables());
//
// A tape is a list of the ops that depend on a watched tensor, in execution order. gradient()
// traverses it backwards once. Tapes nest; outer tapes record the gradient computations of inner
// tapes. The gradients that reach a tensor are always added in the same order.
//
// custom_gradient() defines a differentiable function whose gradient the caller supplies
// (tf.custom_gradient).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/base/function_ref.h>

namespace keel {

// Options of a GradientTape.
struct TapeOptions {
  bool persistent = false;               // allow gradient() more than once
  bool watch_accessed_variables = true;  // watch trainable variables on read
};

// The gradient of a source that the target does not depend on.
enum class UnconnectedGradients {
  kNone,  // an empty Gradient
  kZero   // zeros of the source's shape
};

// Options of GradientTape::gradient().
struct GradientOptions {
  // d loss / d target. Must have the target's shape (ValueError otherwise) and dtype (TypeError
  // otherwise). If empty, ones are used, which gives the gradient of the target's sum.
  Tensor output_gradient = {};
  // The gradient of a source that the target does not depend on.
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

// Records the ops of the thread that created it until gradient() is called or, if it is persistent,
// until it is destroyed. It must be used and destroyed on that thread.
class GradientTape {
 public:
  // Starts recording. Throws ValueError if the variable KEEL_MATMUL_PRECISION has an unknown value.
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // From now on, also records the ops that depend on `tensor` or on `variable`. Trainable variables
  // need no watch() unless watch_accessed_variables is false. Throws TypeError if `tensor` is not
  // floating point.
  void watch(const Tensor& tensor);
  void watch(const Variable& variable);

  // Returns d target / d source for each source, or an empty Gradient if the target does not depend
  // on it. A target that is not a scalar is summed. Unless the tape is persistent, the call stops
  // recording and frees the recorded ops, and a second call throws RuntimeError.
  std::vector<Gradient> gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const GradientOptions& options = {});
  // Like gradient(), with respect to tensors that were watched or computed from watched ones. The
  // gradient of any other tensor is empty. It is not an overload of gradient() because a Variable
  // converts to a Tensor, which would make `gradient(loss, {w, b})` ambiguous.
  std::vector<Gradient> input_gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                       const GradientOptions& options = {});

  // Discards everything that was recorded and watched. The tape then records like a new one.
  void reset();

  // While a Pause is alive, its tape records nothing.
  class [[nodiscard]] Pause {
   public:
    // Pauses `tape`, which must outlive the object.
    explicit Pause(GradientTape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    GradientTape& tape_;
  };
  // Pauses this tape until the returned object is destroyed.
  Pause stop_recording() { return Pause(*this); }

  // The functions below are called by ops and variables, not by user code.

  // Returns true if a tape of this thread is recording.
  static bool any_active();
  // Returns true if a recording tape of this thread watches `tensor`, or has recorded how it was
  // computed from a watched tensor.
  static bool watches(const Tensor& tensor);
  // Returns true if the computations of this thread belong to a training step: no NoGradient is
  // alive, and a tape records, is paused or computes gradients.
  static bool any_in_use();
  // Adds a computed op to all recording tapes of this thread.
  static void record_all(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs);
  // Watches the value that was read from a trainable variable on the recording tapes.
  static void on_read(uint64_t variable_id, const Tensor& value);

 private:
  friend class NoGradient;
  friend class SuspendRecording;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// While a NoGradient is alive, no tape of this thread records, and the computations of this thread
// do not belong to a training step.
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;
};

// While a SuspendRecording is alive, no tape of this thread records. Use it around the component
// ops of an op that is recorded as a whole. Unlike under NoGradient, they still belong to the
// training step.
class SuspendRecording {
 public:
  SuspendRecording();
  ~SuspendRecording();
  SuspendRecording(const SuspendRecording&) = delete;
  SuspendRecording& operator=(const SuspendRecording&) = delete;
};

// Computes one gradient per input from the gradients of the outputs. Each result must be empty or
// have the input's shape (ValueError otherwise) and dtype (TypeError otherwise).
// output_gradients[i] is empty if no gradient reached output i. The function is called once by each
// gradient() call that needs it. It must own what it captures, because a tape may outlive the code
// that recorded it.
using Backward = std::function<std::vector<Gradient>(std::span<const Gradient> output_gradients)>;

// The result of a forward function: its outputs and the gradient function for them.
struct WithBackward {
  std::vector<Tensor> outputs;  // returned by custom_gradient()
  Backward backward;            // called with the gradients of `outputs`
};

// Runs `forward` without recording its ops, then records a single op from `inputs` to the outputs
// of `forward`, whose gradient is `backward`. Works on eager tensors only: throws RuntimeError if
// an input is symbolic.
std::vector<Tensor> custom_gradient(const std::vector<Tensor>& inputs,
                                    FunctionRef<WithBackward()> forward);

}  // namespace keel
