#include <keel/layers/metrics/confusion/internal/scored_examples.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/internal/gather_tensors.h>

namespace keel {
namespace {

template <class T>
void append(std::vector<T>& to, std::span<const T> values) {
  to.insert(to.end(), values.begin(), values.end());
}

template <class T>
Tensor as_tensor(const std::vector<T>& values) {
  return Tensor::from(values, {std::ssize(values)});
}

}  // namespace

ReplicaExamples::ReplicaExamples(distribute::Strategy& strategy)
    : of_replicas_(strategy.num_local_replicas()), group_(&strategy.process_group()) {}

ScoredExamples& ReplicaExamples::mine(const std::string& caller) {
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) return of_replicas_[0];
  if (context->local_replicas != std::ssize(of_replicas_)) {
    throw RuntimeError(caller, ": the metric was created for ", of_replicas_.size(),
                       " replicas but is used under a strategy with ", context->local_replicas,
                       "; create it in the scope of that strategy");
  }
  return of_replicas_[context->local_replica];
}

void ReplicaExamples::clear() {
  for (ScoredExamples& examples : of_replicas_) examples = {};
}

ScoredExamples ReplicaExamples::all() const {
  ScoredExamples here;
  for (const ScoredExamples& examples : of_replicas_) {
    append<float>(here.scores, examples.scores);
    append<float>(here.weights, examples.weights);
    append<int64_t>(here.groups, examples.groups);
  }
  if (group_->size() == 1) return here;
  const std::vector<Tensor> mine = {as_tensor(here.scores), as_tensor(here.weights),
                                    as_tensor(here.groups)};
  const auto tensors = distribute::gather_tensors(*group_, "the examples of a metric", mine);
  ScoredExamples out;
  for (size_t i = 0; i < tensors.size(); i += mine.size()) {
    append(out.scores, tensors[i].data<float>());
    append(out.weights, tensors[i + 1].data<float>());
    append(out.groups, tensors[i + 2].data<int64_t>());
  }
  return out;
}

}  // namespace keel
