#include <keel/framework/nest.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::nest_test {

using testing::HasSubstr;
using testing_support::message_of;

using Ints = Nest<int>;

Ints sample() {
  return {{"user", Ints::list({1, Ints::tuple({2, 3})})}, {"item", 4}, {"none", Ints::list({})}};
}

TEST(NestTest, LeavesAreInSequenceOrAscendingKeyOrder) {
  EXPECT_EQ(flatten(sample()), (std::vector<int>{4, 1, 2, 3}));
  EXPECT_EQ(flatten_paths(sample()),
            (std::vector<std::string>{"item", "user/0", "user/1/0", "user/1/1"}));
  EXPECT_EQ(flatten_paths(Ints(7)), (std::vector<std::string>{""}));
}

TEST(NestTest, KindsAreKnown) {
  EXPECT_TRUE(Ints(1).is_leaf());
  EXPECT_TRUE(sample().is_dict());
  EXPECT_TRUE(Ints::list({}).is_sequence());
  EXPECT_TRUE(Ints::tuple({}).is_sequence());
  EXPECT_EQ(Ints().kind(), NestKind::kList);
  EXPECT_EQ(Ints::dict({}).kind(), NestKind::kDict);
  EXPECT_EQ(name_of(NestKind::kTuple), "a tuple");
  EXPECT_EQ(sample().structure(), "{item: *, none: [], user: [*, (*, *)]}");
}

TEST(NestTest, AccessorsCheckTheKind) {
  const Ints nest = sample();
  EXPECT_EQ(nest["item"].leaf(), 4);
  EXPECT_EQ(nest["user"][1][0].leaf(), 2);
  EXPECT_EQ(sample()["user"].items().size(), 2U);
  EXPECT_THROW(nest.leaf(), TypeError);
  EXPECT_THROW(nest.items(), TypeError);
  EXPECT_THROW(nest["item"].entries(), TypeError);
  EXPECT_THROW(nest["item"]["x"], TypeError);
  EXPECT_THAT(message_of<ValueError>([&] { nest.at("missing"); }), HasSubstr("missing"));
}

TEST(NestTest, PositionsMustBeInBounds) {
  const Nest<int> pair = Nest<int>::list({1, 2});
  EXPECT_EQ(pair[1].leaf(), 2);
  for (const int position : {-1, 2}) {
    EXPECT_THAT(message_of<ValueError>([&] { pair[position].leaf(); }),
                HasSubstr("out of bounds for [*, *]"));
    EXPECT_THROW((Nest<int>::tuple({1, 2})[position].leaf()), ValueError);
  }
}

TEST(NestTest, ALeafMayBeChangedInPlace) {
  Ints nest(1);
  nest.leaf() = 5;
  EXPECT_EQ(nest.leaf(), 5);
}

TEST(NestTest, MappingKeepsTheStructure) {
  const Nest<std::string> mapped =
      map_structure(sample(), [](int leaf) { return std::to_string(10 * leaf); });
  EXPECT_EQ(mapped.structure(), sample().structure());
  EXPECT_EQ(flatten(mapped), (std::vector<std::string>{"40", "10", "20", "30"}));
}

TEST(NestTest, PackingIsTheInverseOfFlattening) {
  const Nest<double> packed = pack_sequence_as(sample(), std::vector<double>{1, 2, 3, 4});
  EXPECT_EQ(packed["item"].leaf(), 1);
  EXPECT_EQ(packed["user"][1][1].leaf(), 4);
  EXPECT_EQ(packed["user"][1].kind(), NestKind::kTuple);
  EXPECT_THROW(pack_sequence_as(sample(), std::vector<double>{1, 2, 3}), ValueError);
  EXPECT_THROW(pack_sequence_as(sample(), std::vector<double>(5)), ValueError);
}

TEST(NestTest, EqualStructuresPassForAnyLeaves) {
  EXPECT_NO_THROW(assert_same_structure(
      sample(), map_structure(sample(), [](int i) { return static_cast<double>(i); })));
}

TEST(NestTest, ListsAndTuplesDiffer) {
  const Ints expected = {{"a", Ints::list({1, Ints::list({2})})}};
  const Ints received = {{"a", Ints::list({1, Ints::tuple({2})})}};
  const std::string message =
      message_of<TypeError>([&] { assert_same_structure(expected, received); });
  EXPECT_THAT(message, HasSubstr("'a/1'"));
  EXPECT_THAT(message, HasSubstr("a list"));
  EXPECT_THAT(message, HasSubstr("a tuple"));
  EXPECT_THROW(assert_same_structure(Ints(1), Ints::list({1})), TypeError);
  EXPECT_THROW(assert_same_structure(Ints::dict({{"0", 1}}), Ints::list({1})), TypeError);
}

TEST(NestTest, DifferentLengthsAndKeysAreErrorsWithTheirPath) {
  const Ints expected = {{"a", Ints::list({1, {{"x", 2}, {"y", 3}}})}};
  const Ints longer = {{"a", Ints::list({1, {{"x", 2}, {"y", 3}}, 4})}};
  const Ints renamed = {{"a", Ints::list({1, {{"x", 2}, {"z", 3}}})}};
  const Ints fewer = {{"a", Ints::list({1, {{"x", 2}}})}};
  const auto message = [&](const Ints& received) {
    return message_of<ValueError>([&] { assert_same_structure(expected, received); });
  };
  EXPECT_THAT(message(longer), HasSubstr("'a'"));
  EXPECT_THAT(message(renamed), HasSubstr("'a/1'"));
  EXPECT_THAT(message(fewer), HasSubstr("'a/1'"));
}

TEST(NestTest, SequencesAreRebuiltInTheirKind) {
  EXPECT_EQ(Ints::tuple({1}).same_kind({2, 3}).kind(), NestKind::kTuple);
  EXPECT_EQ(Ints::list({1}).same_kind({}).kind(), NestKind::kList);
}

}  // namespace keel::nest_test
