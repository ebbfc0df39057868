// Metric: a quantity that is accumulated over batches of predictions (keras.metrics).
#pragma once

#include <concepts>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <keel/autodiff/variable.h>
#include <keel/framework/base/handle.h>
#include <keel/framework/config/registry.h>

namespace keel {

// One batch in the form that metrics receive, with rows first.
struct MetricBatch {
  Tensor y_true;         // float32 of y_pred's shape, or class numbers as given by the user
  Tensor y_pred;         // float32 [batch, ...], rank 2 or higher
  Tensor sample_weight;  // float32 [batch, ...], or empty
  std::span<const double> before = {};  // the replica's sums before this batch

  // The weights of the values that a batch produces, in row-major order. weights[i] is the weight
  // of value i, or 1 without sample weights.
  class Weights {
   public:
    // Takes the weights, each of which applies to `values_of_each` values; empty means 1.
    Weights(std::span<const float> weights, int64_t values_of_each)
        : weights_(weights), values_of_each_(values_of_each) {}
    // Returns the weight of value i.
    double operator[](int64_t i) const {
      return weights_.empty() ? 1 : weights_[i / values_of_each_];
    }

   private:
    const std::span<const float> weights_;
    const int64_t values_of_each_;
  };
  // Returns the weights of `values` values. Throws ValueError unless `values` is a multiple of the
  // number of weights.
  Weights weights_of(int64_t values) const;
};

// Base class of metrics. The state of a metric is a vector of float64 sums: accumulate() adds a
// batch to them, and compute() derives the result from them. Each replica of a strategy adds to its
// own sums, and result() adds these up in replica order. The number of sums may be unknown until
// the first batch.
class Metric {
 public:
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  // Adds a batch. Labels are fitted to predictions like in losses (fit_labels). sample_weight is a
  // scalar or has the leading dimensions of y_pred. Metrics that average values of samples exclude
  // the elements that y_pred's mask excludes. Tapes do not record the computation. Throws
  // ValueError, naming the metric, for shapes that do not match and for predictions that are NaN;
  // the sums are then unchanged.
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {});
  // Returns the result over all batches since the last reset. If it consists of several numbers,
  // one for each class or threshold, returns their mean, which progress bars show. Throws
  // RuntimeError in a replica.
  double result() const;
  // Returns the result for `sums`, which are the sums of all replicas.
  double result_of(const Tensor& sums) const;
  // Returns all numbers of the result: float64, a scalar or [numbers].
  Tensor result_tensor() const;
  // Returns true if the time of result() grows with the number of examples since the last reset.
  // Logs of batches leave such a metric out, because an epoch of them would take quadratic time.
  virtual bool costly_result() const { return false; }
  // Sets the sums to zero.
  virtual void reset_state();
  // Creates the sums again, as zeros, for the current strategy.
  virtual void rebuild();

  // Tells callbacks that monitor the metric whether greater or smaller values are better.
  enum class Direction {
    kNeither,  // neither
    kUp,       // greater values
    kDown      // smaller values
  };
  // Returns which values of this metric are better.
  virtual Direction direction() const { return Direction::kNeither; }

  // Returns Keras's config, from which the registry creates an equal metric.
  virtual Config get_config() const = 0;

  // Returns the name of the class in configs and files.
  const std::string& class_name() const { return class_name_; }
  // Returns the name under which logs show the metric.
  const std::string& name() const { return name_; }
  // Returns the sums of the current replica; empty until their number is known.
  const Variable& state() const { return state_; }
  // Creates the sums of a metric whose number of sums is unknown before the first batch. Throws
  // ValueError if it already has a different number of sums.
  void make_state(int64_t size);

 protected:
  // `options` must have the field name, where empty means the class name in snake case. A
  // state_size of kUnknown is determined by the first batch.
  template <class Options>
  Metric(const char* class_name, const Options& options, int64_t state_size)
      : Metric(std::string(class_name), options.name, state_size) {}
  // Takes the name from `options` above.
  Metric(std::string class_name, std::string name, int64_t state_size);

  // Adds a batch to `state`.
  virtual void accumulate(const MetricBatch& batch, std::span<double> state) const = 0;
  // Computes the result, float64, a scalar or a vector. `state` is empty before the first batch if
  // its size is unknown.
  virtual Tensor compute(std::span<const double> state) const = 0;
  // Returns the number of sums for such a batch. Used if state_size is kUnknown.
  virtual int64_t state_size_of(const MetricBatch&) const { return state_size_; }
  // Returns true if y_true of this batch holds class numbers, which are passed on unchanged.
  virtual bool sparse_labels(const Tensor&, const Tensor&) const { return false; }
  // Returns true if values that y_pred's mask excludes get the weight 0.
  virtual bool uses_mask() const { return false; }

 private:
  static double mean_of(const Tensor& all);
  MetricBatch fitted(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) const;
  Variable state_for(const MetricBatch& batch);
  Variable zeros(int64_t size) const;

  const std::string class_name_, name_;
  const int64_t state_size_;
  mutable std::mutex mutex_;  // guards the creation of state_ by the first of several replicas
  Variable state_;
};

// A shared reference to a metric of any class.
using MetricHandle = Handle<Metric>;

// Lists the fields that come first in every metric's options: name and dtype. dtype is the dtype in
// which Keras computes; it is kept for files only, because sums are float64 here.
constexpr void metric_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("dtype", self.dtype);
}

// Returns the registry of the metric classes that files may name.
Registry<Metric>& metric_registry();

namespace metrics {

// Returns a metric by name with default options: "auc", "AUC", "mse", "accuracy", ... Logs show it
// under `name`. Throws ValueError if the name is unknown.
MetricHandle get(const std::string& name);
// Returns {"class_name": ..., "config": ...}.
Config serialize(const Metric& metric);
// Creates a metric from the output of serialize(), from Keras's forms of functions, or from a name.
// Throws ValueError for an unknown class or key.
MetricHandle deserialize(const Config& config);

}  // namespace metrics

// An element of compile()'s `metrics`: a name or a metric.
class MetricArgument {
 public:
  // The metric that metrics::get() returns for the name, whose errors are thrown.
  MetricArgument(const char* name) : MetricArgument(std::string(name)) {}  // NOLINT: implicit
  // Accepts the name as a std::string, too.
  MetricArgument(const std::string& name)  // NOLINT: implicit
      : metric_(metrics::get(name)), by_name_(true) {}
  // A metric of any class.
  template <std::derived_from<Metric> T>
  MetricArgument(const Handle<T>& metric) : metric_(metric) {}  // NOLINT: implicit

  // Returns the metric.
  const MetricHandle& handle() const { return metric_; }
  // Returns the argument in the form in which it was given: a name, or metrics::serialize().
  Config config() const;

 private:
  MetricHandle metric_;
  bool by_name_ = false;
};

}  // namespace keel
