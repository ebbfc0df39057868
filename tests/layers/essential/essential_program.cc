// A program that links keel_savedmodel without the extension libraries, like the programs of the
// demo. Tests layers/functional/internal/graph_operators.cc and layers/catalog_layers.cc.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <keel/framework/config/config.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"

namespace keel::essential_test {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::message_of;

TEST(EssentialTest, OnlyLayersOfTheLinkedLibrariesAreRegistered) {
  const std::vector<std::string> names = layer_registry().class_names();
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  EXPECT_TRUE(has("Dense"));
  EXPECT_TRUE(has("TPUEmbedding"));
  EXPECT_FALSE(has("Conv2D"));
  EXPECT_FALSE(has("DenseFeatures"));
}

TEST(EssentialTest, AnUnknownLayerNamesTheLibraryWithAllLayers) {
  const Config config =
      Config::dict({{"class_name", "LSTM"}, {"config", Config::dict({{"units", 2}})}});
  EXPECT_THAT(message_of<ValueError>([&] { layers::deserialize(config); }),
              AllOf(HasSubstr("'LSTM'"), HasSubstr("link keel::keel")));
}

TEST(EssentialTest, AnOperatorOfAGraphNamesItsLibrary) {
  const Config config = parse_json(R"({"name": "m", "trainable": true, "layers": [
      {"name": "a", "class_name": "InputLayer",
       "config": {"batch_shape": [null, 2], "dtype": "float32"}, "inbound_nodes": []},
      {"module": "keras.src.ops.numpy", "name": "op", "class_name": "Mean", "config": {},
       "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config":
           {"shape": [null, 2], "dtype": "float32", "keras_history": ["a", 0, 0]}}], "kwargs": {}}]}],
      "input_layers": [["a", 0, 0]], "output_layers": [["op", 0, 0]]})");
  EXPECT_THAT(message_of<NotImplementedError>([&] { FunctionalModel::from_config(config); }),
              AllOf(HasSubstr("operator Mean"), HasSubstr("keel_catalog")));
}

}  // namespace keel::essential_test
