// GradientTape: reverse-mode differentiation by recording.
//
//   GradientTape tape;                                  // records this thread
//   Tensor loss = losses::mean_squared_error(y, model(x));
//   auto gradients = tape.gradient(loss, model->trainable_variables());
//
// A tape is a list of the ops that touched something watched, in execution
// order; gradient() walks it backwards once. Tapes nest; inner gradients are
// recorded by outer tapes. Gradients that meet are added in one fixed order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>

namespace keel {

struct TapeOptions {
  bool persistent = false;               // allow gradient() more than once
  bool watch_accessed_variables = true;  // watch trainable variables on read
};

enum class UnconnectedGradients { kNone, kZero };

struct GradientOptions {
  // d loss / d target, one for the target; unset: ones, that is, the target is summed.
  Tensor output_gradient = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

class GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  void watch(const Tensor& tensor);
  void watch(const Variable& variable);

  // d target / d source for each source; none where there is no path. A target
  // that is not a scalar is summed. Stops recording and, unless persistent,
  // frees the tape. RuntimeError on a second call on a tape not persistent.
  std::vector<Gradient> gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const GradientOptions& options = {});
  // The same with respect to watched tensors. (Not an overload: a Variable reads
  // as a Tensor, so `gradient(loss, {w, b})` would be ambiguous.)
  std::vector<Gradient> input_gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                       const GradientOptions& options = {});

  // Forgets all that was recorded and watched, and records on.
  void reset();

  // While the returned object lives, this tape records nothing.
  class [[nodiscard]] Pause {
   public:
    explicit Pause(GradientTape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    GradientTape& tape_;
  };
  Pause stop_recording() { return Pause(*this); }

  // For ops and variables; not for users.
  static bool any_active();
  // Whether what this thread computes is part of a training step: there is a tape that still
  // records, stop_recording() or not, or goes back, and no NoGradient.
  static bool any_in_use();
  static void record_all(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs);
  static void on_read(uint64_t variable_id, const Tensor& value);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// While alive, no tape of this thread records: what is computed is no part of a training step.
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;
};

// While alive, no tape of this thread records the ops that another op, which is recorded, is made
// of: what is computed is part of a training step if the other op is.
class SuspendRecording {
 public:
  SuspendRecording();
  ~SuspendRecording();
  SuspendRecording(const SuspendRecording&) = delete;
  SuspendRecording& operator=(const SuspendRecording&) = delete;
};

}  // namespace keel
