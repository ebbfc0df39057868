#include <keel/layers/metrics/metric.h>

#include <tuple>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/class_axis.h>

namespace keel {
namespace {

void check_no_nan(const std::string& caller, const Tensor& prediction) {
  const auto values = prediction.data<float>();
  // The first pass has no early exit, so that the compiler can vectorize it.
  bool any = false;
  for (const float v : values) any |= v != v;
  if (!any) return;
  size_t i = 0;
  while (values[i] == values[i]) ++i;
  throw ValueError(caller, ": predictions must not be NaN, received NaN at position ", i,
                   " of shape ", prediction.shape());
}

// Returns the weights as float32 without trailing dimensions of length 1. A scalar becomes one
// weight per row. `samples` is the shape of the predictions, without the axis of classes if it is
// not the last one.
Tensor fit_weight(const std::string& caller, const Tensor& weight, const Shape& samples) {
  const Tensor typed = weight.cast(DType::kFloat32);
  if (typed.rank() == 0) return Tensor::full<float>({samples[0]}, typed.item<float>());
  Shape shape = typed.shape();
  while (shape.rank() > 1 && shape[-1] == 1) shape = shape.drop_last();
  if (shape.rank() > samples.rank() || shape != samples.slice(0, shape.rank())) {
    throw ValueError(caller,
                     ": sample_weight must have the leading dimensions of the predictions, ",
                     samples, ", received shape ", weight.shape());
  }
  return typed.reshaped(shape);
}

// Returns the shape of the samples that weights belong to.
Shape samples_of(const Metric& metric, const Tensor& prediction) {
  const auto* classes = dynamic_cast<const ClassAxis*>(&metric);
  if (classes == nullptr || !classes->has_class_axis() || prediction.rank() < 2) {
    return prediction.shape();
  }
  return prediction.shape().without(classes->class_axis());
}

// Returns `weight` with 0 where the mask excludes an element. The leading dimensions of both agree.
Tensor masked(const Tensor& weight, const Tensor& mask) {
  Tensor counts = mask.cast(DType::kFloat32);
  if (!weight) return counts;
  const auto expanded = [](const Tensor& x, int rank) {
    std::vector<int64_t> dims(rank, 1);
    for (int i = 0; i < x.rank(); ++i) dims[i] = x.dim(i);
    return x.reshaped(Shape(dims));
  };
  const int rank = std::max(weight.rank(), counts.rank());
  return expanded(weight, rank) * expanded(counts, rank);
}

}  // namespace

MetricBatch::Weights MetricBatch::weights_of(int64_t values) const {
  if (!sample_weight || sample_weight.size() == 0) return {{}, 1};
  if (values % sample_weight.size() != 0) {
    throw ValueError("Metric: the number of sample weights must divide that of the values, ",
                     values, ", received shape ", sample_weight.shape());
  }
  return {sample_weight.data<float>(), values / sample_weight.size()};
}

Metric::Metric(std::string class_name, std::string name, int64_t state_size)
    : class_name_(std::move(class_name)),
      name_(name.empty() ? to_snake_case(class_name_) : std::move(name)),
      state_size_(state_size) {
  Metric::rebuild();
}

Variable Metric::zeros(int64_t size) const {
  return Variable(Tensor::zeros({size}, DType::kFloat64),
                  {.name = name_,
                   .trainable = false,
                   .synchronization = VariableSynchronization::kOnRead,
                   .aggregation = VariableAggregation::kSum});
}

void Metric::rebuild() { state_ = state_size_ == kUnknown ? Variable() : zeros(state_size_); }

MetricBatch Metric::fitted(const Tensor& y_true, const Tensor& y_pred,
                           const Tensor& sample_weight) const {
  MetricBatch batch;
  const Tensor prediction =
      y_pred.dtype() == DType::kFloat32 ? y_pred : y_pred.cast(DType::kFloat32);
  if (sparse_labels(y_true, prediction)) {
    batch.y_true = y_true;
    batch.y_pred = prediction;
  } else {
    std::tie(batch.y_true, batch.y_pred) = fit_labels(name_, y_true, prediction);
  }
  check_no_nan(name_, batch.y_pred);
  if (sample_weight)
    batch.sample_weight = fit_weight(name_, sample_weight, samples_of(*this, batch.y_pred));
  if (uses_mask() && y_pred.mask()) {
    batch.sample_weight = masked(batch.sample_weight, y_pred.mask());
  }
  return batch;
}

void Metric::make_state(int64_t size) {
  const std::lock_guard lock(mutex_);
  if (!state_) {
    // The first replica that gets here creates the sums of all replicas.
    const auto scope = distribute::Strategy::current().scope();
    state_ = zeros(size);
  }
  if (state_.shape() != Shape({size})) {
    throw ValueError(name_, ": the state must have ", state_.shape().size(), " values, received ",
                     size);
  }
}

Variable Metric::state_for(const MetricBatch& batch) {
  if (state_size_ != kUnknown) return state_;
  const int64_t size = state_size_of(batch);
  try {
    make_state(size);
  } catch (const ValueError&) {
    throw ValueError(name_, ": predictions of shape ", batch.y_pred.shape(),
                     " have a different number of classes than earlier ones; call rebuild() first");
  }
  return state_;
}

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  if (y_pred.is_symbolic()) throw TypeError(name_, ": predictions must not be symbolic");
  const NoGradient pause;
  MetricBatch batch = fitted(y_true, y_pred, sample_weight);
  const Variable variable = state_for(batch);
  Tensor next = variable.read().clone();
  batch.before = next.data<double>();
  // The batch is summed separately, because accumulate() may read the earlier sums in batch.before.
  std::vector<double> sums(variable.shape().size());
  accumulate(batch, sums);
  const auto state = next.mutable_data<double>();
  for (size_t i = 0; i < sums.size(); ++i) state[i] += sums[i];
  variable.assign(next);
}

Tensor Metric::result_tensor() const {
  if (current_replica_context() != nullptr) {
    throw RuntimeError(
        name_,
        ": the result is not available in a replica; call result() outside of Strategy::run");
  }
  const Tensor state = state_ ? state_.read() : Tensor::zeros({0}, DType::kFloat64);
  return compute(state.data<double>());
}

double Metric::result() const { return mean_of(result_tensor()); }

double Metric::result_of(const Tensor& sums) const { return mean_of(compute(sums.data<double>())); }

double Metric::mean_of(const Tensor& all) {
  if (all.rank() == 0) return all.item<double>();
  double sum = 0;
  for (const double v : all.data<double>()) sum += v;
  return all.size() == 0 ? 0 : sum / static_cast<double>(all.size());
}

void Metric::reset_state() {
  if (state_) state_.assign(Tensor::zeros(state_.shape(), DType::kFloat64));
}

Config MetricArgument::config() const {
  return by_name_ ? Config(metric_->name()) : metrics::serialize(*metric_);
}

}  // namespace keel
