// Counters and histograms that any thread updates without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {

// A number that only grows.
class Counter {
 public:
  void add(int64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

// The upper limits of the buckets of latencies, 10 * 1.8^i microseconds, and of numbers of
// examples, 2^i.
std::span<const double> latency_limits();
std::span<const double> example_limits();

// Counts observations in buckets.
class Histogram {
 public:
  static constexpr size_t kMostBuckets = 40;

  // `limits` are the ascending upper limits of all buckets but the last, at most kMostBuckets - 1.
  explicit Histogram(std::span<const double> limits) : limits_(limits) {}
  void observe(double value);

  // Appends the lines of a Prometheus histogram; `labels` is "a=\"b\"" or empty.
  void append_to(std::string& page, const std::string& name, const std::string& labels) const;
  int64_t count() const;

 private:
  std::span<const double> limits_;
  std::array<std::atomic<int64_t>, kMostBuckets> counts_ = {};
  std::atomic<double> sum_ = 0;
};

// The APIs that predictions are requested by: those of REST, then those of gRPC.
enum class Api {
  kPredict,
  kClassify,
  kRegress,
  kInfer,
  kRpcPredict,
  kRpcClassify,
  kRpcRegress,
  kRpcInfer,
};
inline constexpr size_t kApis = 8;
inline bool is_rpc(Api api) { return api >= Api::kRpcPredict; }
// Returns "predict", "classify", "regress" or "infer" for REST, "Predict", "Classify", "Regress" or
// "ModelInfer" for gRPC.
const char* name_of(Api api);

// Returns a histogram of latencies for each API.
std::array<Histogram, kApis> latencies();

// The metrics of a model, by the name of the model.
struct ModelMetrics {
  static constexpr size_t kCodes = 17;
  std::array<Counter, kCodes> requests = {};  // by code
  std::array<Histogram, kApis> latency = latencies();
  std::array<Histogram, kApis> runtime = latencies();
  Histogram example_counts{example_limits()};
  Counter examples;
  Counter loads_ok, loads_failed, loads_retried;
  Counter ids_rejected;
  Histogram batch_rows{example_limits()};
  std::atomic<int64_t> queue_rows = 0;

  void count(Code code) { requests[static_cast<size_t>(code)].add(); }
};

// The metrics of a version of a model. Durations are sums of nanoseconds.
struct VersionMetrics {
  Counter success, failure, rows, executions;
  Counter request_ns, queue_ns, input_ns, infer_ns, output_ns;
  Counter success_ns, failure_ns;
};

// The metrics of the whole server.
struct ServerMetrics {
  ModelMetrics unknown_models;
  std::atomic<int64_t> connections = 0;
  std::atomic<int64_t> pending = 0;
  Counter rejected_connections, rejected_pending, rejected_queue, rejected_body, rejected_rows,
      rejected_timeout, rejected_read_timeout, rejected_memory;
  Counter config_failures;
};

// Returns `text` with backslash, quote and newline escaped for a Prometheus label value.
std::string label_value(std::string_view text);

}  // namespace keel::serving
