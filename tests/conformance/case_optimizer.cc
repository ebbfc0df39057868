#include "tests/conformance/case_optimizer.h"

#include <set>

#include <keel/optimizers/embedding/tpu_parameters.h>

namespace keel::conformance {
namespace {

// Returns the parameters that are set, without the type.
Config parameters_of(const Config& optimizer) {
  if (!optimizer.is_dict()) throw ValueError("optimizer: must be an object with a 'type'");
  Config out = Config::dict();
  for (const auto& [name, value] : optimizer.entries()) {
    if (name != "type" && !value.is_null()) out.set(name, value);
  }
  return out;
}

// Converts the gradient bounds to TensorFlow 2's clipvalue.
Config with_clipvalue(Config parameters) {
  const Config* min = parameters.find("clip_gradient_min");
  const Config* max = parameters.find("clip_gradient_max");
  const Config pair =
      Config::list({min == nullptr ? Config() : *min, max == nullptr ? Config() : *max});
  const bool is_set = !pair.items()[0].is_null() || !pair.items()[1].is_null();
  parameters.erase("clip_gradient_min");
  parameters.erase("clip_gradient_max");
  if (is_set) parameters.set("clipvalue", pair);
  return parameters;
}

template <class Options>
Options options_of(const Config& parameters) {
  return from_config<Options>(parameters, std::string("optimizer ") + Options::kClassName);
}

template <class Options>
EmbeddingOptimizer optimizer_of(const Config& parameters, std::function<double()> learning_rate) {
  auto options = options_of<Options>(parameters);
  options.learning_rate = std::move(learning_rate);
  return options;
}

template <class Options>
EmbeddingOptimizer v1_of(const Config& parameters) {
  auto options = options_of<Options>(parameters);
  if (!options.learning_rate) options.learning_rate = 1;
  return options;
}

void rename(Config& parameters, const char* from, const char* to) {
  if (const Config* found = parameters.find(from)) {
    const Config value = *found;
    parameters.erase(from);
    parameters.set(to, value);
  }
}

[[noreturn]] void throw_unknown(const std::string& type) {
  throw ValueError("unknown optimizer type '", type, "'");
}

}  // namespace

bool is_v1_type(const std::string& type) {
  static const std::set<std::string> kTypes = {"momentum", "rmsprop", "proximal_adagrad",
                                               "proximal_yogi"};
  return kTypes.count(type) != 0;
}

EmbeddingOptimizer table_optimizer_of(const Config& optimizer,
                                      std::function<double()> learning_rate) {
  const Config parameters = with_clipvalue(parameters_of(optimizer));
  const std::string type = optimizer["type"].string();
  if (type == "sgd") return optimizer_of<tpu::SGD>(parameters, std::move(learning_rate));
  if (type == "adagrad") return optimizer_of<tpu::Adagrad>(parameters, std::move(learning_rate));
  if (type == "adam") return optimizer_of<tpu::Adam>(parameters, std::move(learning_rate));
  if (type == "ftrl") return optimizer_of<tpu::FTRL>(parameters, std::move(learning_rate));
  if (type != "adagrad_momentum") throw_unknown(type);
  return optimizer_of<tpu::AdagradMomentum>(parameters, std::move(learning_rate));
}

EmbeddingOptimizer v1_parameters_of(const Config& optimizer) {
  Config parameters = parameters_of(optimizer);
  const std::string type = optimizer["type"].string();
  if (type == "momentum") return v1_of<tpu::MomentumParameters>(parameters);
  if (type == "rmsprop") return v1_of<tpu::RMSPropParameters>(parameters);
  if (type == "proximal_yogi") return v1_of<tpu::ProximalYogiParameters>(parameters);
  if (type != "proximal_adagrad") throw_unknown(type);
  rename(parameters, "initial_accumulator_value", "initial_accumulator");
  return v1_of<tpu::ProximalAdagradParameters>(parameters);
}

}  // namespace keel::conformance
