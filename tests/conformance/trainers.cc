#include "tests/conformance/trainers.h"

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>

#include "tests/conformance/case_optimizer.h"

namespace keel::conformance {
namespace {

using distribute::Strategy;
using Weights = Nest<std::optional<TensorLike>>;

bool is_first_replica() {
  const ReplicaContext* context = current_replica_context();
  return context == nullptr || context->replica == 0;
}

struct Batch {
  Tensors::Dict ids;
  Weights::Dict weights;
};
Batch batch_of(const StepInput& step, bool first) {
  Batch out;
  for (const auto& [name, feature] : step.features) {
    out.ids.emplace(name, first ? feature.ids : without_ids(feature.ids));
    out.weights.emplace(name, first ? feature.weights : std::optional<TensorLike>());
  }
  return out;
}

Tensor slot_of(const std::vector<StateEntry>& entries, const std::string& slot) {
  for (const StateEntry& entry : entries) {
    if (entry.name == "table/" + slot) return entry.get();
  }
  throw ValueError("unknown slot '", slot, "'");
}

// The common part of the trainers: the strategy, and the step for learning rates.
class TrainerBase : public Trainer {
 public:
  TrainerBase(Strategy& strategy, const Training& training)
      : strategy_(strategy), training_(training), table_(make_table(training.table)) {}

 protected:
  // Uses a separate table, because the library's objects modify their tables.
  Nest<FeatureConfig> feature_config() const {
    FeatureConfig feature = training_.feature;
    feature.table = table_;
    Nest<FeatureConfig>::Dict out;
    for (const auto& [name, input] : training_.steps.at(0).features) out.emplace(name, feature);
    return out;
  }
  EmbeddingOptimizer optimizer() {
    return table_optimizer_of(training_.optimizer, [this] { return training_.rate(step_); });
  }

  Strategy& strategy_;
  const Training& training_;
  const Table table_;
  size_t step_ = 0;
};

class LayerTrainer final : public TrainerBase {
 public:
  LayerTrainer(Strategy& strategy, const Training& training)
      : TrainerBase(strategy, training),
        layer_({.feature_config = feature_config(),
                .optimizer = optimizer(),
                .pipeline_execution_with_tensor_core = training.pipelined}) {
    layer_->build(specs_of(Tensors(batch_of(training.steps[0], true).ids)));
    layer_->update_embedding_table(table_, float_tensor(training.initial_table));
  }

  std::map<std::string, Tensor> step(size_t k) override {
    step_ = k;
    std::map<std::string, Tensor> out;
    strategy_.run([&] {
      const bool first = is_first_replica();
      const Batch batch = batch_of(training_.steps[k], first);
      GradientTape tape;
      const Tensors activations = layer_(Tensors(batch.ids), {.weights = Weights(batch.weights)});
      Tensor loss;
      for (const auto& [name, gradient] : training_.steps[k].gradients) {
        const Tensor part = ops::sum(activations[name].tensor() * gradient);
        loss = loss ? loss + part : part;
      }
      if (loss) tape.gradient(loss, layer_->trainable_variables());
      if (!first) return;
      for (const auto& [name, leaf] : activations.entries()) out.emplace(name, leaf.tensor());
    });
    return out;
  }

  Tensor table() override { return layer_->embedding_tables()[0].second; }
  Tensor slot(const std::string& name) override { return slot_of(layer_->state_entries(), name); }

 private:
  const layers::TPUEmbedding layer_;
};

class MidLevelTrainer final : public TrainerBase {
 public:
  MidLevelTrainer(Strategy& strategy, const Training& training)
      : TrainerBase(strategy, training),
        embedding_(feature_config(), optimizer(), training.pipelined) {
    std::vector<OptionalShape> shapes;
    for (const auto& [name, feature] : training.steps[0].features) {
      shapes.push_back(feature.ids.spec().shape);
    }
    embedding_.build(pack_sequence_as(feature_config(), shapes));
    state()[0].set(float_tensor(training.initial_table));
  }

  std::map<std::string, Tensor> step(size_t k) override {
    step_ = k;
    const StepInput& input = training_.steps[k];
    std::vector<Tensors> ids;
    std::vector<Weights> weights;
    for (int r = 0; r < strategy_.num_local_replicas(); ++r) {
      const Batch batch = batch_of(input, r == 0);
      ids.emplace_back(batch.ids);
      weights.emplace_back(batch.weights);
    }
    embedding_.enqueue(distribute::PerReplica<Tensors>(ids),
                       {.weights = distribute::PerReplica<Weights>(weights)});
    std::map<std::string, Tensor> out;
    strategy_.run([&] {
      const Tensors activations = embedding_.dequeue();
      Nest<Gradient>::Dict gradients;
      for (const auto& [name, leaf] : activations.entries()) {
        if (is_first_replica()) out.emplace(name, leaf.tensor());
        const auto found = input.gradients.find(name);
        gradients.emplace(name,
                          found == input.gradients.end() ? Gradient() : Gradient(found->second));
      }
      embedding_.apply_gradients(Nest<Gradient>(gradients));
    });
    return out;
  }

  Tensor table() override { return state()[0].get(); }
  Tensor slot(const std::string& name) override { return slot_of(state(), name); }

 private:
  std::vector<StateEntry> state() { return embedding_.tracked()->state_entries(); }

  tpu::TPUEmbedding embedding_;
};

using EngineV1 = tpu::v1::TPUEmbedding;

EngineV1 engine_v1(const Training& training, const EmbeddingOptimizer& parameters, int cores) {
  tpu::v1::TPUEmbeddingOptions options;
  const auto rate = [&training](int64_t step) { return training.rate(static_cast<size_t>(step)); };
  options.table_to_config_dict.emplace(
      "table", tpu::v1::TableOptions{.vocabulary_size = training.table.vocabulary_size,
                                     .dimension = training.table.dim,
                                     .combiner = training.table.combiner,
                                     .learning_rate_fn = tpu::LearningRateFn(rate)});
  for (const auto& [name, input] : training.steps[0].features) {
    options.feature_to_config_dict.emplace(
        name, tpu::v1::FeatureOptions{.table_id = "table",
                                      .max_sequence_length = training.feature.max_sequence_length});
  }
  options.batch_size = training.rows * cores;
  options.optimization_parameters = parameters;
  return EngineV1(options);
}

class V1Trainer final : public TrainerBase {
 public:
  V1Trainer(Strategy& strategy, const Training& training)
      : TrainerBase(strategy, training),
        parameters_(v1_parameters_of(training.optimizer)),
        engine_(engine_v1(training, parameters_, strategy.num_replicas_in_sync())) {
    if (training.table.quantization_config) throw ValueError("V1 tables have no quantization");
    engine_.build();
    state_ = engine_.state_entries({{"table", "table"}});
    state_.at(0).set(float_tensor(training.initial_table));
  }

  std::map<std::string, Tensor> step(size_t k) override {
    const StepInput& input = training_.steps[k];
    engine_.generate_enqueue(data_of(input));
    std::map<std::string, Tensor> out;
    strategy_.run([&] {
      EngineV1::Activations gradients = engine_.get_activations();
      if (is_first_replica()) out = gradients;
      for (auto& [name, gradient] : gradients) {
        const auto found = input.gradients.find(name);
        gradient = found == input.gradients.end() ? Tensor::zeros(gradient.shape()) : found->second;
      }
      engine_.generate_send_gradients(gradients, static_cast<int64_t>(k));
    });
    return out;
  }

  Tensor table() override { return state_[0].get(); }
  // The V1 engine uses other slot names. Slots follow the table in the order of the rule.
  Tensor slot(const std::string& name) override {
    const std::vector<std::string>& names = parameters_->rule->slot_names;
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw ValueError("unknown slot '", name, "'");
    return state_.at(1 + (found - names.begin())).get();
  }

 private:
  std::vector<tpu::v1::CoreEnqueueData> data_of(const StepInput& input) const {
    std::vector<tpu::v1::CoreEnqueueData> out(strategy_.num_local_replicas());
    for (size_t core = 0; core < out.size(); ++core) {
      for (const auto& [name, feature] : input.features) {
        std::optional<RaggedTensor> weights;
        if (feature.weights && core == 0) weights = feature.weights->ragged();
        const TensorLike ids = core == 0 ? feature.ids : without_ids(feature.ids);
        out[core].emplace(name,
                          tpu::v1::RaggedEnqueueData::from_ragged_tensor(ids.ragged(), weights));
      }
    }
    return out;
  }

  const EmbeddingOptimizer parameters_;
  EngineV1 engine_;
  std::vector<StateEntry> state_;  // the table, then its slots
};

template <class T>
std::unique_ptr<Trainer> make(Strategy& strategy, const Training& training) {
  return std::make_unique<T>(strategy, training);
}

}  // namespace

std::vector<NamedTrainer> trainers_for(const Training& training) {
  if (is_v1_type(training.optimizer["type"].string())) return {{"V1 ", make<V1Trainer>}};
  return {{"layer on ", make<LayerTrainer>}, {"mid-level on ", make<MidLevelTrainer>}};
}

}  // namespace keel::conformance
