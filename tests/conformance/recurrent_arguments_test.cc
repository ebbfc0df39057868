// Compares the arguments of recurrent layers, cells and wrappers, and their defaults, with those of
// Keras.
// Tests layers/recurrent/.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/registry.h>

#include "tests/conformance/replay_program.h"

namespace keel::conformance::recurrent_arguments_test {

constexpr char kFile[] = KEEL_SOURCE_DIR "/tests/cases/keras_api.json";

Config object(const std::string& class_name, const Config& config) {
  return Config::dict({{"class_name", class_name}, {"config", config}});
}

// Returns a layer with two units for an argument that is a layer, a cell or a list of cells, whose
// class is `wanted`.
Config inner_layer(const std::string& argument, const Config& wanted) {
  const Config config = Config::dict({{"units", 2}});
  if (argument == "cells") return Config::list({object("LSTMCell", config)});
  return object(wanted.string(), config);
}

// Returns the arguments that have no default.
Config required_arguments(const Config& record) {
  Config out = Config::dict();
  size_t position = 0;
  for (const Config& argument : record["arguments"].items()) {
    const std::string& name = argument["name"].string();
    if (argument.find("required") == nullptr) continue;
    const Config& value = record["config_of"].items().at(position++);
    out.set(name, value.is_string() ? inner_layer(name, record["config_values"][name]) : value);
  }
  return out;
}

// Objects are written as the names of their classes in Keras's record.
bool same(const Config& written, const Config& expected) {
  if (written.is_dict() && expected.is_string()) {
    const Config* const class_name = written.find("class_name");
    return class_name != nullptr && *class_name == expected;
  }
  if (written.is_number() && expected.is_number()) return written.number() == expected.number();
  return written == expected;
}

class RecurrentArgumentsTest : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentArgumentsTest, AreAcceptedAndHaveTheSameDefaults) {
  const std::string name = GetParam();
  const Config api = read_json_file(kFile);
  const Config& record = api["modules"]["keras.layers"][name];
  const Config required = required_arguments(record);
  const Config written = layers::serialize(*layers::deserialize(object(name, required)))["config"];
  for (const auto& [key, value] : record["config_values"].entries()) {
    // Its value there is the name of Keras's class of policies; lists of cells hold whole objects.
    if (key == "dtype" || key == "cells" || key == "quantization_config") continue;
    const Config* found = written.find(key);
    ASSERT_NE(found, nullptr) << "the config has no key '" << key << "'";
    EXPECT_TRUE(same(*found, value))
        << key << " is " << to_json(*found) << ", in Keras " << to_json(value);
  }
  // Each argument may be given with its default, which changes nothing.
  Config all = required;
  for (const Config& argument : record["arguments"].items()) {
    const Config* const value = argument.find("default");
    if (value != nullptr && !value->is_null()) all.set(argument["name"].string(), *value);
  }
  Config given;
  ASSERT_NO_THROW(given = layers::serialize(*layers::deserialize(object(name, all)))["config"]);
  for (const auto& [key, value] : given.entries()) {
    if (key == "name" || key == "cells" || value.is_dict()) continue;  // names are numbered
    EXPECT_EQ(to_json(value), to_json(written[key])) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, RecurrentArgumentsTest,
                         testing::Values("Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D",
                                         "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN",
                                         "ReversibleEmbedding", "SimpleRNN", "SimpleRNNCell",
                                         "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D",
                                         "SpectralNormalization", "StackedRNNCells",
                                         "TimeDistributed", "Wrapper"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace keel::conformance::recurrent_arguments_test
