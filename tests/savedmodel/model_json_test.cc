#include <keel/savedmodel/model_json.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::model_json_test {

using testing::HasSubstr;
using testing_support::TemporaryFolder;
using testing_support::values_of;

Functional model() {
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  const Tensor hidden = layers::Dense({.units = 2, .activation = "relu", .name = "hidden"})(x);
  return Functional({.inputs = x,
                     .outputs = layers::Dense({.units = 1, .name = "head"})(hidden),
                     .name = "small"});
}

TEST(ModelJsonTest, ModelsAreMadeAgainWithoutTheirWeights) {
  const Functional original = model();
  original->compile({.optimizer = "adam", .loss = "mse"});
  const ModelHandle copy = model_from_json(to_json(original));
  EXPECT_EQ(copy->name(), "small");
  EXPECT_TRUE(copy->compiled());
  EXPECT_EQ(to_json(copy), to_json(original));
  EXPECT_FALSE(model_from_json(to_json(original), {.compile = false})->compiled());
  const auto from = original->weights(), to = copy->weights();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].read());
  const Tensors x(testing_support::counting(2, 3));
  EXPECT_EQ(values_of(copy(x)), values_of(original(x)));
}

TEST(ModelJsonTest, TheTextIsTheConfigOfAnArchive) {
  const TemporaryFolder folder;
  const Functional original = model();
  original->compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  save_model(original, folder / "a.keras");
  EXPECT_EQ(to_json(original), ZipFile(folder / "a.keras").read("config.json", 1 << 20));
}

// A config that Keras wrote.
TEST(ModelJsonTest, ConfigsOfKerasAreRead) {
  const std::string path = KEEL_SOURCE_DIR "/tests/cases/keras_models/ncf.keras";
  const ModelHandle read = model_from_json(ZipFile(path).read("config.json", 1 << 20));
  const ModelHandle loaded = load_model(path);
  EXPECT_EQ(read->layers().size(), loaded->layers().size());
  EXPECT_EQ(read->weights().size(), loaded->weights().size());
  EXPECT_EQ(read->compiled(), loaded->compiled());
  load_weights(read, path);
  EXPECT_EQ(to_json(read), to_json(loaded));
}

// The form of Keras 2.
TEST(ModelJsonTest, ConfigsOfKeras2AreRead) {
  const ModelHandle read = model_from_json(R"({"class_name": "Sequential", "config": {
      "name": "old", "layers": [{"class_name": "Dense", "config": {"name": "d", "trainable": true,
      "batch_input_shape": [null, 2], "dtype": "float32", "units": 3, "activation": "linear",
      "use_bias": true}}]}, "keras_version": "2.3.1", "backend": "tensorflow"})");
  EXPECT_EQ(read->name(), "old");
  EXPECT_EQ(read->weights().size(), 2U);
}

struct CopyOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

class CopyLayer final : public OptionsLayer<CopyOptions> {
 public:
  static constexpr char kClassName[] = "ModelJsonTest>Copy";
  explicit CopyLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}

 private:
  Tensor call(const Tensor& x, const CallContext&) override { return x; }
};

TEST(ModelJsonTest, CustomObjectsApplyToOneCall) {
  const Sequential original({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}),
                                        LayerHandle<CopyLayer>({.name = "copy"})}});
  const std::string json = to_json(ModelHandle(original));
  EXPECT_THROW(model_from_json(json), ValueError);
  const std::vector<saving::CustomObject> known = {saving::CustomObject::of<CopyLayer>()};
  EXPECT_EQ(model_from_json(json, {.custom_objects = known})->layers().size(), 1U);
  EXPECT_THROW(model_from_json(json), ValueError);
  const TemporaryFolder folder;
  save_model(original, folder / "a.keras");
  EXPECT_THROW(load_model(folder / "a.keras"), ValueError);
  EXPECT_NO_THROW(load_model(folder / "a.keras", {.custom_objects = known}));
}

TEST(ModelJsonTest, RejectsOtherTexts) {
  EXPECT_THROW(model_from_json("{"), ValueError);
  EXPECT_THROW(model_from_json("[]"), ValueError);
  EXPECT_THROW(model_from_json(R"({"class_name": "Sequential"})"), ValueError);
  EXPECT_THROW(model_from_json(R"({"class_name": "Dense", "config": {"units": 1}})"), ValueError);
}

}  // namespace keel::model_json_test
