#include "layers/training/batch_source.h"

namespace keel {

BatchSource::BatchSource(const char* who, distribute::Strategy& strategy,
                         const data::Dataset& dataset, std::optional<int64_t> steps)
    : who_(who), batches_(strategy.experimental_distribute_dataset(dataset)), steps_(steps) {
  if (steps_ && *steps_ <= 0) {
    throw ValueError(who_, ": the number of steps must be positive, received ", *steps_);
  }
  if (!steps_ && batches_.cardinality() == data::kInfinite) {
    throw ValueError(who_, ": an endless dataset needs a number of steps");
  }
}

std::optional<int64_t> BatchSource::steps() const {
  if (steps_) return steps_;
  return batches_.cardinality() >= 0 ? batches_.cardinality() : counted_;
}

void BatchSource::start_epoch() {
  given_ = 0;
  if (!steps_ || !next_) next_ = batches_.iterator();
}

std::optional<distribute::PerReplica<Tensors>> BatchSource::next() {
  if (steps_ && given_ == *steps_) return {};
  auto batch = next_();
  if (!batch && (steps_ || given_ == 0)) {
    if (steps_) {
      next_ = batches_.iterator();
      batch = next_();
    }
    if (!batch) throw ValueError(who_, ": the dataset has no batches");
  }
  if (batch) {
    ++given_;
  } else {
    counted_ = given_;
  }
  return batch;
}

void BatchSource::skip_epochs(int64_t epochs) {
  for (int64_t i = 0; i < epochs; ++i) {
    // A dataset that starts anew each epoch is told so, for each time it may have another order.
    start_epoch();
    while (steps_ && next()) {
    }
  }
}

}  // namespace keel
