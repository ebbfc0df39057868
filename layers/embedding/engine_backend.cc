#include <algorithm>
#include <atomic>
#include <iostream>

#include "autodiff/custom_gradient.h"
#include "autodiff/ops.h"
#include "distribute/embedding/engine.h"
#include "distribute/strategy.h"
#include "layers/embedding/backend.h"
#include "layers/embedding/bags.h"

namespace keel {
namespace {

using distribute::EmbeddingEngine;
using distribute::EngineTable;

distribute::RowUpdate row_update_of(const TableOptimizerState& optimizer) {
  return {.rule = optimizer.rule,
          .clip_gradient_min = optimizer.clip_gradient_min,
          .clip_gradient_max = optimizer.clip_gradient_max,
          .weight_decay_factor = optimizer.weight_decay_factor,
          .multiply_weight_decay_factor_by_learning_rate =
              optimizer.multiply_weight_decay_factor_by_learning_rate,
          .clip_weight_min = optimizer.clip_weight_min,
          .clip_weight_max = optimizer.clip_weight_max,
          .use_gradient_accumulation = optimizer.use_gradient_accumulation,
          .lazy = optimizer.lazy};
}

std::vector<EngineTable> engine_tables(const TableSet& tables) {
  std::vector<EngineTable> out;
  for (const TableSet::Entry& entry : tables.tables) {
    const TableConfig& config = *entry.own;
    if (!config.optimizer) {
      throw ValueError("TPUEmbedding: table '", config.name,
                       "' has no optimizer; under a TPUStrategy every table needs one");
    }
    out.push_back({.name = config.name,
                   .rows = config.vocabulary_size,
                   .dim = config.dim,
                   .combiner = combiner_from_name(config.combiner),
                   .update = row_update_of(*config.optimizer)});
  }
  return out;
}

std::vector<int> feature_tables(const TableSet& tables, const Nest<FeatureConfig>& config) {
  std::vector<int> out;
  for (const FeatureConfig& f : flatten(config)) out.push_back(tables.find(f.table));
  return out;
}

bool has_callable(const TableOptimizer& optimizer) {
  return optimizer->learning_rate.callable() != nullptr ||
         (optimizer->source != nullptr &&
          optimizer->source->learning_rate_source().callable() != nullptr);
}

}  // namespace

struct TPUEmbeddingLayer::EngineBackend::Shared {
  EmbeddingEngine engine;
  std::vector<TableOptimizer> optimizers;  // by table
  std::vector<int64_t> dims;               // by feature
  std::vector<std::string> paths;          // by feature
  std::vector<std::atomic<bool>> warned;   // by feature: of a missing gradient

  // The rates of this step. A callable is the user's own code: it runs once for each step, in the
  // first replica, and the others are told.
  std::vector<Step> steps(distribute::Communicator& communicator) const {
    const bool ask_first = std::ranges::any_of(optimizers, has_callable);
    std::vector<double> own(optimizers.size());
    if (!ask_first || communicator.rank() == 0) {
      std::ranges::transform(optimizers, own.begin(), &TableOptimizer::current_learning_rate);
    }
    std::vector<double> rates = own;
    if (ask_first) {
      const std::vector<distribute::Bytes> send(communicator.size(),
                                                distribute::as_bytes_of<double>(own));
      const auto first = distribute::as_elements<double>(communicator.all_to_all(send)[0]);
      rates.assign(first.begin(), first.end());
      communicator.barrier();
    }
    std::vector<Step> out;
    for (size_t t = 0; t < optimizers.size(); ++t) {
      const auto& source = optimizers[t]->source;
      out.push_back(
          {.learning_rate = rates[t], .iteration = source == nullptr ? 0 : source->iterations()});
    }
    return out;
  }

  // Dense gradients of the activations as the engine takes them; those that did not come are
  // zeros, and said so once.
  std::vector<Tensor> to_samples(std::span<const Gradient> gradients) {
    std::vector<Tensor> out(gradients.size());
    for (size_t f = 0; f < gradients.size(); ++f) {
      if (gradients[f]) {
        const Tensor g = gradients[f].dense();
        out[f] = g.reshaped({g.size() / dims[f], dims[f]});
      } else if (!warned[f].exchange(true)) {
        std::cerr << str("TPUEmbedding: the loss does not depend on feature '", paths[f],
                         "'; its rows are updated with zero gradients\n");
      }
    }
    return out;
  }
};

TPUEmbeddingLayer::EngineBackend::EngineBackend(const TableSet& tables,
                                                const Nest<FeatureConfig>& config, int replicas)
    : Backend(tables),
      shared_(new Shared{.engine = EmbeddingEngine(engine_tables(tables),
                                                   feature_tables(tables, config), replicas),
                         .optimizers = {},
                         .dims = {},
                         .paths = flatten_paths(config),
                         .warned = std::vector<std::atomic<bool>>(flatten_paths(config).size())}) {
  for (const auto& entry : tables.tables) shared_->optimizers.push_back(entry.own->optimizer);
  for (const FeatureConfig& f : flatten(config)) shared_->dims.push_back(f.table->dim);
}

TPUEmbeddingLayer::EngineBackend::~EngineBackend() = default;

std::vector<Variable> TPUEmbeddingLayer::EngineBackend::build() {
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    // The stream that a variable of this table would draw from: both lives begin alike.
    const Initializer initializer = table_initializer(*tables_.tables[t].own);
    shared_->engine.initialize(static_cast<int>(t), initializer.function(),
                               next_random_stream(initializer.function().seed()));
  }
  virtual_variable_ = Variable::virtual_trainable("tpu_embedding_helper_dummy");
  return {virtual_variable_};
}

void TPUEmbeddingLayer::EngineBackend::check_strategy() const {
  const distribute::Strategy& strategy = distribute::Strategy::current();
  if (!strategy.is_tpu() || strategy.num_replicas_in_sync() != shared_->engine.shards()) {
    throw RuntimeError("TPUEmbedding: the layer was made under a TPUStrategy of ",
                       shared_->engine.shards(), " replicas and is called under ", strategy.name(),
                       " of ", strategy.num_replicas_in_sync(),
                       "; to look up outside it, pass serving_config or load a saved model");
  }
}

Tensors TPUEmbeddingLayer::EngineBackend::look_up(const Tensors& features,
                                                  const FeatureWeights& weights,
                                                  const Nest<FeatureConfig>& config) {
  assert_same_structure(config, features);
  if (weights) assert_same_structure(features, *weights);
  const std::vector<FeatureConfig> configs = flatten(config);
  const std::vector<TensorLike> inputs = flatten(features);
  if (any_symbolic(features)) {
    size_t f = 0;
    return map_structure(features, [&](const TensorLike& input) -> TensorLike {
      const size_t i = f++;
      const Shape shape = bags_output_shape(shared_->paths[i], configs[i], input.spec(), true);
      return Tensor::symbolic(
          {.shape = shape + Shape{configs[i].table->dim}, .dtype = DType::kFloat32});
    });
  }
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(configs.size());
  std::vector<distribute::FeatureBatch> batches;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < configs.size(); ++i) {
    FeatureBags bags =
        to_bags(shared_->paths[i], configs[i], inputs[i], flat_weights[i], IdRule::kStrict, true);
    shapes.push_back(bags.output_shape + Shape{configs[i].table->dim});
    batches.push_back({.ids = std::move(bags.ids),
                       .row_splits = std::move(bags.row_splits),
                       .weights = std::move(bags.weights)});
  }
  std::vector<Tensor> values = custom_gradient({virtual_variable_.read()}, [&] {
    distribute::Communicator& communicator = distribute::Strategy::current().communicator();
    EmbeddingEngine::Activations found = shared_->engine.lookup(communicator, batches);
    for (size_t i = 0; i < shapes.size(); ++i)
      found.values[i] = found.values[i].reshaped(shapes[i]);
    return WithBackward{
        std::move(found.values),
        [shared = shared_, ticket = std::move(found.ticket)](std::span<const Gradient> dy) {
          distribute::Communicator& back = distribute::Strategy::current().communicator();
          const std::vector<Tensor> gradients = shared->to_samples(dy);
          shared->engine.apply(back, *ticket, gradients, shared->steps(back));
          return std::vector<Gradient>{Tensor::zeros({1})};
        }};
  });
  return map_structure(pack_sequence_as(config, values),
                       [](const Tensor& t) -> TensorLike { return t; });
}

Tensor TPUEmbeddingLayer::EngineBackend::read(int table) const {
  return shared_->engine.retrieve(table);
}

void TPUEmbeddingLayer::EngineBackend::write(int table, const Tensor& values) {
  shared_->engine.load(table, 0, values);
}

std::vector<StateEntry> TPUEmbeddingLayer::EngineBackend::state_entries() const {
  std::vector<StateEntry> out;
  if (!virtual_variable_) return out;  // build() would overwrite what is set before it
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    const EngineTable& table = shared_->engine.tables()[t];
    const TableOptimizerState& optimizer = *shared_->optimizers[t];
    const std::vector<Slot> slots = table.update.rule->slots();
    for (size_t part = 0; part <= slots.size(); ++part) {
      std::string name = table.name;
      if (part > 0) {
        // Under the Keras optimizer's names, so that either life of the table finds them.
        name += "/" + (optimizer.source_slot_names.empty() ? slots[part - 1].name
                                                           : optimizer.source_slot_names[part - 1]);
      }
      const auto index = static_cast<int>(t);
      const auto at = static_cast<int>(part);
      out.push_back(
          {.name = std::move(name),
           .spec = {.shape = {table.rows, table.dim}},
           .kind = part == 0 ? StateEntry::Kind::kWeight : StateEntry::Kind::kSlot,
           .trainable = part == 0,
           .get = [shared = shared_, index, at] { return shared->engine.retrieve(index, at); },
           .set = [shared = shared_, index,
                   at](const Tensor& value) { shared->engine.load(index, at, value); }});
    }
  }
  return out;
}

}  // namespace keel
