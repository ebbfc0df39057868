#include <keel/layers/training/internal/train_step.h>

#include <absl/strings/str_cat.h>
#include <array>
#include <cmath>
#include <ostream>

#include <keel/autodiff/internal/tree_sum.h>
#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/gather_tensors.h>
#include <keel/layers/internal/activity_loss_scale.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/training/internal/batch_validation.h>

namespace keel {
namespace {

double scalar(const Tensor& x) {
  return x.dtype() == DType::kFloat64 ? x.item<double>() : x.item<float>();
}

int local_replica() {
  const ReplicaContext* context = current_replica_context();
  return context == nullptr ? 0 : context->local_replica;
}

std::vector<Tensor> dense_leaves(const Tensors& outputs) {
  std::vector<Tensor> out;
  for (const TensorLike& leaf : flatten(outputs)) out.push_back(leaf.tensor());
  return out;
}

// Returns the weights of each output; a weight without structure applies to all outputs.
std::vector<Tensor> weights_of_outputs(const StepData& data, const Tensors& outputs,
                                       const std::vector<std::string>& names, const char* caller) {
  if (!data.sample_weight.is_leaf()) {
    return match_outputs(data.sample_weight, outputs, names, caller, "sample weights");
  }
  return std::vector<Tensor>(names.size(), data.sample_weight.tensor());
}

StepContext with_rows(StepContext context, int64_t rows) {
  context.rows = rows;
  return context;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StepContext& context) {
  out << context.caller << ": ";
  if (context.epoch) out << "epoch " << *context.epoch + 1 << ", ";
  return out << "step " << context.step + 1;
}

TrainStep::TrainStep(Trainer& trainer, Model& model, const Batch& batch, StepContext context)
    : trainer_(trainer),
      model_(model),
      batch_(&batch),
      context_([&] {
        if (context.training && trainer.optimizer() == nullptr) {
          throw RuntimeError(context.caller, ": the model has no optimizer; pass one to compile()");
        }
        return with_rows(context, check_batch(batch, strategy_.process_group(), context));
      }()),
      contributions_(static_cast<size_t>(batch.size())) {
  trainer_.build(model_, batch, context_.caller);
  trainer_.set_step(this);
}

TrainStep::~TrainStep() {
  if (trainer_.step() == this) trainer_.set_step(nullptr);
}

void TrainStep::run(const Batch* next) {
  // Testing uses replica-local averages, such as those of BatchNormalization, combined over the
  // replicas; model files store the same values.
  const bool combines_reads = !context_.training && strategy_.num_replicas_in_sync() > 1;
  const CombinedReads averages(combines_reads ? model_.weights() : std::vector<Variable>());
  const auto returned = strategy_.run(
      [&](const Tensors& element) {
        const CombinedReads::Scope reads(averages);
        return run_replica(element, next);
      },
      *batch_);
  trainer_.add(sums_over_replicas(returned));
}

Logs TrainStep::run_replica(const Tensors& element, const Batch* next) {
  const ActivityLossScale scale(activity_loss_scale(element));
  Logs out;
  if (context_.training) {
    if (next != nullptr) prefetch((*next)[local_replica()]);
    out = model_.train_step(element);
  } else {
    const NoGradient pause;
    out = model_.test_step(element);
  }
  if (strategy_.process_group().size() > 1) {
    for (const MetricHandle& metric : trainer_.batch_metrics(model_)) {
      contributions_[local_replica()].metric_states.push_back(metric->state().read());
    }
  }
  return out;
}

void TrainStep::prefetch(const Tensors& element) const {
  Tensors x;
  try {
    x = unpack_x_y_sample_weight(element, context_.caller).x;
  } catch (const Error&) {
    return;  // the step of that batch reports the error
  }
  model_.prefetch(x);
}

double TrainStep::activity_loss_scale(const Tensors& element) const {
  const int replicas = strategy_.num_replicas_in_sync();
  if (replicas == 1 || context_.rows == 0) return 1;
  const StepData data = unpack_x_y_sample_weight(element, context_.caller);
  return static_cast<double>(rows_of(data)) * replicas / static_cast<double>(context_.rows);
}

Logs TrainStep::train(const Tensors& element) {
  const StepData data = unpack_x_y_sample_weight(element, context_.caller);
  const std::vector<Variable> variables = model_.trainable_variables();
  Optimizer& optimizer = *trainer_.optimizer();
  optimizer.check_variables(variables);
  std::vector<Gradient> gradients;
  double value = 0;
  {
    // The tape is destroyed before the update: it keeps references to values that the update writes
    // in place, and shared values would have to be copied first.
    GradientTape tape;
    const Tensors outputs = model_(data.x, {.training = true});
    const Tensor loss = model_.compute_loss(data, outputs);
    value = scalar(loss);
    if (is_nan(value)) return {{kLoss, value}};
    model_.compute_metrics(data, outputs);
    gradients = tape.gradient(optimizer.scale_loss(loss), variables);
  }
  optimizer.apply_gradients(gradients, variables);
  return {{kLoss, value}};
}

Logs TrainStep::test(const Tensors& element) {
  const StepData data = unpack_x_y_sample_weight(element, context_.caller);
  const Tensors outputs = model_(data.x, {.training = false});
  const double value = scalar(model_.compute_loss(data, outputs));
  if (!is_nan(value)) model_.compute_metrics(data, outputs);
  return {{kLoss, value}};
}

bool TrainStep::is_nan(double loss) const {
  if (!context_.tolerates_nan) {
    // The exception of one replica stops all of them.
    if (!std::isnan(loss)) return false;
    throw ValueError(context_, ": the loss is NaN; check the data or lower the learning rate");
  }
  if (strategy_.num_replicas_in_sync() == 1) return std::isnan(loss);
  // All replicas must skip the update together: a replica that skips it alone would leave the
  // others waiting in the collectives of apply_gradients().
  std::array<float, 1> any = {std::isnan(loss) ? 1.0F : 0.0F};
  distribute::all_reduce_sum(strategy_.communicator(), any);
  return any[0] > 0;
}

Tensor TrainStep::loss(const StepData& data, const Tensors& outputs) {
  Tensor total;
  const auto add = [&](const Tensor& share) {
    total = total ? total + as_dtype(share, total.dtype()) : share;
  };
  const int replicas = strategy_.num_replicas_in_sync();
  if (!trainer_.loss().empty()) {
    const std::vector<std::string>& names = trainer_.resolve(model_, outputs);
    const GlobalBatch batch = {.rows = context_.rows == 0 ? rows_of(data) : context_.rows,
                               .communicator = replicas > 1 ? &strategy_.communicator() : nullptr};
    const auto labels = match_outputs(data.y, outputs, names, context_.caller, "labels");
    const auto weights = weights_of_outputs(data, outputs, names, context_.caller);
    const auto terms =
        trainer_.loss().shares(context_.caller, labels, dense_leaves(outputs), weights, batch);
    for (const CompiledLoss::Term& term : terms) {
      add(term.weight == 1 ? term.share : ops::scale(term.share, term.weight));
      if (terms.size() == 1 || contributions_.empty()) continue;
      contributions_[local_replica()].losses[absl::StrCat(term.output, "_", kLoss)] =
          scalar(term.share);
    }
  }
  // Each of n replicas adds 1/n of the model's own losses, so that the sum over the replicas counts
  // each loss once.
  for (const Tensor& loss : model_.losses()) add(ops::scale(loss, 1.0 / replicas));
  if (!total) {
    throw ValueError(context_.caller,
                     ": no loss to minimize; pass `loss` to compile() or call add_loss()");
  }
  return total;
}

void TrainStep::update_metrics(const StepData& data, const Tensors& outputs) {
  if (trainer_.metrics().all().empty()) return;
  const std::vector<std::string>& names = trainer_.resolve(model_, outputs);
  const auto labels = match_outputs(data.y, outputs, names, context_.caller, "labels");
  const auto weights = weights_of_outputs(data, outputs, names, context_.caller);
  trainer_.metrics().update(context_.caller, labels, dense_leaves(outputs), weights);
}

Trainer::StepSums TrainStep::sums_over_replicas(
    const distribute::PerReplica<Logs>& returned) const {
  std::vector<Logs> all;
  for (int r = 0; r < returned.size(); ++r) {
    all.push_back(returned[r]);
    const Logs& by_output = contributions_[r].losses;
    all.back().insert(by_output.begin(), by_output.end());
  }
  Trainer::StepSums out = {.rows = context_.rows};
  const Logs& first = all[0];
  if (first.empty()) return out;
  std::vector<Tensor> values;
  for (const Logs& logs : all) {
    std::vector<double> of_replica;
    for (const auto& [name, _] : first) {
      const auto it = logs.find(name);
      if (it == logs.end() || logs.size() != first.size()) {
        throw RuntimeError(context_.caller,
                           ": all replicas must return values with the same names from a step");
      }
      of_replica.push_back(it->second);
    }
    values.push_back(Tensor::from(of_replica, {static_cast<int64_t>(of_replica.size())}));
  }
  const Tensor sums = sum(std::move(values), out);
  size_t i = 0;
  for (const auto& [name, _] : first) out.losses[name] = sums.data<double>()[i++];
  return out;
}

// Returns the sum of the replicas' losses. With several processes it also sums the states of the
// metrics, in the same exchange.
Tensor TrainStep::sum(std::vector<Tensor> losses, Trainer::StepSums& out) const {
  distribute::ProcessGroup& group = strategy_.process_group();
  if (group.size() == 1) {
    return strategy_.reduce(distribute::ReduceOp::kSum,
                            distribute::PerReplica<Tensor>(std::move(losses)));
  }
  std::vector<Tensor> local;
  for (size_t r = 0; r < losses.size(); ++r) {
    const std::vector<Tensor>& states = contributions_[r].metric_states;
    local.push_back(losses[r]);
    local.insert(local.end(), states.begin(), states.end());
  }
  const std::vector<Tensor> all =
      distribute::gather_tensors(group, "the losses and metrics of a step", local);
  const size_t each = local.size() / losses.size();
  if (all.size() != each * strategy_.num_replicas_in_sync()) {
    throw RuntimeError(context_.caller, ": all replicas must update the same metrics in a step");
  }
  // Sums in the fixed order of the replicas, so that the bits of logs do not depend on the number
  // of processes.
  const auto sum_at = [&](size_t i) {
    const NoGradient pause;
    std::vector<Tensor> of_replicas;
    for (size_t at = i; at < all.size(); at += each) of_replicas.push_back(all[at]);
    return tree_sum(of_replicas);
  };
  const std::vector<MetricHandle> metrics = trainer_.batch_metrics(model_);
  for (size_t i = 0; i < metrics.size(); ++i) out.metric_states[&*metrics[i]] = sum_at(i + 1);
  return sum_at(0);
}

}  // namespace keel
