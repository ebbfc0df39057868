// Tests framework/data/batch.cc, block.cc, prefetch.cc, repeat.cc, shuffle.cc, sources.cc and
// transforms.cc.
#include <keel/framework/data/dataset.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/random.h>

#include "tests/support/datasets.h"
#include "tests/support/errors.h"

namespace keel::data::dataset_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::range_dataset;

Tensor range_tensor(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(values, {n});
}

// The numbers 0, 1, ... as elements that are not rows of a source.
Dataset counting(int64_t n, int64_t cardinality = kUnknownCardinality) {
  return Dataset::from_generator(
      [n]() -> Dataset::Generator {
        return [n, i = int64_t{0}]() mutable -> std::optional<Tensors> {
          if (i == n) return std::nullopt;
          return Tensor::scalar<int64_t>(i++);
        };
      },
      cardinality);
}

// Concatenates the numbers of all elements.
std::vector<int64_t> numbers(const Dataset& dataset) {
  std::vector<int64_t> out;
  for (const Tensors& element : dataset) {
    const auto values = element.tensor().data<int64_t>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

std::vector<Shape> shapes(const Dataset& dataset) {
  std::vector<Shape> out;
  for (const Tensors& element : dataset) out.push_back(element.tensor().shape());
  return out;
}

using Numbers = std::vector<int64_t>;
using Floats = std::vector<float>;

// A reference implementation of shuffle, one element at a time.
Numbers naive_shuffle(int64_t n, int64_t buffer_size, uint64_t seed, uint64_t iteration) {
  const RandomStream stream = {.seed = seed, .purpose = 0};
  Numbers buffer;
  Numbers out;
  int64_t next = 0;
  for (uint64_t t = 0; t < static_cast<uint64_t>(n); ++t) {
    while (next < n && static_cast<int64_t>(buffer.size()) < buffer_size) buffer.push_back(next++);
    const auto words = stream.bits(t / 2, iteration);
    const uint64_t fraction = words[t % 2 * 2] | uint64_t{words[t % 2 * 2 + 1]} << 32;
    const auto place =
        static_cast<size_t>(static_cast<long double>(fraction) * buffer.size() / 0x1p64L);
    out.push_back(buffer[place]);
    if (next < n) {
      buffer[place] = next++;
    } else {
      buffer[place] = buffer.back();
      buffer.pop_back();
    }
  }
  return out;
}

TEST(DatasetTest, FromTensorSlicesYieldsRows) {
  const Dataset dataset = Dataset::from_tensor_slices(
      Tensors::tuple({Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}),
                      Tensors{{"label", Tensor::from<std::string>({"a", "b", "c"}, {3})}}}));
  EXPECT_EQ(dataset.cardinality(), 3);
  const Tensors second = *dataset.skip(1).iterator()->next();
  EXPECT_EQ(second[0].tensor().shape(), Shape({2}));
  EXPECT_EQ(second[0].tensor().to_vector<float>(), Floats({3, 4}));
  EXPECT_EQ(second[1]["label"].tensor().shape(), Shape({}));
  EXPECT_EQ(second[1]["label"].tensor().item<std::string>(), "b");
}

TEST(DatasetTest, FromTensorsYieldsOneElement) {
  const Dataset dataset = Dataset::from_tensors(range_tensor(3));
  EXPECT_EQ(dataset.cardinality(), 1);
  EXPECT_EQ(shapes(dataset), std::vector<Shape>({{3}}));
}

TEST(DatasetTest, EachIterationCreatesAGenerator) {
  const Dataset dataset = counting(4, 4);
  EXPECT_EQ(numbers(dataset), Numbers({0, 1, 2, 3}));
  EXPECT_EQ(numbers(dataset), Numbers({0, 1, 2, 3}));
}

TEST(DatasetTest, AnIteratorThatHasEndedStaysEnded) {
  int calls = 0;
  const Dataset dataset = Dataset::from_generator([&]() -> Dataset::Generator {
    return [&]() -> std::optional<Tensors> {
      if (++calls == 2) return std::nullopt;
      return Tensor::scalar<int64_t>(calls);
    };
  });
  auto it = dataset.iterator();
  EXPECT_TRUE(it->next());
  EXPECT_FALSE(it->next());
  EXPECT_FALSE(it->next());
  EXPECT_EQ(calls, 2);
}

TEST(DatasetTest, AnIteratorOutlivesItsDataset) {
  auto it = range_dataset(4).shuffle(2, {.seed = 1}).batch(4).iterator();
  EXPECT_EQ(it->next()->tensor().size(), 4);
}

TEST(DatasetTest, BatchesHaveALeadingDimensionAndTheLastMayBeSmaller) {
  EXPECT_EQ(shapes(range_dataset(7).batch(3)), std::vector<Shape>({{3}, {3}, {1}}));
  EXPECT_EQ(numbers(range_dataset(7).batch(3)), Numbers({0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shapes(range_dataset(7).batch(3, {.drop_remainder = true})),
            std::vector<Shape>({{3}, {3}}));
  EXPECT_EQ(shapes(range_dataset(6).batch(3, {.drop_remainder = true})),
            std::vector<Shape>({{3}, {3}}));
}

TEST(DatasetTest, ElementsOfGeneratorsAndMapsAreStacked) {
  EXPECT_EQ(shapes(counting(5).batch(2)), std::vector<Shape>({{2}, {2}, {1}}));
  const Dataset words = range_dataset(3).map([](const Tensors& x) -> Tensors {
    return Tensor::from<std::string>({std::to_string(x.tensor().item<int64_t>()), "w"}, {2});
  });
  const Tensors batch = *words.batch(3).iterator()->next();
  EXPECT_EQ(batch.tensor().shape(), Shape({3, 2}));
  EXPECT_EQ(batch.tensor().to_vector<std::string>(),
            std::vector<std::string>({"0", "w", "1", "w", "2", "w"}));
}

TEST(DatasetTest, BatchesOfBatchesAreStackedAgain) {
  EXPECT_EQ(shapes(range_dataset(8).batch(2).batch(2)), std::vector<Shape>({{2, 2}, {2, 2}}));
}

TEST(DatasetTest, UnbatchUndoesBatch) {
  EXPECT_EQ(numbers(range_dataset(7).batch(3).unbatch()), Numbers({0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shapes(range_dataset(7).batch(3).unbatch().batch(4)), std::vector<Shape>({{4}, {3}}));
  EXPECT_EQ(numbers(range_dataset(7).batch(3).unbatch().batch(4)), Numbers({0, 1, 2, 3, 4, 5, 6}));
  const Dataset pairs = Dataset::from_tensor_slices(range_tensor(6).reshaped({3, 2}));
  EXPECT_EQ(numbers(pairs.unbatch()), Numbers({0, 1, 2, 3, 4, 5}));
}

TEST(DatasetTest, MapAndFilterReceiveElementsOrBatches) {
  const auto doubled = [](const Tensors& x) -> Tensors {
    auto values = x.tensor().to_vector<int64_t>();
    for (int64_t& v : values) v *= 2;
    return Tensor::from(values, x.tensor().shape());
  };
  EXPECT_EQ(numbers(range_dataset(4).map(doubled)), Numbers({0, 2, 4, 6}));
  EXPECT_EQ(numbers(range_dataset(4).batch(3).map(doubled)), Numbers({0, 2, 4, 6}));
  const auto odd = [](const Tensors& x) { return x.tensor().item<int64_t>() % 2 == 1; };
  EXPECT_EQ(numbers(range_dataset(10).filter(odd)), Numbers({1, 3, 5, 7, 9}));
  EXPECT_EQ(shapes(range_dataset(10).filter(odd).batch(2)), std::vector<Shape>({{2}, {2}, {1}}));
  EXPECT_EQ(numbers(range_dataset(10).filter(odd).batch(2)), Numbers({1, 3, 5, 7, 9}));
  const auto full = [](const Tensors& x) { return x.tensor().size() == 3; };
  EXPECT_EQ(numbers(range_dataset(8).batch(3).filter(full)), Numbers({0, 1, 2, 3, 4, 5}));
}

TEST(DatasetTest, TakeSkipAndShardChooseElements) {
  EXPECT_EQ(numbers(range_dataset(5).take(2)), Numbers({0, 1}));
  EXPECT_EQ(numbers(range_dataset(5).take(9)), Numbers({0, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(range_dataset(5).take(0)), Numbers());
  EXPECT_EQ(numbers(range_dataset(5).skip(3)), Numbers({3, 4}));
  EXPECT_EQ(numbers(range_dataset(5).skip(9)), Numbers());
  EXPECT_EQ(numbers(range_dataset(8).shard(3, 0)), Numbers({0, 3, 6}));
  EXPECT_EQ(numbers(range_dataset(8).shard(3, 2).batch(2)), Numbers({2, 5}));
  EXPECT_EQ(numbers(counting(8).shard(3, 1)), Numbers({1, 4, 7}));
  EXPECT_EQ(numbers(range_dataset(8).batch(2).shard(2, 1)), Numbers({2, 3, 6, 7}));
  EXPECT_EQ(numbers(range_dataset(20).skip(3).shard(2, 1).take(4).batch(3)),
            Numbers({4, 6, 8, 10}));
}

TEST(DatasetTest, ShardsOfManyRowsHoldEachRowOnce) {
  std::multiset<int64_t> all;
  for (int64_t i = 0; i < 7; ++i) {
    const Numbers shard = numbers(range_dataset(20'000).shard(7, i).batch(1000));
    EXPECT_TRUE(std::ranges::all_of(shard, [&](int64_t x) { return x % 7 == i; }));
    all.insert(shard.begin(), shard.end());
  }
  EXPECT_EQ(all.size(), 20'000U);
}

TEST(DatasetTest, TakeDoesNotReadBeyondItsCount) {
  int made = 0;
  const Dataset counted = counting(9).filter([&](const Tensors&) { return ++made > 0; });
  EXPECT_EQ(numbers(counted.take(3)), Numbers({0, 1, 2}));
  EXPECT_EQ(made, 3);
}

TEST(DatasetTest, RepeatStartsAgainAndBatchesSpanEpochs) {
  EXPECT_EQ(numbers(range_dataset(3).repeat(2)), Numbers({0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(shapes(range_dataset(3).repeat(2).batch(4)), std::vector<Shape>({{4}, {2}}));
  EXPECT_EQ(numbers(range_dataset(3).repeat(2).batch(4)), Numbers({0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(numbers(counting(2).repeat().take(5)), Numbers({0, 1, 0, 1, 0}));
  EXPECT_EQ(numbers(range_dataset(3).repeat(0)), Numbers());
}

TEST(DatasetTest, RepeatOfAnEmptyDatasetEnds) {
  EXPECT_EQ(numbers(range_dataset(0).repeat()), Numbers());
  EXPECT_EQ(numbers(range_dataset(5).filter([](const Tensors&) { return false; }).repeat()),
            Numbers());
}

TEST(ShuffleTest, MatchesItsDefinitionForAnyBuffer) {
  for (const int64_t buffer_size : {1, 4, 10, 23, 100}) {
    const Numbers expected = naive_shuffle(23, buffer_size, 7, 0);
    const ShuffleOptions options = {.seed = 7};
    EXPECT_EQ(numbers(range_dataset(23).shuffle(buffer_size, options)), expected);
    EXPECT_EQ(numbers(range_dataset(23).shuffle(buffer_size, options).batch(5)), expected);
    EXPECT_EQ(numbers(counting(23).shuffle(buffer_size, options)), expected);
    EXPECT_EQ(numbers(range_dataset(23).batch(6).unbatch().shuffle(buffer_size, options)),
              expected);
    EXPECT_EQ(numbers(range_dataset(23).batch(6).unbatch().shuffle(buffer_size, options).batch(4)),
              expected);
  }
}

TEST(ShuffleTest, YieldsEachElementOnce) {
  Numbers order = numbers(range_dataset(10'000).shuffle(500, {.seed = 3}).batch(64));
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  EXPECT_EQ(order, range_tensor(10'000).to_vector<int64_t>());
}

TEST(ShuffleTest, AFullBufferShufflesUniformly) {
  constexpr int kRuns = 6000;
  std::array<std::array<int, 3>, 3> seen = {};  // [element][place]
  const Dataset dataset = range_dataset(3).shuffle(3, {.seed = 11});
  for (int run = 0; run < kRuns; ++run) {
    const Numbers order = numbers(dataset.batch(3));
    for (size_t place = 0; place < 3; ++place) ++seen[static_cast<size_t>(order[place])][place];
  }
  // Six standard deviations of a binomial distribution with probability 1/3.
  for (const auto& places : seen) {
    for (const int count : places) EXPECT_NEAR(count, kRuns / 3.0, 6 * 36.5);
  }
}

TEST(ShuffleTest, TheSameSeedGivesTheSameOrdersAndIterationsDiffer) {
  const Dataset a = range_dataset(50).shuffle(50, {.seed = 5});
  const Dataset b = range_dataset(50).shuffle(50, {.seed = 5});
  const Numbers first = numbers(a);
  const Numbers second = numbers(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(numbers(b), first);
  EXPECT_EQ(numbers(b), second);
  EXPECT_NE(numbers(range_dataset(50).shuffle(50, {.seed = 6})), first);
}

TEST(ShuffleTest, CopiesCountIterationsTogether) {
  const Dataset a = range_dataset(50).shuffle(50, {.seed = 5});
  const Dataset copy = a;
  numbers(a);
  EXPECT_EQ(numbers(copy.batch(10)), naive_shuffle(50, 50, 5, 1));
  EXPECT_EQ(numbers(a), naive_shuffle(50, 50, 5, 2));
}

TEST(ShuffleTest, WithoutReshufflingEveryIterationHasTheSameOrder) {
  const Dataset dataset =
      range_dataset(50).shuffle(20, {.seed = 5, .reshuffle_each_iteration = false});
  const Numbers first = numbers(dataset);
  EXPECT_EQ(numbers(dataset), first);
  Numbers twice = first;
  twice.insert(twice.end(), first.begin(), first.end());
  EXPECT_EQ(numbers(dataset.repeat(2)), twice);
}

TEST(ShuffleTest, WithoutASeedTheProgramsSeedDecides) {
  set_random_seed(1);
  const Numbers first = numbers(range_dataset(50).shuffle(50));
  const Numbers other = numbers(range_dataset(50).shuffle(50));
  set_random_seed(1);
  EXPECT_EQ(numbers(range_dataset(50).shuffle(50)), first);
  EXPECT_NE(other, first);
}

TEST(ShuffleTest, RepeatGivesEachEpochTheOrderOfOneMoreIteration) {
  Numbers expected;
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    const Numbers order = naive_shuffle(20, 8, 5, epoch);
    expected.insert(expected.end(), order.begin(), order.end());
  }
  const auto make = [] { return range_dataset(20).shuffle(8, {.seed = 5}); };
  EXPECT_EQ(numbers(make().repeat(4)), expected);
  EXPECT_EQ(numbers(make().repeat(2).repeat(2)), expected);
  EXPECT_EQ(numbers(make().repeat().take(80).batch(7).prefetch(2)), expected);
  const Dataset repeated = make().repeat(2);
  numbers(repeated);
  EXPECT_EQ(numbers(repeated), Numbers(expected.begin() + 40, expected.end()));
}

TEST(ShuffleTest, PrefetchingDoesNotChangeLaterOrders) {
  const auto second_order = [](int64_t buffer_size) {
    const Dataset dataset =
        range_dataset(20).shuffle(8, {.seed = 5}).repeat().prefetch(buffer_size);
    dataset.iterator()->next();
    return numbers(dataset.take(40));
  };
  EXPECT_EQ(second_order(1), second_order(1000));
}

TEST(ShuffleTest, ShufflesRowsOfAllKinds) {
  const Tensors rows =
      Tensors{{"dense", Tensor::from<float>({0, 0, 1, 1, 2, 2, 3, 3}, {4, 2})},
              {"id", Tensor::from<int64_t>({0, 1, 2, 3}, {4})},
              {"ragged", RaggedTensor::from_rows<int64_t>({{}, {1}, {2, 2}, {3, 3, 3}})},
              {"sparse", SparseTensor{Tensor::from<int64_t>({1, 0, 2, 1, 3, 2}, {3, 2}),
                                      Tensor::from<float>({1, 2, 3}, {3}),
                                      {4, 3}}},
              {"text", Tensor::from<std::string>({"0", "1", "2", "3"}, {4})}};
  const Dataset plain = Dataset::from_tensor_slices(rows);
  const Dataset buffered = plain.batch(3).unbatch();  // blocks from several sources
  for (const Dataset& dataset : {plain, buffered}) {
    std::set<int64_t> seen;
    for (const Tensors& batch : dataset.shuffle(2, {.seed = 1}).batch(2)) {
      const SparseTensor& sparse = batch["sparse"].leaf().sparse();
      EXPECT_EQ(sparse.dense_shape, Shape({2, 3}));
      sparse.validate("test");
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t id = batch["id"].tensor().data<int64_t>()[i];
        seen.insert(id);
        EXPECT_EQ(batch["dense"].tensor().data<float>()[2 * i + 1], static_cast<float>(id));
        EXPECT_EQ(batch["text"].tensor().data<std::string>()[i], std::to_string(id));
        const auto splits = batch["ragged"].leaf().ragged().row_splits.data<int64_t>();
        EXPECT_EQ(splits[i + 1] - splits[i], id);
        const Tensors row = slice_rows(batch, i, i + 1);
        EXPECT_EQ(row["sparse"].leaf().sparse().values.size(), id == 0 ? 0 : 1);
      }
    }
    EXPECT_EQ(seen.size(), 4U);
  }
}

TEST(ShuffleTest, RejectsRowsOfDifferentShapes) {
  const Dataset mixed = counting(3).map(
      [](const Tensors& x) -> Tensors { return Tensor::zeros({2, x.tensor().item<int64_t>()}); });
  EXPECT_THROW(numbers(mixed.unbatch().shuffle(6)), ValueError);
}

TEST(PrefetchTest, YieldsTheSameElements) {
  const auto make = [] { return range_dataset(1000).shuffle(100, {.seed = 9}); };
  EXPECT_EQ(numbers(make().batch(7).prefetch(3)), numbers(make().batch(7)));
  EXPECT_EQ(numbers(make().prefetch(5).batch(7)), numbers(make().batch(7)));
  EXPECT_EQ(numbers(make().prefetch(500).prefetch(3)), numbers(make()));
  EXPECT_EQ(shapes(make().prefetch(64).batch(300)),
            std::vector<Shape>({{300}, {300}, {300}, {100}}));
  EXPECT_EQ(numbers(counting(50).prefetch(4)), numbers(counting(50)));
}

TEST(PrefetchTest, ThrowsErrorsAtTheirPositionAndThenEnds) {
  const Dataset dataset = counting(10)
                              .map([](const Tensors& x) -> Tensors {
                                if (x.tensor().item<int64_t>() == 3) throw ValueError("three");
                                return x;
                              })
                              .prefetch(8);
  auto it = dataset.iterator();
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(it->next()->tensor().item<int64_t>(), i);
  EXPECT_EQ(message_of([&] { it->next(); }), "three");
  EXPECT_FALSE(it->next());
  EXPECT_FALSE(it->next());
}

TEST(PrefetchTest, FilterErrorsFollowTheKeptElements) {
  const auto keep = [](const Tensors& x) {
    if (x.tensor().item<int64_t>() == 5) throw ValueError("five");
    return x.tensor().item<int64_t>() % 2 == 0;
  };
  for (const Dataset& dataset :
       {range_dataset(10).filter(keep), range_dataset(10).filter(keep).prefetch(10)}) {
    auto it = dataset.iterator();
    for (const int64_t i : {0, 2, 4}) EXPECT_EQ(it->next()->tensor().item<int64_t>(), i);
    EXPECT_EQ(message_of([&] { it->next(); }), "five");
    EXPECT_FALSE(it->next());
  }
}

// An infinite generator that counts its elements. Tests wait for a count instead of a time.
class Counted {
 public:
  Dataset dataset() {
    return Dataset::from_generator([this]() -> Dataset::Generator {
      return [this]() -> std::optional<Tensors> {
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
        return Tensor::scalar<int64_t>(made_++);
      };
    });
  }
  void wait_for(int64_t made) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ >= made; });
  }
  int64_t made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  std::mutex mutex_;  // guards made_
  std::condition_variable changed_;
  int64_t made_ = 0;
};

TEST(PrefetchTest, PrefetchesAsManyElementsAsItsBufferHolds) {
  Counted counted;
  {
    auto it = counted.dataset().prefetch(4).iterator();
    counted.wait_for(4);
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(it->next()->tensor().item<int64_t>(), i);
      EXPECT_LE(counted.made(), i + 1 + 4);
    }
    counted.wait_for(24);
  }
  EXPECT_EQ(counted.made(), 24);
}

TEST(PrefetchTest, DroppingTheIteratorStopsAThreadThatWaitsOrFillsABuffer) {
  Counted counted;
  {
    auto waiting = counted.dataset().prefetch(1).iterator();
    counted.wait_for(1);
  }
  const int64_t before = counted.made();
  const auto nothing = [](const Tensors&) { return false; };
  const std::vector<Dataset> endless = {
      counted.dataset().shuffle(int64_t{1} << 60).prefetch(1),
      counted.dataset().filter(nothing).prefetch(1),
      counted.dataset().filter(nothing).prefetch(1).batch(2).prefetch(1),
      counted.dataset().skip(int64_t{1} << 60).prefetch(1)};
  for (const Dataset& dataset : endless) auto dropped = dataset.iterator();
  auto filling = endless[2].iterator();
  counted.wait_for(before + 10);
  filling.reset();
}

TEST(RaggedTest, RowsStayRaggedInBatchesAndAreDenseAsElements) {
  const Dataset dataset =
      Dataset::from_tensor_slices(RaggedTensor::from_rows<int64_t>({{1, 2}, {}, {3, 4, 5}}));
  EXPECT_EQ(shapes(dataset), std::vector<Shape>({{2}, {0}, {3}}));
  auto it = dataset.batch(2).iterator();
  const RaggedTensor first = it->next()->leaf().ragged();
  EXPECT_EQ(first.values.to_vector<int64_t>(), Numbers({1, 2}));
  EXPECT_EQ(first.row_splits.to_vector<int64_t>(), Numbers({0, 2, 2}));
  const RaggedTensor last = it->next()->leaf().ragged();
  EXPECT_EQ(last.values.to_vector<int64_t>(), Numbers({3, 4, 5}));
  EXPECT_EQ(numbers(dataset.batch(2).unbatch()), Numbers({1, 2, 3, 4, 5}));
  const Tensors joined = *dataset.batch(2).unbatch().batch(3).iterator()->next();
  EXPECT_EQ(joined.leaf().ragged().row_splits.to_vector<int64_t>(), Numbers({0, 2, 2, 5}));
}

TEST(RaggedTest, DenseElementsOfDifferentLengthsAreRejectedWithPathAndShapes) {
  const Dataset dataset = counting(3).map([](const Tensors& x) {
    return Tensors{{"watched", Tensor::zeros({x.tensor().item<int64_t>() + 3})}};
  });
  const std::string message = message_of([&] { dataset.batch(2).iterator()->next(); });
  for (const char* part : {"'watched'", "(3,)", "(4,)"}) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_THROW(dataset.batch(2).iterator()->next(), ValueError);
}

TEST(RaggedTest, GeneratedRaggedRowsAreJoinedAndOthersRejected) {
  const auto rows_of = [](size_t rows) {
    return counting(3).map([rows](const Tensors& x) -> Tensors {
      const Numbers row(static_cast<size_t>(x.tensor().item<int64_t>()), 7);
      return TensorLike(RaggedTensor::from_rows<int64_t>(std::vector(rows, row)));
    });
  };
  const Tensors batch = *rows_of(1).batch(3).iterator()->next();
  EXPECT_EQ(batch.leaf().ragged().row_splits.to_vector<int64_t>(), Numbers({0, 0, 1, 3}));
  EXPECT_THROW(rows_of(2).batch(3).iterator()->next(), ValueError);
}

TEST(SparseTest, RowsAreSparseVectorsAndBatchesMatricesAgain) {
  const SparseTensor matrix = {Tensor::from<int64_t>({0, 1, 2, 0, 2, 2}, {3, 2}),
                               Tensor::from<float>({5, 6, 7}, {3}),
                               {3, 4}};
  const Dataset dataset = Dataset::from_tensor_slices(TensorLike(matrix));
  auto it = dataset.iterator();
  const SparseTensor row = it->next()->leaf().sparse();
  EXPECT_EQ(row.dense_shape, Shape({4}));
  EXPECT_EQ(row.indices.shape(), Shape({1, 1}));
  EXPECT_EQ(row.indices.to_vector<int64_t>(), Numbers({1}));
  EXPECT_EQ(it->next()->leaf().sparse().values.size(), 0);
  const auto same = [](const Tensors& x) { return x; };
  for (const Dataset& again : {dataset.batch(3), dataset.map(same).batch(3)}) {
    const SparseTensor batch = again.iterator()->next()->leaf().sparse();
    EXPECT_EQ(batch.dense_shape, Shape({3, 4}));
    EXPECT_EQ(batch.indices.to_vector<int64_t>(), matrix.indices.to_vector<int64_t>());
    EXPECT_EQ(batch.values.to_vector<float>(), Floats({5, 6, 7}));
  }
}

TEST(CardinalityTest, MatchesTfData) {
  const auto all = [](const Tensors&) { return true; };
  const auto same = [](const Tensors& x) { return x; };
  const Dataset ten = range_dataset(10);
  const Dataset endless = ten.repeat();
  const Dataset unknown = counting(10);
  EXPECT_EQ(counting(10, 10).cardinality(), 10);
  EXPECT_EQ(unknown.cardinality(), kUnknownCardinality);
  EXPECT_EQ(counting(10, kInfinite).cardinality(), kInfinite);
  EXPECT_EQ(ten.map(same).shuffle(3).prefetch(1).cardinality(), 10);
  EXPECT_EQ(ten.filter(all).cardinality(), kUnknownCardinality);
  EXPECT_EQ(ten.batch(3).cardinality(), 4);
  EXPECT_EQ(ten.batch(3, {.drop_remainder = true}).cardinality(), 3);
  EXPECT_EQ(endless.batch(3).cardinality(), kInfinite);
  EXPECT_EQ(unknown.batch(3).cardinality(), kUnknownCardinality);
  EXPECT_EQ(endless.cardinality(), kInfinite);
  EXPECT_EQ(ten.repeat(3).cardinality(), 30);
  EXPECT_EQ(ten.repeat(0).cardinality(), 0);
  EXPECT_EQ(range_dataset(0).repeat().cardinality(), 0);
  EXPECT_EQ(unknown.repeat(3).cardinality(), kUnknownCardinality);
  EXPECT_EQ(unknown.repeat().cardinality(), kInfinite);
  EXPECT_EQ(ten.take(3).cardinality(), 3);
  EXPECT_EQ(ten.take(30).cardinality(), 10);
  EXPECT_EQ(endless.take(30).cardinality(), 30);
  EXPECT_EQ(unknown.take(3).cardinality(), kUnknownCardinality);
  EXPECT_EQ(ten.skip(3).cardinality(), 7);
  EXPECT_EQ(ten.skip(30).cardinality(), 0);
  EXPECT_EQ(endless.skip(3).cardinality(), kInfinite);
  EXPECT_EQ(ten.shard(4, 1).cardinality(), 3);
  EXPECT_EQ(ten.shard(4, 2).cardinality(), 2);
  EXPECT_EQ(endless.shard(4, 2).cardinality(), kInfinite);
  EXPECT_EQ(ten.batch(3).unbatch().cardinality(), 10);
  EXPECT_EQ(ten.batch(3, {.drop_remainder = true}).prefetch(1).unbatch().cardinality(), 9);
  EXPECT_EQ(ten.batch(3).map(same).unbatch().cardinality(), kUnknownCardinality);
  EXPECT_EQ(endless.batch(3).unbatch().cardinality(), kInfinite);
}

TEST(DatasetTest, RejectsTensorsWithoutRows) {
  const auto slices = [](Tensors rows) { return Dataset::from_tensor_slices(std::move(rows)); };
  const Tensors uneven = {{"a", Tensor::zeros({3})}, {"b", Tensor::zeros({4})}};
  EXPECT_THROW(slices(uneven), ValueError);
  EXPECT_THAT(message_of([&] { slices(uneven); }), HasSubstr("'b'"));
  EXPECT_THROW(slices(Tensor::scalar<float>(1)), ValueError);
  EXPECT_THROW(slices(Tensors()), ValueError);
  EXPECT_THROW(slices(Tensor::symbolic({.shape = {kUnknown, 2}})), ValueError);
  EXPECT_THROW(slices(Tensor()), ValueError);
  const Tensor indices = Tensor::from<int64_t>({1}, {1, 1});
  EXPECT_THROW(slices(TensorLike(SparseTensor{indices, Tensor::zeros({1}), {4}})), ValueError);
  const RaggedTensor broken = {Tensor::zeros({2}), Tensor::from<int64_t>({0, 5}, {2})};
  EXPECT_THROW(slices(TensorLike(broken)), ValueError);
}

TEST(DatasetTest, RejectsElementsOfDifferentStructure) {
  const auto second = [](Tensors other) {
    return counting(2)
        .map([other](const Tensors& x) {
          return x.tensor().item<int64_t>() == 0 ? Tensors(Tensor::zeros({2})) : other;
        })
        .batch(2);
  };
  EXPECT_THROW(second(Tensor::zeros({2}, DType::kInt64)).iterator()->next(), TypeError);
  EXPECT_THROW(second(TensorLike(RaggedTensor::from_rows<float>({{1}}))).iterator()->next(),
               TypeError);
  EXPECT_THROW(second(Tensors::list({Tensor::zeros({2})})).iterator()->next(), TypeError);
  EXPECT_THROW(second(Tensor()).iterator()->next(), ValueError);
}

TEST(DatasetTest, RejectsInvalidArguments) {
  const Dataset ten = range_dataset(10);
  EXPECT_THROW(numbers(ten.unbatch()), ValueError);  // scalars have no rows
  EXPECT_THROW(ten.batch(0), ValueError);
  EXPECT_THROW(ten.shuffle(0), ValueError);
  EXPECT_THROW(ten.prefetch(0), ValueError);
  EXPECT_THROW(ten.repeat(-2), ValueError);
  EXPECT_THROW(ten.take(-1), ValueError);
  EXPECT_THROW(ten.skip(-1), ValueError);
  EXPECT_THROW(ten.shard(0, 0), ValueError);
  EXPECT_THROW(ten.shard(2, 2), ValueError);
  EXPECT_THROW(ten.shard(2, -1), ValueError);
  EXPECT_THROW(ten.map(nullptr), ValueError);
  EXPECT_THROW(ten.filter(nullptr), ValueError);
  EXPECT_THROW(Dataset::from_generator(nullptr), ValueError);
  EXPECT_THROW(counting(1, -3), ValueError);
}

}  // namespace keel::data::dataset_test
