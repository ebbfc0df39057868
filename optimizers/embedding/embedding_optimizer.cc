#include <keel/optimizers/embedding/embedding_optimizer.h>

#include <algorithm>

#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/embedding_optimizer_internal.h>

namespace keel {
namespace {

using embedding_optimizer_internal::state_of;

TableOptimizerState named(const std::string& name) {
  if (name == "sgd") return state_of(tpu::SGD{});
  if (name == "adagrad") return state_of(tpu::Adagrad{});
  if (name == "adam") return state_of(tpu::Adam{});
  if (name == "ftrl") return state_of(tpu::FTRL{});
  throw ValueError("EmbeddingOptimizer: name must be sgd, adagrad, adam or ftrl, received '", name,
                   "'");
}

constexpr char kGlobalStep[] = "global_step";

template <class Options>
std::shared_ptr<const TableOptimizerState> shared(const Options& options) {
  return std::make_shared<const TableOptimizerState>(state_of(options));
}

bool same_initializers(const TableOptimizerState& a, const TableOptimizerState& b) {
  return std::ranges::equal(
      a.slot_initializers, b.slot_initializers,
      [](const Initializer& x, const Initializer& y) { return &x.function() == &y.function(); });
}

const CustomComputation& computation_of(const TableOptimizerState& state) {
  return dynamic_cast<const CustomRule&>(*state.rule->base).computation;
}

size_t combined(size_t a, size_t b) { return a * 1000003 ^ b; }

size_t hash_of(const Config& config) {
  if (config.is_number()) return std::hash<double>()(config.number());
  size_t out = 0;
  if (config.is_list()) {
    for (const Config& item : config.items()) out = combined(out, hash_of(item));
  } else if (config.is_dict()) {
    for (const auto& [key, value] : config.entries()) out = combined(out, hash_of(value));
  } else {
    out = std::hash<std::string>()(to_json(config));
  }
  return out;
}

// Calls `read` with options of each class that a file may name, until a call returns true.
template <class... Options>
bool any_of_classes(auto&& read) {
  return (read(Options{}) || ...);
}

}  // namespace

EmbeddingOptimizer::EmbeddingOptimizer(const char* name) : EmbeddingOptimizer(std::string(name)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const std::string& name)
    : state_(std::make_shared<const TableOptimizerState>(named(name))) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::SGD& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::Adagrad& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::Adam& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::FTRL& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::AdagradMomentum& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::CustomOptimizer& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::LaProp& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::F2A& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::RowwiseAdagrad& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::StochasticGradientDescentParameters& o)
    : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::AdagradParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::AdamParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::FtrlParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::ProximalAdagradParameters& o)
    : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::ProximalYogiParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::MomentumParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::RMSPropParameters& o) : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(const tpu::FrequencyEstimatorParameters& o)
    : state_(shared(o)) {}
EmbeddingOptimizer::EmbeddingOptimizer(std::shared_ptr<Optimizer> keras_optimizer)
    : state_(shared(keras_optimizer)) {}

EmbeddingOptimizer translate_keras_optimizer(const OptimizerHandle& optimizer) { return optimizer; }

bool operator==(const EmbeddingOptimizer& a, const EmbeddingOptimizer& b) {
  if (a.state_ == b.state_) return true;
  if (!a || !b) return false;
  const TableOptimizerState &x = *a, &y = *b;
  if (x.source != nullptr || y.source != nullptr) return x.source == y.source;
  return x.config == y.config && x.learning_rate == y.learning_rate &&
         x.slot_variable_creation_fn == y.slot_variable_creation_fn &&
         x.hyperparameters == y.hyperparameters &&
         (!x.custom || (computation_of(x) == computation_of(y) && same_initializers(x, y)));
}

size_t EmbeddingOptimizer::hash() const {
  if (state_ == nullptr) return 0;
  if (state_->source != nullptr) return std::hash<const void*>()(state_->source.get());
  return combined(hash_of(state_->config), state_->learning_rate.hash());
}

EmbeddingOptimizer EmbeddingOptimizer::with_learning_rate(LearningRate rate) const {
  if (state_ == nullptr) {
    throw RuntimeError(
        "EmbeddingOptimizer.with_learning_rate: the EmbeddingOptimizer is empty; construct it with "
        "an optimizer");
  }
  auto state = std::make_shared<TableOptimizerState>(*state_);
  state->learning_rate = std::move(rate);
  state->source = nullptr;
  EmbeddingOptimizer out;
  out.state_ = std::move(state);
  return out;
}

double EmbeddingOptimizer::current_learning_rate() const {
  if (state_ == nullptr) {
    throw RuntimeError(
        "EmbeddingOptimizer.current_learning_rate: the EmbeddingOptimizer is empty; construct it "
        "with an optimizer");
  }
  return state_->source != nullptr ? state_->source->learning_rate() : state_->learning_rate(0);
}

std::vector<double> EmbeddingOptimizer::current_hyperparameters() const {
  if (state_ == nullptr) {
    throw RuntimeError(
        "EmbeddingOptimizer.current_hyperparameters: the EmbeddingOptimizer is empty; construct it "
        "with an optimizer");
  }
  std::vector<double> out;
  for (const LearningRate& h : state_->hyperparameters) out.push_back(h(0));
  return out;
}

distribute::RowUpdate row_update(const TableOptimizerState& o) {
  return {.rule = o.rule,
          .clip_gradient_min = o.clip_gradient_min,
          .clip_gradient_max = o.clip_gradient_max,
          .weight_decay_factor = o.weight_decay_factor,
          .multiply_weight_decay_factor_by_learning_rate =
              o.multiply_weight_decay_factor_by_learning_rate,
          .clip_weight_min = o.clip_weight_min,
          .clip_weight_max = o.clip_weight_max,
          .use_gradient_accumulation = o.use_gradient_accumulation,
          .lazy = o.lazy,
          .clipnorm = o.clipnorm,
          .global_clipnorm = o.global_clipnorm};
}

Config encode(const EmbeddingOptimizer& optimizer) {
  if (!optimizer) return {};
  if (optimizer->source != nullptr) {
    return Config::dict({{"keras", optimizers::serialize(*optimizer->source)}});
  }
  if (optimizer->custom || optimizer->slot_variable_creation_fn) {
    throw NotImplementedError(
        optimizer->class_name, ": the ",
        optimizer->custom ? "custom_computation" : "slot_variable_creation_fn",
        " is a function and cannot be written to a config; set it in the program that reads the "
        "config");
  }
  Config config = optimizer->config["config"];
  if (config.find("learning_rate") != nullptr) {
    config.set("learning_rate", optimizer.current_learning_rate());
  }
  if (!optimizer->hyperparameters.empty() && !optimizer->custom) {
    config.set(kGlobalStep, optimizer.current_hyperparameters()[0]);
  }
  return Config::dict({{"class_name", optimizer->class_name}, {"config", std::move(config)}});
}

void decode(const Config& config, EmbeddingOptimizer& optimizer) {
  if (config.is_null()) {
    optimizer = {};
    return;
  }
  if (const Config* keras = config.find("keras")) {
    optimizer = EmbeddingOptimizer(optimizers::deserialize(*keras));
    return;
  }
  const std::string& name = config["class_name"].string();
  const auto read = [&]<class Options>(const Options&) {
    if (name != Options::kClassName) return false;
    Config own = config["config"];
    std::optional<LearningRate> step;
    if constexpr (requires(Options o) { o.global_step; }) {
      if (const Config* found = own.find(kGlobalStep)) step = LearningRate(found->number());
      own.erase(kGlobalStep);
    }
    auto options = from_config<Options>(own, "EmbeddingOptimizer " + name);
    if constexpr (requires(Options o) { o.global_step; }) options.global_step = std::move(step);
    optimizer = EmbeddingOptimizer(options);
    return true;
  };
  if (!any_of_classes<tpu::SGD, tpu::Adagrad, tpu::Adam, tpu::FTRL, tpu::AdagradMomentum,
                      tpu::LaProp, tpu::F2A, tpu::RowwiseAdagrad,
                      tpu::StochasticGradientDescentParameters, tpu::AdagradParameters,
                      tpu::AdamParameters, tpu::FtrlParameters, tpu::ProximalAdagradParameters,
                      tpu::ProximalYogiParameters, tpu::MomentumParameters, tpu::RMSPropParameters,
                      tpu::FrequencyEstimatorParameters>(read)) {
    throw ValueError(
        "EmbeddingOptimizer: unknown class '", name,
        "'; use tpu::SGD, Adagrad, RowwiseAdagrad, Adam, FTRL, AdagradMomentum, LaProp "
        "or F2A");
  }
}

}  // namespace keel
