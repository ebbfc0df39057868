// Click-through rate models on CtrFeatures: Wide & Deep (Cheng et al. 2016), DLRM (Naumov et al.
// 2019) and DCN v2 (Wang et al. 2021).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/ctr/ctr_features.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>

namespace keel {

// Options of make_ctr_model.
struct CtrModelOptions {
  std::string model = "dlrm";  // "wide_deep", "dlrm" or "dcn"
  int64_t embedding_dim = 8;
  std::vector<int64_t> hidden = {128, 64};  // units of the hidden layers of the top network
  double dropout = 0.0;                     // dropout rate after each hidden layer
  double embedding_dropout = 0.0;           // dropout rate of the elements of looked-up rows
  EmbeddingOptimizer embedding_optimizer = "adagrad";
  std::string storage_dtype = "float32";  // dtype of the stored tables; see TableConfig
};

// A model and its embedding layer.
struct CtrModel {
  Functional model;                // the output of CtrFeatures -> probability [batch, 1]
  layers::TPUEmbedding embedding;  // holds all tables
};

// Creates the model under the current strategy. Throws ValueError for an unknown model.
CtrModel make_ctr_model(const CtrFeatures& features, const CtrModelOptions& options = {});

// Combines preprocessing and model for serving: maps raw columns to the probability.
Functional make_serving_model(const CtrFeatures& features, const Functional& model);

}  // namespace keel
