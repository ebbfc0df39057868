// The server: parts from the inside to the outside.
//
//   base/      JSON, text, metrics, log: know nothing of models and connections
//   http/      HTTP/1.1 on epoll: connections, limits, time-outs
//   models/    versions of models: folders, loading, policy, swap
//   protocol/  what requests mean: TensorFlow Serving REST, KServe v2, pages
//   grpc/      the same requests over gRPC; only programs that link gRPC have it
//   serve.cc   flags, signals, and the order of start and stop
#include <keel/savedmodel/serving/serve.h>

#include <absl/strings/match.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <malloc.h>
#include <memory>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/mapped_file.h>
#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/http/http_server.h>
#include <keel/savedmodel/serving/models/batch_scheduler.h>
#include <keel/savedmodel/serving/models/model_repository.h>
#include <keel/savedmodel/serving/models/server_config.h>
#include <keel/savedmodel/serving/models/version_loader.h>
#include <keel/savedmodel/serving/models/version_trial.h>
#include <keel/savedmodel/serving/protocol/router.h>
#include <keel/savedmodel/serving/protocol/tfs_predict.h>
#include <keel/savedmodel/serving/serve_options.h>
#include <keel/version.h>

namespace keel::serving {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRunFailure = 1;
constexpr int kBadInput = 2;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::vector<ModelConfig> models_of(const ServeOptions& options,
                                   std::vector<std::string>& warnings) {
  if (!options.model_config_file.empty()) {
    return parse_model_configs(read_text_file(options.model_config_file), options.model_config_file,
                               warnings);
  }
  check_name("model name", options.model_name);
  return {{.name = options.model_name, .base_path = options.model_base_path}};
}

// Reads how requests are joined. Returns nothing if they are not.
std::optional<BatchingOptions> batching_options(const ServeOptions& options) {
  if (!options.enable_batching) return {};
  const std::string& path = options.batching_parameters_file;
  return parse_batching_parameters(path.empty() ? "" : read_text_file(path), path,
                                   static_cast<int>(options.rest_api_num_threads));
}

// The flag of the process of a trial, which follows those of the server.
constexpr std::string_view kTrialFolder = "--load_trial_folder=";

RepositoryOptions repository_options(const ServeOptions& options, const RequestLimits& limits,
                                     const RpcSupport* rpc,
                                     const std::shared_ptr<BatchScheduler>& batching) {
  RepositoryOptions out;
  out.batching = batching;
  out.poll_seconds = options.file_system_poll_wait_seconds;
  out.max_retries = static_cast<int>(options.max_num_load_retries);
  out.retry_micros = options.load_retry_interval_micros;
  out.load_threads = static_cast<int>(options.num_load_threads);
  out.allow_labels_of_unavailable = options.allow_version_labels_for_unavailable_models;
  out.warm_up = options.enable_model_warmup;
  out.tables = options.tables;
  const RequestLimits warm_up_limits = {.rows = limits.rows};  // warm-up is not counted
  out.run_warm_up = [limits = warm_up_limits](const ModelVersion& version,
                                              const std::string& line) {
    RequestTrace trace;
    trace.version = VersionHandle(std::shared_ptr<const void>(), &version);
    trace.counted = false;
    std::string answer;
    tfs_predict(trace, line, limits, answer);
  };
  if (rpc != nullptr) {
    out.replay_warm_up = [limits = warm_up_limits, rpc](const ModelVersion& version,
                                                        const std::string& file) {
      rpc->replay(version, file, limits);
    };
  }
  return out;
}

// `trial` is the command of a trial but for the folder; empty: no trials.
RepositoryOptions with_trials(RepositoryOptions options, const std::vector<std::string>& trial,
                              double seconds) {
  if (trial.empty() || seconds == 0) return options;
  options.try_version = [trial, seconds](const std::string& folder) {
    std::vector<std::string> command = trial;
    command.push_back(std::string(kTrialFolder) + folder);
    try_command(command, seconds);
  };
  return options;
}

HttpServerOptions http_options(const ServeOptions& options,
                               const std::optional<BatchingOptions>& batching) {
  HttpServerOptions out;
  out.address = options.address;
  out.port = static_cast<int>(std::max<int64_t>(options.rest_api_port, 0));
  out.threads = static_cast<int>(options.rest_api_num_threads);
  if (batching) {
    // Requests that wait for a batch wait in threads, so there are more of them than run.
    out.running_threads = out.threads + 1;
    out.threads = std::max(out.threads, static_cast<int>(BatchScheduler::most_threads(*batching)));
  }
  out.limits.body_bytes = static_cast<size_t>(options.max_request_bytes);
  out.timeout_ms = options.rest_api_timeout_in_ms;
  out.cors = options.rest_api_enable_cors_support;
  out.max_connections = static_cast<int>(options.max_connections);
  out.buffered_bytes = options.max_buffered_request_bytes;
  out.max_pending = static_cast<int>(options.max_pending_requests);
  out.idle_timeout_seconds = options.idle_timeout_seconds;
  out.read_timeout_seconds = options.read_timeout_seconds;
  return out;
}

RpcServerOptions rpc_options(const ServeOptions& options, const RequestLimits& limits) {
  return {.address = options.address,
          .port = static_cast<int>(options.port),
          .socket_path = options.grpc_socket_path,
          .threads = static_cast<int>(options.grpc_max_threads),
          .message_bytes = options.max_request_bytes,
          .timeout_ms = options.rest_api_timeout_in_ms,
          .max_pending = options.max_pending_requests,
          .health = options.enable_grpc_healthcheck_service,
          .tensor_content = options.enable_serialization_as_tensor_content,
          .log_requests = options.log_requests,
          .limits = limits};
}

// The signals that the server handles itself, blocked in all threads.
sigset_t handled_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&out, signal);
  return out;
}

// Waits for a signal for at most `milliseconds`. Returns 0 if there was none.
int wait_for_signal(const sigset_t& signals, int milliseconds) {
  const timespec span = {.tv_sec = 0, .tv_nsec = int64_t{1000000} * milliseconds};
  const int signal = sigtimedwait(&signals, nullptr, &span);
  return signal < 0 ? 0 : signal;
}

// A server from start to stop.
class Server {
 public:
  Server(const ServeOptions& options, std::vector<ModelConfig> models,
         const MonitoringConfig& monitoring, const RpcSupport* rpc,
         const std::optional<BatchingOptions>& batching, const std::vector<std::string>& trial)
      : options_(options),
        models_(std::move(models)),
        limits_({.rows = options.max_rows_per_request,
                 .timeout_ns = options.rest_api_timeout_in_ms * 1000000,
                 .rejected_rows = &metrics_.rejected_rows}),
        batching_(batching ? std::make_shared<BatchScheduler>(*batching, metrics_) : nullptr),
        repository_(with_trials(repository_options(options, limits_, rpc, batching_), trial,
                                options.load_trial_seconds),
                    metrics_),
        router_({.limits = limits_,
                 .body_bytes = static_cast<size_t>(options.max_request_bytes),
                 .monitoring = monitoring,
                 .log_requests = options.log_requests},
                repository_, metrics_) {
    if (options.rest_api_port != 0) {
      http_.emplace(http_options(options, batching), router_, metrics_);
    }
    if (rpc != nullptr && (options.port != 0 || !options.grpc_socket_path.empty())) {
      rpc_ = rpc->make_server(rpc_options(options, limits_),
                              {.repository = repository_, .metrics = metrics_, .ready = [this] {
                                 return router_.ready();
                               }});
    }
  }

  int run(const sigset_t& signals);

 private:
  void reload();
  void reload_if_changed();
  int drain(const sigset_t& signals);
  void start();
  void tick() {
    if (http_) http_->tick();
    if (rpc_) rpc_->tick();
  }

  const ServeOptions& options_;
  std::vector<ModelConfig> models_;
  ServerMetrics metrics_;
  RequestLimits limits_;
  std::shared_ptr<BatchScheduler> batching_;  // null: each request is computed alone
  ModelRepository repository_;
  Router router_;
  std::optional<HttpServer> http_;
  std::unique_ptr<RpcServer> rpc_;  // null: none
  std::string config_text_;
};

// Starts the servers. Scripts wait for the lines, so they do not depend on the level of the log.
// Each line is one write, because threads of the server log at the same time.
void Server::start() {
  const bool v6 = absl::StrContains(options_.address, ':');
  const std::string address = (v6 ? "[" : "") + options_.address + (v6 ? "]:" : ":");
  if (http_) {
    http_->start();
    std::cerr << str("serving REST at http://", address, http_->port(), '\n');
  }
  if (!rpc_) return;
  rpc_->start();
  const std::string& path = options_.grpc_socket_path;
  if (rpc_->port() != 0) std::cerr << str("serving gRPC at ", address, rpc_->port(), '\n');
  if (!path.empty()) std::cerr << str("serving gRPC at unix:", path, '\n');
}

int Server::run(const sigset_t& signals) {
  constexpr int kTickMilliseconds = 100;
  start();
  repository_.configure(models_);
  if (!options_.model_config_file.empty())
    config_text_ = read_text_file(options_.model_config_file);
  const auto period = static_cast<double>(options_.model_config_file_poll_wait_seconds);
  Clock::time_point next_poll = after(period);
  while (true) {
    const int signal = wait_for_signal(signals, kTickMilliseconds);
    if (signal == SIGHUP) {
      log_info("SIGHUP: reloading");
      reload();
    } else if (signal != 0) {
      log_info(signal == SIGTERM ? "SIGTERM" : "SIGINT", ": draining");
      return drain(signals);
    }
    tick();
    if (period > 0 && Clock::now() >= next_poll) {
      next_poll = after(period);
      reload_if_changed();
    }
  }
}

void Server::reload_if_changed() {
  try {
    if (read_text_file(options_.model_config_file) == config_text_) return;
  } catch (const IoError&) {
    // reload() reports it.
  }
  reload();
}

void Server::reload() {
  try {
    if (!options_.model_config_file.empty()) {
      std::vector<std::string> warnings;
      config_text_ = read_text_file(options_.model_config_file);
      models_ = parse_model_configs(config_text_, options_.model_config_file, warnings);
      for (const std::string& warning : warnings) log_warning(warning);
    }
    const std::vector<std::string> errors = repository_.configure(models_);
    for (const std::string& error : errors) log_error(error);
    if (!errors.empty()) metrics_.config_failures.add();
    log_info("configuration: ", models_.size(), " models");
  } catch (const std::exception& error) {
    metrics_.config_failures.add();
    log_error("the configuration is not used: ", error.what());
  }
}

int Server::drain(const sigset_t& signals) {
  constexpr int kTickMilliseconds = 10;
  router_.begin_drain();
  Clock::time_point deadline = after(options_.lame_duck_seconds);
  bool accepting = true;
  while (true) {
    const int signal = wait_for_signal(signals, kTickMilliseconds);
    if (signal == SIGTERM || signal == SIGINT) {
      log_warning("a second signal: ending at once");
      _exit(kRunFailure);
    }
    tick();
    if (accepting && Clock::now() >= deadline) {
      accepting = false;
      if (http_) http_->stop_accepting();
      if (rpc_) rpc_->stop_accepting();
      deadline = after(options_.drain_timeout_seconds);
    }
    if (accepting) continue;
    const int64_t open = http_ ? http_->connections() : 0;
    const int64_t calls = rpc_ ? rpc_->open_calls() : 0;
    if (open == 0 && calls == 0) {
      log_info("drained");
      return 0;
    }
    if (Clock::now() >= deadline) {
      log_error("the drain time is over; ", open, " connections and ", calls,
                " calls of gRPC are cut off");
      _exit(kRunFailure);
    }
  }
}

// Loads the version of a folder as the server would, with its tables in the file. Exits normally if
// it is refused: the server will find the same error.
int run_trial(const ParsedServeOptions& parsed, const RpcSupport* rpc, const std::string& folder) {
  begin_trial();
  set_log_level(LogLevel::kError);
  RepositoryOptions options = repository_options(
      parsed.options, {.rows = parsed.options.max_rows_per_request}, rpc, nullptr);
  options.tables = "mapped";
  VersionLoad load = {.model = "trial",
                      .base_path = folder,
                      .folder = folder,
                      .metrics = std::make_shared<ModelMetrics>()};
  load_version(load, options, nullptr);
  if (!load.message.empty()) std::cout << load.message << '\n' << std::flush;
  return 0;
}

int run_server(const ParsedServeOptions& parsed, const RpcSupport* rpc,
               const std::vector<std::string>& trial) {
  const ServeOptions& options = parsed.options;
  set_log_level(options.log_level);
  for (const std::string& warning : parsed.warnings) log_warning(warning);
  std::vector<std::string> warnings;
  std::vector<ModelConfig> models = models_of(options, warnings);
  for (const std::string& warning : warnings) log_warning(warning);
  MonitoringConfig monitoring;
  if (!options.monitoring_config_file.empty()) {
    monitoring = parse_monitoring_config(read_text_file(options.monitoring_config_file),
                                         options.monitoring_config_file);
  }
  const std::optional<BatchingOptions> batching = batching_options(options);
  std::string flags;
  for (const std::string& flag : parsed.given) flags += " " + flag;
  log_info("keel ", KEEL_VERSION, " serve", flags);
  // Writes to sockets and pipes report errors instead.
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_ptr<Server> server;
  try {
    server = std::make_unique<Server>(options, std::move(models), monitoring, rpc, batching, trial);
  } catch (const IoError& error) {
    std::cerr << "keel serve: " << error.what() << '\n' << std::flush;
    return kRunFailure;
  }
  return server->run(signals);
}

}  // namespace

int serve(const std::vector<std::string>& words, const RpcSupport* rpc,
          const std::vector<std::string>& command) {
  try {
    if (!words.empty() && words.back().starts_with(kTrialFolder)) {
      const std::vector<std::string> of_server(words.begin(), words.end() - 1);
      return run_trial(parse_serve_options(of_server, rpc != nullptr), rpc,
                       words.back().substr(kTrialFolder.size()));
    }
    const ParsedServeOptions parsed = parse_serve_options(words, rpc != nullptr);
    if (parsed.help) {
      std::cout << serve_help(rpc != nullptr);
      return 0;
    }
    guard_mapped_files();
    std::vector<std::string> trial = command;
    if (!trial.empty()) trial.insert(trial.end(), words.begin(), words.end());
    return run_server(parsed, rpc, trial);
  } catch (const std::exception& error) {
    std::cerr << "keel serve: " << error.what() << '\n' << std::flush;
    return kBadInput;
  }
}

}  // namespace keel::serving
