#include <keel/layers/training/compile/internal/compile_config.h>

namespace keel {
namespace {

template <class T, class Fn>
Config encode_by_output(const ByOutput<T>& values, const Fn& fn) {
  if (values.one()) return fn(*values.one());
  if (values.list()) {
    Config::List out;
    for (const T& value : *values.list()) out.push_back(fn(value));
    return out;
  }
  if (!values.dict()) return {};
  Config out = Config::dict();
  for (const auto& [name, value] : *values.dict()) out.set(name, fn(value));
  return out;
}

// `is_one` distinguishes one value for all outputs from one value per output.
template <class T, class IsOne, class Fn>
ByOutput<T> decode_by_output(const Config* config, const IsOne& is_one, const Fn& fn) {
  if (config == nullptr || config->is_null()) return {};
  if (is_one(*config)) return fn(*config);
  if (config->is_list()) {
    std::vector<T> out;
    for (const Config& value : config->items()) out.push_back(fn(value));
    return out;
  }
  std::map<std::string, T> out;
  for (const auto& [name, value] : config->entries()) out.emplace(name, fn(value));
  return out;
}

LossArgument loss_from(const Config& config) {
  if (config.is_null()) return {};
  if (config.is_string()) return config.string();
  return losses::deserialize(config);
}

bool is_loss(const Config& config) {
  return config.is_string() || (config.is_dict() && config.find("class_name") != nullptr);
}

MetricsArgument metrics_from(const Config* config) {
  return config == nullptr ? MetricsArgument() : MetricsArgument::from_config(*config);
}

}  // namespace

Config compile_config_of(const CompileOptions& options) {
  const std::shared_ptr<Optimizer>& optimizer = options.optimizer.shared();
  return Config::dict(
      {{"optimizer", optimizer == nullptr ? Config() : optimizers::serialize(*optimizer)},
       {"loss", encode_by_output(options.loss, [](const LossArgument& l) { return l.config(); })},
       {"loss_weights", encode_by_output(options.loss_weights, [](double w) { return Config(w); })},
       {"metrics", options.metrics.config()},
       {"weighted_metrics", options.weighted_metrics.config()},
       {"run_eagerly", options.run_eagerly},
       {"steps_per_execution", options.steps_per_execution},
       {"jit_compile", options.jit_compile ? Config(*options.jit_compile) : Config("auto")}});
}

CompileOptions compile_options_from(const Config& config) {
  CompileOptions out;
  const Config* optimizer = config.find("optimizer");
  if (optimizer != nullptr && optimizer->is_string()) {
    out.optimizer = optimizer->string();
  } else if (optimizer != nullptr && !optimizer->is_null()) {
    out.optimizer = optimizers::deserialize(*optimizer);
  }
  out.loss = decode_by_output<LossArgument>(config.find("loss"), is_loss, loss_from);
  out.loss_weights = decode_by_output<double>(
      config.find("loss_weights"), [](const Config& c) { return c.is_number(); },
      [](const Config& c) { return c.is_null() ? 1 : c.number(); });
  out.metrics = metrics_from(config.find("metrics"));
  out.weighted_metrics = metrics_from(config.find("weighted_metrics"));
  if (const Config* eager = config.find("run_eagerly")) {
    out.run_eagerly = eager->is_bool() && eager->boolean();
  }
  if (const Config* steps = config.find("steps_per_execution"); steps && !steps->is_null()) {
    out.steps_per_execution = steps->integer();
  }
  const Config* jit = config.find("jit_compile");
  if (jit != nullptr && jit->is_bool()) out.jit_compile = jit->boolean();
  return out;
}

}  // namespace keel
