// Three click models over the same inputs: Wide & Deep (Cheng et al. 2016), DLRM (Naumov et al.
// 2019) and DCN v2 (Wang et al. 2021).
#pragma once

#include <string>
#include <vector>

#include "examples/ctr/ctr_data.h"
#include "layers/embedding/tpu_embedding.h"
#include "layers/functional.h"

namespace keel::examples {

struct CtrModelOptions {
  std::string model = "dlrm";  // "wide_deep", "dlrm" or "dcn"
  int64_t embedding_dim = 8;
  std::vector<int64_t> hidden = {128, 64};
  double dropout = 0.0;
  TableOptimizer table_optimizer = "adagrad";
  std::string storage_dtype = "float32";  // of the tables; see TableConfig
};

struct CtrModel {
  Functional model;                // the output of CtrPreprocessing -> probability [batch, 1]
  layers::TPUEmbedding embedding;  // the layer with all tables
};

// ValueError for an unknown model. Made under the strategy of now.
CtrModel make_ctr_model(const CtrPreprocessing& preprocessing, const CtrModelOptions& options);

// Raw columns -> probability: preprocessing and model in one, for serving.
Functional make_serving_model(const CtrPreprocessing& preprocessing, const Functional& model);

}  // namespace keel::examples
