#include <keel/layers/embedding/distributed/internal/table_stacking.h>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::table_stacking_test {

using testing::HasSubstr;
using testing_support::message_of;

using Names = std::vector<std::string>;
using Lists = std::vector<Names>;

const EmbeddingOptimizer& adagrad() {
  static const EmbeddingOptimizer& optimizer = *new EmbeddingOptimizer("adagrad");
  return optimizer;
}

StackableTable table(const std::string& name, int64_t vocabulary_size, int64_t dim,
                     int64_t samples = 0) {
  return {.name = name,
          .vocabulary_size = vocabulary_size,
          .dim = dim,
          .optimizer = adagrad(),
          .samples = samples};
}

Names names_of(const std::vector<TableStack>& stacks) {
  Names out;
  for (const TableStack& stack : stacks) out.push_back(stack.name);
  return out;
}

Names stacked(const std::vector<StackableTable>& tables, const TableStacking& stacking = "auto",
              const StackingOptions& options = {}) {
  return names_of(stack_tables(tables, stacking, options));
}

std::string error_of(const std::vector<StackableTable>& tables, const TableStacking& stacking) {
  return message_of<ValueError>([&] { stack_tables(tables, stacking, {}); });
}

TEST(SpecRowsI, I11_StackedTablesArePaddedAndRotated) {
  EXPECT_EQ(padded_dim(12), 16);
  EXPECT_EQ(padded_dim(16), 16);
  EXPECT_EQ(padded_vocabulary_size(40, 4), 64);
  EXPECT_EQ(padded_vocabulary_size(10, 4), 32);
  for (const int cores : {1, 2}) {
    const auto stacks = stack_tables({table("A", 40, 12), table("B", 10, 14)}, "auto",
                                     {.shards = 4, .sparse_cores_per_device = cores});
    ASSERT_EQ(stacks.size(), 1U);
    const TableStack& stack = stacks[0];
    EXPECT_EQ(stack.name, "A_B");
    EXPECT_EQ(stack.dim, 16);
    EXPECT_EQ(stack.vocabulary_size, 96);
    const StackMember& a = stack.members[0];
    const StackMember& b = stack.members[1];
    EXPECT_EQ(a.padded_vocabulary_size, 64);
    EXPECT_EQ(b.padded_vocabulary_size, 32);
    EXPECT_EQ(a.padded_vocabulary_size / stack.shards, 16);
    EXPECT_EQ(b.padded_vocabulary_size / stack.shards, 8);
    EXPECT_EQ(a.shard_row, 0);
    EXPECT_EQ(b.shard_row, 16);
    EXPECT_EQ(a.rotation, 0);
    EXPECT_EQ(b.rotation, cores);
    for (int64_t id = 0; id < 10; ++id) {
      EXPECT_EQ(stack.shard(a, id), id % 4);
      EXPECT_EQ(stack.local_row(a, id), id / 4);
      EXPECT_EQ(stack.shard(b, id), (id % 4 + cores) % 4);
      EXPECT_EQ(stack.local_row(b, id), 16 + id / 4);
    }
  }
}

TEST(TableStackingTest, EveryRowBelongsToOneIdOrToPadding) {
  const auto stacks =
      stack_tables({table("a", 11, 3), table("b", 30, 5), table("c", 1, 8)}, "auto", {.shards = 3});
  const TableStack& stack = stacks.at(0);
  std::set<int64_t> rows;
  for (const StackMember& member : stack.members) {
    for (int64_t id = 0; id < member.vocabulary_size; ++id) {
      const int64_t row = stack.row(member, id);
      EXPECT_LT(row, stack.vocabulary_size);
      EXPECT_TRUE(rows.insert(row).second);
      EXPECT_EQ(row % 3, stack.shard(member, id));
      const auto place = stack.find(row);
      ASSERT_TRUE(place);
      EXPECT_EQ(place->member, &member);
      EXPECT_EQ(place->id, id);
    }
  }
  for (int64_t row = 0; row < stack.vocabulary_size; ++row) {
    EXPECT_EQ(stack.find(row).has_value(), rows.contains(row)) << row;
  }
}

TEST(TableStackingTest, AStackOfOneTableIsTheTable) {
  const auto stacks = stack_tables({table("a", 11, 3)}, "auto", {.shards = 4});
  EXPECT_EQ(stacks[0].name, "a");
  EXPECT_EQ(stacks[0].dim, 3);
  EXPECT_EQ(stacks[0].vocabulary_size, 11);
  for (int64_t id = 0; id < 11; ++id) EXPECT_EQ(stacks[0].row(stacks[0].members[0], id), id);
}

TEST(TableStackingTest, MemberRowsRoundTrip) {
  const TableStack stack =
      stack_tables({table("a", 3, 2), table("b", 25, 3)}, "auto", {.shards = 2})[0];
  const StackMember& b = stack.members[1];
  std::vector<float> values(25 * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<float> whole(stack.vocabulary_size * stack.dim);
  const auto all = stack.rows_of(b, 0, 25);
  stack.stack(b, 0, 25, values.data(), whole.data() + all.begin * stack.dim);
  for (int64_t id = 0; id < 25; ++id) {
    EXPECT_EQ(whole[stack.row(b, id) * stack.dim], values[id * 3]);
  }
  for (int64_t begin = 0; begin < 25; ++begin) {
    for (int64_t end = begin; end <= 25; ++end) {
      const auto [first, last] = stack.rows_of(b, begin, end);
      EXPECT_LE(last - first, end - begin + 2);
      std::vector<float> part((end - begin) * 3);
      stack.unstack(b, begin, end, whole.data() + first * stack.dim, part.data());
      EXPECT_EQ(part, std::vector<float>(values.begin() + begin * 3, values.begin() + end * 3));
    }
  }
}

TEST(TableStackingTest, AutoStacksEqualPaddedDimsOptimizersAndCombiners) {
  StackableTable sum = table("sum", 10, 8);
  sum.combiner = "sum";
  StackableTable sgd = table("sgd", 10, 8);
  sgd.optimizer = "sgd";
  EXPECT_EQ(stacked({table("d", 10, 8), sum, table("wide", 10, 9), sgd, table("b", 10, 2)}),
            (Names{"b_d", "sgd", "sum", "wide"}));
}

TEST(TableStackingTest, KerasOptimizersAreComparedByIdentity) {
  StackableTable a = table("a", 10, 8), b = table("b", 10, 8), c = table("c", 10, 8);
  const optimizers::SGD shared({.learning_rate = 0.5});
  a.optimizer = c.optimizer = EmbeddingOptimizer(shared);
  b.optimizer = EmbeddingOptimizer(optimizers::SGD({.learning_rate = 0.5}));
  EXPECT_EQ(stacked({a, b, c}), (Names{"a_c", "b"}));
}

TEST(TableStackingTest, CustomRulesAreNotStacked) {
  StackableTable a = table("a", 10, 8), b = table("b", 10, 8);
  a.optimizer = tpu::Adagrad{.slot_variable_creation_fn = [](const TableVariable&,
                                                             const std::vector<std::string>& names,
                                                             const std::vector<Initializer>&) {
    return SlotVariables{{names[0], Initializer("ones")}};
  }};
  b.optimizer = a.optimizer;
  EXPECT_EQ(stacked({a, b}), (Names{"a", "b"}));
  EXPECT_THAT(error_of({a, b}, Names{"a", "b"}), HasSubstr("optimizer"));
}

TEST(TableStackingTest, OptimizersAreComparedByValue) {
  StackableTable a = table("a", 10, 8), b = table("b", 10, 8), c = table("c", 10, 8);
  a.optimizer = "adam";
  b.optimizer = tpu::Adam{};
  c.optimizer = tpu::Adam{.beta_1 = 0.8};
  EXPECT_EQ(stacked({a, b, c}), (Names{"a_b", "c"}));
}

TEST(TableStackingTest, AutoUsesTheFirstStackWithSpace) {
  // 8 * 4 bytes for each of samples / 2 on a shard.
  const std::vector<StackableTable> tables = {table("a", 10, 8, 120), table("b", 10, 8, 200),
                                              table("c", 10, 8, 80), table("d", 10, 8, 2000)};
  const StackingOptions options = {.shards = 2, .activation_mem_bytes_limit = 100 * 32};
  EXPECT_EQ(stacked(tables, "auto", options), (Names{"a_c", "b", "d"}));
  EXPECT_EQ(stacked(tables, "auto", {.shards = 2}), (Names{"a_b_c_d"}));
}

TEST(TableStackingTest, EmptyStackingStacksNothing) {
  EXPECT_EQ(stacked({table("b", 10, 8), table("a", 10, 8)}, std::nullopt), (Names{"b", "a"}));
}

TEST(TableStackingTest, ListsStackTheNamedTables) {
  const std::vector<StackableTable> tables = {table("a", 10, 8), table("b", 10, 8),
                                              table("c", 10, 8), table("d", 10, 8)};
  EXPECT_EQ(stacked(tables, Names{"c", "a"}), (Names{"c_a", "b", "d"}));
  EXPECT_EQ(stacked(tables, Lists{{"c", "a"}, {"d", "b"}}), (Names{"c_a", "d_b"}));
}

TEST(TableStackingTest, NamesOfStacksAreUnique) {
  EXPECT_EQ(stacked({table("a", 10, 8), table("b", 10, 8), table("a_b", 10, 8)}, Names{"a", "b"}),
            (Names{"a_b", "a_b_"}));
}

TEST(TableStackingTest, RejectsImpossibleLists) {
  StackableTable sum = table("sum", 10, 8), sgd = table("sgd", 10, 8);
  sum.combiner = "sum";
  sgd.optimizer = "sgd";
  const std::vector<StackableTable> tables = {table("a", 10, 8), table("b", 10, 8), sum, sgd,
                                              table("wide", 10, 9)};
  EXPECT_THAT(error_of(tables, Names{"a", "b", "a"}), HasSubstr("'a' twice"));
  EXPECT_THAT(error_of(tables, Lists{{"a"}, {"b", "a"}}), HasSubstr("'a' in two"));
  EXPECT_THAT(error_of(tables, Names{"a", "sum"}), HasSubstr("combiner"));
  EXPECT_THAT(error_of(tables, Names{"a", "sgd"}), HasSubstr("optimizer"));
  EXPECT_THAT(error_of(tables, Names{"a", "wide"}), HasSubstr("padded dim"));
  EXPECT_THAT(error_of(tables, Names{"a", "none"}), HasSubstr("'none'"));
  EXPECT_THROW(TableStacking("all"), ValueError);
}

TEST(TableStackingTest, ConfigsRoundTripInEveryForm) {
  for (const TableStacking& stacking :
       {TableStacking("auto"), TableStacking(std::nullopt), TableStacking(Names{"a", "b"}),
        TableStacking(Lists{{"a", "b"}, {"c"}})}) {
    TableStacking copy = "auto";
    decode(encode(stacking), copy);
    EXPECT_EQ(encode(copy), encode(stacking));
    EXPECT_EQ(copy.is_auto(), stacking.is_auto());
    EXPECT_EQ(copy.lists(), stacking.lists());
  }
  EXPECT_EQ(to_json(encode(TableStacking(Names{"a", "b"}))), R"(["a", "b"])");
}

}  // namespace keel::table_stacking_test
