#include <keel/savedmodel/keras/internal/keras_compile.h>

#include <absl/strings/match.h>
#include <iostream>
#include <map>
#include <string>

#include <keel/layers/internal/naming.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/optimizers/internal/registry.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>

namespace keel {
namespace {

const std::string kKerasRs = "keras_rs>", kKeel = "keel>";

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

// Returns the loss for a name, in the form of legacy files. Keras looks up names of its functions
// there, and needs an object for a class of keras_rs.
Config legacy_loss(const Config& loss) {
  if (!loss.is_string()) return loss;
  const Config object = losses::serialize(*losses::get(loss.string()));
  const std::string& class_name = object["class_name"].string();
  const std::string& package = loss_registry().traits(class_name).package;
  return package.empty() || package == "keras" ? Config(to_snake_case(class_name)) : object;
}

// Returns the function with a name in the form in which Keras stores functions.
Config function_object(const Config& name) {
  return Config::dict({{"module", "builtins"},
                       {"class_name", "function"},
                       {"config", name},
                       {"registered_name", "function"}});
}

// Returns a function of a metric as Keras reads it: a function by name, or a loss.
Config function_of_metric(const Config& function) {
  if (function.is_string()) return function_object(function);
  if (!is_object(function)) return function;
  const std::string& class_name = function["class_name"].string();
  if (class_name == "function") return function_object(function["config"]);
  return to_keras_object(loss_registry().traits(class_name), "losses", class_name,
                         function["config"]);
}

// Returns a metric with its functions as Keras reads them.
Config with_functions(const Config& metric) {
  if (!is_object(metric) || !metric["config"].is_dict()) return metric;
  Config config = metric["config"], out = metric;
  for (const char* key : {"fn", "gain_fn", "rank_discount_fn"}) {
    const Config* const function = config.find(key);
    if (function == nullptr) continue;
    const bool is_loss = key == std::string("fn") && function->is_string();
    config.set(key, function_of_metric(is_loss ? legacy_loss(*function) : Config(*function)));
  }
  out.set("config", std::move(config));
  return out;
}

// Returns a loss or metric with the class name that legacy files use.
Config with_package(const Config& object, const ClassTraits& traits) {
  if (!is_object(object) || traits.package != "keras_rs") return object;
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

// Returns the traits of the class of an object, which may also be a name or null.
template <class Base>
ClassTraits traits_in(const Registry<Base>& registry, const Config& object) {
  return registry.traits(is_object(object) ? object["class_name"].string() : "");
}

// Returns an object in the form of .keras archives.
Config with_module(const Config& object, const ClassTraits& traits, const char* kind) {
  if (!is_object(object)) return object;
  return with_lazy_rows(
      to_keras_object(traits, kind, object["class_name"].string(), object["config"]), object);
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
                   absl::StrContains(registered->string(), '>');
  std::string name = own ? registered->string() : class_name;
  for (const std::string& package : {kKerasRs, kKeel}) {
    if (name.starts_with(package)) name.erase(0, package.size());
  }
  return with_lazy_rows(Config::dict({{"class_name", name}, {"config", std::move(config)}}),
                        object);
}

// Exchanges alpha and beta of a Tversky loss. Until Keras 3.15, and in files, alpha is the weight
// of false negatives and beta that of false positives. Since Keras 3.16, and here, it is the
// reverse.
Config with_exchanged_weights(const Config& loss) {
  if (!is_object(loss) || loss["class_name"] != Config("Tversky") || !loss["config"].is_dict()) {
    return loss;
  }
  Config config = loss["config"];
  const Config alpha = value_of(config, "alpha"), beta = value_of(config, "beta");
  if (!beta.is_null()) config.set("alpha", beta);
  if (!alpha.is_null()) config.set("beta", alpha);
  if (beta.is_null()) config.erase("alpha");
  if (alpha.is_null()) config.erase("beta");
  Config out = loss;
  out.set("config", std::move(config));
  return out;
}

// Converts the settings of Keras 2's optimizers to those of Keras 3. Keras 3 supports learning rate
// decay only by schedules, and drops `decay` with a warning.
Config current_optimizer(Config optimizer) {
  if (!is_object(optimizer) || !optimizer["config"].is_dict()) return optimizer;
  const std::string& name = optimizer["class_name"].string();
  const bool own = absl::StrContains(name, '>') && !name.starts_with("Custom>");
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
  config.erase("schedule_decay");  // Nadam has it; Keras 3 has no parameter for this schedule
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
  const auto loss_of = [](const Config& loss) {
    const Config named = legacy_loss(with_exchanged_weights(loss));
    return with_package(named, traits_in(loss_registry(), named));
  };
  const auto metric_of = [](const Config& metric) {
    return with_package(with_functions(metric), traits_in(metric_registry(), metric));
  };
  const auto metrics = [&](const char* key) {
    return map_objects(value_of(compiled, key), metric_of);
  };
  return Config::dict(
      {{"loss", map_objects(value_of(compiled, "loss"), loss_of)},
       {"metrics", metrics("metrics")},
       {"weighted_metrics", metrics("weighted_metrics")},
       {"loss_weights", value_of(compiled, "loss_weights")},
       {"optimizer_config",
        compiled["optimizer"].is_null() ? Config() : class_and_config(compiled["optimizer"])}});
}

Config to_compile_config(const Config& compiled) {
  const auto objects = [&](const char* key, const auto& registry, const char* kind) {
    return map_objects(value_of(compiled, key), [&](const Config& object) {
      return with_module(with_functions(with_exchanged_weights(object)),
                         traits_in(registry, object), kind);
    });
  };
  Config out = Config::dict(
      {{"optimizer", objects("optimizer", optimizers::optimizer_registry(), "optimizers")},
       {"loss", objects("loss", loss_registry(), "losses")},
       {"loss_weights", value_of(compiled, "loss_weights")},
       {"metrics", objects("metrics", metric_registry(), "metrics")},
       {"weighted_metrics", objects("weighted_metrics", metric_registry(), "metrics")},
       {"run_eagerly", false},
       {"steps_per_execution", 1},
       {"jit_compile", false}});
  if (out["optimizer"].is_null()) out.erase("optimizer");  // then Keras uses its default
  return out;
}

bool is_worth_saving(const Config& compiled) {
  return !compiled.is_null() && !(compiled["optimizer"].is_null() && compiled["loss"].is_null());
}

Config from_training_config(const Config& stored, const std::string& keras_version) {
  if (!stored.is_dict()) return {};
  Config optimizer = value_of(stored, "optimizer");
  if (optimizer.is_null()) optimizer = value_of(stored, "optimizer_config");
  const bool in_place = is_keras_3_16_or_later(keras_version);
  const Config loss = map_objects(value_of(stored, "loss"), [&](const Config& object) {
    return in_place ? plain(object) : with_exchanged_weights(plain(object));
  });
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
