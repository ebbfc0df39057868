#include <keel/layers/training/internal/trainer.h>

#include <algorithm>
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
#include <keel/layers/training/compile/internal/compile_config.h>
#include <keel/layers/training/internal/batch_validation.h>
#include <keel/layers/training/internal/output_names.h>
#include <keel/layers/training/internal/per_replica_values.h>

namespace keel {

std::ostream& operator<<(std::ostream& out, const StepPlace& place) {
  out << place.caller << ": ";
  if (place.epoch) out << "epoch " << *place.epoch + 1 << ", ";
  return out << "step " << place.step + 1;
}

namespace {

constexpr char kLoss[] = "loss";

double scalar(const Tensor& x) {
  return x.dtype() == DType::kFloat64 ? x.item<double>() : x.item<float>();
}

size_t local_replica() {
  const ReplicaContext* context = current_replica_context();
  return context == nullptr ? 0 : static_cast<size_t>(context->local_replica);
}

std::vector<Tensor> dense_leaves(const Tensors& outputs) {
  std::vector<Tensor> out;
  for (const TensorLike& leaf : flatten(outputs)) out.push_back(leaf.tensor());
  return out;
}

// Returns the metrics that were not passed to compile().
std::vector<MetricHandle> own_metrics(const Model& model, const CompiledMetrics& compiled) {
  const std::vector<MetricHandle> known = compiled.all();
  std::vector<MetricHandle> out;
  for (const MetricHandle& metric : model.metrics()) {
    if (std::ranges::find(known, metric) == known.end()) out.push_back(metric);
  }
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

Trainer::State::const_iterator found(const Trainer::State& state, const std::string& name) {
  const auto it = state.find(name);
  if (it == state.end()) {
    throw ValueError("Model.set_training_state: the state has no entry '", name,
                     "'; it was saved by another model or with other options of compile()");
  }
  return it;
}

}  // namespace

Trainer::Trainer(CompileOptions options)
    : options_(std::move(options)),
      strategy_(distribute::Strategy::current()),
      strategy_lifetime_(strategy_.lifetime()),
      loss_(options_.loss, options_.loss_weights),
      metrics_([this] {
        const auto scope = strategy_.scope();
        return CompiledMetrics(options_.metrics, options_.weighted_metrics);
      }()) {}

distribute::Strategy& Trainer::strategy() const {
  if (strategy_lifetime_.expired()) {
    throw RuntimeError(
        "Model: the strategy used by compile() has been destroyed; keep it alive while "
        "the model is used");
  }
  return strategy_;
}

void build_for(Model& model, distribute::Strategy& strategy, const Tensors& x) {
  if (model.built()) return;
  const auto scope = strategy.scope();
  model.build(map_structure(specs_of(x), [](const TensorSpec& spec) {
    return TensorSpec{spec.shape.with(0, kUnknown), spec.dtype, spec.layout};
  }));
}

Config Trainer::config() const { return compile_config_of(options_); }

void Trainer::build(Model& model, const Batch& batch) const {
  build_for(model, strategy(), unpack_x_y_sample_weight(batch[0], place_.caller).x);
}

GlobalBatch Trainer::global_batch() const {
  const bool several = strategy_.num_replicas_in_sync() > 1;
  return {.rows = step_rows_, .communicator = several ? &strategy_.communicator() : nullptr};
}

void Trainer::resolve(const Model& model, const Tensors& outputs) {
  const std::lock_guard lock(resolve_mutex_);
  if (!output_names_.empty()) return;
  const std::vector<std::string> names = output_names(model, outputs);
  loss_.resolve(names);
  metrics_.resolve(names);
  output_names_ = names;
}

Tensor Trainer::loss_of(const Model& model, const StepData& data, const Tensors& outputs) {
  Tensor total;
  const auto add = [&](const Tensor& share) {
    total = total ? total + as_dtype(share, total.dtype()) : share;
  };
  if (!loss_.empty()) {
    resolve(model, outputs);
    GlobalBatch batch = global_batch();
    if (batch.rows == 0) batch.rows = rows_of(data);
    const auto labels = match_outputs(data.y, outputs, output_names_, place_.caller, "labels");
    const auto weights = weights_of_outputs(data, outputs, output_names_, place_.caller);
    const auto terms = loss_.shares(place_.caller, labels, dense_leaves(outputs), weights, batch);
    for (const CompiledLoss::Term& term : terms) {
      add(term.weight == 1 ? term.share : ops::scale(term.share, term.weight));
      if (terms.size() == 1 || step_losses_.empty()) continue;
      step_losses_[local_replica()][str(term.output, "_", kLoss)] = scalar(term.share);
    }
  }
  // Each of n replicas adds 1/n of the model's own losses, so that the sum over the replicas counts
  // each loss once.
  for (const Tensor& loss : model.losses()) {
    add(ops::scale(loss, 1.0 / strategy_.num_replicas_in_sync()));
  }
  if (!total) {
    throw ValueError(place_.caller,
                     ": no loss to minimize; pass `loss` to compile() or call add_loss()");
  }
  return total;
}

void Trainer::update_metrics(const Model& model, const StepData& data, const Tensors& outputs) {
  if (metrics_.all().empty()) return;
  resolve(model, outputs);
  const auto labels = match_outputs(data.y, outputs, output_names_, place_.caller, "labels");
  const auto weights = weights_of_outputs(data, outputs, output_names_, place_.caller);
  metrics_.update(place_.caller, labels, dense_leaves(outputs), weights);
}

bool Trainer::is_nan_anywhere(double loss) const {
  // If NaN is tolerated, all replicas must skip the update together: a replica that skips it alone
  // would leave the others waiting in the collectives of apply_gradients(). Otherwise the exception
  // of one replica stops all of them.
  if (!tolerates_nan_ || strategy_.num_replicas_in_sync() == 1) return std::isnan(loss);
  std::array<float, 1> any = {std::isnan(loss) ? 1.0F : 0.0F};
  distribute::all_reduce_sum(strategy_.communicator(), any);
  return any[0] > 0;
}

Logs Trainer::train_replica(Model& model, const Tensors& element) {
  const StepData data = unpack_x_y_sample_weight(element, place_.caller);
  const std::vector<Variable> variables = model.trainable_variables();
  optimizer()->check_variables(variables);
  std::vector<Gradient> gradients;
  double value = 0;
  {
    // The tape is destroyed before the update: it keeps references to values that the update writes
    // in place, and shared values would have to be copied first.
    GradientTape tape;
    const Tensors outputs = model(data.x, {.training = true});
    const Tensor loss = model.compute_loss(data, outputs);
    value = scalar(loss);
    if (is_nan_anywhere(value)) {
      if (!tolerates_nan_)
        throw ValueError(place_, ": the loss is NaN; check the data or lower the learning rate");
      return {{kLoss, value}};
    }
    model.compute_metrics(data, outputs);
    gradients = tape.gradient(optimizer()->scale_loss(loss), variables);
  }
  optimizer()->apply_gradients(gradients, variables);
  return {{kLoss, value}};
}

Logs Trainer::test_replica(Model& model, const Tensors& element) {
  const StepData data = unpack_x_y_sample_weight(element, place_.caller);
  const Tensors outputs = model(data.x, {.training = false});
  const double value = scalar(model.compute_loss(data, outputs));
  if (is_nan_anywhere(value)) {
    if (!tolerates_nan_)
      throw ValueError(place_, ": the loss is NaN; check the data or lower the learning rate");
    return {{kLoss, value}};
  }
  model.compute_metrics(data, outputs);
  return {{kLoss, value}};
}

double Trainer::activity_loss_scale(const Tensors& element) const {
  const int replicas = strategy_.num_replicas_in_sync();
  if (replicas == 1 || step_rows_ == 0) return 1;
  const auto rows = static_cast<double>(rows_of(unpack_x_y_sample_weight(element, place_.caller)));
  return rows * replicas / static_cast<double>(step_rows_);
}

template <class Fn>
void Trainer::run(Model& model, const Batch& batch, const StepPlace& place, bool is_test,
                  const Fn& step) {
  place_ = place;
  const int64_t rows = check_batch(batch, strategy().process_group(), place);
  build(model, batch);
  // Resets the state of the step even if a replica throws.
  struct End {
    Trainer& trainer;
    ~End() {
      trainer.step_rows_ = 0;
      trainer.step_losses_.clear();
      trainer.step_sums_.clear();
    }
  } end{*this};
  step_rows_ = rows;
  step_losses_.assign(static_cast<size_t>(batch.size()), {});
  // Testing uses replica-local averages, such as those of BatchNormalization, combined over the
  // replicas; model files store the same values.
  const CombinedReads averages(
      is_test && strategy_.num_replicas_in_sync() > 1 ? model.weights() : std::vector<Variable>());
  step_sums_.assign(static_cast<size_t>(batch.size()), {});
  batch_sums_.clear();
  const bool alone = strategy_.process_group().size() == 1;
  add_up(model, strategy_.run(
                    [&](const Tensors& element) {
                      const ActivityLossScale scale(activity_loss_scale(element));
                      const CombinedReads::Scope reads(averages);
                      Logs out = step(element);
                      if (alone) return out;
                      for (const MetricHandle& metric : metrics_of_batches(model)) {
                        step_sums_[local_replica()].push_back(metric->state().read());
                      }
                      return out;
                    },
                    batch));
}

// Returns the metrics that batch logs show and whose state exists.
std::vector<MetricHandle> Trainer::metrics_of_batches(const Model& model) const {
  std::vector<MetricHandle> out = metrics_.all();
  for (const MetricHandle& metric : own_metrics(model, metrics_)) out.push_back(metric);
  std::erase_if(out, [](const MetricHandle& m) { return m->costly_result() || !m->state(); });
  return out;
}

// Returns the sums of the replicas' values. With several processes it also sums the states of the
// metrics, in the same exchange.
Tensor Trainer::sums_over_replicas(const Model& model, std::vector<Tensor> values) {
  distribute::ProcessGroup& group = strategy_.process_group();
  if (group.size() == 1) {
    return strategy_.reduce(distribute::ReduceOp::kSum,
                            distribute::PerReplica<Tensor>(std::move(values)));
  }
  std::vector<Tensor> local;
  for (size_t r = 0; r < values.size(); ++r) {
    local.push_back(values[r]);
    local.insert(local.end(), step_sums_[r].begin(), step_sums_[r].end());
  }
  const std::vector<Tensor> all =
      distribute::gather_tensors(group, "the losses and metrics of a step", local);
  const size_t each = local.size() / values.size();
  if (all.size() != each * strategy_.num_replicas_in_sync()) {
    throw RuntimeError(place_.caller, ": all replicas must update the same metrics in a step");
  }
  // Sums in the fixed order of the replicas, so that the bits of logs do not depend on the number
  // of processes.
  const auto sum = [&](size_t i) {
    const NoGradient pause;
    std::vector<Tensor> of_replicas;
    for (size_t at = i; at < all.size(); at += each) of_replicas.push_back(all[at]);
    return tree_sum(of_replicas);
  };
  const std::vector<MetricHandle> metrics = metrics_of_batches(model);
  for (size_t i = 0; i < metrics.size(); ++i) batch_sums_[&*metrics[i]] = sum(i + 1);
  return sum(0);
}

// Adds the values returned by the replicas to the means.
void Trainer::add_up(const Model& model, const distribute::PerReplica<Logs>& returned) {
  std::vector<Logs> all;
  for (int r = 0; r < returned.size(); ++r) {
    all.push_back(returned[r]);
    all.back().insert(step_losses_[r].begin(), step_losses_[r].end());
  }
  const Logs& first = all[0];
  if (first.empty()) return;
  std::vector<Tensor> values;
  for (const Logs& logs : all) {
    std::vector<double> of_replica;
    for (const auto& [name, _] : first) {
      const auto it = logs.find(name);
      if (it == logs.end() || logs.size() != first.size()) {
        throw RuntimeError(place_.caller,
                           ": all replicas must return values with the same names from a step");
      }
      of_replica.push_back(it->second);
    }
    values.push_back(Tensor::from(of_replica, {static_cast<int64_t>(of_replica.size())}));
  }
  const Tensor sums = sums_over_replicas(model, std::move(values));
  size_t i = 0;
  for (const auto& [name, _] : first) {
    Mean& mean = means_[name];
    mean.sum += sums.data<double>()[i++] * static_cast<double>(step_rows_);
    mean.rows += step_rows_;
  }
}

void Trainer::prefetch(Model& model, const Tensors& element) const {
  Tensors x;
  try {
    x = unpack_x_y_sample_weight(element, place_.caller).x;
  } catch (const Error&) {
    return;  // the step of that batch reports the error
  }
  model.prefetch(x);
}

void Trainer::train_step(Model& model, const Batch& batch, const StepPlace& place,
                         const Batch* next) {
  if (optimizer() == nullptr) {
    throw RuntimeError(place.caller, ": the model has no optimizer; pass one to compile()");
  }
  run(model, batch, place, false, [&](const Tensors& element) {
    if (next != nullptr) prefetch(model, (*next)[static_cast<int>(local_replica())]);
    return model.train_step(element);
  });
}

void Trainer::test_step(Model& model, const Batch& batch, const StepPlace& place) {
  run(model, batch, place, true, [&](const Tensors& element) {
    const NoGradient pause;
    return model.test_step(element);
  });
}

Logs Trainer::logs(const Model& model, LogsOf of) const {
  Logs out;
  if (!loss_.empty()) out[kLoss] = 0;
  for (const auto& [name, mean] : means_) out[name] = mean.sum / static_cast<double>(mean.rows);
  const auto shown = [of](const Metric& metric) {
    return of == LogsOf::kEpoch || !metric.costly_result();
  };
  const auto result_of = [&](const Metric& metric) {
    const auto known = batch_sums_.find(&metric);
    return known == batch_sums_.end() ? metric.result() : metric.result_of(known->second);
  };
  out.merge(metrics_.results(shown, result_of));
  for (const MetricHandle& metric : own_metrics(model, metrics_)) {
    if (shown(*metric)) out[metric->name()] = result_of(*metric);
  }
  return out;
}

void Trainer::reset(const Model& model) {
  means_.clear();
  batch_sums_.clear();
  for (const MetricHandle& metric : metrics_.all()) metric->reset_state();
  for (const MetricHandle& metric : own_metrics(model, metrics_)) metric->reset_state();
}

Trainer::State Trainer::state(const Model& model) const {
  State out;
  std::vector<std::string> names;
  std::vector<double> sums;
  for (const auto& [name, mean] : means_) {
    names.push_back(name);
    sums.insert(sums.end(), {mean.sum, static_cast<double>(mean.rows)});
  }
  const auto count = static_cast<int64_t>(names.size());
  out["means/names"] = Tensor::from(names, {count});
  out["means/sums"] = Tensor::from(sums, {count, 2});
  int i = 0;
  for (const MetricHandle& metric : model.metrics()) {
    const std::string key = str("metrics/", i++);
    if (metric->state()) out[key] = values_of_replicas(strategy(), metric->state());
  }
  return out;
}

void Trainer::set_state(const Model& model, const State& state) {
  const Tensor names = found(state, "means/names")->second;
  const Tensor sums = found(state, "means/sums")->second;
  int i = 0;
  for (const MetricHandle& metric : model.metrics()) {
    const std::string key = str("metrics/", i++);
    if (!state.contains(key)) {
      metric->rebuild();  // no batch had determined the size of its state
      continue;
    }
    const Tensor& values = state.at(key);
    metric->make_state(values.rank() == 2 ? values.shape()[1] : 0);
    set_values_of_replicas(strategy(), metric->state(), values);
  }
  means_.clear();
  batch_sums_.clear();
  for (int64_t k = 0; k < names.size(); ++k) {
    means_[names.data<std::string>()[k]] = {
        .sum = sums.data<double>()[2 * k],
        .rows = static_cast<int64_t>(sums.data<double>()[2 * k + 1])};
  }
}

}  // namespace keel
