#include <keel/savedmodel/keras/internal/keras_compile.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string>

namespace keel {
namespace {

const std::string kKerasRs = "keras_rs>";

Config value_of(const Config& config, const char* key) {
  const Config* const found = config.find(key);
  return found == nullptr ? Config() : *found;
}

bool is_object(const Config& config) {
  return config.is_dict() && config.find("class_name") != nullptr &&
         config.find("config") != nullptr;
}

// Applies fn to each loss or metric of a structure by output.
template <class Fn>
Config map_objects(const Config& config, const Fn& fn) {
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(map_objects(item, fn));
    return out;
  }
  if (!config.is_dict() || is_object(config)) return config.is_null() ? config : fn(config);
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) out.set(key, map_objects(value, fn));
  return out;
}

Config full_loss_name(const Config& loss) {
  static const std::map<std::string, std::string> kFull = {
      {"mse", "mean_squared_error"},
      {"mae", "mean_absolute_error"},
      {"mape", "mean_absolute_percentage_error"},
      {"msle", "mean_squared_logarithmic_error"},
      {"bce", "binary_crossentropy"},
      {"kld", "kl_divergence"},
      {"kullback_leibler_divergence", "kl_divergence"},
      {"logcosh", "log_cosh"},
      {"huber_loss", "huber"},
      {"cosine_proximity", "cosine_similarity"},
  };
  if (!loss.is_string()) return loss;
  std::string lower = loss.string();
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = kFull.find(lower);
  return it == kFull.end() ? loss : Config(it->second);
}

// Returns true for losses and metrics of the package keras_rs.
bool is_of_keras_rs(const std::string& class_name) {
  constexpr std::array<std::string_view, 11> kNames = {"DCG",
                                                       "ListMLELoss",
                                                       "MeanAveragePrecision",
                                                       "MeanReciprocalRank",
                                                       "NDCG",
                                                       "PairwiseHingeLoss",
                                                       "PairwiseLogisticLoss",
                                                       "PairwiseMeanSquaredError",
                                                       "PairwiseSoftZeroOneLoss",
                                                       "PrecisionAtK",
                                                       "RecallAtK"};
  return std::ranges::find(kNames, class_name) != kNames.end();
}

// Returns an object with the class name that legacy files use.
Config with_package(const Config& object) {
  if (!is_object(object) || !is_of_keras_rs(object["class_name"].string())) return object;
  Config out = object;
  out.set("class_name", kKerasRs + object["class_name"].string());
  return out;
}

// Adds lazy_rows next to the optimizer's class and config, where Keras ignores it.
Config with_lazy_rows(Config out, const Config& of) {
  constexpr char kKey[] = "lazy_rows";
  if (const Config* const lazy = of.find(kKey)) out.set(kKey, *lazy);
  return out;
}

Config class_and_config(const Config& object) {
  return with_lazy_rows(
      Config::dict({{"class_name", object["class_name"]}, {"config", object["config"]}}), object);
}

// Returns an object in the form of .keras archives. "Package>Class" is a custom class.
Config with_module(const Config& object, const char* module) {
  if (!is_object(object)) return object;
  const std::string& name = object["class_name"].string();
  const size_t package = name.find('>');
  const bool own = package != std::string::npos;
  if (is_of_keras_rs(name)) {
    std::string of_package = module;
    of_package.replace(0, of_package.find('.'), "keras_rs");
    return Config::dict({{"module", of_package},
                         {"class_name", name},
                         {"config", object["config"]},
                         {"registered_name", kKerasRs + name}});
  }
  return with_lazy_rows(Config::dict({{"module", own ? Config() : Config(module)},
                                      {"class_name", own ? name.substr(package + 1) : name},
                                      {"config", object["config"]},
                                      {"registered_name", own ? Config(name) : Config()}}),
                        object);
}

// Converts a loss or metric from Keras's forms: functions by name, the wrapper classes of Keras 2,
// and settings of Keras 2 that have no effect.
Config plain(const Config& object) {
  if (!is_object(object)) return object;
  const Config& inner = object["config"];
  const std::string& class_name = object["class_name"].string();
  if (class_name == "function" && inner.is_string()) return inner;
  Config config = inner;
  if (config.is_dict()) {
    // Keras 2 also writes `fn` for classes other than the wrappers, which does not configure them.
    if (!class_name.ends_with("Wrapper")) config.erase("fn");
    const Config* const reduction = config.find("reduction");
    if (reduction != nullptr && *reduction == Config("auto")) config.erase("reduction");
  }
  const Config* const registered = object.find("registered_name");
  const bool own = registered != nullptr && registered->is_string() &&
                   registered->string().find('>') != std::string::npos;
  std::string name = own ? registered->string() : class_name;
  if (name.starts_with(kKerasRs)) name.erase(0, kKerasRs.size());
  return with_lazy_rows(Config::dict({{"class_name", name}, {"config", std::move(config)}}),
                        object);
}

// Converts the settings of Keras 2's optimizers to those of Keras 3. Keras 3 supports learning rate
// decay only by schedules, and drops `decay` with a warning.
Config current_optimizer(Config optimizer) {
  if (!is_object(optimizer) || !optimizer["config"].is_dict()) return optimizer;
  const std::string& name = optimizer["class_name"].string();
  const bool own = name.find('>') != std::string::npos && !name.starts_with("Custom>");
  if (own) return optimizer;
  Config config = optimizer["config"];
  if (const Config* const rate = config.find("lr")) {  // key before Keras 2.3
    if (config.find("learning_rate") == nullptr) config.set("learning_rate", Config(*rate));
    config.erase("lr");
  }
  const Config decay = value_of(config, "decay");
  if (decay.is_number() && decay.number() != 0) {
    std::cerr << "load_model: the optimizer's decay, " << decay.number() << ", is ignored\n";
    config.erase("decay");
  }
  config.erase("schedule_decay");  // of Nadam; Keras 3 has no parameter for this schedule
  optimizer.set("config", std::move(config));
  return optimizer;
}

// Removes the additional list in which Keras 2 puts the metrics of a model with one output.
Config one_list(const Config& metrics) {
  if (metrics.is_list() && metrics.items().size() == 1 && metrics.items()[0].is_list()) {
    return metrics.items()[0];
  }
  return metrics;
}

}  // namespace

Config to_training_config(const Config& compiled) {
  const auto loss_of = [](const Config& loss) { return with_package(full_loss_name(loss)); };
  const auto metrics = [&](const char* key) {
    return map_objects(value_of(compiled, key), with_package);
  };
  return Config::dict({{"loss", map_objects(value_of(compiled, "loss"), loss_of)},
                       {"metrics", metrics("metrics")},
                       {"weighted_metrics", metrics("weighted_metrics")},
                       {"loss_weights", value_of(compiled, "loss_weights")},
                       {"optimizer_config", class_and_config(compiled["optimizer"])}});
}

Config to_compile_config(const Config& compiled) {
  const auto objects = [&](const char* key, const char* module) {
    return map_objects(value_of(compiled, key),
                       [&](const Config& object) { return with_module(object, module); });
  };
  return Config::dict({{"optimizer", objects("optimizer", "keras.optimizers")},
                       {"loss", objects("loss", "keras.losses")},
                       {"loss_weights", value_of(compiled, "loss_weights")},
                       {"metrics", objects("metrics", "keras.metrics")},
                       {"weighted_metrics", objects("weighted_metrics", "keras.metrics")},
                       {"run_eagerly", false},
                       {"steps_per_execution", 1},
                       {"jit_compile", false}});
}

Config from_training_config(const Config& stored) {
  if (!stored.is_dict()) return {};
  Config optimizer = value_of(stored, "optimizer");
  if (optimizer.is_null()) optimizer = value_of(stored, "optimizer_config");
  const Config loss = map_objects(value_of(stored, "loss"), plain);
  if (optimizer.is_null() && loss.is_null()) return {};
  Config out = Config::dict({{"optimizer", current_optimizer(plain(optimizer))}, {"loss", loss}});
  if (const Config weights = value_of(stored, "loss_weights"); !weights.is_null()) {
    out.set("loss_weights", weights);
  }
  for (const char* key : {"metrics", "weighted_metrics"}) {
    const Config metrics = value_of(stored, key);
    if (!metrics.is_null()) out.set(key, one_list(map_objects(metrics, plain)));
  }
  return out;
}

}  // namespace keel
