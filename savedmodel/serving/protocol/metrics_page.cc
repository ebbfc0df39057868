#include <keel/savedmodel/serving/protocol/metrics_page.h>

#include <absl/strings/str_cat.h>
#include <functional>

#include <keel/framework/base/function_ref.h>
#include <keel/version.h>

namespace keel::serving {
namespace {

// Writes families of metrics.
class Page {
 public:
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  template <class T>
  void sample(const std::string& labels, T value) {
    text_ += labels.empty() ? absl::StrCat(name_, " ", value, "\n")
                            : absl::StrCat(name_, "{", labels, "} ", value, "\n");
  }
  void histogram(const std::string& labels, const Histogram& histogram) {
    histogram.append_to(text_, name_, labels);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

std::string label(const char* name, std::string_view value) {
  return absl::StrCat(name, "=\"", label_value(value), "\"");
}

constexpr Code kCodes[] = {Code::kOk,
                           Code::kInvalidArgument,
                           Code::kDeadlineExceeded,
                           Code::kNotFound,
                           Code::kResourceExhausted,
                           Code::kFailedPrecondition,
                           Code::kUnimplemented,
                           Code::kInternal,
                           Code::kUnavailable};

void add_requests(Page& page, const std::string& model, const ModelMetrics& metrics) {
  for (Code code : kCodes) {
    const int64_t count = metrics.requests[static_cast<size_t>(code)].value();
    if (count == 0 && (model.empty() || code != Code::kOk)) continue;
    page.sample(label("model_name", model) + "," + label("status", name_of(code)), count);
  }
}

using Figures = std::map<std::string, std::vector<VersionFigures>>;

void add_version_counter(Page& page, const Figures& figures, const char* name, const char* help,
                         FunctionRef<int64_t(const VersionMetrics&)> value) {
  page.family(name, "counter", help);
  for (const auto& [model, versions] : figures) {
    for (const VersionFigures& figure : versions) {
      if (figure.version == nullptr) continue;
      page.sample(label("model", model) + absl::StrCat(",version=\"", figure.status.number, "\""),
                  value(figure.version->metrics()));
    }
  }
}

void add_version_gauges(Page& page, const Figures& figures) {
  page.family("keel_model_version_state", "gauge", "1 for the state of the version");
  for (const auto& [model, versions] : figures) {
    for (const VersionFigures& figure : versions) {
      page.sample(label("model", model) + absl::StrCat(",version=\"", figure.status.number, "\",") +
                      label("state", name_of(figure.status.state)),
                  1);
    }
  }
  page.family("keel_tables_bytes", "gauge", "bytes of large tables by where they are");
  for (const auto& [model, versions] : figures) {
    for (const VersionFigures& figure : versions) {
      if (figure.version == nullptr || figure.version->tables() == nullptr) continue;
      int64_t mapped = 0, resident = 0, copied = 0;
      for (const MappedTables::Table& table : figure.version->tables()->tables()) {
        (table.promoted ? resident : table.obstacle.empty() ? mapped : copied) += table.bytes;
      }
      const std::string version =
          label("model", model) + absl::StrCat(",version=\"", figure.status.number, "\",");
      page.sample(version + label("kind", "mapped"), mapped);
      page.sample(version + label("kind", "resident"), resident);
      page.sample(version + label("kind", "copied"), copied);
    }
  }
  const auto add_seconds = [&](const char* name, const char* help, double VersionFigures::* value) {
    page.family(name, "gauge", help);
    for (const auto& [model, versions] : figures) {
      for (const VersionFigures& figure : versions) {
        if (figure.*value == 0) continue;
        page.sample(label("model", model) + absl::StrCat(",version=\"", figure.status.number, "\""),
                    figure.*value);
      }
    }
  };
  add_seconds("keel_model_load_seconds", "duration of the last load",
              &VersionFigures::load_seconds);
  add_seconds("keel_swap_seconds", "from seeing a version to serving it in place of another one",
              &VersionFigures::swap_seconds);
}

}  // namespace

std::string metrics_page(const ModelRepository& repository, const ServerMetrics& server,
                         bool ready) {
  Page page;
  const std::shared_ptr<const Catalog> catalog = repository.catalog();
  const Figures figures = repository.figures();
  const auto& models = catalog->models;

  page.family(":tensorflow:serving:request_count", "counter", "requests by code");
  add_requests(page, "", server.unknown_models);
  for (const auto& [name, model] : models) add_requests(page, name, *model.metrics);
  const auto by_api = [&](const char* family, const char* help, const auto& label_of,
                          const auto& histograms) {
    page.family(family, "histogram", help);
    for (const auto& [name, model] : models) {
      for (size_t api = 0; api < kApis; ++api) {
        const Histogram& histogram = histograms(*model.metrics)[api];
        if (histogram.count() == 0) continue;
        page.histogram(label("model_name", name) + "," +
                           label("API", name_of(static_cast<Api>(api))) + "," +
                           label_of(static_cast<Api>(api)),
                       histogram);
      }
    }
  };
  by_api(
      ":tensorflow:serving:request_latency", "successful requests, in microseconds",
      [](Api api) { return label("entrypoint", is_rpc(api) ? "GRPC" : "REST"); },
      [](const ModelMetrics& m) -> const auto& { return m.latency; });
  by_api(
      ":tensorflow:serving:runtime_latency", "computing, in microseconds",
      [](Api) { return label("runtime", "KEEL"); },
      [](const ModelMetrics& m) -> const auto& { return m.runtime; });
  page.family(":tensorflow:serving:request_example_counts", "histogram",
              "rows of classify and regress requests");
  for (const auto& [name, model] : models) {
    if (model.metrics->example_counts.count() > 0) {
      page.histogram(label("model", name), model.metrics->example_counts);
    }
  }
  const auto by_model = [&](const char* family, const char* type, const char* help,
                            const auto& value) {
    page.family(family, type, help);
    for (const auto& [name, model] : models) {
      page.sample(label("model", name), value(*model.metrics));
    }
  };
  by_model(":tensorflow:serving:request_example_count_total", "counter",
           "rows of all classify and regress requests",
           [](const ModelMetrics& m) { return m.examples.value(); });

  const auto micros = [](const Counter& ns) { return ns.value() / 1000; };
  add_version_counter(page, figures, "nv_inference_request_success", "successful requests",
                      [](const VersionMetrics& m) { return m.success.value(); });
  add_version_counter(page, figures, "nv_inference_request_failure", "failed requests",
                      [](const VersionMetrics& m) { return m.failure.value(); });
  add_version_counter(page, figures, "nv_inference_count", "rows",
                      [](const VersionMetrics& m) { return m.rows.value(); });
  add_version_counter(page, figures, "nv_inference_exec_count", "executions",
                      [](const VersionMetrics& m) { return m.executions.value(); });
  add_version_counter(page, figures, "nv_inference_request_duration_us", "whole requests",
                      [&](const VersionMetrics& m) { return micros(m.request_ns); });
  add_version_counter(page, figures, "nv_inference_queue_duration_us", "waiting",
                      [&](const VersionMetrics& m) { return micros(m.queue_ns); });
  add_version_counter(page, figures, "nv_inference_compute_input_duration_us", "reading inputs",
                      [&](const VersionMetrics& m) { return micros(m.input_ns); });
  add_version_counter(page, figures, "nv_inference_compute_infer_duration_us", "computing",
                      [&](const VersionMetrics& m) { return micros(m.infer_ns); });
  add_version_counter(page, figures, "nv_inference_compute_output_duration_us", "writing outputs",
                      [&](const VersionMetrics& m) { return micros(m.output_ns); });

  page.family("keel_ready", "gauge", "1 if the server is ready");
  page.sample("", ready ? 1 : 0);
  page.family("keel_build_info", "gauge", "always 1");
  page.sample(label("version", KEEL_VERSION), 1);
  add_version_gauges(page, figures);
  page.family("keel_model_loads_total", "counter", "loads by result");
  for (const auto& [name, model] : models) {
    const ModelMetrics& m = *model.metrics;
    page.sample(label("model", name) + ",result=\"ok\"", m.loads_ok.value());
    page.sample(label("model", name) + ",result=\"failed\"", m.loads_failed.value());
    page.sample(label("model", name) + ",result=\"retried\"", m.loads_retried.value());
  }
  by_model("keel_ids_rejected_total", "counter", "requests with an id outside its table",
           [](const ModelMetrics& m) { return m.ids_rejected.value(); });
  page.family("keel_batch_rows", "histogram", "rows that were computed together");
  for (const auto& [name, model] : models) {
    if (model.metrics->batch_rows.count() > 0) {
      page.histogram(label("model", name), model.metrics->batch_rows);
    }
  }
  by_model("keel_batch_queue_rows", "gauge", "rows that wait for a batch",
           [](const ModelMetrics& m) { return m.queue_rows.load(); });
  page.family("keel_connections", "gauge", "open connections");
  page.sample("", server.connections.load());
  page.family("keel_pending_requests", "gauge", "requests read but not yet answered");
  page.sample("", server.pending.load());
  page.family("keel_rejected_total", "counter", "requests refused, by reason");
  page.sample("reason=\"connections\"", server.rejected_connections.value());
  page.sample("reason=\"pending\"", server.rejected_pending.value());
  page.sample("reason=\"queue\"", server.rejected_queue.value());
  page.sample("reason=\"body\"", server.rejected_body.value());
  page.sample("reason=\"rows\"", server.rejected_rows.value());
  page.sample("reason=\"timeout\"", server.rejected_timeout.value());
  page.sample("reason=\"read_timeout\"", server.rejected_read_timeout.value());
  page.sample("reason=\"memory\"", server.rejected_memory.value());
  page.family("keel_config_reload_failures_total", "counter", "configuration files refused");
  page.sample("", server.config_failures.value());
  return page.take();
}

}  // namespace keel::serving
