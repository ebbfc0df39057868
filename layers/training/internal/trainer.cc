#include <keel/layers/training/internal/trainer.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/layers/training/compile/internal/compile_config.h>
#include <keel/layers/training/internal/output_names.h>
#include <keel/layers/training/internal/per_replica_values.h>
#include <keel/optimizers/loss_scale.h>

namespace keel {

namespace {

// Returns the metrics that were not passed to compile().
std::vector<MetricHandle> own_metrics(const Model& model, const CompiledMetrics& compiled) {
  const std::vector<MetricHandle> known = compiled.all();
  std::vector<MetricHandle> out;
  for (const MetricHandle& metric : model.metrics()) {
    if (std::ranges::find(known, metric) == known.end()) out.push_back(metric);
  }
  return out;
}

Trainer::State::const_iterator found(const Trainer::State& state, const std::string& name) {
  const auto it = state.find(name);
  if (it == state.end()) {
    throw ValueError("Model.set_training_state: the state has no entry '", name,
                     "'; it was saved by another model or with other options of compile()");
  }
  return it;
}

std::shared_ptr<Optimizer> scaling_optimizer(const std::shared_ptr<Optimizer>& optimizer,
                                             bool scale_loss) {
  if (!scale_loss || optimizer == nullptr) return optimizer;
  if (optimizer->class_name() == LossScaleOptimizer::kClassName) return optimizer;
  return std::make_shared<LossScaleOptimizer>(
      LossScaleOptimizerOptions{.inner_optimizer = OptimizerHandle(kAdopt, optimizer)});
}

}  // namespace

Trainer::Trainer(CompileOptions options, bool scale_loss)
    : options_(std::move(options)),
      optimizer_(scaling_optimizer(options_.optimizer.shared(), scale_loss)),
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
  // The batch dimension stays unknown, because later batches may have other sizes.
  model.build(map_structure(specs_of(x), [](const TensorSpec& spec) {
    return TensorSpec{spec.shape.with(0, kUnknown), spec.dtype, spec.layout};
  }));
}

Config Trainer::config() const { return compile_config_of(options_); }

void Trainer::build(Model& model, const Batch& batch, const char* caller) const {
  build_for(model, strategy(), unpack_x_y_sample_weight(batch[0], caller).x);
}

const std::vector<std::string>& Trainer::resolve(const Model& model, const Tensors& outputs) {
  // Replicas call this at the same time in the first step; one of them resolves the names.
  const std::lock_guard lock(resolve_mutex_);
  if (!output_names_.empty()) return output_names_;
  const std::vector<std::string> names = output_names(model, outputs);
  loss_.resolve(names);
  metrics_.resolve(names);
  output_names_ = names;
  return output_names_;
}

std::vector<MetricHandle> Trainer::batch_metrics(const Model& model) const {
  std::vector<MetricHandle> out = metrics_.all();
  for (const MetricHandle& metric : own_metrics(model, metrics_)) out.push_back(metric);
  std::erase_if(out, [](const MetricHandle& m) { return m->costly_result() || !m->state(); });
  return out;
}

void Trainer::set_step(TrainStep* step) {
  step_ = step;
  if (step != nullptr) metric_states_.clear();
}

void Trainer::add(StepSums sums) {
  // Weighted by rows, because the last batch of an epoch may be smaller.
  for (const auto& [name, sum] : sums.losses) {
    Mean& mean = means_[name];
    mean.sum += sum * static_cast<double>(sums.rows);
    mean.rows += sums.rows;
  }
  metric_states_ = std::move(sums.metric_states);
}

Logs Trainer::logs(const Model& model, LogsOf of) const {
  Logs out;
  if (!loss_.empty()) out[kLoss] = 0;
  for (const auto& [name, mean] : means_) out[name] = mean.sum / static_cast<double>(mean.rows);
  const auto shown = [of](const Metric& metric) {
    return of == LogsOf::kEpoch || !metric.costly_result();
  };
  const auto result_of = [&](const Metric& metric) {
    const auto known = metric_states_.find(&metric);
    return known == metric_states_.end() ? metric.result() : metric.result_of(known->second);
  };
  out.merge(metrics_.results(shown, result_of));
  for (const MetricHandle& metric : own_metrics(model, metrics_)) {
    if (shown(*metric)) out[metric->name()] = result_of(*metric);
  }
  return out;
}

void Trainer::reset(const Model& model) {
  means_.clear();
  metric_states_.clear();
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
    const std::string key = absl::StrCat("metrics/", i++);
    if (metric->state()) out[key] = values_of_replicas(strategy(), metric->state());
  }
  return out;
}

void Trainer::set_state(const Model& model, const State& state) {
  const Tensor names = found(state, "means/names")->second;
  const Tensor sums = found(state, "means/sums")->second;
  int i = 0;
  for (const MetricHandle& metric : model.metrics()) {
    const std::string key = absl::StrCat("metrics/", i++);
    if (!state.contains(key)) {
      metric->rebuild();  // no batch had determined the size of its state
      continue;
    }
    const Tensor& values = state.at(key);
    metric->make_state(values.rank() == 2 ? values.shape()[1] : 0);
    set_values_of_replicas(strategy(), metric->state(), values);
  }
  means_.clear();
  metric_states_.clear();
  for (int64_t k = 0; k < names.size(); ++k) {
    means_[names.data<std::string>()[k]] = {
        .sum = sums.data<double>()[2 * k],
        .rows = static_cast<int64_t>(sums.data<double>()[2 * k + 1])};
  }
}

}  // namespace keel
