// Large embedding tables: the TPUEmbedding and DistributedEmbedding layers, the mid-level API and
// the estimator API.
#pragma once

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/mid_level/tpu_embedding_v2.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>
#include <keel/layers/embedding/position_weights.h>
#include <keel/layers/embedding/tables/lookup_statistics.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/embedding/v1/embedding_features.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/layers/feature_columns/dense_features.h>
#include <keel/layers/feature_columns/feature_column.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>
