#include <keel/savedmodel/serving/protocol/router.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <optional>
#include <utility>

#include <keel/savedmodel/serving/base/inflate.h>
#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/base/memory_budget.h>
#include <keel/savedmodel/serving/protocol/kserve_infer.h>
#include <keel/savedmodel/serving/protocol/metrics_page.h>
#include <keel/savedmodel/serving/protocol/model_lookup.h>
#include <keel/savedmodel/serving/protocol/model_pages.h>
#include <keel/savedmodel/serving/protocol/request_count.h>
#include <keel/savedmodel/serving/protocol/status_page.h>
#include <keel/savedmodel/serving/protocol/tfs_examples.h>
#include <keel/savedmodel/serving/protocol/tfs_predict.h>

namespace keel::serving {
namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

constexpr std::string_view kModels = "/v2/models/";

bool equals_any_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
         });
}

bool is_get(const HttpRequest& request) {
  return request.method == HttpMethod::kGet || request.method == HttpMethod::kHead;
}

void set_error(HttpResponse& response, int status, std::string_view text) {
  response.status = status;
  response.content_type = "application/json";
  response.body = json_error(text);
}

void fail_method(HttpResponse& response, const HttpRequest& request, const char* allowed) {
  set_error(response, 405,
            str("method ", request.method_text, " is not allowed here; use ", allowed));
  absl::StrAppend(&response.headers, "Allow: ", allowed, "\r\n");
}

void fail_path(HttpResponse& response, const HttpRequest& request) {
  set_error(response, 404, str("there is nothing at ", request.path));
}

// The parts of a path between slashes.
std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t slash = path.find('/');
    out.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    path.remove_prefix(slash + 1);
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the error of a body that is not JSON, if it is not, and otherwise `error`. Values are
// read before the end of the body is known.
ErrorReport preferring_syntax(ErrorReport error, std::string_view json) {
  if (error.code != Code::kInvalidArgument || json.empty()) return error;
  try {
    JsonReader(json).skip_value();
    return error;
  } catch (const ServeError&) {
    return current_error();
  }
}

std::string_view decoded_body(const HttpRequest& request, size_t limit, std::string& memory) {
  const std::string_view encoding = request.content_encoding;
  if (encoding.empty() || equals_any_case(encoding, "identity")) return request.body;
  const bool gzip = equals_any_case(encoding, "gzip");
  if (!gzip && !equals_any_case(encoding, "deflate")) {
    throw ServeError::with_status(415, Code::kInvalidArgument, "Content-Encoding '", encoding,
                                  "' is not supported; use gzip, deflate or identity");
  }
  memory = inflate_body(request.body, gzip, limit);
  return memory;
}

}  // namespace

// What a path names.
struct Router::Target {
  enum class Kind { kPredict, kStatus, kMetadata, kList, kNoName };
  Kind kind = Kind::kStatus;
  Api api = Api::kPredict;
  std::string name;
  std::string_view version;  // digits, as they were sent; empty: none
  std::optional<std::string> label;

  // Parses the paths of TensorFlow Serving, which GET and POST have different ones of. Returns
  // false if the path is none of them.
  bool parse_get(std::string_view path);
  bool parse_post(std::string_view path);
  // Parses what follows /v2/models/ and its last word, if that is not part of the name.
  enum class Action { kMetadata, kReady, kInfer, kStats };
  bool parse_kserve(std::string_view rest, Action& action);

  // Throws ServeError if the version is no number of 64 bits.
  ModelTarget as_target(bool kserve) const;

 private:
  bool parse_model(std::span<const std::string_view> segments);
};

bool Router::Target::parse_model(std::span<const std::string_view> segments) {
  const auto is_name = [](std::string_view text) {
    return !text.empty() && text.find(':') == std::string_view::npos;
  };
  if (segments.size() != 1 && segments.size() != 3) return false;
  if (!is_name(segments[0]) || !percent_decode(segments[0], name)) return false;
  if (segments.size() == 1) return true;
  if (equals_any_case(segments[1], "versions")) {
    version = segments[2];
    return is_number(version);
  }
  return equals_any_case(segments[1], "labels") && is_name(segments[2]) &&
         percent_decode(segments[2], label.emplace());
}

bool Router::Target::parse_get(std::string_view path) {
  std::vector<std::string_view> segments = segments_of(path);  // "", "v1", "models", ...
  if (segments.size() < 3 || !equals_any_case(segments[2], "models")) return false;
  if (segments.size() == 3) {
    kind = Kind::kList;
    return true;
  }
  const bool no_name = segments.size() == 5 &&
                       ((equals_any_case(segments[3], "versions") && is_number(segments[4])) ||
                        equals_any_case(segments[3], "labels"));
  if (no_name) {
    kind = Kind::kNoName;
    return true;
  }
  if (segments.size() > 4 && equals_any_case(segments.back(), "metadata")) {
    kind = Kind::kMetadata;
    segments.pop_back();
  }
  return parse_model(std::span(segments).subspan(3));
}

bool Router::Target::parse_post(std::string_view path) {
  const size_t colon = path.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view verb = path.substr(colon + 1);
  if (equals_any_case(verb, "predict")) {
    api = Api::kPredict;
  } else if (equals_any_case(verb, "classify")) {
    api = Api::kClassify;
  } else if (equals_any_case(verb, "regress")) {
    api = Api::kRegress;
  } else {
    return false;
  }
  kind = Kind::kPredict;
  // The usual path, without a list of its parts.
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string_view rest = path.substr(0, colon);
  if (rest.starts_with(kPrefix) && rest.size() > kPrefix.size() &&
      rest.find_first_of("/:%", kPrefix.size()) == std::string_view::npos) {
    name = rest.substr(kPrefix.size());
    return true;
  }
  const std::vector<std::string_view> segments = segments_of(rest);
  if (segments.size() < 4 || !equals_any_case(segments[2], "models")) return false;
  return parse_model(std::span(segments).subspan(3));
}

ModelTarget Router::Target::as_target(bool kserve) const {
  ModelTarget out = {.name = name, .label = label};
  if (version.empty()) return out;
  out.version = version_number(version);
  if (out.version) return out;
  if (!kserve) {
    throw ServeError(Code::kInvalidArgument, "Failed to convert version: ", version,
                     " to numeric.");
  }
  throw ServeError(Code::kNotFound, "Servable not found for request: Specific(", name, ", ",
                   version, ")");
}

VersionHandle Router::find(const Target& target, bool kserve) const {
  return find_version(repository_, target.as_target(kserve),
                      kserve ? Code::kNotFound : Code::kInvalidArgument);
}

// Answers a request that computes, and counts it.
void Router::predict(const HttpRequest& request, const Target& target, Api api,
                     HttpResponse& response) {
  RequestTrace trace = {.api = api,
                        .received_ns = request.read_ns,
                        .begin_ns = steady_ns(),
                        .deadline = request.deadline};
  Code code = Code::kOk;
  std::string memory;
  std::string_view json;  // of the body
  try {
    trace.version = std::static_pointer_cast<const ModelVersion>(request.pinned);
    if (trace.version == nullptr) trace.version = find(target, api == Api::kInfer);
    if (options_.log_requests) request_memory().logged = trace.version;
    if (const int64_t timeout = options_.limits.timeout_ns; timeout > 0) {
      trace.deadline_ns = request.read_ns + timeout;
    }
    const std::string_view body = decoded_body(request, options_.body_bytes, memory);
    const MemoryBudget::Scope budget(MemoryBudget::of_body(body.size()));
    size_t json_size = std::string_view::npos;
    json = body;
    if (api == Api::kInfer) {
      size_t header = std::string_view::npos;
      if (request.has_header_length) {
        const std::optional<int64_t> length = version_number(request.header_length);
        if (!length || *length < 1 || static_cast<uint64_t>(*length) > body.size()) {
          throw ServeError(Code::kInvalidArgument, "Inference-Header-Content-Length must be 1 to ",
                           body.size(), ", the size of the body, received '", request.header_length,
                           "'");
        }
        header = static_cast<size_t>(*length);
        json = body.substr(0, header);
      }
      json_size = kserve_infer(trace, body, header, options_.limits, response.body);
    } else if (api == Api::kPredict) {
      tfs_predict(trace, body, options_.limits, response.body);
    } else {
      tfs_examples(trace, body, options_.limits, response.body);
    }
    response.headers += "Keel-Model-Version: " + trace.version->number_text() + "\r\n";
    if (json_size != std::string_view::npos) {
      response.content_type = "application/octet-stream";
      response.headers += "Inference-Header-Content-Length: " + std::to_string(json_size) + "\r\n";
    }
  } catch (...) {
    const ErrorReport error = preferring_syntax(current_error(), json);
    response.headers.clear();
    response.body.clear();
    code = error.code;
    set_error(response, error.status, error.message);
    if (error.status == 413) metrics_.rejected_body.add();
    if (error.code == Code::kDeadlineExceeded && trace.claim()) metrics_.rejected_timeout.add();
    if (error.status == 500) log_error("internal error: ", error.message);
  }
  shrink_request_memory();
  if (!trace.claim()) {  // the client has been told of the time-out
    code = Code::kDeadlineExceeded;
    response.status = http_status_of(code);
  }
  count_request(trace, code, target.name, repository_, metrics_);
}

bool Router::computes(const HttpRequest& request) const {
  if (request.method != HttpMethod::kPost) return false;
  return request.path.find(':') != std::string_view::npos || request.path.ends_with("/infer");
}

// Finds what a prediction is for. Returns false for other requests.
bool Router::parse_prediction(const HttpRequest& request, Target& target) {
  if (request.method != HttpMethod::kPost) return false;
  constexpr size_t kPrefix = 4;
  if (equals_any_case(request.path.substr(0, kPrefix), "/v1/")) {
    return target.parse_post(request.path);
  }
  Target::Action action = Target::Action::kMetadata;
  target.api = Api::kInfer;
  return request.path.starts_with(kModels) &&
         target.parse_kserve(request.path.substr(kModels.size()), action) &&
         action == Target::Action::kInfer;
}

std::shared_ptr<const void> Router::pin(const HttpRequest& request) const {
  try {
    Target target;
    if (parse_prediction(request, target)) return find(target, target.api == Api::kInfer);
  } catch (const std::exception&) {
    // The request is answered with the error when it is complete.
  }
  return nullptr;
}

void Router::refused(const HttpRequest& request, int status) {
  try {
    Target target;
    if (!parse_prediction(request, target)) return;
    RequestTrace trace = {.api = target.api, .received_ns = request.read_ns};
    trace.version = std::static_pointer_cast<const ModelVersion>(request.pinned);
    count_request(trace, code_of_http(status), target.name, repository_, metrics_);
  } catch (const std::exception& error) {
    log_error("a refused request is not counted: ", error.what());
  }
}

void Router::handle(const HttpRequest& request, HttpResponse& response) {
  const int64_t begin = options_.log_requests ? steady_ns() : 0;
  try {
    route(request, response);
  } catch (...) {
    const ErrorReport error = current_error();
    response.headers.clear();
    set_error(response, error.status, error.message);
    if (error.status == 500) log_error("internal error: ", error.message);
  }
  if (options_.log_requests) {
    const VersionHandle version = std::exchange(request_memory().logged, nullptr);
    log_info(request.method_text, " ", request.path, " ", response.status, " ",
             response.body.size(), " bytes ", (steady_ns() - begin) / 1000, " us model ",
             version == nullptr ? "-" : version->model(), " version ",
             version == nullptr ? "-" : version->number_text());
  }
}

void Router::answer_options(const HttpRequest& request, HttpResponse& response) const {
  if (!request.origin.starts_with("http://") && !request.origin.starts_with("https://")) {
    return set_error(response, 400, "OPTIONS needs a header Origin of http:// or https://");
  }
  response.content_type = nullptr;
  response.body.clear();
}

void Router::route(const HttpRequest& request, HttpResponse& response) {
  const std::string_view path = request.path;
  if (path.size() > 3 && equals_any_case(path.substr(0, 4), "/v1/")) {
    return route_tfs(request, response);
  }
  if (path == "/v2" || path.starts_with("/v2/")) return route_kserve(request, response);
  const bool is_metrics =
      options_.monitoring.enable && (path == "/metrics" || path == options_.monitoring.path);
  const bool known = is_metrics || path == "/healthz" || path == "/readyz";
  // Browsers see a page; programs that look for something at "/" do not.
  const bool is_page =
      path == "/" && is_get(request) && request.accept.find("text/html") != std::string_view::npos;
  if (!known && !is_page) return fail_path(response, request);
  if (request.method == HttpMethod::kOptions) return answer_options(request, response);
  if (!is_get(request)) return fail_method(response, request, "GET, HEAD, OPTIONS");
  if (is_page) {
    response.content_type = "text/html; charset=utf-8";
    response.body = status_page();
  } else if (is_metrics) {
    response.content_type = kMetricsType;
    response.body = metrics_page(repository_, metrics_, ready());
  } else if (path == "/healthz") {
    response.body = "{\"live\": true}";
  } else {
    const bool is_ready = ready();
    response.status = is_ready ? 200 : 503;
    response.body = absl::StrCat("{\"ready\": ", is_ready ? "true" : "false", "}");
  }
}

// ---- TensorFlow Serving

void Router::tfs_status(const Target& target, HttpResponse& response) const {
  response.body = tfs_status_json(find_statuses(repository_, target.as_target(false)));
}

void Router::route_tfs(const HttpRequest& request, HttpResponse& response) {
  Target target;
  const bool options = request.method == HttpMethod::kOptions;
  const bool is_post = request.method == HttpMethod::kPost && target.parse_post(request.path);
  if (is_post) return predict(request, target, target.api, response);
  const bool is_known =
      (is_get(request) && target.parse_get(request.path)) ||
      (options && (Target().parse_get(request.path) || Target().parse_post(request.path)));
  if (!is_known) {
    return set_error(response, 400,
                     str("Malformed request: ", request.method_text, " ", request.path));
  }
  if (options) return answer_options(request, response);
  switch (target.kind) {
    case Target::Kind::kNoName:
      return set_error(response, 400, "Missing model name in request.");
    case Target::Kind::kList:
      response.body = tfs_models_json(repository_.statuses());
      return;
    case Target::Kind::kMetadata:
      response.body = tfs_metadata_json(*find(target, false));
      return;
    case Target::Kind::kStatus:
    case Target::Kind::kPredict:
      return tfs_status(target, response);
  }
}

// ---- KServe v2

bool Router::Target::parse_kserve(std::string_view rest, Action& action) {
  std::vector<std::string_view> segments = segments_of(rest);
  action = Action::kMetadata;
  if (segments.size() == 2 || segments.size() == 4) {
    const std::string_view last = segments.back();
    if (last == "ready") {
      action = Action::kReady;
    } else if (last == "infer") {
      action = Action::kInfer;
    } else if (last == "stats") {
      action = Action::kStats;
    } else {
      return false;
    }
    segments.pop_back();
  }
  if (segments[0].empty() || !percent_decode(segments[0], name)) return false;
  if (segments.size() == 1) return true;
  if (segments.size() != 3 || segments[1] != "versions" || segments[2].empty()) return false;
  if (is_number(segments[2])) {
    version = segments[2];
    return true;
  }
  return percent_decode(segments[2], label.emplace());
}

// Answers paths below /v2/models/, of which `rest` is what follows.
void Router::answer_kserve_model(const HttpRequest& request, std::string_view rest,
                                 HttpResponse& response) {
  using Action = Target::Action;
  Target target;
  Action action = Action::kMetadata;
  if (!target.parse_kserve(rest, action)) return fail_path(response, request);
  if (request.method == HttpMethod::kOptions) return answer_options(request, response);
  if (action == Action::kInfer) {
    if (request.method != HttpMethod::kPost) {
      return fail_method(response, request, "POST, OPTIONS");
    }
    return predict(request, target, Api::kInfer, response);
  }
  if (!is_get(request)) return fail_method(response, request, "GET, HEAD, OPTIONS");
  const std::shared_ptr<const Catalog> catalog = repository_.catalog();
  const ServedModel* const model = catalog->find(target.name);
  if (action == Action::kReady) {
    std::string quoted;
    append_json_string(quoted, target.name);
    const bool is_ready = is_available(repository_, target.as_target(true));
    response.status = is_ready ? 200 : 503;
    response.body =
        absl::StrCat("{\"name\": ", quoted, ", \"ready\": ", is_ready ? "true" : "false", "}");
    return;
  }
  const VersionHandle version = find(target, true);
  if (action == Action::kStats) {
    std::vector<VersionHandle> versions = {version};
    if (target.version.empty() && !target.label && model != nullptr) {
      versions.clear();
      for (const auto& [_, handle] : model->versions) versions.push_back(handle);
    }
    response.body = kserve_stats_json(versions);
    return;
  }
  std::vector<int64_t> numbers;
  if (model != nullptr) {
    for (const auto& [number, _] : model->versions) numbers.push_back(number);
  }
  response.body = kserve_metadata_json(*version, numbers);
}

void Router::route_kserve(const HttpRequest& request, HttpResponse& response) {
  const std::string_view path = request.path;
  constexpr std::string_view kRepository = "/v2/repository/models/";
  const bool is_stats = path == "/v2/models/stats";  // also if a model has that name, as in Triton
  if (path.starts_with(kModels) && !is_stats) {
    return answer_kserve_model(request, path.substr(kModels.size()), response);
  }
  const bool is_server = path == "/v2" || path == "/v2/";
  const bool is_live = path == "/v2/health/live", is_ready_path = path == "/v2/health/ready";
  const bool is_index = path == "/v2/repository/index";
  bool is_load = false;
  if (path.starts_with(kRepository)) {
    const std::vector<std::string_view> segments = segments_of(path.substr(kRepository.size()));
    is_load = segments.size() == 2 && !segments[0].empty() &&
              (segments[1] == "load" || segments[1] == "unload");
  }
  if (!is_server && !is_live && !is_ready_path && !is_index && !is_load && !is_stats) {
    return fail_path(response, request);
  }
  if (request.method == HttpMethod::kOptions) return answer_options(request, response);
  if (is_index || is_load) {
    if (request.method != HttpMethod::kPost) {
      return fail_method(response, request, "POST, OPTIONS");
    }
    if (is_load) {
      return set_error(response, 400,
                       "models are not loaded or unloaded on request: versions follow the folder");
    }
    bool only_ready = false;
    std::string memory, key;
    const std::string_view body = decoded_body(request, options_.body_bytes, memory);
    if (body.find_first_not_of(" \t\r\n") != std::string_view::npos) {
      JsonReader json(body);
      json.enter_object();
      while (json.next_member(key)) {
        if (key == "ready") {
          only_ready = json.read_bool();
        } else {
          json.skip_value();
        }
      }
    }
    response.body = kserve_index_json(repository_.statuses(), only_ready);
    return;
  }
  if (!is_get(request)) return fail_method(response, request, "GET, HEAD, OPTIONS");
  if (is_stats) {
    std::vector<VersionHandle> versions;
    for (const auto& [_, model] : repository_.catalog()->models) {
      for (const auto& [number, version] : model.versions) versions.push_back(version);
    }
    response.body = kserve_stats_json(versions);
  } else if (is_server) {
    response.body = kserve_server_json();
  } else if (is_live) {
    response.body = "{\"live\": true}";
  } else {
    const bool is_ready = ready();
    response.status = is_ready ? 200 : 503;
    response.body = absl::StrCat("{\"ready\": ", is_ready ? "true" : "false", "}");
  }
}

}  // namespace keel::serving
