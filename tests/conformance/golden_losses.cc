#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

// Computes the loss with one reduction, with or without sample weights.
void compare_loss(const Config& named, const Config& item, const Tensor& y_true,
                  const Tensor& y_pred, const Tensor& weights, Comparison& result) {
  Fields fields(item, "results");
  const std::string reduction = fields.need("reduction").string();
  const bool weighted = fields.need("weighted").boolean();
  const std::string where = reduction + (weighted ? ", weighted: " : ": ");
  if (weighted && !weights) throw ValueError(where, "the record has no sample_weight");
  Config config = named["config"];
  config.set("reduction", reduction);
  const LossHandle loss =
      losses::deserialize(Config::dict({{"class_name", named["class_name"]}, {"config", config}}));
  GradientTape tape;
  tape.watch(y_pred);
  const Tensor value = loss->call(y_true, y_pred, weighted ? weights : Tensor());
  result.compare(where + "value", golden_array(fields.need("value")), array_of(value));
  if (const Config* expected = fields.find("grad_y_pred")) {
    const Gradient gradient = tape.input_gradient(value, {y_pred})[0];
    // The files contain the gradient as a flat array.
    Array flat = array_of(gradient ? gradient.dense() : ops::zeros_like(y_pred));
    flat.shape = {static_cast<int64_t>(flat.values.size())};
    result.compare(where + "gradient of y_pred", array_of(*expected), flat);
  }
  fields.finish();
}

void compare_metric(const Config& named, const Config& updates, const Config& results,
                    bool weighted, Comparison& result) {
  const MetricHandle metric = metrics::deserialize(named);
  const size_t count = updates.items().size();
  if (results.items().size() != count) throw ValueError("a result must follow each update");
  for (size_t k = 0; k < count; ++k) {
    Fields update(updates.items()[k], "updates");
    const Tensor values = golden_tensor(update.need("y_pred"));
    const Config* labels = update.find("y_true");
    const Config* weights = update.find("sample_weight");
    if (weighted && weights == nullptr) throw ValueError("an update has no sample_weight");
    // Metrics of values do not take labels.
    metric->update_state(labels == nullptr ? values : golden_tensor(*labels), values,
                         weighted ? golden_tensor(*weights) : Tensor());
    result.compare(std::string(weighted ? "weighted" : "unweighted") + " result after update " +
                       std::to_string(k),
                   golden_array(results.items()[k]), array_of(metric->result_tensor()));
    update.finish();
  }
}

}  // namespace

void replay_loss(Fields& fields, Comparison& result) {
  const Config named = class_and_config(fields);
  const Tensor y_true = golden_tensor(fields.need("y_true"));
  const Tensor y_pred = golden_tensor(fields.need("y_pred"));
  const Config* weights = fields.find("sample_weight");
  for (const Config& item : fields.need("results").items()) {
    compare_loss(named, item, y_true, y_pred,
                 weights == nullptr ? Tensor() : golden_tensor(*weights), result);
  }
}

void replay_metric(Fields& fields, Comparison& result) {
  const Config named = class_and_config(fields);
  const Config& updates = fields.need("updates");
  compare_metric(named, updates, fields.need("results_unweighted"), false, result);
  if (const Config* results = fields.find("results_weighted")) {
    compare_metric(named, updates, *results, true, result);
  }
}

}  // namespace keel::conformance
