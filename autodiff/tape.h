// GradientTape: reverse-mode automatic differentiation.
//
//   GradientTape tape;                                  // records the ops of this thread
//   Tensor loss = losses::mean_squared_error(y, model(x));
//   auto gradients = tape.gradient(loss, model->trainable_variables());
//
// A tape is a list of the ops that depend on a watched tensor, in execution order. gradient()
// traverses it backwards once. Tapes nest; outer tapes record the gradient computations of inner
// tapes. Gradients that reach the same tensor are added in one fixed order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>

namespace keel {

// Options of a GradientTape.
struct TapeOptions {
  bool persistent = false;               // allow gradient() more than once
  bool watch_accessed_variables = true;  // watch trainable variables on read
};

// The gradient of a source that the target does not depend on: none, or zeros.
enum class UnconnectedGradients { kNone, kZero };

// Options of GradientTape::gradient().
struct GradientOptions {
  // d loss / d target, with the target's shape and dtype. If unset, ones are used, which gives the
  // gradient of the target's sum.
  Tensor output_gradient = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

// Records the ops of the thread that created it, from its construction until gradient().
class GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {});  // begins to record
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Starts to record the ops that depend on `tensor`, which must be floating-point (TypeError
  // otherwise), or on `variable`.
  void watch(const Tensor& tensor);
  void watch(const Variable& variable);

  // Returns d target / d source for each source, or none if the target does not depend on it. A
  // target that is not a scalar is summed. Unless the tape is persistent, the call stops recording
  // and frees the recorded ops, and a second call throws RuntimeError.
  std::vector<Gradient> gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const GradientOptions& options = {});
  // Returns the same with respect to watched tensors. It is not an overload of gradient() because
  // a Variable converts to a Tensor, which makes `gradient(loss, {w, b})` ambiguous.
  std::vector<Gradient> input_gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                       const GradientOptions& options = {});

  // Discards everything that was recorded and watched, and continues to record.
  void reset();

  // While a Pause is alive, its tape records nothing.
  class [[nodiscard]] Pause {
   public:
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
  // Returns true if the computations of this thread belong to a training step: no NoGradient is
  // alive, and a tape still records or computes gradients, stop_recording() notwithstanding.
  static bool any_in_use();
  // Records a computed op on all tapes that record.
  static void record_all(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs);
  // Watches the value that was read from a trainable variable.
  static void on_read(uint64_t variable_id, const Tensor& value);

 private:
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
// ops of an op that is itself recorded: they belong to a training step if that op does.
class SuspendRecording {
 public:
  SuspendRecording();
  ~SuspendRecording();
  SuspendRecording(const SuspendRecording&) = delete;
  SuspendRecording& operator=(const SuspendRecording&) = delete;
};

}  // namespace keel
