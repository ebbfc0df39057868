// Tests of all layers that files may name. Tests layers/builtin_layers.cc, catalog_layers.cc and
// compat_layers.cc.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include <keel/layers/registry.h>

#include "tests/support/files.h"

namespace keel::builtin_layers_test {

using testing_support::read_bytes;

// Returns the classes whose tests call expect_layer_contract().
std::set<std::string> classes_with_contract() {
  std::set<std::string> out;
  const std::regex call(R"(expect_layer_contract\(\s*\{\s*\.class_name = "(\w+)\")");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(KEEL_SOURCE_DIR "/tests/layers")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read_bytes(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
      out.insert((*it)[1]);
    }
  }
  return out;
}

TEST(BuiltinLayersTest, EveryClassHasATestOfItsContract) {
  const std::set<std::string> tested = classes_with_contract();
  for (const std::string& name : layer_registry().class_names()) {
    if (layer_registry().traits(name).package.empty()) continue;  // registered by another test
    EXPECT_TRUE(tested.contains(name))
        << name << ": call expect_layer_contract() in the test of the layer";
  }
}

// Adds the paths where a config written here differs from Keras's:
// "Dense/kernel_initializer/config/input_axes".
void add_differences(const Config& keras, const Config& ours, const std::string& path,
                     std::set<std::string>& out) {
  if (keras.is_dict() && ours.is_dict()) {
    for (const auto& [key, value] : keras.entries()) {
      const Config* const found = ours.find(key);
      if (found == nullptr) {
        out.insert(path + "/" + key);
      } else {
        add_differences(value, *found, path + "/" + key, out);
      }
    }
    for (const auto& [key, value] : ours.entries()) {
      if (keras.find(key) == nullptr) out.insert("more: " + path + "/" + key + to_json(value));
    }
    return;
  }
  const bool same_number = keras.is_number() && ours.is_number() && keras.number() == ours.number();
  if (keras != ours && !same_number) out.insert(path + ": " + to_json(keras) + to_json(ours));
}

bool ends_with_one_of(const std::string& text, const std::vector<std::string>& ends) {
  return std::ranges::any_of(ends, [&](const auto& end) { return text.ends_with(end); });
}

// The cases are layers as Keras 3.16 writes them, one of each class.
TEST(BuiltinLayersTest, ConfigsMatchKeras) {
  std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/keras_layer_configs.json");
  const Config all = parse_json({std::istreambuf_iterator<char>(in), {}});
  ASSERT_GT(all.entries().size(), 50);
  for (const auto& [class_name, config] : all.entries()) {
    const auto layer =
        layers::deserialize(Config::dict({{"class_name", class_name}, {"config", config}}));
    std::set<std::string> found;
    add_differences(config, layers::serialize(*layer)["config"], class_name, found);
    // Keys that only recent versions of Keras accept. They always have the value without effect
    // here.
    std::erase_if(found, [](const std::string& path) {
      return ends_with_one_of(
          path, {"/input_axes", "/output_axes", "/quantization_config", "CategoryEncoding/sparse",
                 "/renorm", "/renorm_clipping", "/renorm_momentum", "/synchronized"});
    });
    // Keys that Keras accepts but does not write.
    std::erase_if(found, [](const std::string& path) {
      return ends_with_one_of(
          path, {"more: Dense/activity_regularizernull", "layer/config/activity_regularizernull",
                 "more: SimpleRNN/seednull"});
    });
    EXPECT_EQ(found, std::set<std::string>()) << class_name;
  }
}

}  // namespace keel::builtin_layers_test
