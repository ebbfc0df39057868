#include <keel/distribute/dynamic/dynamic_vocabulary.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::dynamic_vocabulary_test {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::message_of;

void expect_invalid(const DynamicVocabulary& dynamic, const std::string& option) {
  EXPECT_THAT(message_of<ValueError>([&] { check(dynamic, "items"); }),
              AllOf(HasSubstr("'items'"), HasSubstr(option)));
}

TEST(DynamicVocabularyTest, D001EachInvalidOptionIsAValueError) {
  expect_invalid({.capacity = -1}, "capacity");
  expect_invalid({.headroom = 1}, "headroom");
  expect_invalid({.headroom = -0.1}, "headroom");
  expect_invalid({.headroom = std::nan("")}, "headroom");
  expect_invalid({.admission = Admission::count(0)}, "count");
  expect_invalid({.admission = Admission::count(2, {.window = -1})}, "window");
  expect_invalid({.admission = Admission::count(2, {.max_pending = -1})}, "max_pending");
  expect_invalid({.admission = Admission::sketch(0)}, "count");
  expect_invalid({.admission = Admission::sketch(257)}, "count");
  expect_invalid({.admission = Admission::sketch(2, {.width = 0})}, "width");
  expect_invalid({.admission = Admission::sketch(2, {.halve_every = -1})}, "halve_every");
  expect_invalid({.admission = Admission::probability(0)}, "probability");
  expect_invalid({.admission = Admission::probability(1.1)}, "probability");
  expect_invalid({.admission = Admission::probability(std::nan(""))}, "probability");
  expect_invalid({.eviction = Eviction::none({.ttl = -1})}, "ttl");
  expect_invalid({.eviction = Eviction::none({.min_l2_norm = -1})}, "min_l2_norm");
  expect_invalid({.eviction = Eviction::none({.min_l2_norm = std::nan("")})}, "min_l2_norm");
  expect_invalid({.eviction = Eviction::none({.interval = 0})}, "interval");
  expect_invalid({.capacity = 1, .eviction = Eviction::lfu({.halve_every = -1})}, "halve_every");
  expect_invalid({.capacity = 1, .eviction = Eviction::lru({.halve_every = 3})}, "halve_every");
  expect_invalid({.eviction = Eviction::lru()}, "capacity");
  expect_invalid({.eviction = Eviction::lfu()}, "capacity");
  expect_invalid({.on_full = OnFull::kRefuse}, "on_full");
  expect_invalid({.capacity = 1, .eviction = Eviction::lru(), .on_full = OnFull::kRefuse},
                 "on_full");
  expect_invalid({.not_admitted = NotAdmitted::hashed(0)}, "not_admitted");
}

TEST(DynamicVocabularyTest, D001ValidOptionsPass) {
  check({}, "items");
  check({.capacity = 10, .headroom = 0, .eviction = Eviction::lfu({.ttl = 3, .halve_every = 2})},
        "items");
  check({.capacity = 10, .admission = Admission::sketch(256), .on_full = OnFull::kRefuse}, "items");
}

TEST(DynamicVocabularyTest, D003ConfigsHoldAllOptions) {
  const DynamicVocabulary all[] = {
      {},
      {.key = KeyType::kString,
       .capacity = 7,
       .headroom = 0.25,
       .admission = Admission::count(3, {.window = 5, .max_pending = 9}),
       .eviction = Eviction::lfu({.ttl = 4, .min_l2_norm = 0.5, .interval = 2, .halve_every = 6}),
       .not_admitted = NotAdmitted::hashed(3, initializers::constant(0.25)),
       .clock = Clock::kUser},
      {.capacity = 7,
       .admission = Admission::sketch(4, {.width = 8, .halve_every = 3}),
       .not_admitted = NotAdmitted::default_row(),
       .on_full = OnFull::kRefuse},
      {.capacity = 7,
       .admission = Admission::probability(0.5),
       .eviction = Eviction::lru(),
       .not_admitted = NotAdmitted::ignore()}};
  for (const DynamicVocabulary& dynamic : all) {
    std::optional<DynamicVocabulary> read;
    decode(encode(dynamic), read);
    ASSERT_TRUE(read);
    EXPECT_EQ(to_json(encode(*read)), to_json(encode(dynamic)));
    EXPECT_EQ(read->capacity, dynamic.capacity);
    EXPECT_EQ(read->key, dynamic.key);
    EXPECT_EQ(read->not_admitted.fallback_rows(), dynamic.not_admitted.fallback_rows());
  }
}

TEST(DynamicVocabularyTest, UnknownNamesAreValueErrors) {
  std::optional<DynamicVocabulary> out;
  EXPECT_THROW(decode(Config::dict({{"capacities", 3}}), out), ValueError);
  EXPECT_THAT(message_of<ValueError>([&] { decode(Config::dict({{"key", "float"}}), out); }),
              HasSubstr("'float'"));
}

TEST(DynamicVocabularyTest, D064InitializersThatDependOnOtherRowsAreRejected) {
  for (const char* name : {"glorot_uniform", "glorot_normal", "he_normal", "lecun_uniform",
                           "orthogonal", "identity"}) {
    const Initializer initializer(name);
    EXPECT_THAT(message_of<ValueError>([&] { check_row_initializers({}, initializer, "items"); }),
                AllOf(HasSubstr("'items'"), HasSubstr(initializer.function().class_name())));
    const DynamicVocabulary fallback = {.not_admitted = NotAdmitted::default_row(initializer)};
    EXPECT_THROW(check_row_initializers(fallback, "zeros", "items"), ValueError) << name;
  }
  EXPECT_THROW(check_row_initializers({}, initializers::variance_scaling(1, "fan_in"), "items"),
               ValueError);
  check_row_initializers({}, initializers::variance_scaling(1, "fan_out"), "items");
  const Initializer row_id = initializers::row_id(3);
  check_row_initializers({}, row_id, "items");
  EXPECT_THROW(check_row_initializers({.key = KeyType::kString}, row_id, "items"), ValueError);
  EXPECT_THROW(
      check_row_initializers({.not_admitted = NotAdmitted::default_row()}, row_id, "items"),
      ValueError);
  check_row_initializers({.not_admitted = NotAdmitted::default_row("zeros")}, row_id, "items");
}

}  // namespace keel::dynamic_vocabulary_test
