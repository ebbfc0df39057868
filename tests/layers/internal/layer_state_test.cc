#include <keel/layers/internal/layer_state.h>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>

namespace keel::layer_state_test {

layers::Dense dense(const std::string& name = {}) {
  return layers::Dense({.units = 1, .name = name});
}

std::vector<std::string> paths(const Layer& root) {
  std::vector<std::string> out;
  for_each_state_entry(root,
                       [&](const std::string& path, const StateEntry&) { out.push_back(path); });
  return out;
}

TEST(LayerStateTest, PathsFollowFromTheStructureAlone) {
  const Sequential inner({.layers = {dense(), dense()}});
  const Sequential model({.layers = {dense("first"), inner, dense("last")}});
  model(Tensor::zeros({1, 2}));
  EXPECT_EQ(paths(*model), (std::vector<std::string>{
                               "dense/kernel", "dense/bias", "sequential/dense/kernel",
                               "sequential/dense/bias", "sequential/dense_1/kernel",
                               "sequential/dense_1/bias", "dense_1/kernel", "dense_1/bias"}));
}

TEST(LayerStateTest, ASharedLayerCountsOnce) {
  const layers::Dense shared = dense();
  const Sequential inner({.layers = {shared}});
  const Sequential model({.layers = {shared, inner, dense()}});
  model(Tensor::zeros({1, 1}));
  EXPECT_EQ(paths(*model), (std::vector<std::string>{"dense/kernel", "dense/bias", "dense_1/kernel",
                                                     "dense_1/bias"}));
}

TEST(LayerStateTest, EntriesReadAndWriteTheVariables) {
  const layers::Dense layer = dense();
  layer(Tensor::zeros({1, 1}));
  for_each_state_entry(*layer, [](const std::string&, const StateEntry& entry) {
    entry.set(Tensor::full<float>(entry.spec.shape, 7));
    EXPECT_EQ(entry.get().item<float>(), 7);
  });
  EXPECT_EQ(layer->kernel().read().item<float>(), 7);
}

}  // namespace keel::layer_state_test
