// Tests FeatureSpace as the root of a file: savedmodel/keras/internal/keras_archive.cc and
// keras_vocabularies.cc.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/utils/feature_space.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/keras_archives.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::feature_space_files_test {

using testing::HasSubstr;
using Floats = std::vector<float>;
using testing_support::config_in;
using testing_support::floats;
using testing_support::ids;
using testing_support::message_of;
using testing_support::strings;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using utils::FeatureSpace;

// "age" and "height" are normalized: both have weights.
Tensors table() {
  return Tensors::dict({{"age", floats({1, 3, 1, 3})},
                        {"city", strings({"Rome", "Oslo", "Rome", "Bonn"})},
                        {"height", floats({10, 20, 40, 10})},
                        {"visits", ids({7, 7, 8, 7})}});
}

FeatureSpace space() {
  return FeatureSpace({.features = {{"age", "float_normalized"},
                                    {"city", "string_categorical"},
                                    {"height", "float_normalized"},
                                    {"visits", "integer_categorical"}},
                       .crosses = {{{"city", "visits"}, 5, "one_hot"}},
                       .name = "columns"});
}

FeatureSpace adapted() {
  FeatureSpace out = space();
  out->adapt(data::Dataset::from_tensor_slices(table()));
  return out;
}

std::vector<float> encoding(const FeatureSpace& of) { return values_of(of(table())); }

TEST(FeatureSpaceFilesTest, LoadedSpacesAreEqual) {
  const TemporaryFolder folder;
  const FeatureSpace saved = adapted();
  save_feature_space(saved, folder / "a.keras");
  const FeatureSpace loaded = load_feature_space(folder / "a.keras");
  EXPECT_EQ(encoding(loaded), encoding(saved));
  EXPECT_EQ(loaded->name(), "columns");
  save_feature_space(loaded, folder / "b.keras");
  EXPECT_EQ(encoding(load_feature_space(folder / "b.keras")), encoding(saved));
}

// The classes and groups that Keras looks for.
TEST(FeatureSpaceFilesTest, FilesHaveTheFormOfKeras) {
  const TemporaryFolder folder;
  save_feature_space(adapted(), folder / "a.keras");
  const Config root = config_in(folder / "a.keras");
  EXPECT_EQ(root["module"], Config("keras.utils"));
  EXPECT_EQ(root["class_name"], Config("FeatureSpace"));
  const Config& feature = root["config"]["features"]["height"];
  EXPECT_EQ(feature["class_name"], Config("Feature"));
  EXPECT_EQ(feature["module"], Config("keras.src.layers.preprocessing.feature_space"));
  EXPECT_EQ(feature["config"]["preprocessor"]["module"], Config("keras.layers"));
  EXPECT_EQ(root["config"]["crosses"].items()[0]["class_name"], Config("Cross"));
  const ZipFile zip(folder / "a.keras");
  zip.extract("model.weights.h5", folder / "w.h5");
  const Hdf5File weights(folder / "w.h5");
  // The mean of the heights.
  EXPECT_EQ(values_of(weights.read("/preprocessors/normalization_1/vars/0")), Floats{20});
  EXPECT_EQ(weights.string_attribute("/preprocessors/normalization_1/vars", "name"),
            "height_preprocessor");
}

// Keras writes features in the order of the user's dict, and vocabularies next to the config.
TEST(FeatureSpaceFilesTest, FilesOfKerasAreRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.keras";
  const FeatureSpace saved = adapted();
  save_feature_space(saved, path);
  Config root = config_in(path);
  const Config features = root["config"]["features"];
  Config reordered = Config::dict();
  for (const char* name : {"visits", "height", "city", "age"}) {
    Config feature = features[name], own = feature["config"];
    Config preprocessor = own["preprocessor"], values = preprocessor["config"];
    if (values.find("vocabulary") != nullptr) values.set("vocabulary", {});
    preprocessor.set("config", values);
    own.set("preprocessor", preprocessor);
    feature.set("config", own);
    reordered.set(name, feature);
  }
  Config inner = root["config"];
  inner.set("features", reordered);
  root.set("config", inner);
  ZipFile(path).extract("model.weights.h5", folder / "w.h5");
  ZipWriter out(path);
  out.add("metadata.json", R"({"keras_version": "3.12.0"})");
  out.add("config.json", to_json(root));
  out.add_file("model.weights.h5", folder / "w.h5");
  out.add("assets/preprocessors/integer_lookup/vocabulary.txt", "7\n8");
  out.add("assets/preprocessors/string_lookup/vocabulary.txt", "Rome\nOslo\nBonn");
  out.finish();
  EXPECT_EQ(encoding(load_feature_space(path)), encoding(saved));
}

TEST(FeatureSpaceFilesTest, OtherFilesAreRejected) {
  const TemporaryFolder folder;
  EXPECT_THROW(save_feature_space(space(), folder / "a.keras"), RuntimeError);
  EXPECT_THROW(save_feature_space(adapted(), folder / "a.h5"), ValueError);
  save_feature_space(adapted(), folder / "a.keras");
  EXPECT_THROW(save_feature_space(adapted(), folder / "a.keras", false), ValueError);
  EXPECT_THAT(message_of<ValueError>([&] { load_model(folder / "a.keras"); }),
              HasSubstr("load_feature_space()"));
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  model(floats({1, 2}, {1, 2}));
  save_model(model, folder / "m.keras");
  EXPECT_THAT(message_of<ValueError>([&] { load_feature_space(folder / "m.keras"); }),
              HasSubstr("load_model()"));
}

}  // namespace keel::feature_space_files_test
