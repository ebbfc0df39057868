// Metric: a number about predictions that is gathered over batches (keras.metrics).
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

// One batch as metrics see it, rows first.
struct MetricBatch {
  Tensor y_true;         // float32 of y_pred's shape, or class numbers as the user has them
  Tensor y_pred;         // float32 [batch, ...], of rank 2 at least
  Tensor sample_weight;  // float32 [batch, ...], or empty
  std::span<const double> before = {};  // the replica's sums so far

  // Weights of values that a batch gives, in row-major order: the weight of value i.
  class Weights {
   public:
    Weights(std::span<const float> weights, int64_t values_of_each)
        : weights_(weights), values_of_each_(values_of_each) {}
    double operator[](int64_t i) const {
      return weights_.empty() ? 1 : weights_[i / values_of_each_];
    }

   private:
    const std::span<const float> weights_;
    const int64_t values_of_each_;
  };
  // ValueError unless `values` is a multiple of the number of weights.
  Weights weights_of(int64_t values) const;
};

// A metric is a vector of float64 sums: accumulate() adds a batch to them, compute() makes the
// number or numbers of them. Each replica of a strategy adds to sums of its own, and result() adds
// those up in replica order. How many sums there are may be known from the first batch only.
class Metric {
 public:
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  // Labels are fitted as losses do (fit_labels); sample_weight has the leading dimensions of
  // y_pred, or is one number. Means of values of samples leave out what y_pred's mask leaves out.
  // Nothing is recorded by tapes. ValueError, naming the metric, for shapes that do not fit and for
  // predictions that are NaN, before any sum changes.
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {});
  // Of all batches since the last reset. Where that is several numbers, of classes or thresholds,
  // their mean, as progress bars show it. RuntimeError in a replica.
  double result() const;
  // The same of these sums, which are those of all replicas.
  double result_of(const Tensor& sums) const;
  // All of them: float64, a scalar or [numbers].
  Tensor result_tensor() const;
  // True if result() takes time that grows with the number of examples since the last reset: logs
  // of batches leave the metric out, for an epoch's would take quadratic time.
  virtual bool costly_result() const { return false; }
  virtual void reset_state();
  // Makes the sums anew, zeros, for the strategy of now.
  virtual void rebuild();

  // Whether more or less of it is better, for callbacks that watch it.
  enum class Direction { kNeither, kUp, kDown };
  virtual Direction direction() const { return Direction::kNeither; }

  // Keras's config, from which the registry makes an equal metric.
  virtual Config get_config() const = 0;

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }
  const Variable& state() const { return state_; }  // empty until the number of sums is known
  // Makes the sums of a metric whose number of them a batch would tell. ValueError if it has
  // others.
  void make_state(int64_t size);

 protected:
  // `options` holds the name. A state_size of kUnknown is that of the first batch.
  template <class Options>
  Metric(const char* class_name, const Options& options, int64_t state_size)
      : Metric(std::string(class_name), options.name, state_size) {}
  Metric(std::string class_name, std::string name, int64_t state_size);

  virtual void accumulate(const MetricBatch& batch, std::span<double> state) const = 0;
  // float64, a scalar or a vector; `state` is empty before the first batch of unknown size.
  virtual Tensor compute(std::span<const double> state) const = 0;
  // How many sums the metric has that sees such a batch; for a state_size of kUnknown.
  virtual int64_t state_size_of(const MetricBatch&) const { return state_size_; }
  // True if y_true of this batch holds class numbers, which are left as they are.
  virtual bool sparse_labels(const Tensor&, const Tensor&) const { return false; }
  // True if values that y_pred's mask leaves out get the weight 0.
  virtual bool uses_mask() const { return false; }

 private:
  static double mean_of(const Tensor& all);
  MetricBatch fitted(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) const;
  Variable state_for(const MetricBatch& batch);
  Variable zeros(int64_t size) const;

  const std::string class_name_, name_;
  const int64_t state_size_;
  mutable std::mutex mutex_;  // guards the making of state_ by the first of several replicas
  Variable state_;
};

using MetricHandle = Handle<Metric>;

// The fields that every metric's options list first. dtype is what Keras computes in, for files;
// sums are float64 here.
void metric_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("dtype", self.dtype);
}

Registry<Metric>& metric_registry();

namespace metrics {

// By name with default options: "auc", "AUC", "mse", "accuracy", ...; `name` is also what logs
// call it. ValueError if unknown.
MetricHandle get(const std::string& name);
// {"class_name": ..., "config": ...}
Config serialize(const Metric& metric);
// From such a dict, from Keras's forms of functions, or from a name. ValueError for an unknown
// class or key.
MetricHandle deserialize(const Config& config);

}  // namespace metrics

// What compile() takes: a name or a metric.
class MetricArgument {
 public:
  MetricArgument(const char* name) : MetricArgument(std::string(name)) {}  // NOLINT: implicit
  MetricArgument(const std::string& name)                                  // NOLINT: implicit
      : metric_(metrics::get(name)), by_name_(true) {}
  template <std::derived_from<Metric> T>
  MetricArgument(const Handle<T>& metric) : metric_(metric) {}  // NOLINT: implicit

  const MetricHandle& handle() const { return metric_; }
  // As it was given: a name, or metrics::serialize().
  Config config() const;

 private:
  MetricHandle metric_;
  bool by_name_ = false;
};

}  // namespace keel
