#include <keel/layers/attention/grouped_query_attention.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/functional/functional.h>

#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::grouped_query_attention_test {

using layers::GroupedQueryAttention;
using layers::MultiHeadAttention;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using testing_support::glorot_uniform;

// With one key and value head per query head, the layer equals MultiHeadAttention. The same is true
// for groups if their kernels are repeated.
TEST(GroupedQueryAttentionTest, IsAttentionWithRepeatedKeysAndValues) {
  const GroupedQueryAttention grouped(
      {.head_dim = 3, .num_query_heads = 4, .num_key_value_heads = 2});
  const MultiHeadAttention plain({.num_heads = 4, .key_dim = 3});
  const Tensor query = glorot_uniform({2, 3, 5}), value = glorot_uniform({2, 4, 5});
  const Tensors inputs = Tensors::list({query, value});
  grouped(inputs);
  plain(inputs);
  const std::vector<Variable> from = grouped->weights(), to = plain->weights();
  ASSERT_EQ(from.size(), 8u);
  EXPECT_EQ(from[2].shape(), Shape({5, 2, 3}));
  for (size_t i = 0; i < 8; ++i) {
    from[i].assign(glorot_uniform(from[i].shape()));
    Tensor w = from[i];
    if (w.shape() != to[i].shape()) {
      const int axis = w.rank() - 2;
      const std::vector<Tensor> heads = ops::split(w, 2, axis);
      w = ops::concat({heads[0], heads[0], heads[1], heads[1]}, axis);
    }
    to[i].assign(w);
  }
  const MultiHeadAttentionCallOptions how = {.return_attention_scores = true,
                                             .use_causal_mask = true};
  const Tensors a = grouped(inputs, how), b = plain(inputs, how);
  for (int leaf : {0, 1}) {
    const Tensor x = a[leaf].tensor(), y = b[leaf].tensor();
    ASSERT_EQ(x.shape(), y.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x.data<float>()[i], y.data<float>()[i], 1e-5);
    }
  }
}

TEST(GroupedQueryAttentionTest, SpecsFollowFromUnknownSteps) {
  const GroupedQueryAttention layer(
      {.head_dim = 3, .num_query_heads = 4, .num_key_value_heads = 1});
  const Tensor x = layers::input({.shape = {kUnknown, 5}});
  const Tensors result = layer(Tensors::list({x, x}), {.return_attention_scores = true});
  EXPECT_EQ(result[0].tensor().shape(), Shape({kUnknown, kUnknown, 5}));
  EXPECT_EQ(result[1].tensor().shape(), Shape({kUnknown, 4, kUnknown, kUnknown}));
}

TEST(GroupedQueryAttentionTest, RejectsIncompatibleArguments) {
  EXPECT_THROW(
      GroupedQueryAttention({.head_dim = 3, .num_query_heads = 4, .num_key_value_heads = 3}),
      ValueError);
  EXPECT_THROW(
      GroupedQueryAttention({.head_dim = 0, .num_query_heads = 4, .num_key_value_heads = 2}),
      ValueError);
  const GroupedQueryAttention layer(
      {.head_dim = 3, .num_query_heads = 4, .num_key_value_heads = 2});
  const Tensor flat = glorot_uniform({2, 5});
  EXPECT_THROW(layer(Tensors::list({flat, flat})), ValueError);
}

TEST(GroupedQueryAttentionTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "GroupQueryAttention",
       .config = R"({"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2})",
       .inputs = float_spec_pair({2, 3, 4}),
       .output = float_spec({2, 3, 4}),
       .trainable_weights = 8,
       .weights = 8});
}

}  // namespace keel::grouped_query_attention_test
