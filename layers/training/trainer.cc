#include "layers/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "distribute/gather_tensors.h"

namespace keel {

std::ostream& operator<<(std::ostream& out, const StepPlace& place) {
  out << place.who << ": ";
  if (place.epoch) out << "epoch " << *place.epoch + 1 << ", ";
  return out << "step " << place.step + 1;
}

// The part of a batch that one replica has.
struct Trainer::Example {
  Tensors x;
  Tensor y;
  Tensor weight;  // or empty
};

struct Trainer::Totals {
  int64_t rows = 0;
  double mean_weight = 1;
};

namespace {

Tensor only_leaf(const Tensors& tensors, const StepPlace& place, const char* what) {
  const std::vector<TensorLike> leaves = flatten(tensors);
  if (leaves.size() != 1) {
    throw NotImplementedError(place.who, ": ", what, " must be one tensor, received ",
                              tensors.structure());
  }
  return leaves[0].tensor();
}

double scalar(const Tensor& x) {
  return x.dtype() == DType::kFloat64 ? x.item<double>() : x.item<float>();
}

// Row of the first NaN of a floating tensor; -1 without one.
template <class T>
int64_t row_of_nan(const Tensor& x) {
  const auto values = x.data<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != values[i]) return static_cast<int64_t>(i) / (x.size() / x.dim(0));
  }
  return -1;
}

double row_of_nan(const Tensor& x) {
  if (!x || !is_floating(x.dtype())) return -1;
  return static_cast<double>(x.dtype() == DType::kFloat32 ? row_of_nan<float>(x)
                                                          : row_of_nan<double>(x));
}

// What all replicas are told of the labels of one; numbers, so that they travel.
enum Fact { kRows, kNanLabel, kNanWeight, kWeights, kWeightSum, kFacts };

Tensor facts_of(const Tensor& labels, const Tensor& weight) {
  std::vector<double> out(kFacts);
  out[kRows] = static_cast<double>(labels.dim(0));
  out[kNanLabel] = row_of_nan(labels);
  out[kNanWeight] = row_of_nan(weight);
  if (weight) {
    const Tensor values = weight.cast(DType::kFloat64);
    out[kWeights] = static_cast<double>(values.size());
    for (const double w : values.data<double>()) out[kWeightSum] += w;
  }
  return Tensor::from(out, {kFacts});
}

// Makes the weights before the replicas run, with a batch dimension of any size.
void build(Model& model, distribute::Strategy& strategy, const Tensors& x) {
  if (model.built()) return;
  const auto scope = strategy.scope();
  model.build(map_structure(specs_of(x), [](const TensorSpec& spec) {
    return TensorSpec{spec.shape.with(0, kUnknown), spec.dtype, spec.layout};
  }));
}

const Tensors& features_of(const Tensors& element) {
  return element.kind() == NestKind::kTuple ? element[0] : element;
}

// "auc", "auc_1", ...: what logs call metrics of equal names.
std::string unused_name(const std::string& name, const std::vector<std::string>& used) {
  std::string out = name;
  for (int k = 1; std::ranges::find(used, out) != used.end(); ++k) out = str(name, "_", k);
  return out;
}

// Given the outputs of the replicas here, those of all.
std::vector<Tensors> all_outputs(distribute::Strategy& strategy,
                                 const std::vector<Tensors>& outputs) {
  if (strategy.process_group().size() == 1) return outputs;
  std::vector<Tensor> leaves;
  for (const Tensors& output : outputs) {
    for (const TensorLike& leaf : flatten(output)) {
      if (leaf.layout() != Layout::kDense) {
        throw NotImplementedError("Model.predict: outputs of several processes must be dense, ",
                                  "received ", output.structure());
      }
      leaves.push_back(leaf.tensor());
    }
  }
  const std::vector<Tensor> all =
      distribute::gather_tensors(strategy.process_group(), "Model.predict", leaves);
  const size_t each = leaves.size() / outputs.size();
  std::vector<Tensors> out;
  for (size_t at = 0; at < all.size(); at += each) {
    out.push_back(pack_sequence_as(outputs[0], std::vector<TensorLike>(&all[at], &all[at] + each)));
  }
  return out;
}

}  // namespace

Trainer::Trainer(CompileOptions options)
    : options_(std::move(options)),
      strategy_(distribute::Strategy::current()),
      strategy_lifetime_(strategy_.lifetime()) {
  if (!options_.loss) throw ValueError("Model.compile: needs a loss");
  if (options_.loss.shared()->reduction() == Reduction::kNone) {
    throw ValueError("Model.compile: a loss of reduction 'none' is no number to make small");
  }
  metric_names_ = {"loss"};
  const auto scope = strategy_.scope();
  for (const auto* metrics : {&options_.metrics, &options_.weighted_metrics}) {
    for (const MetricArgument& metric : *metrics) {
      metric.handle()->rebuild();
      metric_names_.push_back(unused_name(metric.handle()->name(), metric_names_));
    }
  }
  metric_names_.erase(metric_names_.begin());
}

distribute::Strategy& Trainer::strategy() const {
  if (strategy_lifetime_.expired()) {
    throw RuntimeError(
        "Model: the strategy that it was compiled under is no more; keep it while "
        "the model is used");
  }
  return strategy_;
}

Config Trainer::config() const {
  const auto list = [](const std::vector<MetricArgument>& metrics) {
    Config::List out;
    for (const MetricArgument& metric : metrics) out.push_back(metric.config());
    return Config(std::move(out));
  };
  return Config::dict(
      {{"optimizer", optimizer() == nullptr ? Config() : optimizers::serialize(*optimizer())},
       {"loss", options_.loss.config()},
       {"loss_weights", Config()},
       {"metrics", list(options_.metrics)},
       {"weighted_metrics", list(options_.weighted_metrics)}});
}

Trainer::Example Trainer::unpack(const Tensors& element, const StepPlace& place) {
  if (!element.is_sequence() || element.items().size() < 2 || element.items().size() > 3) {
    throw ValueError(place.who, ": batches must be (x, y) or (x, y, sample_weight), received ",
                     element.structure());
  }
  Example out{element[0], only_leaf(element[1], place, "labels"), {}};
  if (element.items().size() == 3) out.weight = only_leaf(element[2], place, "sample weights");
  return out;
}

Trainer::Totals Trainer::check_labels(const Batch& batch, const StepPlace& place) const {
  std::vector<Tensor> facts;
  for (const Tensors& element : batch.values()) {
    const Example example = unpack(element, place);
    facts.push_back(facts_of(example.y, example.weight));
  }
  if (strategy_.process_group().size() > 1) {
    facts = distribute::gather_tensors(strategy_.process_group(), "the labels of a step", facts);
  }
  Totals totals;
  double weight_sum = 0;
  double weights = 0;
  for (const Tensor& of_replica : facts) {
    const auto fact = of_replica.data<double>();
    const auto refuse_nan = [&](Fact row, const char* what) {
      if (fact[row] < 0) return;
      throw ValueError(place, ": the ", what, " of row ",
                       totals.rows + static_cast<int64_t>(fact[row]), " of the batch is NaN");
    };
    refuse_nan(kNanLabel, "label");
    refuse_nan(kNanWeight, "sample weight");
    totals.rows += static_cast<int64_t>(fact[kRows]);
    weights += fact[kWeights];
    weight_sum += fact[kWeightSum];
  }
  if (totals.rows == 0) throw ValueError(place, ": the batch has no rows");
  if (weights > 0) totals.mean_weight = weight_sum / weights;
  return totals;
}

Tensor Trainer::loss_of(const Example& example, const Tensor& output, const Totals& totals,
                        const StepPlace& place) const {
  const Loss& loss = *options_.loss.shared();
  const Tensor losses = loss.weighted(example.y, output, example.weight);
  const double divisor = loss.divisor(losses.shape(), totals.rows, totals.mean_weight);
  Tensor value = ops::scale(ops::sum(losses), 1 / divisor);
  if (std::isnan(scalar(value))) throw ValueError(place, ": the loss is NaN");
  return value;
}

void Trainer::update_metrics(const Example& example, const Tensor& output) {
  for (const MetricArgument& metric : options_.metrics) {
    metric.handle()->update_state(example.y, output);
  }
  for (const MetricArgument& metric : options_.weighted_metrics) {
    metric.handle()->update_state(example.y, output, example.weight);
  }
}

void Trainer::count(const distribute::PerReplica<Tensor>& losses, const Totals& totals) {
  const double loss = scalar(strategy_.reduce(distribute::ReduceOp::kSum, losses));
  loss_sum_ += loss * static_cast<double>(totals.rows);
  rows_ += totals.rows;
}

void Trainer::train_step(Model& model, const Batch& batch, const StepPlace& place) {
  if (optimizer() == nullptr) {
    throw RuntimeError(place.who, ": compile() was not given an optimizer");
  }
  const Totals totals = check_labels(batch, place);
  build(model, strategy(), unpack(batch[0], place).x);
  const std::vector<Variable> variables = model.trainable_variables();
  const auto losses = strategy().run(
      [&](const Tensors& element) {
        const Example example = unpack(element, place);
        std::vector<Gradient> gradients;
        Tensor loss;
        {
          // Dropped before the update: a tape keeps values that are then written in place.
          GradientTape tape;
          const Tensor output =
              only_leaf(model(example.x, {.training = true}), place, "the model's output");
          loss = loss_of(example, output, totals, place);
          update_metrics(example, output);
          gradients = tape.gradient(loss, variables);
        }
        optimizer()->apply_gradients(gradients, variables);
        return loss;
      },
      batch);
  count(losses, totals);
}

void Trainer::test_step(Model& model, const Batch& batch, const StepPlace& place) {
  const Totals totals = check_labels(batch, place);
  build(model, strategy(), unpack(batch[0], place).x);
  const auto losses = strategy().run(
      [&](const Tensors& element) {
        const NoGradient pause;
        const Example example = unpack(element, place);
        const Tensor output =
            only_leaf(model(example.x, {.training = false}), place, "the model's output");
        Tensor loss = loss_of(example, output, totals, place);
        update_metrics(example, output);
        return loss;
      },
      batch);
  count(losses, totals);
}

Logs Trainer::logs() const {
  Logs out;
  out["loss"] = rows_ == 0 ? 0 : loss_sum_ / static_cast<double>(rows_);
  size_t i = 0;
  for (const auto* metrics : {&options_.metrics, &options_.weighted_metrics}) {
    for (const MetricArgument& metric : *metrics) {
      out[metric_names_[i++]] = metric.handle()->result();
    }
  }
  return out;
}

void Trainer::reset() {
  loss_sum_ = 0;
  rows_ = 0;
  for (const auto* metrics : {&options_.metrics, &options_.weighted_metrics}) {
    for (const MetricArgument& metric : *metrics) metric.handle()->reset_state();
  }
}

std::vector<Tensors> predict_step(distribute::Strategy& strategy, Model& model,
                                  const Trainer::Batch& batch) {
  build(model, strategy, features_of(batch[0]));
  const Trainer::Batch outputs = strategy.run(
      [&](const Tensors& element) {
        const NoGradient pause;
        return model(features_of(element), {.training = false});
      },
      batch);
  return all_outputs(strategy, outputs.values());
}

}  // namespace keel
