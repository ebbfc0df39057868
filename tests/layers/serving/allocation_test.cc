// A plan allocates nothing once its workspace exists; this program's operator new counts
// allocations.
#if !defined(KEEL_ADDRESS_SANITIZER)  // the sanitizer replaces operator new itself
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/layers/serving/models.h"

namespace {
thread_local size_t allocations = 0;

void* counted(size_t bytes) {
  ++allocations;
  void* const block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }

namespace keel {
namespace {

TEST(ServingPlanAllocation, NothingIsAllocatedAfterTheFirstCall) {
  const SerialSection one_thread;
  const ServingPlan plan{ModelHandle(serving_test::dlrm())};
  for (int64_t rows : {1, 32, 250}) {
    const Tensors batch = serving_test::dlrm_batch(rows);
    std::vector<TensorView> views;
    for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
    std::vector<float> scores(static_cast<size_t>(rows));
    const std::span<float> output = scores;
    plan.run(views, {&output, 1});
    const size_t allocated = allocations;
    const AllocatorStats before = allocator_stats();
    for (int i = 0; i < 5; ++i) plan.run(views, {&output, 1});
    EXPECT_EQ(allocations, allocated) << rows;
    EXPECT_EQ(allocator_stats().system_calls, before.system_calls) << rows;
    EXPECT_EQ(allocator_stats().cached_bytes, before.cached_bytes) << rows;
  }
  EXPECT_GT(allocations, 0U);  // the counter works
}

// D-105: tables for unbounded ids.
TEST(ServingPlanAllocation, KeysAreFoundWithoutAllocation) {
  const SerialSection one_thread;
  const Tensor user = layers::input({.dtype = DType::kInt64, .name = "user"});
  const Tensor word = layers::input({.shape = {2}, .dtype = DType::kString, .name = "word"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const auto table = [](const char* name, KeyType key) {
    return make_table(
        {.dim = 4,
         .name = name,
         .dynamic = DynamicVocabulary{.key = key, .not_admitted = NotAdmitted::hashed(3)}});
  };
  const Table ids = table("ids", KeyType::kInt64), words = table("words", KeyType::kString);
  // "steps" is a sequence that leaves negative ids out.
  const layers::TPUEmbedding tables(
      {.feature_config = {
           {"seen", FeatureConfig{.table = ids}},
           {"steps",
            FeatureConfig{.table = ids, .max_sequence_length = 2, .id_policy = IdPolicy::ignore()}},
           {"user", FeatureConfig{.table = ids}},
           {"word", FeatureConfig{.table = words}}}});
  const layers::EmbedReduce pooled(
      {.output_dim = 4, .dynamic = DynamicVocabulary{.key = KeyType::kString}, .name = "pooled"});
  const Tensors features = {{"seen", seen}, {"steps", seen}, {"user", user}, {"word", word}};
  const Functional model({.inputs = {{"seen", seen}, {"user", user}, {"word", word}},
                          .outputs = Tensors::tuple({tables(features), pooled(Tensors(word))})});
  tables->dynamic_table(ids).assign_rows(Tensor::from<int64_t>({7, 8}, {2}), Tensor::zeros({2, 4}));
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_TRUE(plan.called_layers().empty());
  const Tensors batch = {{"seen", RaggedTensor::from_rows<int64_t>({{7, 1, -9}, {}, {8}})},
                         {"user", Tensor::from<int64_t>({7, 9, -1}, {3})},
                         {"word", Tensor::from<std::string>({"a", std::string(100, 'b'), "c", "d",
                                                             "", "a long word of many letters"},
                                                            {3, 2})}};
  std::vector<TensorView> views;
  for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
  std::vector<float> seen_rows(12), steps(24), user_rows(12), word_rows(24), pooled_rows(12);
  const std::vector<std::span<float>> outputs = {seen_rows, steps, user_rows, word_rows,
                                                 pooled_rows};
  plan.run(views, outputs);
  const size_t allocated = allocations;
  for (int i = 0; i < 5; ++i) plan.run(views, outputs);
  EXPECT_EQ(allocations, allocated);
}

TEST(ServingPlanAllocation, MaximaAndWeightedRowsAreComputedWithoutAllocation) {
  const SerialSection one_thread;
  const Table items =
      make_table({.vocabulary_size = 9, .dim = 4, .combiner = "max", .name = "items"});
  const Table words =
      make_table({.dim = 4, .combiner = "max", .name = "words", .dynamic = DynamicVocabulary{}});
  const layers::TPUEmbedding tables({.feature_config = {{"item", FeatureConfig{.table = items}},
                                                        {"word", FeatureConfig{.table = words}}}});
  const layers::EmbedReduce reduce({.input_dim = 9, .output_dim = 4, .combiner = "sqrtn"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const Tensor ids = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "ids"});
  const Tensor weights = layers::input({.shape = {3}, .name = "weights"});
  const Functional model(
      {.inputs = {{"ids", ids}, {"seen", seen}, {"weights", weights}},
       .outputs = Tensors::tuple({tables(Tensors{{"item", seen}, {"word", seen}}),
                                  reduce(ids, {.weights = TensorLike(weights)})})});
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_TRUE(plan.called_layers().empty());
  const Tensors batch = {{"ids", Tensor::from<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3})},
                         {"seen", RaggedTensor::from_rows<int64_t>({{7, 1, 8}, {}})},
                         {"weights", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3})}};
  std::vector<TensorView> views;
  for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
  std::vector<float> item(8), word(8), reduced(8);
  const std::vector<std::span<float>> outputs = {item, word, reduced};
  plan.run(views, outputs);
  const size_t allocated = allocations;
  for (int i = 0; i < 5; ++i) plan.run(views, outputs);
  EXPECT_EQ(allocations, allocated);
}

}  // namespace
}  // namespace keel

#endif
