// Tests layers/internal/: ids of a floating dtype that are not integers, in all layers that take
// ids, in models and in serving plans.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/core/reversible_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/losses/margin.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/metrics/accuracy.h>
#include <keel/layers/preprocessing/hashing.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/utils/arrays.h>

#include "tests/support/errors.h"

namespace keel::integer_ids_test {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::message_of;

const float kOthers[] = {std::nanf(""), std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(), 1.5F};

// Row 0 has the id 2; row 1 has `last`.
Tensor ids(float last) { return Tensor::from<float>({2, last}, {2, 1}); }

template <class Fn>
void expect_rejected(const std::string& start, const Fn& look_up, bool cuts_fractions = false) {
  EXPECT_NO_THROW(look_up(ids(3)));
  for (const float other : kOthers) {
    if (cuts_fractions && std::isfinite(other)) continue;
    EXPECT_THAT(message_of<ValueError>([&] { look_up(ids(other)); }),
                StartsWith(start + ": the id in row 1 is "));
  }
}

TEST(IntegerIdsTest, EmbeddingsRejectOtherNumbers) {
  auto embedding = layers::Embedding({.input_dim = 4, .output_dim = 2, .name = "users"});
  expect_rejected("Embedding users", [&](const Tensor& x) { embedding(x); });
  auto reversible = layers::ReversibleEmbedding({.input_dim = 4, .output_dim = 2, .name = "words"});
  expect_rejected("ReversibleEmbedding words", [&](const Tensor& x) { reversible(x); });
  auto pooled = layers::EmbedReduce({.input_dim = 4, .output_dim = 2, .name = "tags"});
  expect_rejected("EmbedReduce tags", [&](const Tensor& x) { pooled(x); });
  expect_rejected("EmbedReduce tags", [&](const Tensor& x) { pooled(x.reshaped({2})); });
  expect_rejected("EmbedReduce tags", [&](const Tensor& x) {
    pooled(RaggedTensor{.values = x.reshaped({2}),
                        .row_splits = Tensor::from<int64_t>({0, 1, 2}, {3})});
  });
}

TEST(IntegerIdsTest, PreprocessingRejectsOtherNumbers) {
  auto hashing = layers::Hashing({.num_bins = 4, .name = "bins"});
  expect_rejected("Hashing bins", [&](const Tensor& x) { hashing(x); }, true);
  auto encoding =
      layers::CategoryEncoding({.num_tokens = 4, .output_mode = "multi_hot", .name = "codes"});
  expect_rejected("CategoryEncoding codes", [&](const Tensor& x) { encoding(x); });
}

TEST(IntegerIdsTest, FunctionsRejectOtherNumbers) {
  expect_rejected("to_categorical", [](const Tensor& x) { utils::to_categorical(x); });
  expect_rejected("take", [](const Tensor& x) {
    keras_ops::take(Tensor::from<float>({1, 2, 3, 4}, {4}), x, 0);
  });
  for (const float other : kOthers) {
    EXPECT_THROW(keras_ops::one_hot(ids(other), 4), ValueError);
    const metrics::SparseCategoricalAccuracy accuracy({});
    EXPECT_THROW(accuracy->update_state(ids(other), Tensor::zeros({2, 4})), ValueError);
    EXPECT_THROW(losses::circle(ids(other).reshaped({2}), Tensor::full<float>({2, 2}, 1)),
                 ValueError);
  }
}

// score = users[user] + items[item], where users = 0, 10, 20, 30 and items = 0, 1, 2, 3.
struct TwoTables {
  Tensor user = layers::input({.shape = {1}, .name = "user"});
  Tensor item = layers::input({.shape = {1}, .name = "item"});
  ModelHandle model = make_model();

  ModelHandle make_model() {
    auto users = layers::Embedding({.input_dim = 4, .output_dim = 1, .name = "users"});
    auto items = layers::Embedding({.input_dim = 4, .output_dim = 1, .name = "items"});
    auto flat = layers::Reshape({.target_shape = {1}, .name = "flat_item"});
    auto out = layers::Add({})(Tensors::list({users(user), items(flat(item))})).tensor();
    users->weights()[0].assign(Tensor::from<float>({0, 10, 20, 30}, {4, 1}));
    items->weights()[0].assign(Tensor::from<float>({0, 1, 2, 3}, {4, 1}));
    return ModelHandle(Functional({.inputs = Tensors::list({user, item}), .outputs = out}));
  }
};

TEST(IntegerIdsTest, ModelsAndServingPlansNameTheInput) {
  const TwoTables tables;
  const ServingPlan plan(tables.model);
  const auto call = [&](const Tensor& user, const Tensor& item) {
    return (*tables.model)(Tensors::list({user, item})).tensor().to_vector<float>();
  };
  const auto serve = [&](const Tensor& user, const Tensor& item) {
    return plan(Tensors::list({user, item})).tensor().to_vector<float>();
  };
  EXPECT_EQ(call(ids(3), ids(1)), (std::vector<float>{22, 31}));
  EXPECT_EQ(serve(ids(3), ids(1)), (std::vector<float>{22, 31}));
  for (const float other : kOthers) {
    for (const std::string& message :
         {message_of<InvalidIdError>([&] { call(ids(other), ids(1)); }),
          message_of<InvalidIdError>([&] { serve(ids(other), ids(1)); })}) {
      EXPECT_THAT(message, StartsWith("input 'user': Embedding users: the id in row 1 is "));
    }
    for (const std::string& message :
         {message_of<InvalidIdError>([&] { call(ids(3), ids(other)); }),
          message_of<InvalidIdError>([&] { serve(ids(3), ids(other)); })}) {
      EXPECT_THAT(message, StartsWith("input 'item': Embedding items: the id in row 1 is "));
    }
  }
}

TEST(IntegerIdsTest, ServingPlansDoNotWrapIds) {
  auto id = layers::input({.shape = {1}, .dtype = DType::kInt32, .name = "id"});
  auto table = layers::Embedding({.input_dim = 8, .output_dim = 1});
  const ServingPlan plan{ModelHandle(Functional({.inputs = id, .outputs = table(id)}))};
  // 2^32 + 5 would be 5 in 32 bits.
  EXPECT_THAT(message_of<ValueError>([&] { plan(Tensor::from<int64_t>({4294967301}, {1, 1})); }),
              HasSubstr("input 'id': the value in row 0 is 4294967301, which int32 does not have"));
  EXPECT_NO_THROW(plan(Tensor::from<int64_t>({5}, {1, 1})));
}

}  // namespace keel::integer_ids_test
