// Checks that hold for every random augmentation of images.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/layers/registry.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::testing_support {

// Returns images [images, size, size, 3] with pixels in [0, 255].
inline Tensor random_images(int64_t images, int64_t size, uint64_t seed = 1) {
  Tensor out = Tensor::uninitialized({images, size, size, 3}, DType::kFloat32);
  RandomStream{.seed = seed}.uniform(out.mutable_data<float>(), 0, 0, 255);
  return out;
}

// Returns a new layer of a class with these options in JSON.
inline LayerHandle<Layer> layer_of(const std::string& class_name, const std::string& config) {
  return layers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", parse_json(config)}}));
}

// Expects of a random augmentation that, for images [8, 6, 6, 3],
// - outside of training it returns the images;
// - in training it changes them, differently in each call;
// - the seed decides about the result, which has the same bits for any number of threads;
// - the result of one image does not depend on the images behind it if `by_image` is true;
// - images with channels first have the same result.
// `config` must not have a seed or a data_format.
inline void expect_augmentation(const std::string& class_name, const std::string& config,
                                bool by_image = true) {
  SCOPED_TRACE(class_name + " " + config);
  const auto with = [&](const std::string& more) {
    return layer_of(class_name, config.substr(0, config.size() - 1) +
                                    (config.size() > 2 ? ", " : "") + more + "}");
  };
  const Tensor x = random_images(8, 6);
  const auto a = with(R"("seed": 3)");
  expect_same_bits(a(x), x);
  const Tensor first = a(x, {.training = true}), second = a(x, {.training = true});
  EXPECT_NE(first.to_vector<float>(), x.to_vector<float>());
  EXPECT_NE(first.to_vector<float>(), second.to_vector<float>());

  const int workers = num_workers();
  set_num_workers(3);
  const auto b = with(R"("seed": 3)");
  expect_same_bits(b(x, {.training = true}), first);
  expect_same_bits(b(x, {.training = true}), second);
  set_num_workers(workers);
  const auto other = with(R"("seed": 4)");
  EXPECT_NE(other(x, {.training = true}).to_vector<float>(), first.to_vector<float>());

  if (by_image) {
    const auto c = with(R"("seed": 3)");
    expect_same_bits(c(ops::slice(x, 0, 0, 2), {.training = true}), ops::slice(first, 0, 0, 2));
  }
  const auto d = with(R"("seed": 3, "data_format": "channels_first")");
  const Tensor y = d(ops::transpose(x, {0, 3, 1, 2}), {.training = true});
  expect_same_bits(ops::transpose(y, {0, 2, 3, 1}), first);
}

}  // namespace keel::testing_support
