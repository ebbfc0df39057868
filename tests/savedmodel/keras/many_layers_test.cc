// Models of thousands of layers in the files of Keras.
#include <ctime>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::many_layers_test {

using testing_support::floats;
using testing_support::TemporaryFolder;
using testing_support::values_of;

layers::Dense scaling(int i) {
  return layers::Dense({.units = 1,
                        .use_bias = false,
                        .kernel_initializer = initializers::constant(i % 2 == 0 ? 2.0 : 0.5),
                        .name = str("dense_with_a_long_name_", i)});
}

// A chain of layers in which every hundredth adds the input again.
Functional graph(int count) {
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  Tensor y = x;
  for (int i = 0; i < count; ++i) {
    y = scaling(i)(y);
    if (i % 100 == 99) y = layers::Add({.name = str("add_", i)})(Tensors::list({x, y})).tensor();
  }
  return Functional({.inputs = x, .outputs = y, .name = "graph"});
}

Sequential chain(int count) {
  SequentialOptions options = {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 1}})}};
  for (int i = 0; i < count; ++i) options.layers.push_back(scaling(i));
  return Sequential(options);
}

void expect_same(const ModelHandle& model, const std::string& path) {
  const Tensor x = floats({3, -1}, {2, 1});
  save_model(model, path);
  EXPECT_EQ(values_of(load_model(path)(x)), values_of(model(x))) << path;
}

TEST(ManyLayersTest, ModelsOf3000LayersAreWrittenAndRead) {
  const TemporaryFolder folder;
  const Functional functional = graph(3000);
  EXPECT_EQ(values_of(functional(floats({3}, {1, 1}))), std::vector<float>{93});
  for (const char* name : {"graph.h5", "graph.keras"}) expect_same(functional, folder / name);
  const Hdf5File file(folder / "graph.h5");
  EXPECT_FALSE(file.has_attribute("/model_weights", "layer_names"));
  EXPECT_TRUE(file.has_attribute("/model_weights", "layer_names1"));
  EXPECT_EQ(file.string_list("/model_weights", "layer_names").size(), 3031U);
  for (const char* name : {"chain.h5", "chain.keras"}) expect_same(chain(3000), folder / name);

  save_weights(*functional, folder / "graph.weights.h5");
  const Functional other = graph(3000);
  for (const Variable& weight : other->weights()) weight.assign(floats({0}, {1, 1}));
  load_weights(*other, folder / "graph.weights.h5");
  EXPECT_EQ(values_of(other(floats({3}, {1, 1}))), std::vector<float>{93});
  for (const Variable& weight : other->weights()) weight.assign(floats({0}, {1, 1}));
  load_weights(*other, folder / "graph.h5", {.by_name = true});
  EXPECT_EQ(values_of(other(floats({3}, {1, 1}))), std::vector<float>{93});
}

// Returns the processor time, in seconds, for a trip of a model through a file.
double seconds_of(const Functional& model, const std::string& path) {
  const std::clock_t start = std::clock();
  save_model(model, path);
  load_model(path);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Four times the layers take 16 times as long if the time is quadratic.
TEST(ManyLayersTest, TheTimeGrowsWithTheNumberOfLayersOnly) {
  const TemporaryFolder folder;
  const Functional few = graph(750), many = graph(3000);
  for (const char* name : {"a.h5", "a.keras"}) {
    const std::string path = folder / name;
    seconds_of(few, path);
    const double small = std::min(seconds_of(few, path), seconds_of(few, path));
    const double large = std::min(seconds_of(many, path), seconds_of(many, path));
    EXPECT_LT(large, 8 * small) << name;
  }
}

}  // namespace keel::many_layers_test
