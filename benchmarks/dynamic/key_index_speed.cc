#include "benchmarks/dynamic/key_index_speed.h"

#include <absl/container/flat_hash_map.h>
#include <chrono>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/internal/key_directory.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/framework/base/parallel.h>

#include "benchmarks/support/measure.h"

namespace keel::bench {
namespace {

using distribute::KeyDirectory;
using distribute::KeyIndex;

constexpr size_t kBatch = 4096;

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Indexes {
 public:
  explicit Indexes(size_t keys) {
    std::mt19937_64 random(1);
    for (size_t i = 0; i < keys; ++i) keys_.push_back(static_cast<int64_t>(random()));
  }

  // Inserts the keys into both, batch by batch in alternation. Returns the ratio of the times.
  double insert() {
    double own = 0, peer = 0;
    for (size_t first = 0; first + kBatch <= keys_.size(); first += kBatch) {
      const std::span<const int64_t> batch(&keys_[first], kBatch);
      own += seconds_of([&] { insert_own(batch); });
      peer += seconds_of([&] {
        for (const int64_t key : batch) {
          peer_.try_emplace(key, static_cast<uint32_t>(peer_.size()));
        }
      });
    }
    keys_.resize(static_cast<size_t>(own_.size()));
    keys_per_second_ = static_cast<double>(keys_.size()) / own;
    return peer / own;
  }
  // Compares finding batches of known keys.
  double find() {
    std::mt19937_64 random(2);
    std::vector<std::vector<int64_t>> batches;  // one for each call: a repeated batch is cached
    uint64_t own_sum = 0, peer_sum = 0;
    const auto draw = [&](int calls) {
      batches.assign(calls, std::vector<int64_t>(kBatch));
      for (std::vector<int64_t>& batch : batches) {
        for (int64_t& key : batch) key = keys_[random() % keys_.size()];
      }
    };
    const auto next = [&] {
      std::vector<int64_t> batch = std::move(batches.back());
      batches.pop_back();
      return batch;
    };
    const Comparison result = compare(
        {{.name = "absl::flat_hash_map",
          .run =
              [&] {
                for (const int64_t key : next()) peer_sum += peer_.find(key)->second;
              },
          .prepare = draw},
         {.name = "keel", .run = [&] { own_sum += sum_of_positions(next()); }, .prepare = draw}},
        {.seconds_per_slice = 0, .turns = 401});
    keys_per_second_ = static_cast<double>(kBatch) / result.timings[1].median;
    return result.ratio(0, 1);
  }
  double keys_per_second() const { return keys_per_second_; }
  // Inserts more keys until the index is 80 % full. Returns the bytes of a row.
  double bytes_when_full() {
    std::mt19937_64 random(3);
    while (own_.load() < 0.7999) own_.add(static_cast<int64_t>(random()), {});
    return static_cast<double>(own_.bytes()) / static_cast<double>(own_.size());
  }

 private:
  void hash(std::span<const int64_t> batch) {
    hashes_.clear();
    for (const int64_t key : batch) hashes_.push_back(distribute::key_hash(key));
  }
  uint64_t sum_of_positions(std::span<const int64_t> batch) {
    uint64_t out = 0;
    hash(batch);
    own_.find_all(
        batch.size(), [&](size_t i) { return batch[i]; }, [&](size_t i) { return hashes_[i]; },
        [&](size_t, uint32_t position) { out += position; });
    return out;
  }
  void insert_own(std::span<const int64_t> batch) {
    absent_.clear();
    hash(batch);
    own_.find_all(
        batch.size(), [&](size_t i) { return batch[i]; }, [&](size_t i) { return hashes_[i]; },
        [&](size_t i, uint32_t position) {
          if (position == KeyIndex::kNone) absent_.push_back(i);
        });
    for (const size_t i : absent_) own_.add(batch[i], hashes_[i], {.count = 1});
  }

  std::vector<int64_t> keys_;
  std::vector<uint64_t> hashes_;
  std::vector<size_t> absent_;
  KeyDirectory<int64_t> own_;
  absl::flat_hash_map<int64_t, uint32_t> peer_;
  double keys_per_second_ = 0;
};

// Inserts new ids as an engine does: the replicas look up their batches, one of them admits the ids
// of all, and all resolve the rows of their ids.
class Admission {
 public:
  Admission()
      : table_(distribute::KeyedTable::create({.name = "items", .dynamic = {}, .dim = kDim})) {
    table_->set_initial_rows({kDim, initializers::zeros(), initializers::zeros(), {.seed = 1}});
  }

  // The ids of a step are those of two replicas, in that order.
  void step(const std::vector<Tensor>& of_replicas) {
    const int64_t replicas = std::ssize(of_replicas);
    std::vector<std::shared_ptr<distribute::KeyedLookup>> lookups(replicas);
    parallel_for(replicas, 1, [&](int64_t first, int64_t end) {
      for (int64_t r = first; r < end; ++r) {
        const distribute::FeatureBatch batch = {
            .ids = of_replicas[r], .row_splits = {}, .weights = {}};
        lookups[r] = table_->look_up({&batch, 1}, true, table_->updates());
      }
    });
    table_->plan_update(lookups);
    table_->commit_update();
    parallel_for(replicas, 1, [&](int64_t first, int64_t end) {
      for (int64_t r = first; r < end; ++r) table_->resolve(*lookups[r]);
    });
    table_->finish_update();
  }

 private:
  static constexpr int64_t kDim = 16;
  const std::unique_ptr<distribute::KeyedTable> table_;
};

// Two tables admit the same ids, one with one worker and one with two, in alternation.
void measure_two_cores(const Options& options, Report& report) {
  constexpr char kName[] = "insert, two cores over one";
  if (!options.wants(kName)) return;
  const int64_t keys = options.quick ? 2'000'000 : 10'000'000;
  constexpr int kStepsOfTurn = 16;
  const int before = num_workers();
  std::mt19937_64 random(4);
  Admission one, two;
  std::vector<double> ratios;
  double seconds_of_two = 0;
  int64_t inserted = 0;
  while (inserted < keys) {
    std::vector<std::vector<Tensor>> steps(kStepsOfTurn);
    for (std::vector<Tensor>& step : steps) {
      for (int replica = 0; replica < 2; ++replica) {
        std::vector<int64_t> ids(kBatch);
        for (int64_t& id : ids) id = static_cast<int64_t>(random());
        step.push_back(Tensor::from(ids, {std::ssize(ids)}));
      }
    }
    const auto seconds_with = [&](int workers, Admission& table) {
      set_num_workers(workers);
      return seconds_of([&] {
        for (const std::vector<Tensor>& step : steps) table.step(step);
      });
    };
    const double of_one = seconds_with(1, one), of_two = seconds_with(2, two);
    ratios.push_back(of_one / of_two);
    seconds_of_two += of_two;
    inserted += static_cast<int64_t>(2 * kBatch * kStepsOfTurn);
  }
  set_num_workers(before);
  report.add({.op = kName,
              .threads = 2,
              .value = median(ratios),
              .unit = "times one core",
              .more = {{"million_keys_per_second",
                        static_cast<double>(inserted) / seconds_of_two / 1e6}}});
}

}  // namespace

void measure_key_index(const Options& options, Report& report) {
  measure_two_cores(options, report);
  if (!options.wants("find") && !options.wants("insert") && !options.wants("bytes")) return;
  Indexes indexes(options.quick ? 2'000'000 : 20'000'000);
  const auto add = [&](const char* name, double value, const char* unit, bool with_speed) {
    Result result = {.op = name, .value = value, .unit = unit};
    if (with_speed) result.more = {{"million_keys_per_second", indexes.keys_per_second() / 1e6}};
    report.add(result);
  };
  const double insert = indexes.insert();
  add("insert", insert, "times absl", true);
  add("find", indexes.find(), "times absl", true);
  add("bytes", indexes.bytes_when_full(), "bytes/row", false);
}

}  // namespace keel::bench
