#include <keel/savedmodel/estimator/internal/estimator_run.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/embedding/v1/internal/enqueue_data.h>
#include <keel/layers/embedding/v1/internal/v1_input.h>

namespace keel::estimator {
namespace {

using tpu::v1::Configs;

std::unique_ptr<distribute::Strategy> make_strategy(const TPUEstimatorOptions& options,
                                                    bool on_tpu) {
  if (!on_tpu) return std::make_unique<distribute::CPUStrategy>();
  return std::make_unique<distribute::TPUStrategy>(options.config.cluster);
}

// Returns the features of a batch, which is (features, labels) or features alone.
const Tensors& features_of(const Tensors& batch) {
  return batch.kind() == NestKind::kTuple ? batch[0] : batch;
}

// Returns the parts of a batch under the names of the model's inputs.
Tensors named(const Tensors& features, const Tensors& batch, ModeKeys mode) {
  Tensors::Dict out = {{"features", features}};
  if (mode != ModeKeys::kPredict) out.emplace("labels", batch[1]);
  return Tensors(std::move(out));
}

void check_batch(const Tensors& batch, ModeKeys mode) {
  const bool pair = batch.kind() == NestKind::kTuple && batch.items().size() == 2;
  if (!features_of(batch).is_dict() || (mode != ModeKeys::kPredict && !pair)) {
    throw ValueError("TPUEstimator: batches must be (features, labels) with a dict of features, ",
                     "received ", batch.structure());
  }
}

double number(const Tensor& x) {
  return x.dtype() == DType::kFloat64 ? x.item<double>() : x.item<float>();
}

}  // namespace

EstimatorModel::EstimatorModel(const EstimatorGraph& graph,
                               std::map<std::string, std::string> variable_names,
                               std::optional<tpu::v1::TPUEmbedding> engine,
                               std::optional<layers::EmbeddingFeatures> host)
    : Layer("EstimatorModel"),
      graph_(graph.model),
      variable_names_(std::move(variable_names)),
      engine_(std::move(engine)) {
  if (host) {
    for (const auto& entry : (*host)->tables()) add_weight(entry.second);
  }
  for (const auto& layer : graph.layers) {
    // The tables of this layer are weights of the model itself, so it is not tracked.
    if (dynamic_cast<const EmbeddingFeaturesLayer*>(&*layer) == nullptr) track(layer);
  }
}

std::vector<StateEntry> EstimatorModel::state_entries() const {
  if (engine_) return engine_->state_entries(variable_names_);
  std::vector<StateEntry> out = Layer::state_entries();
  for (StateEntry& entry : out) entry.name = variable_names_.at(entry.name);
  return out;
}

LayerHandle<EstimatorModel> make_estimator_model(const EstimatorGraph& graph,
                                                 const std::optional<EmbeddingConfigSpec>& spec,
                                                 std::optional<tpu::v1::TPUEmbedding> engine,
                                                 std::optional<layers::EmbeddingFeatures> host) {
  auto names =
      spec ? table_variable_names(*spec, graph.layers) : std::map<std::string, std::string>();
  auto out =
      make_layer<EstimatorModel>(graph, std::move(names), std::move(engine), std::move(host));
  out->build(specs_of(graph.model->inputs()));
  return out;
}

Configs configs_of(const std::optional<EmbeddingConfigSpec>& spec, bool on_host) {
  if (!spec) return {};
  if (!on_host || (*spec)->feature_columns.empty()) return spec->configs();
  std::vector<Column> columns;
  for (const Column& column : (*spec)->feature_columns) {
    if (dynamic_cast<const feature_column::EmbeddingColumn*>(column.get()) == nullptr) {
      columns.push_back(column);
    }
  }
  return tpu::v1::get_configs_from_feature_columns(columns);
}

std::optional<layers::EmbeddingFeatures> make_host_tables(
    const std::optional<EmbeddingConfigSpec>& spec, const Configs& configs) {
  if (configs.feature_to_config_dict.empty()) return {};
  std::vector<std::string> unsafe_features;
  for (const Column& column : (*spec)->feature_columns) {
    const auto* embedding = dynamic_cast<const tpu::TPUEmbeddingColumn*>(column.get());
    if (embedding != nullptr && !embedding->options().use_safe_embedding_lookup) {
      unsafe_features.push_back(embedding->feature_key());
    }
  }
  return layers::EmbeddingFeatures({.configs = configs, .unsafe_features = unsafe_features});
}

EstimatorRun::EstimatorRun(const TPUEstimatorOptions& options, ModeKeys mode, bool on_tpu,
                           int64_t batch_size, const Tensors& first)
    : options_(options),
      mode_(mode),
      strategy_(make_strategy(options, on_tpu)),
      configs_(configs_of(options.embedding_config_spec, !on_tpu)) {
  check_batch(first, mode);
  const auto scope = strategy_->scope();
  const auto& spec = options.embedding_config_spec;
  const Specs features = model_feature_specs(specs_of(features_of(first)).entries(), configs_);
  Tensors::Dict inputs = {{"features", symbolic_inputs(features)}};
  if (mode != ModeKeys::kPredict) inputs.emplace("labels", symbolic_inputs(specs_of(first[1])));
  graph_ = make_graph(options.model_fn, inputs, inputs.at("features"),
                      mode == ModeKeys::kPredict ? Tensors() : inputs.at("labels"), mode);
  if (!on_tpu) host_ = make_host_tables(spec, configs_);
  if (on_tpu && !configs_.feature_to_config_dict.empty()) make_engine(batch_size);
  model_ = make_estimator_model(*graph_, spec, engine_, host_);

  global_step_ = Variable(Tensor::scalar<int64_t>(0), {.name = "global_step", .trainable = false});
  CheckpointItems items = {.model = *model_, .variables = {{"global_step", global_step_}}};
  if (mode == ModeKeys::kTrain) {
    optimizer_ = OptimizerHandle(kAdopt, graph_->spec.optimizer.shared());
    items.optimizers.emplace("optimizer", *optimizer_);
  }
  checkpoints_.emplace(Checkpoint(std::move(items)), options.config.model_dir,
                       CheckpointManagerOptions{.max_to_keep = options.config.keep_checkpoint_max,
                                                .checkpoint_name = "model.ckpt"});
  // Evaluation and prediction have no optimizer.
  const RestoreOptions options_of_mode = {.partial = mode != ModeKeys::kTrain};
  restored_ = checkpoints_->restore_or_initialize(options_of_mode).has_value();
  for (const auto& entry : graph_->spec.eval_metrics) entry.second.metric->rebuild();
}

EstimatorRun::~EstimatorRun() = default;

void EstimatorRun::make_engine(int64_t batch_size) {
  const EmbeddingConfigSpec& spec = *options_.embedding_config_spec;
  const bool training = mode_ == ModeKeys::kTrain;
  for (const Column& column : spec->feature_columns) {
    const auto* embedding = dynamic_cast<const tpu::TPUEmbeddingColumn*>(column.get());
    if (embedding != nullptr) check_lookup_device(*embedding, mode_ != ModeKeys::kPredict);
  }
  engine_.emplace(tpu::v1::TPUEmbeddingOptions{
      .table_to_config_dict = configs_.table_to_config_dict,
      .feature_to_config_dict = configs_.feature_to_config_dict,
      .batch_size = batch_size,
      .mode = training ? tpu::v1::Mode::kTraining : tpu::v1::Mode::kInference,
      .optimization_parameters = training ? spec->optimization_parameters : EmbeddingOptimizer(),
      .partition_strategy = spec->partition_strategy,
      .pipeline_execution_with_tensor_core = spec->pipeline_execution_with_tensor_core,
      .profile_data_directory = spec->profile_data_directory});
  engine_->build();
}

int64_t EstimatorRun::global_step() const { return global_step_.read().item<int64_t>(); }

EstimatorRun::Parts EstimatorRun::feed(const Tensors& batch) {
  check_batch(batch, mode_);
  const int64_t rows = row_count(batch) / strategy_->num_replicas_in_sync();
  const int local = strategy_->num_local_replicas();
  std::vector<Tensors> parts(local);
  std::vector<tpu::v1::CoreEnqueueData> data(local);
  parallel_for(local, 1, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const int64_t r = strategy_->first_local_replica() + l;
      const Tensors part = slice_rows(batch, r * rows, (r + 1) * rows);
      Tensors features = features_of(part);
      if (engine_) {
        tpu::v1::SplitInputs split = split_inputs(features.entries(), configs_);
        data[l] = enqueue_data_of(split.embedding_inputs);
        features = Tensors(std::move(split.features));
      }
      parts[l] = named(features, part, mode_);
    }
  });
  if (engine_) engine_->generate_enqueue(data);
  return Parts(std::move(parts));
}

Tensors EstimatorRun::with_activations(const Tensors& part) {
  Tensors::Dict out = part.entries();
  if (host_) out.insert_or_assign("features", (*host_)(part["features"]));
  if (engine_) {
    Tensors::Dict features = part["features"].entries();
    tpu::v1::TPUEmbedding::Activations found = engine_->get_activations();
    if (mode_ == ModeKeys::kTrain) found = engine_->hook_dummy_table_variables(found);
    for (const auto& [key, activation] : found) features.insert_or_assign(key, activation);
    out.insert_or_assign("features", Tensors(std::move(features)));
  }
  return Tensors(std::move(out));
}

void EstimatorRun::send_gradients(double factor) {
  tpu::v1::TPUEmbedding::Activations gradients = engine_->get_gradients_through_dummies();
  if (factor != 1) {
    for (auto& entry : gradients) entry.second = ops::scale(entry.second, factor);
  }
  engine_->generate_send_gradients(gradients, global_step());
}

double EstimatorRun::train_step(const Tensors& batch) {
  const Parts parts = feed(batch);
  const std::vector<Variable> dense = (*model_)->trainable_variables();
  std::vector<Variable> sources = dense;
  double factor = 1;
  if (engine_) {
    const auto& dummies = engine_->dummy_table_variables();
    sources.insert(sources.end(), dummies.begin(), dummies.end());
    const auto& multiplier = (*options_.embedding_config_spec)->experimental_gradient_multiplier_fn;
    if (multiplier) factor = static_cast<float>(multiplier(global_step()));
  }
  const double share = 1.0 / strategy_->num_replicas_in_sync();
  const auto losses = strategy_->run(
      [&](const Tensors& part) {
        std::vector<Gradient> gradients;
        Tensor loss;
        {
          // The tape is destroyed before the update, because it holds values that the update writes
          // in place.
          GradientTape tape;
          loss = (*model_)(with_activations(part), {.training = true})["loss"].tensor();
          if (std::isnan(number(loss))) {
            throw ValueError("TPUEstimator.train: the loss of step ", global_step() + 1,
                             " is NaN; check the data or lower the learning rate");
          }
          gradients = tape.gradient(ops::scale(loss, share), sources);
        }
        if (engine_) send_gradients(factor);
        gradients.resize(dense.size());
        (*optimizer_)->apply_gradients(gradients, dense);
        return loss;
      },
      parts);
  global_step_.assign(Tensor::scalar<int64_t>(global_step() + 1));
  return number(strategy_->reduce(distribute::ReduceOp::kMean, losses));
}

double EstimatorRun::eval_step(const Tensors& batch) {
  const Parts parts = feed(batch);
  const auto losses = strategy_->run(
      [&](const Tensors& part) {
        const NoGradient pause;
        const Tensors out = (*model_)(with_activations(part), {.training = false});
        for (const auto& [name, m] : graph_->spec.eval_metrics) {
          const Tensors& arguments = out.at("metrics").at(name);
          m.metric->update_state(arguments[0].tensor(), arguments[1].tensor(),
                                 m.sample_weight ? arguments[2].tensor() : Tensor());
        }
        return out["loss"].tensor();
      },
      parts);
  return number(strategy_->reduce(distribute::ReduceOp::kMean, losses));
}

Tensors EstimatorRun::predict_step(const Tensors& batch) {
  if (strategy_->num_local_replicas() != strategy_->num_replicas_in_sync()) {
    throw NotImplementedError(
        "TPUEstimator.predict: with cores in several processes each process has only a part of the "
        "predictions; predict on the host or in one process");
  }
  const Parts parts = feed(batch);
  const auto out = strategy_->run(
      [&](const Tensors& part) {
        const NoGradient pause;
        return (*model_)(with_activations(part), {.training = false})["predictions"];
      },
      parts);
  return concat_rows(out.values());
}

std::map<std::string, double> EstimatorRun::metrics() const {
  std::map<std::string, double> out;
  for (const auto& [name, m] : graph_->spec.eval_metrics) out[name] = m.metric->result();
  return out;
}

std::string EstimatorRun::save() { return checkpoints_->save(global_step()); }

void EstimatorRun::save_profiles() const {
  if (engine_) engine_->save_profiles();
}

}  // namespace keel::estimator
