// Compares the arguments of losses, metrics and optimizers, and their defaults, with those of
// Keras.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/optimizers/optimizer.h>

#include "tests/conformance/keras_api.h"
#include "tests/conformance/replay_program.h"

namespace keel::conformance::keras_arguments_test {

constexpr char kFile[] = KEEL_SOURCE_DIR "/tests/cases/keras_api.json";

// Creates an object of a class from a config, and returns the config that it writes.
Config written_config(const std::string& module, const std::string& name, const Config& config) {
  const Config named = Config::dict({{"class_name", name}, {"config", config}});
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

bool same(const Config& a, const Config& b) {
  if (a.is_number() && b.is_number()) {
    return std::abs(a.number() - b.number()) <= 1e-6 * std::abs(b.number());
  }
  return a == b;
}

struct ClassArguments {
  Config required = Config::dict();  // values of the arguments without a default
  Config defaults = Config::dict();
};

ClassArguments arguments_of(const Config& record) {
  ClassArguments out;
  size_t position = 0;
  for (const Config& argument : record["arguments"].items()) {
    const std::string& name = argument["name"].string();
    if (argument.find("required") != nullptr) {
      out.required.set(name, record["config_of"].items().at(position));
    } else if (const Config* value = argument.find("default")) {
      out.defaults.set(name, *value);
    }
    ++position;
  }
  return out;
}

// Returns a config with all arguments. Keras's classes replace a name of None by one of their own,
// and a dtype of None by that of the backend.
Config all_arguments(const ClassArguments& arguments) {
  Config out = arguments.required;
  for (const auto& [key, value] : arguments.defaults.entries()) {
    if (!value.is_null() || (key != "name" && key != "dtype" && key != "exclude_layers")) {
      out.set(key, value);
    }
  }
  return out;
}

class KerasArgumentsTest : public testing::TestWithParam<std::string> {};

TEST_P(KerasArgumentsTest, AreAcceptedAndHaveTheSameDefaults) {
  // Base classes, and a class whose argument is a function.
  const std::set<std::string> others = {"Loss", "Metric", "Optimizer", "MeanMetricWrapper"};
  const std::string& module = GetParam();
  int compared = 0;
  const Config api = read_json_file(kFile);
  for (const auto& [name, record] : api["modules"][module].entries()) {
    SCOPED_TRACE(module + "." + name);
    if (others.contains(name) || is_refused(module, name)) continue;
    const ClassArguments arguments = arguments_of(record);
    Config by_default;
    ASSERT_NO_THROW(by_default = written_config(module, name, arguments.required));
    // Every argument may be given, and its default changes nothing.
    Config explicit_config;
    ASSERT_NO_THROW(explicit_config = written_config(module, name, all_arguments(arguments)));
    EXPECT_EQ(to_json(explicit_config), to_json(by_default));
    for (const auto& [key, value] : record["config_values"].entries()) {
      const Config* found = by_default.find(key);
      ASSERT_NE(found, nullptr) << "the config has no key '" << key << "'";
      EXPECT_TRUE(same(*found, value))
          << key << " is " << to_json(*found) << ", in Keras " << to_json(value);
    }
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(Modules, KerasArgumentsTest,
                         testing::Values("keras.losses", "keras.metrics", "keras.optimizers"),
                         [](const auto& one) { return one.param.substr(6); });

}  // namespace keel::conformance::keras_arguments_test
