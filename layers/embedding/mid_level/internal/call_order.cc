#include <keel/layers/embedding/mid_level/internal/call_order.h>

#include <algorithm>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

std::string under(const CallOrder::Name& name) {
  return name ? " under the name '" + *name + "'" : " without a name";
}

}  // namespace

// A named batch ends with the step that dequeued it. An unnamed batch ends with the next dequeue.
bool CallOrder::has_ended(const Batch& batch, StepNumber step, Ends ends) const {
  if (!batch.dequeued) return false;
  if (batch.name) return step != 0 && batch.dequeued_in != step;
  return ends == Ends::kUnnamed;
}

void CallOrder::drop(StepNumber step, Ends ends, Taken& taken) {
  for (const Batch& batch : batches_) {
    if (!has_ended(batch, step, ends)) continue;
    taken.dropped.push_back(batch.serial);
    taken.unused_training |= !batch.name && batch.training;
  }
  std::erase_if(batches_, [&](const Batch& batch) { return has_ended(batch, step, ends); });
}

CallOrder::Taken CallOrder::enqueue(StepNumber step, bool training, const Name& name) {
  Taken taken = {.batch = next_++, .training = training};
  drop(step, Ends::kNamedOfEarlierSteps, taken);
  batches_.push_back({.serial = taken.batch, .training = training, .name = name});
  return taken;
}

CallOrder::Taken CallOrder::dequeue(StepNumber step, const Name& name) {
  const auto waiting = std::ranges::find_if(
      batches_, [&](const Batch& batch) { return !batch.dequeued && batch.name == name; });
  if (waiting == batches_.end()) {
    throw RuntimeError("TPUEmbedding.dequeue: no batch is enqueued", under(name),
                       "; call enqueue first");
  }
  Taken taken = {.batch = waiting->serial, .training = waiting->training};
  drop(step, Ends::kUnnamed, taken);
  const auto batch = std::ranges::find(batches_, taken.batch, &Batch::serial);
  batch->dequeued = true;
  batch->dequeued_in = step;
  return taken;
}

void CallOrder::refuse_apply(const Name& name) const {
  const bool inference = std::ranges::any_of(
      batches_, [&](const Batch& b) { return b.dequeued && b.name == name && !b.training; });
  throw RuntimeError(
      "TPUEmbedding.apply_gradients: no dequeued batch", under(name), " requires gradients",
      inference ? "; the last one was enqueued with training = false" : "; call dequeue first");
}

CallOrder::Taken CallOrder::apply_gradients(StepNumber step, const Name& name) {
  const auto batch = std::ranges::find_if(batches_, [&](const Batch& b) {
    return b.dequeued && b.name == name && !has_ended(b, step, Ends::kNamedOfEarlierSteps) &&
           (b.training || b.name);
  });
  if (batch == batches_.end()) refuse_apply(name);
  Taken taken = {.batch = batch->serial, .training = true};
  batches_.erase(batch);
  drop(step, Ends::kNamedOfEarlierSteps, taken);
  return taken;
}

void CallOrder::clear() {
  batches_.clear();
  next_ = 0;
}

}  // namespace keel
