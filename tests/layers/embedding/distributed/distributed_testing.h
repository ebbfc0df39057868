// Helpers shared by the tests of DistributedEmbedding.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/embedding/distributed/distributed_embedding.h>

namespace keel::distributed_testing {

inline keras_rs::Table small_table(const std::string& name, const std::string& combiner = "sum",
                                   const std::string& placement = "auto") {
  return keras_rs::make_table({.name = name,
                               .vocabulary_size = 8,
                               .embedding_dim = 2,
                               .optimizer = "sgd",
                               .combiner = combiner,
                               .placement = placement});
}

inline keras_rs::FeatureConfig feature(const keras_rs::Table& table, const Shape& input_shape) {
  return {.name = "feature",
          .table = table,
          .input_shape = input_shape,
          .output_shape = {input_shape[0], table->embedding_dim}};
}

// Row i is [i, 10 i].
inline Tensor counting() {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(10 * i));
  }
  return Tensor::from(values, {8, 2});
}

}  // namespace keel::distributed_testing
