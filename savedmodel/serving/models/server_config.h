// The configuration files of the server: models, monitoring and batching, in protobuf text format.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace keel::serving {

// Which versions of a model are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  int64_t num_versions = 1;         // of kLatest, at least 1
  std::set<int64_t> versions = {};  // of kSpecific
  friend bool operator==(const VersionPolicy&, const VersionPolicy&) = default;
};

// One model of a configuration.
struct ModelConfig {
  std::string name = {};
  std::string base_path = {};
  VersionPolicy policy = {};
  std::map<std::string, int64_t> labels = {};
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Throws ValueError unless `name` has 1 to 255 bytes of UTF-8 without control characters, '/' and
// ':'. `what` is "model name" or "label".
void check_name(const char* what, const std::string& name);

// Parses a model configuration; `path` is its file, for messages and relative base paths. Adds
// warnings. Throws ValueError that names the file and, for errors of syntax, line and column. A
// configuration without models is an error.
std::vector<ModelConfig> parse_model_configs(const std::string& text, const std::string& path,
                                             std::vector<std::string>& warnings);

// Where the metrics are served besides /metrics.
struct MonitoringConfig {
  bool enable = true;
  std::string path = "/monitoring/prometheus/metrics";
};
MonitoringConfig parse_monitoring_config(const std::string& text, const std::string& path);

// How requests are joined to batches.
struct BatchingOptions {
  int64_t max_batch_size = 1024;  // rows
  int64_t batch_timeout_micros = 0;
  int64_t num_batch_threads = 1;
  int64_t max_enqueued_batches = 10;
  bool enable_large_batch_splitting = true;
  int64_t max_execution_batch_size = 1024;
};
// `threads` is the default of num_batch_threads.
BatchingOptions parse_batching_parameters(const std::string& text, const std::string& path,
                                          int threads);

// Returns the contents of a file. Throws IoError.
std::string read_text_file(const std::string& path);

}  // namespace keel::serving
