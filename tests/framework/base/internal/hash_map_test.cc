#include <keel/framework/base/internal/hash_map.h>

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace keel::hash_map_test {

TEST(HashMapTest, MatchesAnOrderedMap) {
  HashMap<int64_t, int64_t> map;
  std::map<int64_t, int64_t> expected;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    // Adjacent keys, multiples of a power of two and random keys.
    const auto draw = static_cast<int64_t>(random());
    const int64_t key = i % 3 == 0 ? draw % 5000 : i % 3 == 1 ? draw << 20 : draw;
    map[key] += i;
    expected[key] += i;
  }
  ASSERT_EQ(map.size(), expected.size());
  for (const auto& [key, value] : expected) {
    ASSERT_TRUE(map.contains(key));
    ASSERT_EQ(*map.find(key), value);
  }
  for (const auto& [key, value] : map) ASSERT_EQ(expected.at(key), value);
  for (int i = 0; i < 1000; ++i) {
    const auto key = static_cast<int64_t>(random());
    ASSERT_EQ(map.contains(key), expected.contains(key));
  }
}

TEST(HashMapTest, InsertsAKeyOnceAndKeepsTheOrder) {
  HashMap<std::string, int> map;
  EXPECT_EQ(map.find("a"), nullptr);
  EXPECT_TRUE(map.insert("b", 1).second);
  EXPECT_TRUE(map.insert("a", 2).second);
  EXPECT_FALSE(map.insert("b", 3).second);
  EXPECT_EQ(*map.find("b"), 1);
  EXPECT_EQ(map.begin()->first, "b");
  map.clear();
  EXPECT_FALSE(map.contains("b"));
  EXPECT_TRUE(map.insert("b", 4).second);
}

// A value whose copy constructor throws at a chosen copy.
struct Fragile {
  static inline int copies_left = -1;
  int value = 0;
  Fragile(int v = 0) : value(v) {}  // NOLINT: implicit
  Fragile(const Fragile& other) : value(other.value) { count(); }
  Fragile& operator=(const Fragile&) = default;
  bool operator==(const Fragile& other) const { return value == other.value; }
  static void count() {
    if (copies_left >= 0 && copies_left-- == 0) throw std::bad_alloc();
  }
};

}  // namespace keel::hash_map_test

template <>
struct std::hash<keel::hash_map_test::Fragile> {
  size_t operator()(const keel::hash_map_test::Fragile& f) const {
    return std::hash<int>()(f.value);
  }
};

namespace keel::hash_map_test {

TEST(HashMapTest, AFailedInsertChangesNothing) {
  HashMap<Fragile, int> map;
  for (int i = 0; i < 100; ++i) {
    for (int fails = 0;; ++fails) {
      Fragile::copies_left = fails;
      try {
        map.insert(i, i);
        break;
      } catch (const std::bad_alloc&) {
        Fragile::copies_left = -1;
        ASSERT_EQ(map.size(), static_cast<size_t>(i));
        for (int k = 0; k < i; ++k) ASSERT_EQ(*map.find(k), k);
        ASSERT_FALSE(map.contains(i));
      }
    }
    Fragile::copies_left = -1;
  }
  EXPECT_EQ(map.size(), 100U);
}

}  // namespace keel::hash_map_test
