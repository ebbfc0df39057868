#include <keel/savedmodel/serving/serve_options.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>

namespace keel::serving {
namespace {

constexpr int64_t kGrpcPort = 8500;  // the default of programs with gRPC

int64_t integer_from(const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw ValueError("must be an integer from ", least, " to ", most, ", received '", text, "'");
  }
  return value;
}

double seconds_from(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kMost = 1e9;
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > kMost) {
    throw ValueError("must be a number from 0 to 1e9, received '", text, "'");
  }
  return value;
}

bool bool_from(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw ValueError("must be true, false, 1 or 0, received '", text, "'");
}

// A flag, its help and what it sets.
struct ServeFlag {
  std::string name;
  std::string value;  // the placeholder in the help; empty for a boolean
  std::string standard;
  std::string help;
  std::function<void(ServeOptions&, const std::string&)> set;
};

ServeFlag text_flag(const char* name, const char* value, std::string ServeOptions::* member,
                    const char* help) {
  return {name, value, ServeOptions().*member, help,
          [member](ServeOptions& to, const std::string& text) { to.*member = text; }};
}

ServeFlag bool_flag(const char* name, bool ServeOptions::* member, const char* help) {
  return {name, "", ServeOptions().*member ? "true" : "false", help,
          [member](ServeOptions& to, const std::string& text) { to.*member = bool_from(text); }};
}

ServeFlag integer_flag(const char* name, int64_t ServeOptions::* member, int64_t least,
                       int64_t most, const char* help) {
  return {name, "N", std::to_string(ServeOptions().*member), help,
          [=](ServeOptions& to, const std::string& text) {
            to.*member = integer_from(text, least, most);
          }};
}

ServeFlag seconds_flag(const char* name, double ServeOptions::* member, const char* help) {
  return {name, "SECONDS", absl::StrCat(ServeOptions().*member), help,
          [member](ServeOptions& to, const std::string& text) { to.*member = seconds_from(text); }};
}

ServeFlag with_standard(ServeFlag flag, std::string standard) {
  flag.standard = std::move(standard);
  return flag;
}

// All flags, in the order of the help.
const std::vector<ServeFlag>& flags() {
  using O = ServeOptions;
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostPort = 65535;
  static const std::vector<ServeFlag> all = {
      text_flag("model_base_path", "DIR", &O::model_base_path,
                "folder of one model, which holds the version folders"),
      text_flag("model_name", "NAME", &O::model_name, "name of that model"),
      text_flag("model_config_file", "FILE", &O::model_config_file,
                "models, in protobuf text format; in place of the two flags above"),
      integer_flag("model_config_file_poll_wait_seconds", &O::model_config_file_poll_wait_seconds,
                   0, kMany, "time between readings of the file; 0: only on SIGHUP"),
      seconds_flag("file_system_poll_wait_seconds", &O::file_system_poll_wait_seconds,
                   "time between scans of the folders; 0: one scan at start"),
      integer_flag("rest_api_port", &O::rest_api_port, -1, kMostPort,
                   "port of REST; 0: no REST, -1: a free port"),
      integer_flag("port", &O::port, -1, kMostPort, "port of gRPC; 0: no gRPC, -1: a free port"),
      text_flag("address", "ADDRESS", &O::address,
                "address of both ports; 0.0.0.0 or :: for all addresses"),
      with_standard(integer_flag("rest_api_num_threads", &O::rest_api_num_threads, 1, 1024,
                                 "requests that are computed at once"),
                    "processors"),
      integer_flag("rest_api_timeout_in_ms", &O::rest_api_timeout_in_ms, 0, kMany,
                   "longest time from request to answer; 0: none"),
      bool_flag("rest_api_enable_cors_support", &O::rest_api_enable_cors_support,
                "add the headers that allow browsers to call from other origins"),
      integer_flag("max_num_load_retries", &O::max_num_load_retries, 0, kMany,
                   "further tries of a version that cannot be loaded"),
      integer_flag("load_retry_interval_micros", &O::load_retry_interval_micros, 0,
                   std::numeric_limits<int64_t>::max() / 1000, "time between these tries"),
      integer_flag("num_load_threads", &O::num_load_threads, 1, 64,
                   "versions that are loaded at the same time"),
      bool_flag("allow_version_labels_for_unavailable_models",
                &O::allow_version_labels_for_unavailable_models,
                "accept labels of versions that are not available"),
      bool_flag("enable_model_warmup", &O::enable_model_warmup,
                "run each version before it becomes available"),
      seconds_flag("load_trial_seconds", &O::load_trial_seconds,
                   "time for loading a new version in another process before it is loaded here, so "
                   "that a file that crashes the loader cannot end the server; 0: no trial"),
      bool_flag("enable_batching", &O::enable_batching,
                "compute the rows of concurrent requests together"),
      text_flag("batching_parameters_file", "FILE", &O::batching_parameters_file,
                "how, in protobuf text format"),
      text_flag("monitoring_config_file", "FILE", &O::monitoring_config_file,
                "where metrics are served, in protobuf text format"),
      text_flag("tables", "MODE", &O::tables, "mapped, resident or auto"),
      integer_flag("max_request_bytes", &O::max_request_bytes, 1, int64_t{1} << 31,
                   "largest body, after decompression"),
      integer_flag("max_buffered_request_bytes", &O::max_buffered_request_bytes, 1,
                   int64_t{1} << 50,
                   "memory of all requests that are read or queued; further ones get 503"),
      integer_flag("max_rows_per_request", &O::max_rows_per_request, 1, kMany,
                   "most rows of a request"),
      integer_flag("max_connections", &O::max_connections, 1, kMany, "most open connections"),
      integer_flag("max_pending_requests", &O::max_pending_requests, 1, kMany,
                   "most requests read but not yet answered"),
      seconds_flag("idle_timeout_seconds", &O::idle_timeout_seconds,
                   "after which an idle connection is closed"),
      seconds_flag("read_timeout_seconds", &O::read_timeout_seconds,
                   "in which headers must be complete, and in which bodies must make a progress "
                   "of 1024 bytes per second"),
      seconds_flag("drain_timeout_seconds", &O::drain_timeout_seconds,
                   "longest time to finish requests after SIGTERM"),
      seconds_flag("lame_duck_seconds", &O::lame_duck_seconds,
                   "time after SIGTERM in which requests are served as usual"),
      {"log_level", "LEVEL", "info", "error, warning, info or debug",
       [](O& to, const std::string& text) { to.log_level = log_level_from_name(text); }},
      bool_flag("log_requests", &O::log_requests, "log a line for each request"),
      bool_flag("enable_grpc_healthcheck_service", &O::enable_grpc_healthcheck_service,
                "serve grpc.health.v1 (builds with gRPC)"),
      bool_flag("enable_serialization_as_tensor_content",
                &O::enable_serialization_as_tensor_content,
                "answer gRPC with tensor_content (builds with gRPC)"),
      text_flag("grpc_socket_path", "PATH", &O::grpc_socket_path,
                "also listen on a UNIX socket (builds with gRPC)"),
      with_standard(integer_flag("grpc_max_threads", &O::grpc_max_threads, 1, 4096,
                                 "most threads of gRPC (builds with gRPC)"),
                    "4 x processors"),
  };
  return all;
}

// Flags of TensorFlow Serving that mean nothing here, and whether they take a value when they are
// written as two words.
bool is_ignored(const std::string& name) {
  static const std::set<std::string> names = {"flush_filesystem_caches",
                                              "per_process_gpu_memory_fraction",
                                              "saved_model_tags",
                                              "enable_profiler",
                                              "num_unload_threads",
                                              "num_request_iterations_for_warmup",
                                              "grpc_channel_arguments",
                                              "prefer_tflite_model",
                                              "num_tflite_interpreters_per_pool",
                                              "num_tflite_pools",
                                              "use_tflite_model",
                                              "platform_config_file",
                                              "remove_unused_fields_from_bundle_metagraph",
                                              "enable_signature_method_name_check",
                                              "enable_per_model_batching_params",
                                              "thread_pool_factory_config_file",
                                              "mixed_precision",
                                              "skip_initialize_tpu",
                                              "force_allow_any_version_labels_for_unavailable_"
                                              "models",
                                              "monitoring_interval_seconds",
                                              "allow_multi_model_version_warmup",
                                              "tensorflow_session_config_file"};
  return names.contains(name) || name.starts_with("tensorflow_") || name.starts_with("xla_");
}

void check_together(const ServeOptions& options, const std::set<std::string>& given,
                    bool has_grpc) {
  const bool by_path = given.contains("model_base_path"), by_name = given.contains("model_name");
  const bool by_file = given.contains("model_config_file");
  if (by_file && (by_path || by_name)) {
    throw ValueError("--model_config_file: cannot be combined with --",
                     by_path ? "model_base_path" : "model_name");
  }
  if (!by_file && !by_path) {
    throw ValueError("no model: pass --model_base_path or --model_config_file");
  }
  if (given.contains("batching_parameters_file") && !options.enable_batching) {
    throw ValueError("--batching_parameters_file needs --enable_batching");
  }
  if (options.port != 0 && !has_grpc) {
    throw ValueError("--port: this build has no gRPC; pass 0 or use --rest_api_port");
  }
  if (!options.grpc_socket_path.empty() && !has_grpc) {
    throw ValueError("--grpc_socket_path: this build has no gRPC");
  }
  if (options.tables != "auto" && options.tables != "mapped" && options.tables != "resident") {
    throw ValueError("--tables: must be mapped, resident or auto, received '", options.tables, "'");
  }
}

}  // namespace

ParsedServeOptions parse_serve_options(const std::vector<std::string>& words, bool has_grpc) {
  ParsedServeOptions out;
  out.options.port = has_grpc ? kGrpcPort : 0;
  out.options.rest_api_num_threads = num_workers();
  out.options.grpc_max_threads = int64_t{4} * num_workers();
  std::set<std::string> given;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") {
      out.help = true;
      return out;
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) throw ValueError("unexpected argument '", word, "'");
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool has_value = equals != std::string::npos;
    const bool next_is_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    if (name == "ssl_config_file" || name == "use_alts_credentials") {
      throw ValueError("--", name, ": connections are not encrypted; put a proxy in front");
    }
    const auto flag = std::ranges::find(flags(), name, &ServeFlag::name);
    if (flag == flags().end() && !is_ignored(name)) {
      throw ValueError("unknown flag --", name, "; see keel serve --help");
    }
    const bool first = given.insert(name).second;
    if (flag == flags().end()) {
      if (first) {
        out.warnings.push_back(absl::StrCat("--", name, " has no meaning here and is ignored"));
      }
      if (!has_value && next_is_value) ++i;
      continue;
    }
    std::string value;
    if (has_value) {
      value = word.substr(equals + 1);
    } else if (flag->value.empty()) {
      value = "true";
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      throw ValueError("--", name, ": needs a value");
    }
    try {
      flag->set(out.options, value);
    } catch (const ValueError& error) {
      throw ValueError("--", name, ": ", error.what());
    }
    out.given.push_back(absl::StrCat("--", name, "=", value));
  }
  check_together(out.options, given, has_grpc);
  return out;
}

std::string serve_help(bool has_grpc) {
  std::string out =
      "usage: keel serve --model_name NAME --model_base_path DIR [FLAGS]\n"
      "       keel serve --model_config_file FILE [FLAGS]\n\n"
      "Serves the versions of models: the REST API of TensorFlow Serving, KServe v2 and "
      "Prometheus\n"
      "metrics over HTTP, and both APIs over gRPC if the program was built with it. A new folder\n"
      "DIR/N with a model file becomes version N without a restart. SIGHUP reads the "
      "configuration\n"
      "again; SIGTERM finishes what was begun.\n"
      "Exit status: 0 after SIGTERM; 1 if the address is in use or requests were cut off; 2 for\n"
      "invalid flags or configuration files.\n\n";
  for (const ServeFlag& flag : flags()) {
    std::string left = "  --" + flag.name;
    if (!flag.value.empty()) left += " " + flag.value;
    constexpr size_t kColumn = 36;
    left.resize(std::max(left.size() + 2, kColumn), ' ');
    std::string standard = flag.standard.empty() ? "none" : flag.standard;
    if (flag.name == "port" && has_grpc) standard = std::to_string(kGrpcPort);
    out += left + flag.help + "; default " + standard + "\n";
  }
  return out +
         "\nFlags of TensorFlow Serving that have no meaning here are accepted with a warning.\n";
}

}  // namespace keel::serving
