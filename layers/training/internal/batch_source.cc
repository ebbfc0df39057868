#include <keel/layers/training/internal/batch_source.h>

#include <absl/strings/str_cat.h>
#include <iostream>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

// Prefetches one batch on a background thread if more than one core may compute at once.
distribute::InputOptions input_options() {
  return {.experimental_per_replica_buffer_size = num_workers() > 1 ? 1 : 0};
}

}  // namespace

BatchSource::BatchSource(const char* caller, distribute::Strategy& strategy,
                         const data::Dataset& dataset, std::optional<int64_t> steps, Epochs epochs)
    : caller_(caller),
      batches_(strategy.experimental_distribute_dataset(dataset, input_options())),
      steps_(steps),
      runs_on_(steps && epochs == Epochs::kRunOn) {
  if (steps_ && *steps_ <= 0) {
    throw ValueError(caller_, ": the number of steps must be positive, received ", *steps_);
  }
  if (!steps_ && batches_.cardinality() == data::kInfinite) {
    throw ValueError(caller_,
                     ": an infinite dataset requires a number of steps; pass steps_per_epoch, "
                     "validation_steps or steps");
  }
}

std::optional<int64_t> BatchSource::steps() const {
  if (steps_) return steps_;
  return batches_.cardinality() >= 0 ? batches_.cardinality() : counted_;
}

void BatchSource::start_epoch() {
  given_ = 0;
  if (!runs_on_ || !next_) next_ = batches_.iterator();
}

std::optional<distribute::PerReplica<Tensors>> BatchSource::next() {
  if (steps_ && given_ == *steps_) return {};
  auto batch = next_();
  if (!batch && runs_on_) {
    next_ = batches_.iterator();
    batch = next_();
  }
  if (batch) {
    ++given_;
    return batch;
  }
  if (given_ == 0 || runs_on_)
    throw ValueError(caller_, ": the dataset has no batches; check its files and filters");
  if (steps_) warn_of_end();
  counted_ = given_;
  return {};
}

void BatchSource::warn_of_end() {
  if (warned_ || distribute::processes().rank() != 0) return;
  warned_ = true;
  std::cerr << absl::StrCat(caller_, ": the dataset ended after ", given_, " of ", *steps_,
                            " steps; call repeat() on it or reduce the number of steps\n");
}

void BatchSource::skip_epochs(int64_t epochs) {
  for (int64_t i = 0; i < epochs; ++i) {
    // Start each epoch even if nothing is read: a dataset may use another order each time it
    // starts.
    start_epoch();
    while (runs_on_ && next()) {
    }
  }
}

}  // namespace keel
