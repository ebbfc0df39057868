// Tests of options of tables with dynamic ids: prefetching, 16-bit rows and quantization.
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

namespace keel::dynamic_options_test {

using dynamic_job::Job;
using dynamic_job::table_with;
using dynamic_job::twin_batches;
using testing::ElementsAre;
using testing_support::IdRows;
using testing_support::ragged;

TEST(DynamicTableTest, D071D073PrefetchingChangesNoBit) {
  const int before = num_workers();
  set_num_workers(2);
  const DynamicVocabulary dynamic = {.capacity = 20,
                                     .admission = Admission::count(2),
                                     .eviction = Eviction::lru(),
                                     .not_admitted = NotAdmitted::default_row("ones")};
  for (const bool pipelined : {false, true}) {
    const auto run = [&](bool prefetches) {
      TPUEmbeddingOptions options;
      options.pipeline_execution_with_tensor_core = pipelined;
      options.pipeline_lookups = true;
      Job job({.table = table_with(dynamic, "adagrad")}, 1, options);
      std::vector<std::vector<float>> out;
      for (uint64_t step = 0; step < 12; ++step) {
        const TensorLike batch = twin_batches(step, 1)[0];
        if (prefetches && step > 0) {
          job.strategy().run([&] { job.layer()->prefetch(Tensors(batch)); });
        }
        out.push_back(job.train(batch));
        // D-072: a change after a prefetch is seen by the lookup.
        if (step == 6) job.dynamic().prune({.max_rows = 3});
      }
      out.push_back(job.rows());
      return out;
    };
    EXPECT_EQ(run(true), run(false)) << pipelined;
  }
  set_num_workers(before);
}

TEST(DynamicTableTest, D074SixteenBitRowsAreReproducibleAndUnbiased) {
  for (const char* const dtype : {"bfloat16", "float16"}) {
    const auto table = [&] {
      return make_table({.dim = 2,
                         .initializer = "ones",
                         .optimizer = tpu::SGD{.learning_rate = 0.001},
                         .combiner = "sum",
                         .name = "items",
                         .storage_dtype = dtype,
                         .dynamic = DynamicVocabulary{}});
    };
    Job whole(table(), 2);
    for (uint64_t step = 0; step < 10; ++step) whole.train(twin_batches(step, 2));
    Job again(table(), 2);
    for (uint64_t step = 0; step < 10; ++step) again.train(twin_batches(step, 2));
    EXPECT_EQ(whole.rows(), again.rows());
    // Many rows that take the same small steps: the mean is that of exact arithmetic.
    Job mean(table());
    std::vector<int64_t> keys(4000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
    for (int step = 0; step < 5; ++step) mean.train(ragged(IdRows{keys}));
    double sum = 0;
    const std::vector<float> rows = mean.rows();
    for (size_t i = 0; i < rows.size(); i += 2) sum += rows[i];
    EXPECT_NEAR(sum / 4000, 1 - 5 * 0.001 / 8, 1e-4) << dtype;
  }
}

TEST(DynamicTableTest, D075QuantizationRoundsFreshFallbackAndKnownRowsAlike) {
  const auto table = [](const DynamicVocabulary& dynamic) {
    return make_table({.dim = 1,
                       .initializer = initializers::constant(0.3),
                       .optimizer = tpu::SGD{.learning_rate = 0},
                       .combiner = "sum",
                       .name = "items",
                       .quantization_config = QuantizationConfig(3, 0, 1),
                       .dynamic = dynamic});
  };
  Job job(table({}));
  EXPECT_THAT(job.train(ragged(IdRows{{1}})), ElementsAre(0.5F));  // fresh
  EXPECT_THAT(job.train(ragged(IdRows{{1}})), ElementsAre(0.5F));  // known
  EXPECT_THAT(job.rows(), ElementsAre(0.3F));
  Job fallback(table({.admission = Admission::count(9),
                      .not_admitted = NotAdmitted::default_row(initializers::constant(0.8))}));
  EXPECT_THAT(fallback.train(ragged(IdRows{{1, 2}})), ElementsAre(2));
}

}  // namespace keel::dynamic_options_test
