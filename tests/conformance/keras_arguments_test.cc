// Compares the arguments of layers, losses, metrics and optimizers, and their defaults, with those
// of Keras. Tests layers/internal/refused_arguments.cc.
#include <absl/strings/match.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/internal/refused_arguments.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/optimizer.h>

#include "tests/conformance/keras_api.h"
#include "tests/conformance/replay_program.h"

namespace keel::conformance::keras_arguments_test {

constexpr char kFile[] = KEEL_SOURCE_DIR "/tests/cases/keras_api.json";

// Creates an object of a class from a config, and returns the config that it writes.
Config written_config(const std::string& module, const std::string& name, const Config& config) {
  const Config named = Config::dict({{"class_name", name}, {"config", config}});
  if (module == "keras.layers") return layers::deserialize(named)->get_config();
  if (module == "keras.losses") return losses::deserialize(named)->get_config();
  if (module == "keras.metrics") return metrics::deserialize(named)->get_config();
  return optimizers::deserialize(named)->get_config();
}

// Returns true if Keras's section lists the class as missing, with a reason.
bool is_refused(const std::string& module, const std::string& name) {
  for (const KerasSection& section : keras_api()) {
    if (section.where != module) continue;
    for (const KerasNames& group : section.groups) {
      for (const std::string& other : group.names) {
        if (other == name) return !group.why_missing.empty();
      }
    }
  }
  return false;
}

// Returns true if all items of a list equal the number.
bool repeats(const Config& list, const Config& number) {
  return std::ranges::all_of(list.items(), [&](const Config& item) {
    return item.is_number() && item.number() == number.number();
  });
}

// An object in `ours` is a class name in `keras`, and a number may stand for a list of equal ones.
bool same(const Config& ours, const Config& keras) {
  if (ours.is_dict() && keras.is_string()) return ours["class_name"] == keras;
  if (ours.is_list() && keras.is_list() && ours.items().size() == keras.items().size()) {
    return std::ranges::equal(ours.items(), keras.items(), same);
  }
  if (ours.is_number() && keras.is_list()) return repeats(keras, ours);
  if (ours.is_list() && keras.is_number()) return repeats(ours, keras);
  const Config &a = ours, &b = keras;
  if (a.is_number() && b.is_number()) {
    return std::abs(a.number() - b.number()) <= 1e-6 * std::abs(b.number());
  }
  return a == b;
}

// Returns the object that a class takes as a required argument and that Keras's record leaves out.
Config object_for(const std::string& class_name, const std::string& argument) {
  const auto object = [](const char* name, Config config) {
    config.set("name", "inner");
    return Config::dict({{"class_name", name}, {"config", std::move(config)}});
  };
  const Config units = Config::dict({{"units", 2}});
  if (argument == "optimizer_map") {
    return object("OptimizerMap",
                  Config::dict({{"default_optimizer", object("SGD", Config::dict())}}));
  }
  if (argument == "inner_optimizer") return object("SGD", Config::dict());
  if (argument == "cell") return object("LSTMCell", units);
  if (argument == "cells") return Config::list({object("LSTMCell", units)});
  if (argument == "layers")
    return Config::list({object("Rescaling", Config::dict({{"scale", 2.0}}))});
  return object(class_name == "Bidirectional" ? "LSTM" : "Dense", units);
}

struct ClassArguments {
  Config required = Config::dict();  // values of the arguments without a default
  Config defaults = Config::dict();
};

ClassArguments arguments_of(const std::string& class_name, const Config& record) {
  ClassArguments out;
  size_t position = 0;
  const Config* values = record.find("config_of");
  for (const Config& argument : record["arguments"].items()) {
    const std::string& name = argument["name"].string();
    if (argument.find("required") != nullptr) {
      const Config value = values == nullptr ? Config("<object>") : values->items().at(position);
      const bool left_out = value.is_string() && value.string().starts_with("<");
      out.required.set(name, left_out ? object_for(class_name, name) : value);
    } else if (const Config* value = argument.find("default")) {
      out.defaults.set(name, *value);
    }
    ++position;
  }
  // Without a value, these classes need an optional argument.
  if (class_name == "CategoryEncoding") out.required.set("num_tokens", 4);
  if (class_name == "Discretization") out.required.set("bin_boundaries", Config::list({0.0, 1.0}));
  // The config has the shape with the batch.
  if (class_name == "InputLayer") out.required.set("batch_shape", Config::list({Config(), 2}));
  return out;
}

// Returns a config with all arguments. Keras's classes replace a name of None by one of their own,
// and a dtype of None by that of the backend.
Config all_arguments(const ClassArguments& arguments) {
  Config out = arguments.required;
  for (const auto& [key, value] : arguments.defaults.entries()) {
    const bool replaced = key == "name" || key == "dtype" || key == "exclude_layers";
    if (arguments.required.find(key) == nullptr && !(value.is_null() && replaced)) {
      out.set(key, value);
    }
  }
  return out;
}

// Keys of layers whose values are compared elsewhere or differ from object to object.
const std::set<std::string> kNotCompared = {"dtype",          "trainable", "seed",  "layer",
                                            "backward_layer", "cell",      "cells", "layers"};

// Returns true if every value of the argument has the same effect, so that no config has it, or if
// the argument is refused.
bool is_key_of_no_effect(const std::string& class_name, const std::string& argument) {
  const std::string keys = ", " + layer_registry().traits(class_name).ignored_keys + ",";
  return absl::StrContains(keys, ", " + argument + "=");
}

bool is_listed_as_refused(const std::string& class_name, const std::string& argument) {
  return std::ranges::any_of(refused_arguments(), [&](const RefusedArgument& refused) {
    return refused.class_name == class_name && refused.argument == argument;
  });
}

// Returns another value than the default.
Config other_value(const std::string& argument, const Config& value) {
  if (argument == "flash_attention") return true;
  if (value.is_bool()) return !value.boolean();
  if (value.is_number()) return value.number() + 1;
  if (value.is_string()) return value.string() == "auto" ? "never" : value.string() + "?";
  return 2;
}

// Every argument that the config lacks must be refused with an error that names it, be written if
// it has another value, or have no effect.
void expect_accepted_or_refused(const std::string& name, const ClassArguments& arguments,
                                const Config& by_default) {
  for (const auto& [key, value] : arguments.defaults.entries()) {
    SCOPED_TRACE(key);
    if (by_default.find(key) != nullptr || key == "name") continue;
    Config with_other = arguments.required;
    with_other.set(key, other_value(key, value));
    // Without a rank, the factor has no effect.
    if (key == "lora_alpha" && !is_listed_as_refused(name, "lora_rank")) {
      with_other.set("lora_rank", 2);
    }
    try {
      const Config written = written_config("keras.layers", name, with_other);
      // Keras does not write flash_attention.
      const bool has_effect = !is_key_of_no_effect(name, key) && key != "flash_attention";
      EXPECT_TRUE(!has_effect || written.find(key) != nullptr) << "is accepted but not written";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(key));
      EXPECT_TRUE(is_listed_as_refused(name, key)) << error.what();
    }
  }
}

class KerasArgumentsTest : public testing::TestWithParam<std::string> {};

TEST_P(KerasArgumentsTest, AreAcceptedAndHaveTheSameDefaults) {
  // Base classes, classes whose argument is a function, and an argument of MultiOptimizer.
  const std::set<std::string> others = {"Loss",   "Metric",      "Optimizer", "MeanMetricWrapper",
                                        "Lambda", "OptimizerMap"};
  const std::vector<std::string> known = layer_registry().class_names();
  const std::string& module = GetParam();
  int compared = 0;
  const Config api = read_json_file(kFile);
  for (const auto& [name, record] : api["modules"][module].entries()) {
    SCOPED_TRACE(module + "." + name);
    if (others.contains(name) || is_refused(module, name)) continue;
    if (module == "keras.layers" && std::ranges::find(known, name) == known.end()) continue;
    ClassArguments arguments = arguments_of(name, record);
    // The names of layers are unique in the process.
    if (module == "keras.layers") arguments.required.set("name", "same");
    Config by_default;
    ASSERT_NO_THROW(by_default = written_config(module, name, arguments.required));
    // Every argument may be given, and its default changes nothing.
    Config explicit_config;
    ASSERT_NO_THROW(explicit_config = written_config(module, name, all_arguments(arguments)));
    EXPECT_EQ(to_json(explicit_config), to_json(by_default));
    const Config* const values = record.find("config_values");
    const Config none = Config::dict();
    for (const auto& [key, value] : (values == nullptr ? none : *values).entries()) {
      const Config* found = by_default.find(key);
      if (module == "keras.layers" &&
          (kNotCompared.contains(key) || is_key_of_no_effect(name, key)))
        continue;
      ASSERT_NE(found, nullptr) << "the config has no key '" << key << "'";
      EXPECT_TRUE(same(*found, value))
          << key << " is " << to_json(*found) << ", in Keras " << to_json(value);
    }
    if (module == "keras.layers") expect_accepted_or_refused(name, arguments, by_default);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(RefusedArgumentsTest, AreArgumentsOfTheirClasses) {
  const Config api = read_json_file(kFile);
  for (const RefusedArgument& refused : refused_arguments()) {
    const Config* record = api["modules"]["keras.layers"].find(refused.class_name);
    ASSERT_NE(record, nullptr) << refused.class_name;
    const ClassArguments arguments = arguments_of(refused.class_name, *record);
    EXPECT_NE(arguments.defaults.find(refused.argument), nullptr)
        << refused.class_name << " has no argument " << refused.argument;
    EXPECT_TRUE(is_key_of_no_effect(refused.class_name, refused.argument))
        << refused.class_name << " does not refuse " << refused.argument;
  }
}

INSTANTIATE_TEST_SUITE_P(Modules, KerasArgumentsTest,
                         testing::Values("keras.layers", "keras.losses", "keras.metrics",
                                         "keras.optimizers"),
                         [](const auto& one) { return one.param.substr(6); });

}  // namespace keel::conformance::keras_arguments_test
