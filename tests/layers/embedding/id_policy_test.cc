// FeatureConfig::id_policy on every path (host, engine and V0) for every kind of input.
// Tests layers/embedding/tables/internal/invalid_id_counter.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/training/training_options.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/texts.h"

namespace keel::id_policy_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using fixture::sparse;
using layers::TPUEmbedding;
using testing::EndsWith;
using testing::HasSubstr;
using testing_support::count_of;
using testing_support::message_of;
using Values = std::vector<float>;

enum class Path { kHost, kEngine, kV0 };
enum class Input { kDense, kSparse, kRagged, kSparseSteps, kRaggedSteps };
constexpr Input kInputs[] = {Input::kDense, Input::kSparse, Input::kRagged, Input::kSparseSteps,
                             Input::kRaggedSteps};
constexpr int64_t kFar = int64_t{1} << 40;
// The last id is 1 in its low 32 bits.
constexpr int64_t kInvalidIds[] = {-1, 4, kFar, -kFar, (int64_t{1} << 32) + 1};

struct Found {
  Values values;
  IdCounts counts;
};

TensorLike input_of(Input kind, int64_t invalid_id) {
  switch (kind) {
    case Input::kDense:
      return ids({1, invalid_id, 2}, {3});
    case Input::kSparse:
    case Input::kSparseSteps:
      return sparse(IdRows{{1, invalid_id}, {2}}, 2);
    case Input::kRagged:
    case Input::kRaggedSteps:
      break;
  }
  return ragged(IdRows{{1, invalid_id}, {2}});
}

// Looks up ids in a table of the rows 1, 2, 3, 4.
Found look_up(Path path, Input kind, int64_t invalid_id, const IdPolicy& policy,
              const std::string& combiner = "sum") {
  CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 2});
  Strategy& strategy = path == Path::kHost ? static_cast<Strategy&>(cpu) : tpu;
  const auto scope = strategy.scope();
  const bool steps = kind == Input::kSparseSteps || kind == Input::kRaggedSteps;
  const FeatureConfig feature = {.table = make_table({.vocabulary_size = 4,
                                                      .dim = 1,
                                                      .initializer = tpu::RowIdInitializer(1),
                                                      .combiner = combiner}),
                                 .max_sequence_length = steps ? 2 : 0,
                                 .id_policy = policy};
  const TPUEmbedding layer({.feature_config = {{"f", feature}},
                            .optimizer = "sgd",
                            .embedding_feature = path == Path::kV0 ? EmbeddingFeature::kUnsupported
                                                                   : EmbeddingFeature::kV1});
  const Tensors input = {{"f", input_of(kind, invalid_id)}};
  layer->build(specs_of(input));
  const auto found = strategy.run([&] { return layer(input)["f"].tensor(); });
  return {found[0].to_vector<float>(), layer->id_counts()[0].second};
}

void expect_error(Path path, Input kind, int64_t invalid_id, const IdPolicy& policy) {
  const std::string text = message_of<ValueError>([&] { look_up(path, kind, invalid_id, policy); });
  EXPECT_THAT(text, HasSubstr("'f'"));
  EXPECT_THAT(text, HasSubstr(std::to_string(invalid_id)));
}

class IdPolicyTest : public testing::TestWithParam<Path> {};

TEST_P(IdPolicyTest, InvalidIdsAreErrorsByDefault) {
  for (const Input kind : kInputs) {
    for (const int64_t invalid_id : kInvalidIds) {
      if (GetParam() == Path::kHost && kind == Input::kSparse && invalid_id < 0) {
        const Found found = look_up(GetParam(), kind, invalid_id, {});
        EXPECT_EQ(found.values, (Values{2, 3}));
        EXPECT_EQ(found.counts.dropped, 1);
        continue;
      }
      expect_error(GetParam(), kind, invalid_id, {});
    }
  }
}

TEST_P(IdPolicyTest, InvalidIdsAreAlwaysErrorsOnRequest) {
  for (const Input kind : kInputs) {
    for (const int64_t invalid_id : kInvalidIds)
      expect_error(GetParam(), kind, invalid_id, IdPolicy::error());
  }
}

TEST_P(IdPolicyTest, IgnoredIdsHaveNoEffect) {
  const std::map<Input, Values> expected = {{Input::kDense, {2, 0, 3}},
                                            {Input::kSparse, {2, 3}},
                                            {Input::kRagged, {2, 3}},
                                            {Input::kSparseSteps, {2, 0, 3, 0}},
                                            {Input::kRaggedSteps, {2, 0, 3, 0}}};
  for (const auto& [kind, values] : expected) {
    for (const int64_t invalid_id : kInvalidIds) {
      for (const char* combiner : {"sum", "mean", "sqrtn"}) {
        const Found found = look_up(GetParam(), kind, invalid_id, IdPolicy::ignore(), combiner);
        EXPECT_EQ(found.values, values) << invalid_id;
        // Both replicas look up the same rows.
        EXPECT_EQ(found.counts.dropped, GetParam() == Path::kHost ? 1 : 2);
        EXPECT_EQ(found.counts.replaced, 0);
      }
    }
  }
}

TEST_P(IdPolicyTest, ReplacedIdsUseTheDefaultRow) {
  const std::map<Input, Values> expected = {{Input::kDense, {2, 4, 3}},
                                            {Input::kSparse, {6, 3}},
                                            {Input::kRagged, {6, 3}},
                                            {Input::kSparseSteps, {2, 4, 3, 0}},
                                            {Input::kRaggedSteps, {2, 4, 3, 0}}};
  for (const auto& [kind, values] : expected) {
    for (const int64_t invalid_id : kInvalidIds) {
      const Found found = look_up(GetParam(), kind, invalid_id, IdPolicy::use_row(3));
      EXPECT_EQ(found.values, values) << invalid_id;
      EXPECT_EQ(found.counts.replaced, GetParam() == Path::kHost ? 1 : 2);
      EXPECT_EQ(found.counts.dropped, 0);
    }
  }
}

TEST_P(IdPolicyTest, AFailedLookupCountsNothing) {
  CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  Strategy& strategy = GetParam() == Path::kHost ? static_cast<Strategy&>(cpu) : tpu;
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 4, .dim = 1});
  const TPUEmbedding layer(
      {.feature_config = {{"a", FeatureConfig{.table = table, .id_policy = IdPolicy::ignore()}},
                          {"b", FeatureConfig{.table = table}}},
       .optimizer = "sgd",
       .embedding_feature =
           GetParam() == Path::kV0 ? EmbeddingFeature::kUnsupported : EmbeddingFeature::kV1});
  const Tensors input = {{"a", ids({9}, {1})}, {"b", ids({9}, {1})}};
  EXPECT_THROW(strategy.run([&] { layer(input); }), ValueError);
  EXPECT_EQ(layer->id_counts()[0].second.dropped, 0);
}

INSTANTIATE_TEST_SUITE_P(Paths, IdPolicyTest,
                         testing::Values(Path::kHost, Path::kEngine, Path::kV0));

TEST(IdPolicyConfigTest, TheDefaultRowMustBeInTheTable) {
  const Table table = make_table({.vocabulary_size = 4, .dim = 1});
  for (const int64_t row : {int64_t{-1}, int64_t{4}}) {
    EXPECT_THROW(
        TPUEmbedding(
            {.feature_config = FeatureConfig{.table = table, .id_policy = IdPolicy::use_row(row)}}),
        ValueError);
  }
}

TEST(IdPolicyConfigTest, PoliciesRoundTripThroughFiles) {
  for (const IdPolicy& policy :
       {IdPolicy(), IdPolicy::error(), IdPolicy::ignore(), IdPolicy::use_row(2)}) {
    IdPolicy again = IdPolicy::use_row(7);
    decode(encode(policy), again);
    EXPECT_EQ(again, policy);
  }
  IdPolicy policy;
  EXPECT_THROW(decode(Config("drop"), policy), ValueError);
}

// Runs fit for two epochs on four rows, two of whose ids are invalid. Returns the output on stdout.
std::string shown_by_fit(const IdPolicy& policy, Verbose verbose) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const FeatureConfig feature = {.table = make_table({.vocabulary_size = 4, .dim = 2}),
                                 .id_policy = policy};
  const TPUEmbedding embedding({.feature_config = Nest<FeatureConfig>({{"user", feature}}),
                                .optimizer = "sgd",
                                .name = "users"});
  const Tensors in =
      Tensors::dict({{"user", layers::ragged_input({.dtype = DType::kInt64, .name = "user"})}});
  const Functional model(
      {.inputs = in, .outputs = layers::Dense({.units = 1})(embedding(in)["user"].tensor())});
  model->compile({.optimizer = optimizers::SGD({}), .loss = "mse"});
  const Tensors x = Tensors::dict({{"user", ragged(IdRows{{1, 9}, {2}, {-1}, {3}})}});
  testing::internal::CaptureStdout();
  model->fit(x, Tensor::zeros({4, 1}), {.epochs = 2, .batch_size = 4, .verbose = verbose});
  return testing::internal::GetCapturedStdout();
}

TEST(IdPolicyNoticesTest, FitReportsDroppedIds) {
  const std::string line =
      "TPUEmbedding users: feature 'user': 4 ids outside the table were dropped\n";
  const std::string text = shown_by_fit(IdPolicy::ignore(), Verbose::kOneLine);
  EXPECT_THAT(text, EndsWith(line));
  EXPECT_EQ(count_of(text, line), 1U);
}

TEST(IdPolicyNoticesTest, FitReportsReplacedIds) {
  const std::string text = shown_by_fit(IdPolicy::use_row(0), Verbose::kOneLine);
  EXPECT_THAT(text, HasSubstr("4 ids outside the table were replaced by the default row\n"));
}

TEST(IdPolicyNoticesTest, ASilentFitReportsNothing) {
  EXPECT_EQ(shown_by_fit(IdPolicy::ignore(), Verbose::kSilent), "");
}

}  // namespace keel::id_policy_test
