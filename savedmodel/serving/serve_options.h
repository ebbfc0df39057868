// The flags of `keel serve`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/savedmodel/serving/base/log.h>

namespace keel::serving {

// The values of the flags; docs/serving.md explains them.
struct ServeOptions {
  std::string model_base_path = {};
  std::string model_name = "default";
  std::string model_config_file = {};
  int64_t model_config_file_poll_wait_seconds = 0;
  double file_system_poll_wait_seconds = 1;
  int64_t rest_api_port = 8501;
  int64_t port = 0;
  std::string address = "127.0.0.1";
  int64_t rest_api_num_threads = 1;
  int64_t rest_api_timeout_in_ms = 30000;
  bool rest_api_enable_cors_support = false;
  int64_t max_num_load_retries = 5;
  int64_t load_retry_interval_micros = 60000000;
  int64_t num_load_threads = 1;
  bool allow_version_labels_for_unavailable_models = false;
  bool enable_model_warmup = true;
  double load_trial_seconds = 300;
  bool enable_batching = false;
  std::string batching_parameters_file = {};
  std::string monitoring_config_file = {};
  std::string tables = "auto";
  int64_t max_request_bytes = 67108864;
  int64_t max_buffered_request_bytes = int64_t{1} << 30;
  int64_t max_rows_per_request = 100000;
  int64_t max_connections = 10000;
  int64_t max_pending_requests = 1024;
  double idle_timeout_seconds = 75;
  double read_timeout_seconds = 10;
  double drain_timeout_seconds = 30;
  double lame_duck_seconds = 0;
  LogLevel log_level = LogLevel::kInfo;
  bool log_requests = false;
  bool enable_grpc_healthcheck_service = true;
  bool enable_serialization_as_tensor_content = false;
  std::string grpc_socket_path = {};
  int64_t grpc_max_threads = 4;
};

// The flags of a command line.
struct ParsedServeOptions {
  ServeOptions options = {};
  bool help = false;                       // --help was given; the other flags are not checked
  std::vector<std::string> given = {};     // "--flag=value" of the flags that were given
  std::vector<std::string> warnings = {};  // flags that have no meaning here
};

// Parses "--flag VALUE", "--flag=VALUE" and bare boolean flags. The last value of a flag counts, as
// in TensorFlow Serving. Throws ValueError that names the flag if it is unknown or has a bad value,
// and if flags contradict each other.
// `has_grpc`: the program can serve gRPC, which is then on by default.
ParsedServeOptions parse_serve_options(const std::vector<std::string>& words,
                                       bool has_grpc = false);

// Returns the usage, with each flag and its default.
std::string serve_help(bool has_grpc = false);

}  // namespace keel::serving
