// CallOrder: which calls of a mid-level embedding object one replica may make next, and which batch
// each is about. Pure bookkeeping: it knows no engine and no threads, and never waits. A call that
// may not be made now is a RuntimeError, and nothing has changed.
//
//   enqueue          a batch waits to be dequeued
//   dequeue          takes the oldest batch that waits under the same name, or without one
//   apply_gradients  takes the oldest dequeued batch under the same name that has not been updated;
//                    without a name, the oldest such training batch
//
// A batch without a name that was enqueued for training and is not updated is dropped when the next
// batch is dequeued. A named batch is a training batch if and only if apply_gradients with its name
// follows in the step that dequeued it: it stays until a later step makes a call.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace keel {

class CallOrder {
 public:
  // Batches are numbered in the order they are enqueued, from 0: the same in all replicas that make
  // the same calls.
  using Serial = int64_t;
  using Name = std::optional<std::string>;
  // Steps are numbered by their caller, in any ascending way. 0: outside steps.
  using StepNumber = uint64_t;

  struct Taken {
    Serial batch = 0;
    bool training = true;              // as enqueued
    std::vector<Serial> dropped = {};  // these batches are gone
    bool unused_training = false;      // one of them was enqueued for training
  };

  // What is gone is in `dropped` there too.
  Taken enqueue(StepNumber step, bool training, const Name& name);
  Taken dequeue(StepNumber step, const Name& name);
  Taken apply_gradients(StepNumber step, const Name& name);
  // Forgets all batches, and counts anew.
  void forget();

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

  std::deque<Batch> batches_;  // oldest first; done ones are not kept
  Serial next_ = 0;
};

}  // namespace keel
