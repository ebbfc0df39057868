// Router: answers the HTTP requests of all protocols.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <keel/savedmodel/serving/http/http_server.h>
#include <keel/savedmodel/serving/models/model_repository.h>
#include <keel/savedmodel/serving/models/server_config.h>
#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Options of Router.
struct RouterOptions {
  RequestLimits limits = {};
  size_t body_bytes = 64 << 20;  // after decompression
  MonitoringConfig monitoring = {};
  bool log_requests = false;
};

// Finds what a path means and answers it. Thread safe.
class Router : public HttpHandler {
 public:
  Router(const RouterOptions& options, const ModelRepository& repository, ServerMetrics& metrics)
      : options_(options), repository_(repository), metrics_(metrics) {}

  bool computes(const HttpRequest& request) const override;
  // Returns the version that a prediction is for, or null.
  std::shared_ptr<const void> pin(const HttpRequest& request) const override;
  void handle(const HttpRequest& request, HttpResponse& response) override;
  void refused(const HttpRequest& request, int status) override;

  // From now on the server is not ready.
  void begin_drain() { draining_ = true; }
  bool ready() const { return !draining_ && repository_.catalog()->ready; }

 private:
  struct Target;
  static bool parse_prediction(const HttpRequest& request, Target& target);
  void route(const HttpRequest& request, HttpResponse& response);
  void route_tfs(const HttpRequest& request, HttpResponse& response);
  void route_kserve(const HttpRequest& request, HttpResponse& response);
  void answer_kserve_model(const HttpRequest& request, std::string_view rest,
                           HttpResponse& response);
  void answer_options(const HttpRequest& request, HttpResponse& response) const;
  void predict(const HttpRequest& request, const Target& target, Api api, HttpResponse& response);
  void tfs_status(const Target& target, HttpResponse& response) const;
  VersionHandle find(const Target& target, bool kserve) const;
  const RouterOptions options_;
  const ModelRepository& repository_;
  ServerMetrics& metrics_;
  std::atomic<bool> draining_ = false;
};

}  // namespace keel::serving
