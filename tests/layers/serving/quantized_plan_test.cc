// Plans of models whose Embedding layers are int8.
#include <gtest/gtest.h>

#include <keel/layers/core/embedding.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/layers/serving/models.h"
#include "tests/support/tensors.h"

namespace keel::quantized_plan_test {

using testing_support::values_of;

using namespace serving_test;  // NOLINT: the models are what these tests are about

constexpr int64_t kRows = 50;

struct Ranker {
  Functional model;
  layers::Embedding users, items;
};

// A model with a feature of one id, a feature of three ids, and a tower.
Ranker ranker(int64_t dim) {
  const Tensor user = layers::input({.shape = {}, .dtype = DType::kInt64, .name = "user"});
  const Tensor seen = layers::input({.shape = {3}, .dtype = DType::kInt32, .name = "seen"});
  const layers::Embedding users({.input_dim = kRows, .output_dim = dim});
  const layers::Embedding items({.input_dim = kRows, .output_dim = dim});
  Tensor x = concatenated({users(user), layers::Flatten({})(items(seen))});
  x = layers::Dense({.units = 9, .activation = "relu"})(x);
  return {.model = Functional({.inputs = {{"user", user}, {"seen", seen}},
                               .outputs = layers::Dense({.units = 2})(x)}),
          .users = users,
          .items = items};
}

Tensors ranker_batch(int64_t rows) {
  return {{"user", random_ids({rows}, kRows, 3)},
          {"seen", random_ids({rows, 3}, kRows, 4).cast(DType::kInt32)}};
}

TEST(QuantizedPlan, MatchesTheModelBitForBit) {
  for (const int64_t dim : {8, 12, 16, 64}) {
    const Ranker r = ranker(dim);
    const auto of_floats = r.model(ranker_batch(130)).tensor().to_vector<float>();
    r.users->quantize("int8");
    r.items->quantize("int8");
    for (const int64_t rows : {1, 7, 130}) {
      const Tensors batch = ranker_batch(rows);
      const auto expected = r.model(batch).tensor().to_vector<float>();
      for (const char* dtype : {"float32", "int8"}) {
        const ServingPlan plan(ModelHandle(r.model), {.table_dtype = dtype});
        EXPECT_EQ(plan.called_layers(), std::vector<std::string>()) << dim;
        EXPECT_EQ(values_of(plan(batch)), expected) << dim << ", " << rows << " rows, " << dtype;
      }
      if (rows == 130) {
        EXPECT_NE(expected, of_floats);
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], of_floats[i], 1e-3);
      }
    }
  }
}

TEST(QuantizedPlan, KeepsTheRowsOfItsCreation) {
  const Ranker r = ranker(16);
  r.users->quantize("int8");
  const Tensors batch = ranker_batch(40);
  const ServingPlan plan(ModelHandle(r.model));
  const auto before = values_of(plan(batch));
  r.users->embeddings().update([](Tensor& codes) {
    for (int8_t& code : codes.mutable_data<int8_t>()) code = 1;
  });
  EXPECT_NE(r.model(batch).tensor().to_vector<float>(), before);
  EXPECT_EQ(values_of(plan(batch)), before);
}

TEST(QuantizedPlan, AFloatTableMayBeQuantizedBesideAQuantizedOne) {
  const Ranker r = ranker(16);
  r.users->quantize("int8");
  const Tensors batch = ranker_batch(40);
  const auto expected = r.model(batch).tensor().to_vector<float>();
  EXPECT_EQ(values_of(ServingPlan(ModelHandle(r.model))(batch)), expected);
  const auto small = values_of(ServingPlan(ModelHandle(r.model), {.table_dtype = "int8"})(batch));
  EXPECT_NE(small, expected);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(small[i], expected[i], 1e-3);
}

TEST(QuantizedPlan, InvalidIdsAreErrors) {
  const Ranker r = ranker(16);
  r.users->quantize("int8");
  const ServingPlan plan(ModelHandle(r.model));
  Tensors::Dict batch = ranker_batch(2).entries();
  for (const int64_t odd : {int64_t{-1}, kRows}) {
    batch["user"] = Tensor::from<int64_t>({0, odd}, {2});
    EXPECT_THROW(plan(Tensors(batch)), ValueError) << odd;
  }
}

}  // namespace keel::quantized_plan_test
