// Tests distribute/dynamic/internal/key_directory.cc, key_index.cc and shard_order.cc.
#include <keel/distribute/dynamic/internal/key_directory.h>

#include <algorithm>
#include <map>
#include <new>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/dynamic/internal/distinct_keys.h>
#include <keel/distribute/dynamic/internal/shard_order.h>

namespace keel::distribute::key_directory_test {

using testing::ElementsAre;

std::vector<int64_t> keys_at(const KeyDirectory<int64_t>& directory,
                             const std::vector<uint32_t>& positions) {
  std::vector<int64_t> out;
  for (const uint32_t position : positions) out.push_back(directory.key(position));
  return out;
}

TEST(KeyFunctionsTest, D055ShardsAndOwners) {
  EXPECT_EQ(key_shard(key_hash(int64_t{0})), 904);
  EXPECT_EQ(key_shard(key_hash(int64_t{1})), 441);
  EXPECT_EQ(key_shard(key_hash(int64_t{42})), 31);
  EXPECT_EQ(key_shard(key_hash(int64_t{-1})), 0);
  EXPECT_EQ(key_shard(key_hash(std::string("item-42"))), 569);
  std::mt19937_64 random(1);
  std::vector<int> shards;
  for (int i = 0; i < 100'000; ++i) {
    shards.push_back(key_shard(key_hash(static_cast<int64_t>(random()))));
  }
  for (int hosts = 1; hosts <= 7; ++hosts) {
    std::vector<int> sizes(hosts);
    for (const int shard : shards) ++sizes[owner_of_key_shard(shard, hosts)];
    for (const int size : sizes) EXPECT_NEAR(size, 100'000.0 / hosts, 0.05 * 100'000 / hosts);
    for (int shard = 1; shard < kKeyShards; ++shard) {
      EXPECT_LE(owner_of_key_shard(shard - 1, hosts), owner_of_key_shard(shard, hosts));
    }
  }
}

TEST(KeyFunctionsTest, FallbackRowsAreFloorRemainders) {
  EXPECT_EQ(fallback_row(int64_t{-1}, 4), 3);
  EXPECT_EQ(fallback_row(int64_t{-4}, 4), 0);
  EXPECT_EQ(fallback_row(int64_t{9}, 4), 1);
  EXPECT_EQ(fallback_row(std::numeric_limits<int64_t>::min(), 4), 0);
}

// Keys that are their hashes.
struct HashedKeys {
  std::map<uint32_t, uint64_t> hashes;  // by position
  uint64_t hash(uint32_t position) const { return hashes.at(position); }
  void prefetch(uint32_t) const {}
};

// The slots take 16 GiB of addresses, but hardly any memory.
TEST(KeyIndexTest, FindsKeysAmongFourBillionSlots) {
  KeyIndex index;
  try {
    index.reserve(1'800'000'000);
  } catch (const std::bad_alloc&) {
    GTEST_SKIP() << "the address space is limited";
  }
  ASSERT_EQ(index.bytes(), int64_t{4} << 32);
  HashedKeys keys;
  for (const uint32_t position : {0U, 7U, 0x80000005U, 0xfffffff0U}) {
    const uint64_t hash = position % 2 == 0 ? 0x1234567800000009 : 0xffffffffffffffff;
    EXPECT_EQ(index.first_candidate(hash ^ 0x40000000), KeyIndex::kNone);
    index.insert(hash, position, keys);
    keys.hashes[position] = hash;
  }
  for (const auto& [position, hash] : keys.hashes) {
    EXPECT_EQ(index.find(hash, [&](uint32_t of) { return of == position; }), position);
  }
  index.erase(keys.hash(0), 0, keys);
  EXPECT_EQ(index.first_candidate(keys.hash(0xfffffff0)), 0xfffffff0);
}

TEST(KeyDirectoryTest, AppendsManyKeysAtPositionsInOrder) {
  for (const int64_t reserved : {0, 5'000}) {
    KeyDirectory<std::string> directory;
    directory.reserve(reserved);
    std::vector<std::string> keys;
    std::vector<uint64_t> hashes;
    std::vector<KeyUse> uses;
    for (int64_t i = 0; i < 5'000; ++i) {
      keys.push_back("item-" + std::to_string(i));
      hashes.push_back(key_hash(keys.back()));
      uses.push_back({.last = 2 * i, .born = i, .count = static_cast<uint32_t>(i)});
    }
    const auto part = [](auto& of, size_t first, size_t count) {
      return std::span(of).subspan(first, count);
    };
    directory.append(part(keys, 0, 3'000), part(hashes, 0, 3'000), part(uses, 0, 3'000));
    directory.append(part(keys, 3'000, 2'000), part(hashes, 3'000, 2'000),
                     part(uses, 3'000, 2'000));
    ASSERT_EQ(directory.size(), 5'000);
    for (uint32_t i = 0; i < 5'000; ++i) {
      ASSERT_EQ(directory.find(keys[i]), i);
      EXPECT_EQ(directory.use(i).last, 2 * i);
      EXPECT_EQ(directory.use(i).born, i);
      EXPECT_EQ(directory.use(i).count, i);
    }
    EXPECT_EQ(directory.find("item-5000"), KeyIndex::kNone);
    directory.remove(7);
    EXPECT_EQ(directory.add("other", {}), 7U);
  }
}

TEST(KeyDirectoryTest, ShardOrderIsAscendingInShardsAndThenInKeys) {
  std::mt19937_64 random(3);
  KeyDirectory<int64_t> numbers;
  KeyDirectory<std::string> texts;
  for (int i = 0; i < 20'000; ++i) {
    const auto key = static_cast<int64_t>(random());
    numbers.add(key, {});
    texts.add(std::to_string(key), {});
  }
  for (uint32_t position = 0; position < 20'000; position += 3) numbers.remove(position);
  const auto expect_ascending = [](const auto& of) {
    const std::vector<uint32_t> order = shard_order(of);
    ASSERT_EQ(std::ssize(order), of.size());
    for (size_t i = 1; i < order.size(); ++i) {
      const auto &a = of.key(order[i - 1]), &b = of.key(order[i]);
      ASSERT_LT(std::pair(key_shard(key_hash(a)), a), std::pair(key_shard(key_hash(b)), b));
    }
  };
  expect_ascending(numbers);
  expect_ascending(texts);
  expect_ascending(KeyDirectory<int64_t>());
}

TEST(KeyDirectoryTest, EqualsAMapInARandomSequenceOfOperations) {
  KeyDirectory<int64_t> directory;
  std::map<int64_t, uint32_t> expected;
  std::mt19937_64 random(7);
  for (int step = 0; step < 60'000; ++step) {
    const auto key = static_cast<int64_t>(random() % 9'000) - 4'000;
    const auto found = expected.find(key);
    const uint32_t position = directory.find(key);
    ASSERT_EQ(position, found == expected.end() ? KeyIndex::kNone : found->second);
    // More insertions than removals at first, then the other way round.
    const bool adds = random() % 100 < (step < 30'000 ? 70 : 30);
    if (found == expected.end() && adds) {
      expected[key] = directory.add(key, {.last = step, .born = step});
    } else if (found != expected.end() && !adds) {
      directory.remove(position);
      expected.erase(found);
    }
    ASSERT_EQ(directory.size(), std::ssize(expected));
  }
  std::vector<int64_t> keys;
  for (const auto& [key, position] : expected) keys.push_back(key);
  EXPECT_EQ(keys_at(directory, directory.sorted()), keys);
}

TEST(KeyDirectoryTest, EqualsAMapIfManyKeysAreRemovedTogether) {
  KeyDirectory<int64_t> directory;
  directory.track_expiry();
  std::map<int64_t, int64_t> expected;  // times
  std::mt19937_64 random(9);
  int64_t most = 0;
  for (int64_t step = 0; step < 40'000; ++step) {
    // Later times need wide numbers.
    const int64_t now = step < 30'000 ? step : step << 20U;
    const auto key = static_cast<int64_t>(random() % 6'000);
    const uint32_t position = directory.find(key);
    ASSERT_EQ(position != KeyIndex::kNone, expected.contains(key));
    if (position == KeyIndex::kNone) {
      const int64_t next = directory.next_position();
      ASSERT_EQ(directory.add(key, {.last = now, .born = now}), next);
    } else {
      directory.add_use(position, 1, now);
    }
    expected[key] = now;
    most = std::max(most, directory.size());
    // Some of the keys occur again while they are still stored.
    if (directory.size() >= 3'000 || step % 7'000 == 6'999) {
      const std::vector<uint32_t> lowest =
          step % 2 == 0 ? directory.lowest_unordered(1'500, KeyRank::kLastThenCount)
                        : directory.take_expired(now - 2'000);
      for (const uint32_t removed : lowest) ASSERT_EQ(expected.erase(directory.key(removed)), 1U);
      directory.remove_all(lowest);
    }
    ASSERT_EQ(directory.size(), std::ssize(expected));
    if (step % 1'000 != 0) continue;
    std::vector<int64_t> keys;
    for (const auto& [of, time] : expected) {
      keys.push_back(of);
      ASSERT_EQ(directory.use(directory.find(of)).last, time);
    }
    ASSERT_EQ(keys_at(directory, directory.sorted()), keys);
  }
  EXPECT_EQ(directory.limit(), most);
}

TEST(KeyDirectoryTest, D051KeysWithEqualHashesAreTwoKeys) {
  KeyDirectory<std::string> directory;
  constexpr uint64_t kHash = 0x1234567890abcdef;
  const uint32_t a = directory.add("a", kHash, {.last = 1});
  const uint32_t b = directory.add("b", kHash, {.last = 2});
  EXPECT_NE(a, b);
  EXPECT_EQ(directory.find("a", kHash), a);
  EXPECT_EQ(directory.find("b", kHash), b);
  EXPECT_EQ(directory.find("c", kHash), KeyIndex::kNone);
  directory.add_use(a, 3, 5);
  EXPECT_EQ(directory.use(a).count, 3U);
  EXPECT_EQ(directory.use(b).count, 0U);
  DistinctKeys<std::string> distinct(2);
  EXPECT_EQ(distinct.number("a", kHash), 0U);
  EXPECT_EQ(distinct.number("b", kHash), 1U);
  EXPECT_EQ(distinct.number("a", kHash), 0U);
}

TEST(KeyDirectoryTest, LowestOrdersByRankAndThenByKey) {
  KeyDirectory<int64_t> directory;
  directory.add(1, {.last = 5, .count = 1});
  directory.add(2, {.last = 4, .count = 9});
  directory.add(3, {.last = 4, .count = 2});
  directory.add(-3, {.last = 4, .count = 2});
  directory.add(4, {.last = 6, .count = 1});
  const auto lowest = [&](int64_t n, KeyRank rank) {
    return keys_at(directory, directory.lowest(n, rank));
  };
  EXPECT_THAT(lowest(4, KeyRank::kLastThenCount), ElementsAre(-3, 3, 2, 1));
  EXPECT_THAT(lowest(3, KeyRank::kCountThenLast), ElementsAre(1, 4, -3));
  EXPECT_THAT(lowest(0, KeyRank::kCountThenLast), ElementsAre());
  EXPECT_EQ(lowest(99, KeyRank::kCountThenLast).size(), 5U);
}

TEST(KeyDirectoryTest, LowestEqualsASortOfAllKeys) {
  KeyDirectory<int64_t> directory;
  std::mt19937_64 random(11);
  std::vector<RankedKey<int64_t>> all;
  for (int64_t key = 0; key < 12'000; ++key) {
    const auto last = static_cast<int64_t>(random() % 40);
    const auto count = static_cast<uint32_t>(random() % 9);
    // Descending times at first, so that each key is lower than those before it.
    const int64_t time = key < 5'000 ? 5'040 - key : last;
    const int64_t id = key * 7'919 % 12'007;
    directory.add(id, {.last = time, .born = 0, .count = count});
    all.push_back({.key = id, .count = count, .last = time});
  }
  std::vector<uint32_t> removed;
  for (size_t i = 0; i < all.size(); i += 5) removed.push_back(directory.find(all[i].key));
  directory.remove_all(removed);
  for (size_t i = 0; i < all.size(); i += 5) all[i].key = -1;
  std::erase_if(all, [](const RankedKey<int64_t>& one) { return one.key < 0; });
  ASSERT_EQ(directory.size(), std::ssize(all));
  for (const KeyRank rank : {KeyRank::kLastThenCount, KeyRank::kCountThenLast}) {
    std::ranges::sort(all, [&](const auto& a, const auto& b) { return is_lower(rank, a, b); });
    for (const int64_t n : {1, 2, 511, 512, 600, 4'000, 9'599, 9'600, 20'000}) {
      std::vector<int64_t> expected;
      for (size_t i = 0; i < std::min<size_t>(n, all.size()); ++i) expected.push_back(all[i].key);
      std::vector<int64_t> keys = keys_at(directory, directory.lowest(n, rank));
      ASSERT_EQ(keys, expected) << n;
      keys = keys_at(directory, directory.lowest_unordered(n, rank));
      std::ranges::sort(keys);
      std::ranges::sort(expected);
      ASSERT_EQ(keys, expected) << n;
    }
  }
}

// The selection estimates a bound by every third key, which are the lowest here.
TEST(KeyDirectoryTest, LowestDoesNotDependOnTheOrderOfPositions) {
  KeyDirectory<int64_t> directory;
  constexpr int64_t kKeys = 49'152;
  for (int64_t key = 0; key < kKeys; ++key) {
    directory.add(key, {.last = key % 3 == 0 ? key : kKeys + key});
  }
  for (const int64_t n : {100, 16'384, 20'000}) {
    std::vector<int64_t> expected;
    for (int64_t key = 0; key < kKeys && std::ssize(expected) < n; key += 3) {
      expected.push_back(key);
    }
    for (int64_t key = 0; std::ssize(expected) < n; ++key) {
      if (key % 3 != 0) expected.push_back(key);
    }
    std::ranges::sort(expected);
    EXPECT_EQ(keys_at(directory, directory.lowest_unordered(n, KeyRank::kLastThenCount)), expected);
  }
}

// Hashes by position, and the number of times that the index has read one.
struct CountedHashes {
  const std::vector<uint64_t>& hashes;
  mutable int64_t reads = 0;
  uint64_t hash(uint32_t position) const {
    ++reads;
    return hashes[position];
  }
  void prefetch(uint32_t) const {}
};

TEST(KeyIndexTest, EqualsAMapIfManyHomeSlotsAreEqual) {
  std::mt19937_64 random(13);
  KeyIndex index;
  std::vector<uint64_t> hashes;
  std::vector<char> is_present;
  std::vector<uint32_t> free;
  const CountedHashes keys{hashes};
  // The home slots are in 64 small groups, so that most keys are far from them. Some hashes are
  // equal.
  for (int step = 0; step < 6'000; ++step) {
    if (step % 3 == 2) {
      const auto position = static_cast<uint32_t>(random() % hashes.size());
      if (is_present[position] == 0) continue;
      index.erase(hashes[position], position, keys);
      is_present[position] = 0;
      free.push_back(position);
    } else {
      if (free.empty()) {
        free.push_back(static_cast<uint32_t>(hashes.size()));
        hashes.push_back(0);
        is_present.push_back(0);
      }
      const uint32_t position = free.back();
      free.pop_back();
      hashes[position] = random() % 64 << 26U | random() % 24 << 4U;
      is_present[position] = 1;
      index.insert(hashes[position], position, keys);
    }
    if (step % 500 != 0) continue;
    for (uint32_t position = 0; position < hashes.size(); ++position) {
      const uint32_t found =
          index.find(hashes[position], [&](uint32_t other) { return other == position; });
      ASSERT_EQ(found, is_present[position] != 0 ? position : KeyIndex::kNone);
    }
  }
}

TEST(KeyDirectoryTest, CountsSaturate) {
  KeyUse use = {.last = 0, .count = 0xfffffff0};
  use.add(0x100, 3);
  EXPECT_EQ(use.count, 0xffffffffU);
  use.add(1, 4);
  EXPECT_EQ(use.count, 0xffffffffU);
  EXPECT_EQ(use.last, 4);
}

TEST(KeyDirectoryTest, FindsManyKeysWhileItGrowsAndShrinks) {
  KeyDirectory<int64_t> directory;
  std::map<int64_t, uint32_t> expected;
  std::mt19937_64 random(3);
  std::vector<int64_t> asked(997);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 1'500; ++i) {
      const auto key = static_cast<int64_t>(random());
      expected[key] = directory.add(key, {.last = round, .born = round});
    }
    // Every third round removes a part of the keys, one by one or together.
    std::vector<uint32_t> removed;
    std::vector<int64_t> removed_keys;
    for (auto i = expected.begin(); round % 3 == 2 && i != expected.end();) {
      const bool removes = random() % 3 == 0;
      if (removes) {
        removed.push_back(i->second);
        removed_keys.push_back(i->first);
      }
      i = removes ? expected.erase(i) : std::next(i);
    }
    if (round % 2 == 0) {
      directory.remove_all(removed);
    } else {
      for (const uint32_t position : removed) directory.remove(position);
    }
    auto next = expected.begin();
    for (int64_t& key : asked)
      key = random() % 2 == 0 ? (next++)->first : static_cast<int64_t>(random());
    std::copy_n(removed_keys.begin(), std::min<size_t>(300, removed_keys.size()), asked.begin());
    size_t calls = 0;
    directory.find_all(
        asked.size(), [&](size_t i) { return asked[i]; },
        [&](size_t i) { return key_hash(asked[i]); },
        [&](size_t i, uint32_t position) {
          EXPECT_EQ(i, calls++);
          const auto found = expected.find(asked[i]);
          EXPECT_EQ(position, found == expected.end() ? KeyIndex::kNone : found->second);
        });
    ASSERT_EQ(calls, asked.size());
    for (const auto& [key, position] : expected) ASSERT_EQ(directory.find(key), position);
    if (round % 4 == 0) directory.forget_removed();
  }
}

TEST(KeyDirectoryTest, ARowCostsAtMost24BytesAtLoadFourFifths) {
  KeyDirectory<int64_t> directory;
  std::mt19937_64 random(5);
  do {
    directory.add(static_cast<int64_t>(random()), {});
  } while (directory.size() < 10'000 || directory.load() < 0.799);
  EXPECT_LE(static_cast<double>(directory.bytes()) / static_cast<double>(directory.size()), 24.05);
}

TEST(KeyDirectoryTest, TimesAreExactHoweverFarApart) {
  KeyDirectory<int64_t> directory;
  const std::vector<int64_t> times = {1'700'000'000, 1'690'000'000, 1'716'000'000, 5,
                                      int64_t{1} << 62};
  for (size_t added = 0; added < times.size(); ++added) {
    directory.add(static_cast<int64_t>(added), {.last = times[added], .born = times[added]});
    for (size_t i = 0; i <= added; ++i) {
      const KeyUse use = directory.use(static_cast<int64_t>(i));
      EXPECT_EQ(use.last, times[i]);
      EXPECT_EQ(use.born, times[i]);
    }
  }
  directory.add_use(1, 7, (int64_t{1} << 62) + 1);
  EXPECT_EQ(directory.use(1).last, (int64_t{1} << 62) + 1);
  EXPECT_EQ(directory.use(1).born, 1'690'000'000);
  EXPECT_EQ(directory.use(1).count, 7U);
}

TEST(KeyDirectoryTest, ExpiredKeysAreFoundOnce) {
  KeyDirectory<int64_t> directory;
  directory.track_expiry();
  for (int64_t key = 0; key < 6; ++key) directory.add(key, {.last = key, .born = key});
  EXPECT_GT(directory.bytes(), KeyDirectory<int64_t>().bytes());
  directory.add_use(1, 1, 4);  // between the limits of the next two calls
  directory.remove(directory.find(0));
  EXPECT_THAT(keys_at(directory, directory.take_expired(3)), testing::UnorderedElementsAre(2, 3));
  directory.remove(directory.find(2));
  directory.remove(directory.find(3));
  EXPECT_THAT(keys_at(directory, directory.take_expired(4)), testing::UnorderedElementsAre(1, 4));
}

TEST(KeyDirectoryTest, MemoryDoesNotGrowWithTheKeysThatComeAndGo) {
  KeyDirectory<int64_t> directory;
  directory.track_expiry();
  int64_t bytes = 0;
  for (int64_t key = 0; key < 1'000'000; ++key) {
    directory.add(key, {.last = key / 10'000, .born = key / 10'000});
    if (key >= 1'000) directory.remove(directory.find(key - 1'000));
    if (key == 10'000) bytes = directory.bytes();
  }
  EXPECT_EQ(directory.size(), 1'000);
  EXPECT_LE(directory.bytes(), bytes);
}

TEST(KeyDirectoryTest, HalvingRoundsDown) {
  KeyDirectory<int64_t> directory;
  const uint32_t position = directory.add(1, {.last = 5, .count = 7});
  directory.halve_counts();
  EXPECT_EQ(directory.use(position).count, 3U);
}

}  // namespace keel::distribute::key_directory_test
