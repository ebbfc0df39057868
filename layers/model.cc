#include "layers/model.h"

#include "layers/training/loop.h"

namespace keel {
namespace {

Tensors with_weights(const Tensors& x, const Tensors& y, const Tensor& sample_weight) {
  if (!sample_weight) return Tensors::tuple({x, y});
  return Tensors::tuple({x, y, sample_weight});
}

Trainer::Batch split(distribute::Strategy& strategy, const Tensors& batch) {
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensors(batch), {.experimental_per_replica_buffer_size = 0});
  return *batches.iterator()();
}

bool is_by_output(const Config& config) {
  return config.is_list() || (config.is_dict() && config.find("class_name") == nullptr);
}

std::vector<MetricArgument> metrics_from(const Config* config) {
  std::vector<MetricArgument> out;
  if (config == nullptr || config->is_null()) return out;
  if (!config->is_list()) {
    throw NotImplementedError("Model.compile_from_config: metrics by output are not offered");
  }
  for (const Config& metric : config->items()) {
    if (metric.is_string()) {
      out.emplace_back(metric.string());
    } else if (is_by_output(metric)) {
      throw NotImplementedError("Model.compile_from_config: metrics by output are not offered");
    } else {
      out.emplace_back(metrics::deserialize(metric));
    }
  }
  return out;
}

}  // namespace

Model::~Model() = default;

LayerHandle<Layer> Model::get_layer(const std::string& name) const {
  std::string known;
  for (const auto& layer : layers()) {
    if (layer->name() == name) return layer;
    known += (known.empty() ? "" : ", ") + layer->name();
  }
  throw ValueError("Model.get_layer: no layer '", name, "', the model has: ", known);
}

void Model::compile(CompileOptions options) {
  trainer_ = std::make_shared<Trainer>(std::move(options));
}

std::shared_ptr<Optimizer> Model::optimizer() const {
  return trainer_ == nullptr ? nullptr : trainer_->optimizer();
}

Config Model::get_compile_config() const {
  return trainer_ == nullptr ? Config() : trainer_->config();
}

void Model::compile_from_config(const Config& config) {
  CompileOptions options;
  const Config* optimizer = config.find("optimizer");
  if (optimizer != nullptr && optimizer->is_string()) {
    options.optimizer = optimizer->string();
  } else if (optimizer != nullptr && !optimizer->is_null()) {
    options.optimizer = optimizers::deserialize(*optimizer);
  }
  const Config& loss = config["loss"];
  if (loss.is_string()) {
    options.loss = loss.string();
  } else if (is_by_output(loss)) {
    throw NotImplementedError("Model.compile_from_config: losses by output are not offered");
  } else if (!loss.is_null()) {
    options.loss = losses::deserialize(loss);
  }
  options.metrics = metrics_from(config.find("metrics"));
  options.weighted_metrics = metrics_from(config.find("weighted_metrics"));
  compile(std::move(options));
}

Trainer& Model::trainer(const char* caller) const {
  if (trainer_ == nullptr) throw RuntimeError("Model.", caller, ": call compile() first");
  return *trainer_;
}

History Model::fit(const data::Dataset& data, const FitOptions& options) {
  Trainer& with = trainer("fit");
  if (options.validation_split != 0 || options.sample_weight) {
    throw ValueError("Model.fit: validation_split and sample_weight are for arrays, not datasets");
  }
  return fit_loop(with, *this, data, options);
}

History Model::fit(const Tensors& x, const Tensors& y, const FitOptions& options) {
  return fit_loop(trainer("fit"), *this, with_weights(x, y, options.sample_weight), options);
}

Logs Model::evaluate(const data::Dataset& data, const EvaluateOptions& options) {
  Trainer& with = trainer("evaluate");
  if (options.sample_weight) {
    throw ValueError("Model.evaluate: sample_weight is for arrays, not datasets");
  }
  return evaluate_loop(with, *this, data, options);
}

Logs Model::evaluate(const Tensors& x, const Tensors& y, const EvaluateOptions& options) {
  Trainer& with = trainer("evaluate");
  const Tensors arrays = with_weights(x, y, options.sample_weight);
  return evaluate_loop(with, *this, batches_of("Model.evaluate", arrays, options.batch_size),
                       options);
}

Tensors Model::predict(const data::Dataset& data, const PredictOptions& options) {
  distribute::Strategy& strategy =
      compiled() ? trainer_->strategy() : distribute::Strategy::current();
  return predict_loop(strategy, *this, data, options);
}

Tensors Model::predict(const Tensors& x, const PredictOptions& options) {
  return predict(batches_of("Model.predict", Tensors::tuple({x}), options.batch_size), options);
}

Logs Model::train_on_batch(const Tensors& x, const Tensors& y) {
  Trainer& with = trainer("train_on_batch");
  with.reset();
  with.train_step(*this, split(with.strategy(), Tensors::tuple({x, y})),
                  {.who = "Model.train_on_batch"});
  return with.logs();
}

Logs Model::test_on_batch(const Tensors& x, const Tensors& y) {
  Trainer& with = trainer("test_on_batch");
  with.reset();
  with.test_step(*this, split(with.strategy(), Tensors::tuple({x, y})),
                 {.who = "Model.test_on_batch"});
  return with.logs();
}

}  // namespace keel
