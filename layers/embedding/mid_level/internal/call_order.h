// CallOrder: tracks which calls of a mid-level embedding object one replica may make next, and
// which batch each call refers to. It is pure bookkeeping: it uses no engine and no threads and
// never blocks. A call that is not allowed throws RuntimeError and changes nothing.
//
//   enqueue          adds a batch
//   dequeue          takes the oldest batch that was enqueued with the same name, or without one,
//                    and not dequeued
//   apply_gradients  takes the oldest dequeued batch of the same name that has not been updated;
//                    without a name, the oldest such training batch
//
// A batch without a name that was enqueued for training and is not updated is dropped when the next
// batch is dequeued. A named batch is a training batch if and only if apply_gradients is called
// with its name in the step that dequeued it. It is kept until the first call of a later step.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace keel {

// The call state of one replica. Not thread-safe.
class CallOrder {
 public:
  // Batches are numbered from 0 in the order of their enqueue calls. Replicas that make the same
  // calls use the same numbers.
  using Serial = int64_t;
  using Name = std::optional<std::string>;
  // The caller numbers its steps in ascending order. 0 means outside steps.
  using StepNumber = uint64_t;

  // The batch that a call refers to, and the batches that the call dropped.
  struct Taken {
    Serial batch = 0;
    bool training = true;              // as enqueued
    std::vector<Serial> dropped = {};  // batches that no longer exist
    bool unused_training = false;      // a dropped, unnamed batch was enqueued for training
  };

  // Record one call each and return its batch. The caller must discard the batches in
  // Taken::dropped.
  Taken enqueue(StepNumber step, bool training, const Name& name);
  Taken dequeue(StepNumber step, const Name& name);
  Taken apply_gradients(StepNumber step, const Name& name);
  // Drops all batches and restarts the numbering at 0.
  void clear();

  // Returns the number of batches that are neither done nor dropped.
  int64_t in_flight() const { return static_cast<int64_t>(batches_.size()); }

 private:
  struct Batch {
    Serial serial = 0;
    bool training = true;
    Name name = {};
    bool dequeued = false;
    StepNumber dequeued_in = 0;
  };
  enum class Ends { kNamedOfEarlierSteps, kUnnamed };
  bool has_ended(const Batch& batch, StepNumber step, Ends ends) const;
  void drop(StepNumber step, Ends ends, Taken& taken);
  [[noreturn]] void refuse_apply(const Name& name) const;

  std::deque<Batch> batches_;  // oldest first; completed batches are removed
  Serial next_ = 0;
};

}  // namespace keel
