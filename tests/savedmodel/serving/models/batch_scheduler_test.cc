// Tests savedmodel/serving/models/batch_scheduler.cc and batch_rows.cc.
#include <keel/savedmodel/serving/models/batch_scheduler.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::serving::batch_scheduler_test {

using testing_support::message_of;
using testing_support::TemporaryFolder;

constexpr int64_t kIds = 50;
constexpr int64_t kNever = INT64_MAX;

// A model with dense, ragged and sparse inputs and two outputs.
Functional shop() {
  const Tensor age = layers::input({.shape = {2}, .name = "age"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const SparseTensor tags =
      layers::sparse_input({.shape = {6}, .dtype = DType::kInt64, .name = "tags"});
  const Tensor user = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "user"});
  const Nest<FeatureConfig>::Dict features = {
      {"seen", FeatureConfig{.table = make_table({.vocabulary_size = kIds, .dim = 3})}},
      {"tags", FeatureConfig{.table = make_table({.vocabulary_size = kIds, .dim = 5})}}};
  const Tensors rows = layers::TPUEmbedding({.feature_config = Nest<FeatureConfig>(features)})(
      Tensors({{"seen", seen}, {"tags", tags}}));
  const Tensor users = layers::Flatten({.name = "flat"})(
      layers::Embedding({.input_dim = kIds, .output_dim = 2, .name = "users"})(user));
  const Tensor all =
      layers::Concatenate({.name = "all"})(Tensors::list({age, rows["seen"], rows["tags"], users}))
          .tensor();
  const Tensor deep = layers::Dense({.units = 7, .activation = "tanh", .name = "deep"})(all);
  const Tensor score = layers::Dense({.units = 1, .name = "score"})(deep);
  return Functional({.inputs = {{"age", age}, {"seen", seen}, {"tags", tags}, {"user", user}},
                     .outputs = {{"deep", deep}, {"score", score}},
                     .name = "shop"});
}

// A model that takes some time for many rows.
Functional slow() {
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  const Tensor hidden = layers::Dense({.units = 512, .activation = "tanh", .name = "hidden"})(x);
  const Tensor deep = layers::Dense({.units = 512, .activation = "tanh", .name = "deep"})(hidden);
  return Functional({.inputs = x, .outputs = layers::Dense({.units = 1, .name = "y"})(deep)});
}

// The models of the tests, loaded once.
struct Models {
  Models() {
    const TemporaryFolder folder;
    save_model(shop(), folder / "shop.keras");
    save_model(slow(), folder / "slow.keras");
    first = load(folder / "shop.keras", 1);
    EXPECT_TRUE(first->joins_requests());
    second = load(folder / "shop.keras", 2);
    blocker = load(folder / "slow.keras", 1);
  }
  static VersionHandle load(const std::string& path, int64_t number) {
    return std::make_shared<ModelVersion>("m", number, path, std::make_shared<ModelMetrics>());
  }
  VersionHandle first, second, blocker;
};
const Models& models() {
  static const Models all;
  return all;
}

std::vector<InputValues> inputs_of(const ModelVersion& version) {
  const ServedSignature& signature = version.signature_default();
  std::vector<InputValues> out(signature.inputs.size());
  for (size_t i = 0; i < out.size(); ++i) out[i].reset(signature.inputs[i]);
  return out;
}

// Rows of the shop model whose values depend on `seed`. Row r has r ragged values from seed on.
std::vector<InputValues> shop_rows(int64_t seed, int64_t rows, int64_t bad_id = -1) {
  std::vector<InputValues> out = inputs_of(*models().first);
  InputValues &age = out.at(0), &seen = out.at(1), &tags = out.at(2), &user = out.at(3);
  age.dims = {rows, 2};
  seen.splits = {0};
  tags.sparse_shape = {rows, 6};
  user.dims = {rows, 1};
  int64_t values = 0;
  for (int64_t row = 0; row < rows; ++row) {
    age.numbers.push(static_cast<float>(seed + row) / 7);
    age.numbers.push(static_cast<float>(seed - row) / 3);
    for (int64_t i = 0; i < row % 4; ++i, ++values) seen.numbers.push((seed + row * i) % kIds);
    seen.splits.push_back(values);
    user.numbers.push(bad_id >= 0 ? bad_id : (seed * row) % kIds);
    for (int64_t i = row % 2; i < 3; ++i) {
      tags.indices.insert(tags.indices.end(), {row, 2 * i});
      tags.numbers.push((seed + i) % kIds);
    }
  }
  seen.dims = {values};
  for (InputValues& input : out) input.finish();
  return out;
}

std::vector<InputValues> slow_rows(int64_t rows) {
  std::vector<InputValues> out = inputs_of(*models().blocker);
  for (int64_t row = 0; row < rows; ++row) out[0].numbers.push(0.5F);
  out[0].dims = {rows, 1};
  out[0].finish();
  return out;
}

std::string bytes_of(const RunOutputs& outputs) {
  std::string out;
  for (const RunOutputs::Output& output : outputs.outputs) {
    out += output.info->name + " " + str(output.view.shape) + " ";
    out.append(static_cast<const char*>(output.view.data),
               static_cast<size_t>(output.view.values) * sizeof(float));
  }
  return out;
}

std::string alone(const ModelVersion& version, std::span<const InputValues> inputs) {
  RunOutputs outputs;
  version.run(version.signature_default(), inputs, outputs);
  return bytes_of(outputs);
}

std::string scheduled(BatchScheduler& scheduler, const ModelVersion& version,
                      std::span<const InputValues> inputs, int64_t deadline_ns = kNever) {
  RunOutputs outputs;
  scheduler.run(version, version.signature_default(), inputs, deadline_ns, outputs);
  return bytes_of(outputs);
}

int64_t executions(const ModelVersion& version) { return version.metrics().executions.value(); }
int64_t waiting(const ModelVersion& version) { return version.model_metrics().queue_rows.load(); }

void wait_for(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_TRUE(condition());
}

// As many rows of the slow model as take about a second.
int64_t rows_of_a_second(BatchScheduler& scheduler) {
  constexpr int64_t kTrial = 1000, kMost = 1000000;
  const SerialSection serial;
  const auto begin = std::chrono::steady_clock::now();
  scheduled(scheduler, *models().blocker, slow_rows(kTrial));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return std::clamp(static_cast<int64_t>(kTrial / took.count()), kTrial / 10, kMost);
}

// Occupies one thread of computation for about a second, in which the test queues its
// requests.
class Busy {
 public:
  explicit Busy(BatchScheduler& scheduler) {
    thread_ = std::thread([&scheduler, this, count = rows_of_a_second(scheduler)] {
      const SerialSection serial;
      const std::vector<InputValues> rows = slow_rows(count);
      starts_ = true;
      scheduled(scheduler, *models().blocker, rows);
    });
    wait_for([&] { return starts_.load(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Busy() { thread_.join(); }

 private:
  std::atomic<bool> starts_ = false;
  std::thread thread_;
};

BatchingOptions options_of(int64_t rows, int64_t queued = 1000) {
  return {.max_batch_size = rows,
          .num_batch_threads = 1,
          .max_enqueued_batches = queued,
          .max_execution_batch_size = rows};
}

// S-180, S-184
TEST(BatchSchedulerTest, JoinsRequestsOfOneVersion) {
  constexpr int kRequests = 12;
  constexpr int64_t kRows = 3, kBatch = 7;
  ServerMetrics metrics;
  BatchScheduler scheduler(options_of(kBatch), metrics);
  const ModelVersion &first = *models().first, &second = *models().second;
  const int64_t before_first = executions(first), before_second = executions(second);
  std::vector<std::string> results(kRequests), expected(kRequests);
  {
    const Busy busy(scheduler);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kRequests; ++i) {
      const ModelVersion& version = i % 2 == 0 ? first : second;
      const std::vector<InputValues> check = shop_rows(i, kRows);
      expected[static_cast<size_t>(i)] = alone(version, check);
      threads.emplace_back([&, i] {
        const std::vector<InputValues> rows = shop_rows(i, kRows);
        results[static_cast<size_t>(i)] = scheduled(scheduler, i % 2 == 0 ? first : second, rows);
      });
    }
    wait_for([&] { return waiting(first) + waiting(second) == kRequests * kRows; });
  }
  EXPECT_EQ(results, expected);
  // Two requests fit in a batch of 7 rows, and six requests of each version make three batches.
  EXPECT_EQ(executions(first) - before_first, 3);
  EXPECT_EQ(executions(second) - before_second, 3);
  EXPECT_EQ(waiting(first) + waiting(second), 0);
}

// S-181
TEST(BatchSchedulerTest, FailsOnlyTheRequestWithABadId) {
  constexpr int kRequests = 6, kBad = 2;
  constexpr int64_t kBadId = 77;
  ServerMetrics metrics;
  BatchScheduler scheduler(options_of(100), metrics);
  const ModelVersion& version = *models().first;
  std::vector<std::string> results(kRequests);
  std::string error;
  {
    const Busy busy(scheduler);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kRequests; ++i) {
      threads.emplace_back([&, i] {
        const std::vector<InputValues> rows = shop_rows(i, 2, i == kBad ? kBadId : -1);
        const auto run = [&] {
          results[static_cast<size_t>(i)] = scheduled(scheduler, version, rows);
        };
        if (i == kBad) {
          error = message_of<InvalidIdError>(run);
        } else {
          run();
        }
      });
    }
    wait_for([&] { return waiting(version) == kRequests * 2; });
  }
  EXPECT_NE(error.find("77"), std::string::npos) << error;
  for (int i = 0; i < kRequests; ++i) {
    const std::vector<InputValues> rows = shop_rows(i, 2);
    EXPECT_EQ(results[static_cast<size_t>(i)], i == kBad ? "" : alone(version, rows)) << i;
  }
}

// S-181
TEST(BatchSchedulerTest, RefusesRequestsWhenTheQueueIsFull) {
  ServerMetrics metrics;
  BatchScheduler scheduler(options_of(2, 1), metrics);
  const ModelVersion& version = *models().first;
  const Busy busy(scheduler);
  const std::jthread queued([&] {
    const std::vector<InputValues> rows = shop_rows(1, 2);
    EXPECT_EQ(scheduled(scheduler, version, rows), alone(version, rows));
  });
  wait_for([&] { return waiting(version) == 2; });
  const std::vector<InputValues> rows = shop_rows(2, 1);
  try {
    scheduled(scheduler, version, rows);
    ADD_FAILURE() << "the queue is not full";
  } catch (const ServeError& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_STREQ(error.what(),
                 "The batch scheduling queue to which this task was submitted is full");
  }
  EXPECT_EQ(metrics.rejected_queue.value(), 1);
}

// S-163
TEST(BatchSchedulerTest, DoesNotComputeRequestsThatAreLate) {
  ServerMetrics metrics;
  BatchScheduler scheduler(options_of(8), metrics);
  const ModelVersion& version = *models().first;
  const int64_t before = executions(version);
  const Busy busy(scheduler);
  const std::vector<InputValues> rows = shop_rows(1, 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto soon = begin + std::chrono::milliseconds(50);
  const std::string error = message_of<ServeError>([&] {
    scheduled(
        scheduler, version, rows,
        std::chrono::duration_cast<std::chrono::nanoseconds>(soon.time_since_epoch()).count());
  });
  EXPECT_NE(error.find("timed out"), std::string::npos) << error;
  EXPECT_GE(std::chrono::steady_clock::now(), soon);
  EXPECT_EQ(executions(version), before);
  EXPECT_EQ(waiting(version), 0);
}

// S-181, S-184
TEST(BatchSchedulerTest, SplitsLargeRequests) {
  constexpr int64_t kRows = 11, kBatch = 4;
  ServerMetrics metrics;
  const ModelVersion& version = *models().first;
  const std::vector<InputValues> rows = shop_rows(5, kRows);
  BatchingOptions options = options_of(kBatch);
  const int64_t before = executions(version);
  BatchScheduler splitting(options, metrics);
  EXPECT_EQ(scheduled(splitting, version, rows), alone(version, rows));
  EXPECT_EQ(executions(version) - before, 3);
  options.enable_large_batch_splitting = false;
  BatchScheduler whole(options, metrics);
  const std::string error = message_of<ServeError>([&] { scheduled(whole, version, rows); });
  EXPECT_NE(error.find("4"), std::string::npos) << error;
  EXPECT_NE(error.find("11"), std::string::npos) << error;
}

// S-180
TEST(BatchSchedulerTest, WaitsForOthersAtMostForTheTimeout) {
  BatchingOptions options = options_of(3);
  options.num_batch_threads = 2;
  constexpr int64_t kTimeoutMicros = 100000;
  options.batch_timeout_micros = kTimeoutMicros;
  ServerMetrics metrics;
  BatchScheduler scheduler(options, metrics);
  const ModelVersion& version = *models().first;
  const int64_t before = executions(version);
  const auto run = [&](int64_t seed) {
    const std::vector<InputValues> rows = shop_rows(seed, 1);
    EXPECT_EQ(scheduled(scheduler, version, rows), alone(version, rows));
  };
  const auto begin = std::chrono::steady_clock::now();
  run(1);  // nothing else is computed, so it does not wait
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(kTimeoutMicros));
  const Busy busy(scheduler);
  {
    std::vector<std::jthread> full;
    for (int i = 0; i < 3; ++i) full.emplace_back([&, i] { run(i); });
  }
  EXPECT_EQ(executions(version) - before, 2);
  const auto single = std::chrono::steady_clock::now();
  run(9);
  EXPECT_GE(std::chrono::steady_clock::now() - single, std::chrono::microseconds(kTimeoutMicros));
  EXPECT_EQ(executions(version) - before, 3);
}

TEST(BatchSchedulerTest, LimitsTheThreads) {
  BatchingOptions options = options_of(1, 2);
  EXPECT_EQ(BatchScheduler::most_threads(options), 4);
  EXPECT_EQ(BatchScheduler::most_threads({}), 64);
}

}  // namespace keel::serving::batch_scheduler_test
