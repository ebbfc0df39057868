// Tests distribute/embedding/internal/keyed_table.cc, keyed_table_lookup.cc, keyed_table_update.cc,
// keyed_table_calls.cc and keyed_table_state.cc.
#include <keel/distribute/embedding/internal/keyed_table.h>

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/distribute/embedding/naive_dynamic_table.h"
#include "tests/support/errors.h"

namespace keel::distribute::keyed_table_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::message_of;
using Batches = naive::DynamicTable::Batches;

InitialRows row_ids() {
  return {1, initializers::row_id(0), initializers::constant(0.5), {.seed = 5, .purpose = 9}};
}

std::unique_ptr<KeyedTable> make_keyed(const DynamicVocabulary& dynamic) {
  auto out = KeyedTable::create({.name = "items", .dynamic = dynamic, .dim = 1});
  out->set_initial_rows(row_ids());
  return out;
}

Tensor keys_of(const std::vector<int64_t>& keys) { return Tensor::from(keys, {std::ssize(keys)}); }

// One bag of all ids.
FeatureBatch bag_of(const std::vector<int64_t>& keys) {
  return {.ids = keys_of(keys),
          .row_splits = Tensor::from<int64_t>({0, std::ssize(keys)}, {2}),
          .weights = {}};
}

std::vector<std::shared_ptr<KeyedLookup>> look_up(KeyedTable& table, const Batches& batches,
                                                  bool training) {
  std::vector<std::shared_ptr<KeyedLookup>> out;
  for (const auto& batch : batches) {
    const FeatureBatch bag = bag_of(batch);
    out.push_back(table.look_up({&bag, 1}, training, table.updates()));
  }
  return out;
}

// Looks up and updates without changing rows.
void admit(KeyedTable& table, const std::vector<int64_t>& keys) {
  const auto lookups = look_up(table, {keys}, true);
  table.plan_update(lookups);
  table.commit_update();
  table.finish_update();
}

std::vector<int64_t> consecutive_keys(int64_t first, int64_t n) {
  std::vector<int64_t> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = first + i;
  return out;
}

// Adds 0.25 to a row for each occurrence.
void update(KeyedTable& table, std::span<const std::shared_ptr<KeyedLookup>> lookups) {
  table.plan_update(lookups);
  table.commit_update();
  for (const auto& lookup : lookups) {
    table.resolve(*lookup);
    for (const int64_t row : lookup->features[0].ids.data<int64_t>()) {
      if (row == 0) continue;
      float value = 0;
      table.shard().read(0, row, &value);
      value += 0.25F;
      table.shard().write(0, row, &value);
    }
  }
  table.finish_update();
}

// Returns the values that a lookup reads, in order; without the ids that are left out.
std::vector<float> values_of(const KeyedTable& table, const KeyedLookup& lookup) {
  std::vector<float> out;
  for (const int64_t row : lookup.features[0].ids.data<int64_t>()) {
    float value = 0;
    if (row < 0) {
      value = lookup.given_rows[-1 - row];
    } else {
      table.shard().read(0, row, &value);
    }
    out.push_back(value);
  }
  return out;
}

void expect_equal(const KeyedTable& table, const naive::DynamicTable& expected) {
  const DynamicTableState state = table.state();
  std::vector<int64_t> keys, count, last, born, pending, pending_count, pending_last;
  std::vector<float> values;
  for (const auto& [key, row] : expected.rows) {
    keys.push_back(key);
    values.push_back(row.value);
    count.push_back(row.count);
    last.push_back(row.last);
    born.push_back(row.born);
  }
  for (const auto& [key, of] : expected.pending) {
    pending.push_back(key);
    pending_count.push_back(of.count);
    pending_last.push_back(of.last);
  }
  ASSERT_EQ(state.keys.to_vector<int64_t>(), keys);
  ASSERT_EQ(state.rows.to_vector<float>(), values);
  ASSERT_EQ(state.count.to_vector<int64_t>(), count);
  ASSERT_EQ(state.last.to_vector<int64_t>(), last);
  ASSERT_EQ(state.born.to_vector<int64_t>(), born);
  ASSERT_EQ(state.pending_keys.to_vector<int64_t>(), pending);
  ASSERT_EQ(state.pending_count.to_vector<int64_t>(), pending_count);
  ASSERT_EQ(state.pending_last.to_vector<int64_t>(), pending_last);
  ASSERT_EQ(state.fallback.to_vector<float>(), expected.fallback);
  const DynamicTableStatistics s = table.statistics();
  ASSERT_EQ(s, expected.statistics());
  // The identities of DynamicTableStatistics.
  ASSERT_EQ(s.looked_up, s.hits + s.fresh + s.not_admitted);
  ASSERT_EQ(s.size, s.admitted + s.assigned - s.evicted_ttl - s.evicted_norm - s.evicted_capacity -
                        s.pruned - s.erased);
}

// A random program: options, and actions on a table and on the naive one.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed), options_(options()) {
    table_ = make_keyed(options_);
    naive_.emplace(options_, draws_);
  }

  void run(int actions) {
    for (int i = 0; i < actions; ++i) {
      act();
      expect_equal(*table_, *naive_);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  DynamicVocabulary options() {
    DynamicVocabulary out;
    const Eviction::Policy policies[] = {Eviction::Policy::kNone, Eviction::Policy::kLru,
                                         Eviction::Policy::kLfu};
    out.eviction.policy = policies[below(3)];
    const bool ranks = out.eviction.policy != Eviction::Policy::kNone;
    out.capacity = ranks || below(2) == 0 ? 1 + below(12) : 0;
    out.headroom = below(2) == 0 ? 0 : 0.3;
    EvictionOptions& eviction = out.eviction.options;
    if (below(3) == 0) eviction.ttl = 1 + below(5);
    if (below(4) == 0) eviction.min_l2_norm = static_cast<double>(1 + below(6)) / 2;
    eviction.interval = 1 + below(3);
    if (out.eviction.policy == Eviction::Policy::kLfu && below(2) == 0) {
      eviction.halve_every = 1 + below(4);
    }
    const Admission admissions[] = {
        Admission::always(),
        Admission::count(1 + below(3), {.window = below(4), .max_pending = below(8)}),
        Admission::sketch(1 + below(3), {.width = 1 + below(3), .halve_every = below(4)}),
        Admission::probability(0.4)};
    out.admission = admissions[below(4)];
    const NotAdmitted rows[] = {NotAdmitted::zero(), NotAdmitted::ignore(),
                                NotAdmitted::default_row("zeros"), NotAdmitted::hashed(3, "zeros")};
    out.not_admitted = rows[below(4)];
    if (!ranks && out.capacity > 0 && below(2) == 0) out.on_full = OnFull::kRefuse;
    if (below(4) == 0) out.clock = Clock::kUser;
    return out;
  }

  std::vector<int64_t> some_keys(int64_t most) {
    std::vector<int64_t> out;
    // Low keys are frequent.
    for (int64_t n = below(most + 1); n > 0; --n) out.push_back(below(1 + below(30)) - 5);
    return out;
  }
  Batches batches() {
    Batches out;
    for (int64_t n = 1 + below(3); n > 0; --n) out.push_back(some_keys(6));
    return out;
  }

  void act() {
    switch (below(12)) {
      case 0:
        return evaluate();
      case 1: {  // a training lookup without an update
        look_up(*table_, batches(), true);
        return;
      }
      case 2: {
        const PruneOptions prune = {.ttl = below(3) == 0 ? 1 + below(4) : 0,
                                    .min_l2_norm = below(4) == 0 ? 1.5 : 0,
                                    .min_count = below(3),
                                    .max_rows = below(3) == 0 ? below(6) : -1};
        ASSERT_EQ(table_->prune(prune), naive_->prune(prune));
        return;
      }
      case 3: {
        const std::vector<int64_t> keys = some_keys(5);
        table_->erase(keys_of(keys));
        naive_->erase(keys);
        return;
      }
      case 4:
        return assign();
      case 5:
        if (options_.clock == Clock::kUser) {
          naive_->clock += below(4);
          table_->set_clock(naive_->clock);
        }
        return;
      case 6: {  // a new table with the saved state
        const DynamicTableState state = table_->state();
        table_ = make_keyed(options_);
        table_->restore(state);
        return;
      }
      default:
        return train();
    }
  }

  void evaluate() {
    const Batches all = batches();
    expect_reads(look_up(*table_, all, false), all, false);
    naive_->evaluate(all);
  }

  void train() {
    const Batches all = batches();
    const auto lookups = look_up(*table_, all, true);
    expect_reads(lookups, all, true);
    if (naive_->train(all)) {
      update(*table_, lookups);
    } else {
      EXPECT_THROW(table_->plan_update(lookups), RuntimeError);
    }
  }

  void assign() {
    std::map<int64_t, float> values;
    for (const int64_t key : some_keys(4)) values[key] = static_cast<float>(below(9)) - 4;
    std::vector<int64_t> keys;
    std::vector<float> rows;
    for (const auto& [key, value] : values) {
      keys.push_back(key);
      rows.push_back(value);
    }
    const Tensor of_rows = Tensor::from(rows, {std::ssize(rows), 1});
    if (naive_->assign(values)) {
      table_->assign_rows(keys_of(keys), of_rows);
    } else {
      EXPECT_THROW(table_->assign_rows(keys_of(keys), of_rows), ValueError);
    }
  }

  void expect_reads(const std::vector<std::shared_ptr<KeyedLookup>>& lookups, const Batches& all,
                    bool training) {
    for (size_t r = 0; r < all.size(); ++r) {
      std::vector<float> expected;
      for (const int64_t key : all[r]) {
        const naive::DynamicTable::Read read = naive_->read(key, training);
        if (read.kind != naive::DynamicTable::Read::Kind::kNothing) expected.push_back(read.value);
      }
      ASSERT_EQ(values_of(*table_, *lookups[r]), expected);
    }
  }

  std::mt19937_64 random_;
  const DynamicVocabulary options_;
  const InitialRows draws_ = row_ids();
  std::unique_ptr<KeyedTable> table_;
  std::optional<naive::DynamicTable> naive_;
};

TEST(KeyedTableTest, D116RandomProgramsEqualANaiveTable) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    RandomProgram(seed).run(25);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(KeyedTableTest, D080D081CountersOfALongRunEqualBruteForce) {
  for (const uint64_t seed : {5001, 5002, 5003}) {
    RandomProgram(seed).run(2000);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(KeyedTableTest, D052TheOrderOfArrivalDoesNotMatter) {
  const DynamicVocabulary dynamic = {
      .capacity = 20, .admission = Admission::count(2), .eviction = Eviction::lfu()};
  const auto a = make_keyed(dynamic), b = make_keyed(dynamic);
  std::mt19937_64 random(3);
  for (int step = 0; step < 50; ++step) {
    std::vector<int64_t> keys(40);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % 60);
    update(*a, look_up(*a, {keys}, true));
    std::ranges::shuffle(keys, random);
    // Another order, over two replicas.
    const std::vector<int64_t> first(keys.begin(), keys.begin() + 15);
    const std::vector<int64_t> second(keys.begin() + 15, keys.end());
    update(*b, look_up(*b, {first, second}, true));
  }
  const DynamicTableState x = a->state(), y = b->state();
  EXPECT_EQ(x.keys.to_vector<int64_t>(), y.keys.to_vector<int64_t>());
  EXPECT_EQ(x.count.to_vector<int64_t>(), y.count.to_vector<int64_t>());
  EXPECT_EQ(x.last.to_vector<int64_t>(), y.last.to_vector<int64_t>());
  EXPECT_EQ(x.pending_keys.to_vector<int64_t>(), y.pending_keys.to_vector<int64_t>());
  EXPECT_EQ(a->statistics(), b->statistics());
}

TEST(KeyedTableTest, D038TheErrorOfAFullTableNamesTheRemedies) {
  const auto table = make_keyed({.capacity = 2});
  const auto lookups = look_up(*table, {{7, 3, 9}}, true);
  EXPECT_THAT(
      message_of<RuntimeError>([&] { table->plan_update(lookups); }),
      AllOf(HasSubstr("'items'"), HasSubstr("capacity 2"), HasSubstr("3 new ids"),
            HasSubstr("smallest of which is 3"), HasSubstr("eviction"), HasSubstr("kRefuse")));
  EXPECT_EQ(table->statistics(), DynamicTableStatistics());
}

TEST(KeyedTableTest, D061InitialRowsDoNotDependOnHistory) {
  const Initializer uniform = initializers::random_uniform(-1, 1, 3);
  const auto made = [&](int64_t capacity) {
    auto out = KeyedTable::create(
        {.name = "items",
         .dynamic = {.capacity = capacity,
                     .eviction = capacity > 0 ? Eviction::lru() : Eviction::none()},
         .dim = 3});
    out->set_initial_rows({3, uniform, uniform, {.seed = 3, .purpose = 0}});
    return out;
  };
  const auto all = made(0), some = made(500);
  std::vector<int64_t> keys(20'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919 % 20'000);
  // Without row updates, rows keep their initial values.
  admit(*all, keys);
  std::ranges::reverse(keys);
  for (size_t first = 0; first < keys.size(); first += 400) {
    admit(*some, {keys.begin() + static_cast<int64_t>(first),
                  keys.begin() + static_cast<int64_t>(first) + 400});
  }
  EXPECT_EQ(some->statistics().size, 500 - 25 + 0);
  const Tensor left = some->keys();
  EXPECT_EQ(some->read(0, left).to_vector<float>(), all->read(0, left).to_vector<float>());
}

TEST(KeyedTableTest, D110GrowthMovesNoRow) {
  const auto table = make_keyed({});
  admit(*table, consecutive_keys(0, 10));
  const float* const before = table->shard().row(1);
  for (int64_t first = 10; first < 1'000'000; first += 90'000) {
    admit(*table, consecutive_keys(first, 90'000));
  }
  EXPECT_EQ(table->shard().row(1), before);
  EXPECT_EQ(table->read(0, keys_of({7})).item<float>(), 7);
  EXPECT_EQ(table->read(0, keys_of({900'000})).item<float>(), 900'000);
}

TEST(KeyedTableTest, D111TheMemoryOfABoundedTableIsConstant) {
  const auto table =
      make_keyed({.capacity = 1000,
                  .admission = Admission::count(2, {.window = 4, .max_pending = 2000}),
                  .eviction = Eviction::lru({.ttl = 50})});
  const auto bytes = [&] {
    const DynamicTableMemory memory = table->memory();
    return memory.rows + memory.index + memory.pending + memory.sketch;
  };
  int64_t before = 0;
  for (int64_t step = 0; step < 600; ++step) {
    // Each key occurs in two steps, so that all of them are admitted.
    admit(*table, consecutive_keys(step * 250, 500));
    if (step == 300) before = bytes();
  }
  // Tables of the index may still grow once, because the shards of keys vary in size.
  EXPECT_LT(static_cast<double>(bytes()), 1.1 * static_cast<double>(before));
  EXPECT_LE(table->statistics().size, 1000);
  EXPECT_GT(table->statistics().admitted, 100'000);
}

TEST(KeyedTableTest, D083EraseOverwritesTheMemory) {
  const auto table = make_keyed({});
  update(*table, look_up(*table, {{41, 42, 43}}, true));
  const auto holds = [&](float value) {
    for (int64_t row = 0; row < table->row_limit(); ++row) {
      float stored = 0;
      table->shard().read(0, row, &stored);
      if (stored == value) return true;
    }
    return false;
  };
  EXPECT_TRUE(holds(42.25F));
  table->erase(keys_of({42}));
  EXPECT_FALSE(holds(42.25F));
  EXPECT_TRUE(holds(43.25F));
}

TEST(KeyedTableTest, D084CallbacksGetTheFinalRowsOfEachCause) {
  const auto table = make_keyed({.capacity = 3, .headroom = 0, .eviction = Eviction::lru()});
  std::vector<int64_t> keys;
  std::vector<float> rows;
  std::vector<EvictionReason> reasons;
  table->on_evict([&](const EvictedRows& evicted) {
    keys = evicted.keys.to_vector<int64_t>();
    rows = evicted.rows.to_vector<float>();
    reasons = evicted.reasons;
  });
  update(*table, look_up(*table, {{9, 8, 7, 6, 5}}, true));
  EXPECT_THAT(keys, ElementsAre(5, 6));
  EXPECT_THAT(rows, ElementsAre(5.25F, 6.25F));
  EXPECT_THAT(reasons, ElementsAre(EvictionReason::kCapacity, EvictionReason::kCapacity));
  table->erase(keys_of({9, 1}));
  EXPECT_THAT(keys, ElementsAre(9));
  EXPECT_THAT(rows, ElementsAre(9.25F));
  EXPECT_THAT(reasons, ElementsAre(EvictionReason::kErased));
  table->prune({.max_rows = 1});
  EXPECT_THAT(keys, ElementsAre(7));
  EXPECT_THAT(reasons, ElementsAre(EvictionReason::kPruned));
}

TEST(KeyedTableTest, D084ACallbackThatThrowsLeavesTheTableConsistent) {
  const auto table = make_keyed({});
  update(*table, look_up(*table, {{1, 2}}, true));
  table->on_evict([](const EvictedRows&) { throw ValueError("disk full"); });
  EXPECT_THROW(table->erase(keys_of({1})), ValueError);
  EXPECT_EQ(table->keys().to_vector<int64_t>(), std::vector<int64_t>{2});
  EXPECT_EQ(table->statistics().erased, 1);
}

TEST(KeyedTableTest, D084ACallbackMustNotChangeTheTable) {
  const auto table = make_keyed({});
  update(*table, look_up(*table, {{1, 2}}, true));
  table->on_evict([&](const EvictedRows&) {
    table->assign_rows(keys_of({5}), Tensor::from<float>({1}, {1, 1}));
  });
  EXPECT_THROW(table->erase(keys_of({1})), RuntimeError);
  EXPECT_EQ(table->statistics().size, 1);
}

TEST(KeyedTableTest, D084ACallbackMustNotAddCallbacks) {
  const auto table = make_keyed({});
  update(*table, look_up(*table, {{1, 2}}, true));
  table->on_evict([&](const EvictedRows&) { table->on_evict([](const EvictedRows&) {}); });
  EXPECT_THAT(message_of<RuntimeError>([&] { table->erase(keys_of({1})); }), HasSubstr("on_evict"));
  EXPECT_EQ(table->statistics().size, 1);
}

TEST(KeyedTableTest, AnUpdateThatFailsAfterItsCommitAddsNoKeyTwice) {
  const auto table = make_keyed({});
  const auto first = look_up(*table, {{1, 2}}, true), second = look_up(*table, {{2, 3}}, true);
  for (const auto& next : {first, second}) {
    table->plan_update(first);
    table->commit_update();
    update(*table, next);
  }
  EXPECT_EQ(table->keys().to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(table->statistics().admitted, 3);
  const auto restored = make_keyed({});
  restored->restore(table->state());
  EXPECT_EQ(restored->statistics().size, 3);
}

TEST(KeyedTableTest, D035TheUserClockNeverGoesBack) {
  const auto table = make_keyed({.clock = Clock::kUser});
  table->set_clock(5);
  EXPECT_THROW(table->set_clock(4), ValueError);
  EXPECT_THROW(make_keyed({})->set_clock(4), ValueError);
}

TEST(KeyedTableTest, D005KeysOfAnotherTypeAreTypeErrors) {
  const FeatureBatch ints = bag_of({1});
  FeatureBatch strings = ints;
  strings.ids = Tensor::from<std::string>({"a"}, {1});
  const auto of_ints = make_keyed({});
  const auto of_strings =
      KeyedTable::create({.name = "items", .dynamic = {.key = KeyType::kString}, .dim = 1});
  EXPECT_THROW(of_ints->look_up({&strings, 1}, true, 0), TypeError);
  EXPECT_THROW(of_strings->look_up({&ints, 1}, true, 0), TypeError);
}

TEST(KeyedTableTest, D093RestoringAnotherKindOfTableIsAValueError) {
  const auto table = make_keyed({});
  update(*table, look_up(*table, {{1, 2, 3}}, true));
  const DynamicTableState state = table->state();
  const auto expect_refused = [&](const KeyedTableOptions& options) {
    const auto other = KeyedTable::create(options);
    const Initializer zeros;
    other->set_initial_rows({options.dim, zeros, zeros, {}});
    EXPECT_THROW(other->restore(state), ValueError);
    EXPECT_EQ(other->statistics(), DynamicTableStatistics());
  };
  expect_refused({.name = "items", .dim = 2});
  expect_refused({.name = "items", .dynamic = {.key = KeyType::kString}, .dim = 1});
  expect_refused({.name = "items", .dynamic = {.capacity = 2}, .dim = 1});
}

}  // namespace keel::distribute::keyed_table_test
