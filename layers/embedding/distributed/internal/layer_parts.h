// The tables and features of a DistributedEmbedding. Private to that layer.
#pragma once

#include <memory>
#include <string>

#include <keel/layers/embedding/distributed/distributed_embedding.h>

namespace keel {

struct DistributedEmbeddingLayer::Table {
  keras_rs::Table original;                             // the object in the user's FeatureConfigs
  std::shared_ptr<const keras_rs::TableConfig> config;  // a copy
  bool sparsecore = false;
  std::shared_ptr<EmbedReduceLayer> layer = nullptr;  // on the default device
  int position = 0;                                   // position among the tables on sparse cores
};

struct DistributedEmbeddingLayer::Feature {
  std::string path;
  keras_rs::FeatureConfig config;
  int table = 0;

  int64_t max_row_length() const {
    return config.input_shape.rank() == 2 ? config.input_shape[1] : kUnknown;
  }
};

}  // namespace keel
