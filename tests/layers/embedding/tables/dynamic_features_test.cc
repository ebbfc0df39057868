// Tests of the features of tables with dynamic ids: configs, dtypes, id policies and layouts.
#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/tables/dynamic_job.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_features_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using dynamic_job::Job;
using dynamic_job::on_both;
using dynamic_job::table_with;
using layers::TPUEmbedding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::strings;

TEST(DynamicTableTest, D002VocabularySizeAndDynamicExcludeEachOther) {
  EXPECT_THAT(message_of<ValueError>([] {
                make_table({.vocabulary_size = 3, .dim = 2, .dynamic = DynamicVocabulary{}});
              }),
              HasSubstr("exclude each other"));
  EXPECT_THROW(make_table({.dim = 2}), ValueError);
}

TEST(DynamicTableTest, D003TheConfigOfALayerHoldsTheOptions) {
  const DynamicVocabulary dynamic = {.capacity = 3,
                                     .headroom = 0,
                                     .admission = Admission::count(2, {.window = 5}),
                                     .eviction = Eviction::lfu({.ttl = 9}),
                                     .not_admitted = NotAdmitted::hashed(2, "ones")};
  Job job(table_with(dynamic, "adagrad"));
  const Config config = job.layer()->get_config();
  const auto copy = TPUEmbeddingLayer::from_config(config);
  EXPECT_EQ(to_json(copy->get_config()), to_json(config));
  const Table table = flatten(copy->feature_config())[0].table;
  ASSERT_TRUE(table->dynamic);
  EXPECT_EQ(to_json(encode(*table->dynamic)), to_json(encode(dynamic)));
  Job other(table_with(*table->dynamic, table->optimizer));
  for (int step = 0; step < 3; ++step) {
    const TensorLike batch = ragged(IdRows{{1, 2, 2}, {3 + step, 1}});
    EXPECT_EQ(job.train(batch), other.train(batch));
  }
  EXPECT_EQ(job.rows(), other.rows());
}

TEST(DynamicTableTest, D004OtherKindsOfTablesAreNotSupported) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const FeatureConfig feature = {.table = table_with({})};
  EXPECT_THAT(
      message_of<NotImplementedError>([&] { tpu::TPUEmbeddingV0 embedding(feature, "sgd"); }),
      HasSubstr("'items'"));
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                TPUEmbedding({.feature_config = feature,
                              .embedding_feature = EmbeddingFeature::kUnsupported});
              }),
              HasSubstr("'items'"));
}

TEST(DynamicTableTest, D005DtypesOfFeatures) {
  const Nest<FeatureConfig>::Dict of_ints = {{"watched", FeatureConfig{.table = table_with({})}}};
  const Table words = make_table({.dim = 2,
                                  .optimizer = "sgd",
                                  .name = "words",
                                  .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  const Nest<FeatureConfig>::Dict of_strings = {{"watched", FeatureConfig{.table = words}}};
  const auto look_up = [](const Nest<FeatureConfig>::Dict& features, const Tensor& values) {
    const TPUEmbedding layer({.feature_config = Nest<FeatureConfig>(features)});
    Tensors::Dict batch = {{"watched", values}};
    layer(Tensors(batch));
  };
  for (const bool engine : {false, true}) {
    std::unique_ptr<Strategy> strategy = std::make_unique<CPUStrategy>();
    if (engine) {
      strategy = std::make_unique<TPUStrategy>(
          distribute::TPUStrategyOptions{.num_hosts = 1, .num_cores = 1});
    }
    const auto scope = strategy->scope();
    const auto message = [&](const Nest<FeatureConfig>::Dict& features, const Tensor& values) {
      return message_of<TypeError>([&] { strategy->run([&] { look_up(features, values); }); });
    };
    EXPECT_THAT(message(of_ints, testing_support::floats({1})), HasSubstr("'watched'"));
    EXPECT_THAT(message(of_ints, strings({"a"})), HasSubstr("'watched'"));
    if (!engine) {
      EXPECT_THAT(message(of_strings, ids({1})), HasSubstr("'watched'"));
      look_up(of_ints, ids({1}).cast(DType::kInt32));
    }
  }
}

TEST(DynamicTableTest, D006IdPolicyOfNegativeIds) {
  const IdRows batch = {{-1, 5}, {5}};
  on_both({.table = table_with({})}, [&](Job& job) {
    EXPECT_THAT(job.train(ragged(batch)), ElementsAre(4, 4, 5, 5));
    EXPECT_THAT(job.keys(), ElementsAre(-1, 5));
  });
  on_both({.table = table_with({}), .id_policy = IdPolicy::ignore()}, [&](Job& job) {
    EXPECT_THAT(job.train(ragged(batch)), ElementsAre(5, 5, 5, 5));
    EXPECT_THAT(job.keys(), ElementsAre(5));
    EXPECT_EQ(job.layer()->id_counts()[0].second.dropped, 1);
    // Sparse ids of a table with a vocabulary are pruned on the host; these are not.
    EXPECT_THAT(job.evaluate(sparse(batch, 2)),
                ElementsAre(job.rows()[0], job.rows()[1], job.rows()[0], job.rows()[1]));
  });
  on_both({.table = table_with({}), .id_policy = IdPolicy::error()}, [&](Job& job) {
    EXPECT_THAT(message_of<ValueError>([&] { job.train(ragged(batch)); }), HasSubstr("-1"));
  });
  EXPECT_THROW(Job({.table = table_with({}), .id_policy = IdPolicy::use_row(0)}), ValueError);
}

TEST(DynamicTableTest, D006IdPolicyOfEmptyStrings) {
  const auto words = [] {
    return make_table({.dim = 1,
                       .initializer = "ones",
                       .optimizer = "sgd",
                       .combiner = "sum",
                       .name = "words",
                       .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  };
  const TensorLike batch = RaggedTensor::from_rows<std::string>({{"", "a"}, {"a"}});
  on_both({.table = words()}, [&](Job& job) {
    EXPECT_THAT(job.train(batch), ElementsAre(2, 1));
    EXPECT_THAT(job.dynamic().keys().to_vector<std::string>(), ElementsAre("", "a"));
  });
  on_both({.table = words(), .id_policy = IdPolicy::ignore()}, [&](Job& job) {
    EXPECT_THAT(job.train(batch), ElementsAre(1, 1));
    EXPECT_THAT(job.dynamic().keys().to_vector<std::string>(), ElementsAre("a"));
  });
  on_both({.table = words(), .id_policy = IdPolicy::error()},
          [&](Job& job) { EXPECT_THROW(job.train(batch), ValueError); });
}

TEST(DynamicTableTest, D016InputLayoutsGiveEqualBits) {
  const std::vector<TensorLike> layouts = {
      ids({4, -7, 4}, {3, 1}), sparse(IdRows{{4}, {-7}, {4}}, 1), ragged(IdRows{{4}, {-7}, {4}})};
  std::vector<std::vector<float>> activations, rows;
  for (const TensorLike& batch : layouts) {
    Job job(table_with({}, "adagrad"));
    job.train(batch);
    activations.push_back(job.train(batch));
    rows.push_back(job.rows());
  }
  for (size_t i = 1; i < layouts.size(); ++i) {
    EXPECT_EQ(activations[i], activations[0]);
    EXPECT_EQ(rows[i], rows[0]);
  }
}

}  // namespace keel::dynamic_features_test
