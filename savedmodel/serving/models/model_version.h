// ModelVersion: a loaded model that answers requests, immutable and shared by all threads.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <keel/layers/serving/serving_plan.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/mapped/mapped_tables.h>
#include <keel/savedmodel/serving/base/metrics.h>
#include <keel/savedmodel/serving/models/input_values.h>
#include <keel/savedmodel/serving/models/tensor_parts.h>

namespace keel::serving {

class BatchScheduler;

// The outputs of a run, in the order of the model.
struct RunOutputs {
  struct Output {
    const TensorInfo* info = nullptr;
    TensorView view = {};
  };
  std::vector<Output> outputs;

  // Memory that the views point to.
  std::vector<float> floats;
  std::vector<TensorLike> tensors;
};

// A signature as requests see it.
struct ServedSignature {
  std::string name = {};
  bool takes_examples = false;                        // the one input is "examples", strings [rows]
  std::vector<TensorInfo> inputs = {}, outputs = {};  // in the order of the model
  std::vector<PartInfo> input_parts = {}, output_parts = {};
};

// One version of a model.
class ModelVersion {
 public:
  // Loads the model of a file, with tables mapped from it if `tables` is not null. Throws the
  // errors of signatures() (signature.h).
  ModelVersion(std::string model, int64_t number, const std::string& path,
               std::shared_ptr<ModelMetrics> model_metrics,
               std::shared_ptr<MappedTables> tables = nullptr);
  ModelVersion(const ModelVersion&) = delete;
  ModelVersion& operator=(const ModelVersion&) = delete;

  const std::string& model() const { return model_; }
  // The tables that were mapped or copied; null if all were loaded.
  const std::shared_ptr<MappedTables>& tables() const { return tables_; }
  int64_t number() const { return number_; }
  // "12", for headers and JSON.
  const std::string& number_text() const { return number_text_; }

  // Signatures by name, which always include kServingDefault.
  const std::map<std::string, ServedSignature, std::less<>>& signatures() const { return served_; }
  // Returns a signature; an empty name is kServingDefault. Throws ServeError for unknown names.
  const ServedSignature& signature(std::string_view name) const;
  // Returns the signature for classify and regress: the only one that takes examples, else
  // kServingDefault.
  const ServedSignature& default_examples_signature() const;
  const ServedSignature& signature_default() const { return served_.find(kServingDefault)->second; }
  // Returns the features that a signature parses, or null.
  const ExampleFeatures* features(std::string_view signature) const;

  // Runs a signature on finished values, one for each of its inputs in order. Throws ValueError and
  // TypeError for values that do not fit, and ServeError for outputs that are too large.
  void run(const ServedSignature& signature, std::span<const InputValues> inputs,
           RunOutputs& outputs) const;

  // Throws ServeError if the outputs of so many rows would be too large. run() checks outputs whose
  // size depends on values after they were computed.
  void check_output_size(int64_t rows) const;

  // True if no layer mixes the rows of a batch and batches of several requests may be joined.
  bool joins_requests() const { return joins_requests_; }
  // Joins requests from now on. Call it before the version is shared between threads.
  void set_batching(std::shared_ptr<BatchScheduler> batching) { batching_ = std::move(batching); }
  // What joins requests for this version, or null.
  BatchScheduler* batching() const { return batching_.get(); }

  ModelMetrics& model_metrics() const { return *model_metrics_; }
  VersionMetrics& metrics() const { return metrics_; }

 private:
  void run_plan(std::span<const InputValues> inputs, RunOutputs& outputs) const;

  std::string model_;
  int64_t number_;
  std::string number_text_;
  std::shared_ptr<MappedTables> tables_;
  Signatures runs_;
  SignatureSpecs specs_;
  std::map<std::string, ServedSignature, std::less<>> served_;
  std::shared_ptr<const ServingPlan> plan_;
  bool plan_fills_floats_ = false;  // all outputs are float32 [rows, ...] of known shape
  int64_t floats_per_row_ = 0;      // of the plan's outputs
  int64_t bytes_per_row_ = 0;       // of all outputs whose size only depends on the rows
  bool joins_requests_ = false;
  std::shared_ptr<BatchScheduler> batching_;
  std::shared_ptr<ModelMetrics> model_metrics_;
  mutable VersionMetrics metrics_;
};

using VersionHandle = std::shared_ptr<const ModelVersion>;

}  // namespace keel::serving
