#include <keel/savedmodel/serving/protocol/request_count.h>

namespace keel::serving {

void count_request(const RequestTrace& trace, Code code, std::string_view model,
                   const ModelRepository& repository, ServerMetrics& metrics) {
  const int64_t end = steady_ns();
  const std::shared_ptr<const Catalog> catalog =
      trace.version == nullptr ? repository.catalog() : nullptr;
  const ServedModel* const served = catalog == nullptr ? nullptr : catalog->find(model);
  ModelMetrics& counts = trace.version != nullptr ? trace.version->model_metrics()
                         : served != nullptr      ? *served->metrics
                                                  : metrics.unknown_models;
  counts.count(code);
  const int64_t total = end - trace.received_ns;
  if (code == Code::kOk) {
    counts.latency[static_cast<size_t>(trace.api)].observe(static_cast<double>(total) * 1e-3);
  }
  if (trace.version == nullptr) return;
  VersionMetrics& figures = trace.version->metrics();
  figures.request_ns.add(total);
  if (code != Code::kOk) {
    figures.failure.add();
    figures.failure_ns.add(total);
    return;
  }
  figures.success.add();
  figures.success_ns.add(total);
  figures.queue_ns.add(trace.begin_ns - trace.received_ns + trace.waited_ns);
  figures.input_ns.add(trace.run_ns - trace.begin_ns - trace.waited_ns);
  figures.infer_ns.add(trace.computed_ns - trace.run_ns);
  figures.output_ns.add(end - trace.computed_ns);
}

}  // namespace keel::serving
