#include <keel/layers/training/model.h>

#include <absl/strings/str_join.h>
#include <memory>
#include <utility>

#include <keel/layers/training/compile/internal/compile_config.h>
#include <keel/layers/training/internal/fit_loop.h>
#include <keel/layers/training/internal/predict_step.h>
#include <keel/layers/training/internal/train_step.h>

namespace keel {
namespace {

// Splits one batch over the replicas.
Trainer::Batch split(distribute::Strategy& strategy, const Tensors& batch) {
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensors(batch), {.experimental_per_replica_buffer_size = 0});
  return *batches.iterator()();
}

Tensors one_batch(const char* caller, const Tensors& x, const Tensors& y,
                  const OnBatchOptions& options) {
  const Tensors batch = pack_x_y_sample_weight({x, y, options.sample_weight}, caller);
  return options.class_weight.empty() ? batch
                                      : with_class_weights(batch, options.class_weight, caller);
}

// Returns the step that runs or, in a training loop of the user's own, one without a global batch.
std::shared_ptr<TrainStep> current_step(Trainer& trainer, Model& model) {
  if (trainer.step() == nullptr) return std::make_shared<TrainStep>(trainer, model);
  return {std::shared_ptr<void>(), trainer.step()};  // owned by the loop that runs it
}

}  // namespace

// A run of fit, evaluate, train_on_batch or test_on_batch. Keeps the trainer that the run began
// with in use and alive even if a callback calls compile().
class Model::Run {
 public:
  // Throws RuntimeError before compile(), and if another thread is inside a run of the model.
  Run(Model& model, const char* caller) : model_(model), is_nested_(begin(model, caller)) {
    outer_ = model.running_;
    model.running_ = model.trainer_;
  }
  ~Run() {
    model_.running_ = outer_;
    if (!is_nested_) model_.running_thread_ = std::thread::id();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Trainer& trainer() const { return *model_.running_; }

 private:
  // Returns true if a callback of another run on this thread starts this run.
  static bool begin(Model& model, const char* caller) {
    std::thread::id running;
    const std::thread::id me = std::this_thread::get_id();
    // `running` is the default id while no run is active; otherwise the exchange fails and stores
    // the id of the thread that is inside a run.
    if (model.running_thread_.compare_exchange_strong(running, me)) {
      if (model.trainer_ != nullptr) return false;
      model.running_thread_ = std::thread::id();
      model.trainer(caller);
    }
    if (running == me) {
      if (model.trainer_ == nullptr) model.trainer(caller);
      return true;
    }
    throw RuntimeError("Model.", caller,
                       ": another thread is training or evaluating this model; wait until it "
                       "returns, or use a separate model for each thread");
  }

  Model& model_;
  const bool is_nested_;
  std::shared_ptr<Trainer> outer_;  // trainer of the run whose callback starts this one
};

Model::~Model() = default;

LayerHandle<Layer> Model::get_layer(const std::string& name) const {
  for (const auto& layer : layers()) {
    if (layer->name() == name) return layer;
  }
  throw ValueError("Model.get_layer: no layer is named '", name, "'; the layers of the model are: ",
                   absl::StrJoin(layers(), ", ", [](std::string* out, const auto& layer) {
                     *out += layer->name();
                   }));
}

LayerHandle<Layer> Model::get_layer(int64_t index) const {
  const std::vector<LayerHandle<Layer>> all = layers();
  const int64_t position = index < 0 ? index + std::ssize(all) : index;
  if (position < 0 || position >= std::ssize(all)) {
    throw ValueError("Model.get_layer: index ", index, " is out of range; the model has ",
                     all.size(), " layers");
  }
  return all[position];
}

void Model::compile(CompileOptions options) {
  const bool scale_loss = options.auto_scale_loss && dtype_policy().float16_products();
  trainer_ = std::make_shared<Trainer>(std::move(options), scale_loss);
}

std::shared_ptr<Optimizer> Model::optimizer() const {
  return in_use() == nullptr ? nullptr : in_use()->optimizer();
}

Config Model::get_compile_config() const {
  return in_use() == nullptr ? Config() : in_use()->config();
}

void Model::compile_from_config(const Config& config) { compile(compile_options_from(config)); }

Trainer& Model::trainer(const char* caller) const {
  if (in_use() == nullptr)
    throw RuntimeError("Model.", caller, ": the model is not compiled; call compile() first");
  return *in_use();
}

distribute::Strategy& Model::strategy() const {
  return compiled() ? in_use()->strategy() : distribute::Strategy::current();
}

History Model::fit(const data::Dataset& data, const FitOptions& options) {
  const Run run(*this, "fit");
  if (options.validation_split != 0 || given(options.sample_weight)) {
    throw ValueError(
        "Model.fit: validation_split and sample_weight apply to arrays only; with a dataset use "
        "validation_data and elements (x, y, sample_weight)");
  }
  return FitLoop(run.trainer(), *this, data, options).run();
}

History Model::fit(const Tensors& x, const Tensors& y, const FitOptions& options) {
  const Run run(*this, "fit");
  const FitData data =
      fit_data(pack_x_y_sample_weight({x, y, options.sample_weight}, "Model.fit"), options);
  return FitLoop(run.trainer(), *this, data.batches, data.options).run();
}

History Model::fit(const Tensors& x, const FitOptions& options) { return fit(x, {}, options); }

Logs Model::evaluate(const data::Dataset& data, const EvaluateOptions& options) {
  const Run run(*this, "evaluate");
  if (given(options.sample_weight)) {
    throw ValueError(
        "Model.evaluate: sample_weight applies to arrays only; with a dataset use elements (x, y, "
        "sample_weight)");
  }
  return evaluate_loop(run.trainer(), *this, data, options);
}

Logs Model::evaluate(const Tensors& x, const Tensors& y, const EvaluateOptions& options) {
  const Run run(*this, "evaluate");
  const Tensors arrays = pack_x_y_sample_weight({x, y, options.sample_weight}, "Model.evaluate");
  return evaluate_loop(run.trainer(), *this,
                       batches_of("Model.evaluate", arrays, options.batch_size), options);
}

Logs Model::evaluate(const Tensors& x, const EvaluateOptions& options) {
  return evaluate(x, {}, options);
}

Tensors Model::predict(const data::Dataset& data, const PredictOptions& options) {
  return predict_loop(strategy(), *this, data, options);
}

Tensors Model::predict(const Tensors& x, const PredictOptions& options) {
  return predict(batches_of("Model.predict", Tensors::tuple({x}), options.batch_size), options);
}

Logs Model::train_on_batch(const Tensors& x, const Tensors& y, const OnBatchOptions& options) {
  constexpr char kCaller[] = "Model.train_on_batch";
  const Run run(*this, "train_on_batch");
  Trainer& with = run.trainer();
  const Trainer::Batch batch = split(with.strategy(), one_batch(kCaller, x, y, options));
  if (options.reset_metrics) with.reset(*this);
  TrainStep(with, *this, batch, {.caller = kCaller}).run();
  return with.logs(*this);
}

Logs Model::test_on_batch(const Tensors& x, const Tensors& y, const OnBatchOptions& options) {
  constexpr char kCaller[] = "Model.test_on_batch";
  const Run run(*this, "test_on_batch");
  Trainer& with = run.trainer();
  const Trainer::Batch batch = split(with.strategy(), one_batch(kCaller, x, y, options));
  if (options.reset_metrics) with.reset(*this);
  TrainStep(with, *this, batch, {.training = false, .caller = kCaller}).run();
  return with.logs(*this);
}

Tensors Model::predict_on_batch(const Tensors& x) {
  return concat_rows(keel::predict_step(strategy(), *this, split(strategy(), Tensors::tuple({x}))));
}

Logs Model::train_step(const Tensors& data) {
  return current_step(trainer("train_step"), *this)->train(data);
}

Logs Model::test_step(const Tensors& data) {
  return current_step(trainer("test_step"), *this)->test(data);
}

Tensors Model::predict_step(const Tensors& data) {
  return (*this)(features_of(data), {.training = false});
}

Tensor Model::compute_loss(const StepData& data, const Tensors& outputs) {
  return current_step(trainer("compute_loss"), *this)->loss(data, outputs);
}

void Model::compute_metrics(const StepData& data, const Tensors& outputs) {
  current_step(trainer("compute_metrics"), *this)->update_metrics(data, outputs);
}

std::vector<MetricHandle> Model::metrics() const {
  std::vector<MetricHandle> out;
  if (compiled()) out = in_use()->metrics().all();
  out.insert(out.end(), added_metrics_.begin(), added_metrics_.end());
  return out;
}

void Model::add_metric(MetricHandle metric) {
  for (const MetricHandle& other : metrics()) {
    if (other->name() == metric->name()) {
      throw ValueError("Model.add_metric: the model has a metric named '", metric->name(),
                       "'; choose another name");
    }
  }
  added_metrics_.push_back(std::move(metric));
}

void Model::reset_metrics() { trainer("reset_metrics").reset(*this); }

std::optional<ResumePoint> Model::take_resume_point() {
  return std::exchange(resume_point_, std::nullopt);
}

std::map<std::string, Tensor> Model::training_state() const {
  return trainer("training_state").state(*this);
}

void Model::set_training_state(const std::map<std::string, Tensor>& state) {
  trainer("set_training_state").set_state(*this, state);
}

}  // namespace keel
