// The part of EngineSession that runs in each step: prefetch, lookup and apply.
#include <keel/layers/embedding/tables/internal/engine_session.h>

#include <absl/strings/str_cat.h>
#include <iostream>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/bags.h>
#include <keel/layers/embedding/tables/internal/engine_session_state.h>

namespace keel {
namespace {

using distribute::EmbeddingEngine;
using distribute::TableStep;

constexpr char kSessionCaller[] = "TPUEmbedding";

void check_gradient(const std::string& path, const Tensor& gradient, const Shape& shape) {
  if (gradient.dtype() != DType::kFloat32) {
    throw TypeError(kSessionCaller, ": feature '", path,
                    "': the gradient must be float32, received ", gradient.dtype());
  }
  if (gradient.shape() != shape) {
    throw ValueError(kSessionCaller, ": feature '", path, "': the gradient must have shape ", shape,
                     ", received ", gradient.shape());
  }
}

}  // namespace

// Encodes all features; fn(feature, ids, weights) returns the bags of one.
template <class BagsOf>
EngineSession::Batch EngineSession::State::encode(const Tensors& inputs,
                                                  const FeatureWeights& weights,
                                                  const std::vector<bool>& by_position,
                                                  const BagsOf& fn) {
  assert_same_structure(features, inputs);
  if (weights) assert_same_structure(features, *weights);
  const std::vector<TensorLike> ids = flatten(inputs);
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(ids.size());
  Batch out;
  for (size_t f = 0; f < ids.size(); ++f) {
    FeatureBags bags = fn(f, ids[f], flat_weights[f]);
    out.invalid_ids.push_back(bags.invalid_ids);
    const TableConfig& table = *configs[f].table;
    out.shapes.push_back(bags.output_shape + Shape{table.dim});
    out.pools.emplace_back();
    out.unpooled.emplace_back();
    if (bags.row_splits && table.combiner == "max") {
      out.pools.back().emplace(table.combiner, bags);
    } else if (bags.row_splits && !by_position.empty() && by_position[f]) {
      out.unpooled.back().emplace(table.combiner, bags);
      out.shapes.back() = {bags.ids.size(), table.dim};
    }
    if (out.pools.back() || out.unpooled.back()) {
      out.features.push_back({.ids = std::move(bags.ids), .row_splits = {}, .weights = {}});
      continue;
    }
    out.features.push_back({.ids = std::move(bags.ids),
                            .row_splits = std::move(bags.row_splits),
                            .weights = std::move(bags.weights)});
  }
  return out;
}

EngineSession::Batch EngineSession::encode(const Tensors& features, const FeatureWeights& weights,
                                           const std::vector<bool>& by_position) {
  const State& s = *state_;
  std::vector<Shape> output_shapes;
  Batch out = state_->encode(
      features, weights, by_position, [&](size_t f, const TensorLike& ids, const auto& of_ids) {
        FeatureBags bags = to_bags(s.paths[f], s.configs[f], ids, of_ids, IdRule::kStrict, true);
        output_shapes.push_back(bags.output_shape);
        return bags;
      });
  check_equal_rows(s.paths, s.configs, output_shapes);
  return out;
}

EngineSession::Batch EngineSession::encode(const Tensors& features, const FeatureWeights& weights,
                                           const std::vector<Shape>& output_shapes) {
  const State& s = *state_;
  return state_->encode(
      features, weights, {}, [&](size_t f, const TensorLike& ids, const auto& of_ids) {
        FeatureConfig config = s.configs[f];
        const bool steps = config.max_sequence_length > 0 && !config.output_shape;
        if (ids.layout() != Layout::kRagged && config.output_shape) {
          config.output_shape.reset();
          config.max_sequence_length = 0;
        } else if (ids.layout() == Layout::kRagged && !steps) {
          config.output_shape = output_shapes[f];
        }
        FeatureBags bags = to_bags(s.paths[f], config, ids, of_ids, IdRule::kStrict, true);
        if (bags.output_shape.size() != output_shapes[f].size()) {
          throw ValueError(kSessionCaller, ": feature '", s.paths[f], "': the output shape is ",
                           output_shapes[f], ", but the ids give ", bags.output_shape);
        }
        bags.output_shape = output_shapes[f];
        return bags;
      });
}

void EngineSession::prefetch(const Tensors& features, const FeatureWeights& weights) {
  State& s = *state_;
  const ReplicaContext* const replica = current_replica_context();
  if (replica == nullptr)
    throw RuntimeError(kSessionCaller,
                       ".prefetch: called outside a replica; call it inside Strategy::run");
  if (!s.built || num_workers() == 1) return;
  try {
    Batch batch = encode(features, weights);
    s.engine->prefetch(s.strategy.communicator(), batch.features);
    s.prefetched[replica->local_replica].add(BatchKey(features, weights), std::move(batch));
  } catch (const Error&) {  // the lookup of this batch reports the error
  }
}

EngineSession::Lookup EngineSession::lookup(const Tensors& features, const FeatureWeights& weights,
                                            bool training, const std::vector<bool>& by_position) {
  const ReplicaContext* const replica = current_replica_context();
  if (training && replica != nullptr && by_position.empty()) {
    auto& queue = state_->prefetched[replica->local_replica];
    if (!queue.empty()) {
      if (const auto batch = queue.take(BatchKey(features, weights))) return lookup(*batch, true);
    }
  }
  return lookup(encode(features, weights, by_position), training);
}

std::vector<LookupCounter::Part> EngineSession::State::parts_of(const Batch& batch) const {
  std::vector<LookupCounter::Part> out;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const Shape samples =
        batch.unpooled[f] ? batch.unpooled[f]->output_shape() : batch.shapes[f].drop_last();
    out.push_back({.table = static_cast<size_t>(tables.find(configs[f].table)),
                   .ids = batch.features[f].ids,
                   .samples = samples.size(),
                   .invalid = batch.invalid_ids[f]});
  }
  return out;
}

EngineSession::Lookup EngineSession::lookup(const Batch& batch, bool training) {
  State& s = *state_;
  EmbeddingEngine::Activations found =
      s.engine->lookup(s.strategy.communicator(), batch.features, training);
  std::vector<std::optional<PositionPool>> pools = batch.pools;
  for (size_t f = 0; f < batch.shapes.size(); ++f) {
    if (pools[f]) found.values[f] = pools[f]->pool(found.values[f]);
    found.values[f] = found.values[f].reshaped(batch.shapes[f]);
  }
  // Count only after the lookup has succeeded.
  s.counter.add(batch.invalid_ids);
  if (s.counts_lookups) s.lookup_counter.add(s.parts_of(batch));
  auto ticket = std::make_shared<Ticket>(Ticket{
      .of_engine = std::move(found.ticket), .shapes = batch.shapes, .pools = std::move(pools)});
  return {.activations = std::move(found.values),
          .unpooled = batch.unpooled,
          .ticket = std::move(ticket)};
}

void EngineSession::set_counts_lookups(bool counts) { state_->counts_lookups = counts; }

void EngineSession::apply(const std::shared_ptr<Ticket>& ticket, std::vector<Tensor> gradients) {
  State& s = *state_;
  if (gradients.size() != ticket->shapes.size()) {
    throw ValueError(kSessionCaller, ": received ", gradients.size(), " gradients for ",
                     ticket->shapes.size(), " features; pass one for each feature");
  }
  for (size_t f = 0; f < gradients.size(); ++f) {
    if (gradients[f]) check_gradient(s.paths[f], gradients[f], ticket->shapes[f]);
  }
  for (size_t f = 0; f < gradients.size(); ++f) {
    const int64_t dim = s.configs[f].table->dim;
    if (gradients[f]) {
      gradients[f] = gradients[f].reshaped({gradients[f].size() / dim, dim});
      if (ticket->pools[f]) gradients[f] = ticket->pools[f]->rows_gradient(gradients[f]);
    } else if (!s.warned[f].exchange(true)) {
      std::cerr << absl::StrCat(kSessionCaller, ": the loss does not depend on feature '",
                                s.paths[f], "'; its rows are updated with zero gradients\n");
    }
  }
  distribute::Communicator& communicator = s.strategy.communicator();
  s.engine->apply(communicator, ticket->of_engine, std::move(gradients), s.steps(communicator));
}

// Returns the learning rates and hyperparameters of this step. A rate function is user code and may
// not be pure: only rank 0 calls it, once per step, and broadcasts the result.
std::vector<TableStep> EngineSession::State::steps(distribute::Communicator& communicator) const {
  const size_t count = tables.tables.size();
  std::vector<double> numbers;
  bool broadcasts = false;
  for (size_t t = 0; t < count; ++t) {
    broadcasts =
        broadcasts || calls_user_code(optimizer(t)) || !optimizer(t).hyperparameters.empty();
  }
  if (!broadcasts || communicator.rank() == 0) {
    std::map<int, double> known;  // by tag
    for (size_t t = 0; t < count; ++t) {
      const std::optional<int> tag = engine->tables()[t].learning_rate_tag;
      const auto found = tag ? known.find(*tag) : known.end();
      const TableConfig& table = *tables.tables[t].own;
      numbers.push_back(!table.trainable       ? 0
                        : found != known.end() ? found->second
                                               : table.optimizer.current_learning_rate());
      // A rate shared by several tables is evaluated once per step.
      if (tag) known.emplace(*tag, numbers.back());
      for (const LearningRate& h : optimizer(t).hyperparameters) numbers.push_back(h(0));
    }
  }
  if (broadcasts) {
    const std::vector<distribute::Bytes> send(communicator.size(),
                                              distribute::as_bytes_of<double>(numbers));
    const auto first =
        distribute::as_elements<double>(communicator.all_to_all(send, "learning rates")[0]);
    const std::vector<double> received(first.begin(), first.end());
    // Every replica must copy the numbers before rank 0 overwrites the buffer that it sent.
    communicator.local_barrier("learning rates read");
    numbers = received;
  }
  std::vector<TableStep> out;
  auto next = numbers.begin();
  for (size_t t = 0; t < count; ++t) {
    const auto& source = optimizer(t).source;
    TableStep& step = out.emplace_back(TableStep{
        .learning_rate = *next++, .iteration = source == nullptr ? 0 : source->iterations()});
    const auto end = next + static_cast<std::ptrdiff_t>(optimizer(t).hyperparameters.size());
    step.hyperparameters.assign(next, end);
    next = end;
  }
  return out;
}

}  // namespace keel
