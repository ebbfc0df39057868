#include <keel/layers/embedding/embed_reduce.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/embedding/internal/id_rows_plan.h>
#include <keel/layers/embedding/tables/internal/dynamic_embeddings.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/internal/position_pool.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

struct ReducedParts {
  TensorLike ids;
  std::optional<TensorLike> weights = {};
};

ReducedParts parts_of(const std::string& caller, const Tensors& inputs) {
  if (inputs.is_leaf()) return {.ids = inputs.leaf()};
  if (inputs.is_sequence() && inputs.items().size() == 2) {
    return {.ids = inputs[0].leaf(), .weights = inputs[1].leaf()};
  }
  throw ValueError(caller, ": inputs must be ids or the pair (ids, weights), received ",
                   inputs.structure());
}

// Throws unless the shape of dense weights is a prefix of the embedded shape.
void check_weight_shape(const std::string& caller, const Shape& weights, const Shape& embedded) {
  const int rank = weights.rank();
  if (rank <= embedded.rank() && compatible(weights, embedded.slice(0, rank))) return;
  throw ValueError(caller, ": the shape of weights must be a prefix of ", embedded,
                   ", the shape of the embedded ids, received ", weights);
}

}  // namespace

EmbedReduceLayer::EmbedReduceLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  if (options_.dynamic) {
    make_dynamic();
  } else if (options_.input_dim <= 0 || options_.output_dim <= 0) {
    throw ValueError("EmbedReduce ", name(),
                     ": input_dim and output_dim must be positive, received ", options_.input_dim,
                     " and ", options_.output_dim);
  }
  if (options_.combiner != "mean" && options_.combiner != "sum" && options_.combiner != "sqrtn") {
    throw ValueError("EmbedReduce ", name(), ": combiner must be mean, sum or sqrtn, received '",
                     options_.combiner, "'");
  }
  if (options_.mask_zero) {
    throw NotImplementedError("EmbedReduce ", name(),
                              ": mask_zero is not supported; pass lists of ids as ragged tensors");
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void EmbedReduceLayer::make_dynamic() {
  dynamic_ = dynamic_embeddings_of("EmbedReduce " + name(), name(), options_, dtype_policy().name(),
                                   dtype() == DType::kFloat32);
}

void EmbedReduceLayer::build_weights(const Specs&) {
  if (dynamic_ != nullptr) {
    embeddings_ = add_weight(dynamic_->build());
    return;
  }
  embeddings_ = add_weight({.name = "embeddings",
                            .shape = {options_.input_dim, options_.output_dim},
                            .initializer = options_.embeddings_initializer,
                            .regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint,
                            .dtype = dtype()});
}

Tensors EmbedReduceLayer::operator()(const Tensors& ids, const CallOptions& options) {
  const keel::CallOptions base = {.training = options.training};
  if (!options.weights) return Layer::operator()(ids, base);
  return Layer::operator()(Tensors::tuple({ids, *options.weights}), base);
}

Tensor EmbedReduceLayer::operator()(const Tensor& ids, const CallOptions& options) {
  return (*this)(Tensors(ids), options).tensor();
}

Tensors EmbedReduceLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

Tensors EmbedReduceLayer::call(const Tensors& inputs, const CallContext&) {
  const std::string caller = "EmbedReduce " + name();
  const auto [ids, weights] = parts_of(caller, inputs);
  const TensorSpec spec = ids.spec();
  if (dynamic_ != nullptr) {
    check_key_spec(caller, dynamic_->key(), spec);
  } else {
    check_id_spec(caller, spec);
  }
  const bool dense_weights = weights && weights->layout() == Layout::kDense;
  if (dense_weights && ids.layout() == Layout::kDense) {
    check_weight_shape(caller, weights->tensor().shape(), spec.shape + Shape{options_.output_dim});
  }
  if (any_symbolic(inputs)) {
    return Tensor::symbolic({.shape = {spec.shape[0], options_.output_dim}, .dtype = dtype()});
  }
  if (dynamic_ != nullptr) return call_dynamic(ids, weights);
  const bool single = spec.shape.rank() == 1;
  const IdRowsOptions rows_options = {.vocabulary_size = options_.input_dim,
                                      .combiner = options_.combiner};
  if (ids.layout() == Layout::kDense && (dense_weights || single)) {
    // Checks the ids and names the layer in errors.
    const Tensor checked = to_id_rows(caller, ids, {}, rows_options).ids;
    const Tensor rows = checked.reshaped(spec.shape);
    if (dense_weights) check_weights_are_finite(caller, weights->tensor().cast(DType::kFloat32));
    if (dense_weights && !(single && options_.combiner != "sum")) {
      return reduce_weighted(ops::gather(embeddings_.read_rows(rows), rows), weights->tensor());
    }
    return ops::gather(embeddings_.read_rows(rows), rows);
  }
  const IdRows rows = to_id_rows(caller, ids, weights, rows_options);
  if (rows.weights && dtype() == DType::kFloat32 && GradientTape::watches(rows.weights)) {
    const PositionPool pool(options_.combiner, {.ids = rows.ids,
                                                .row_splits = rows.row_splits,
                                                .weights = rows.weights,
                                                .output_shape = {rows.row_splits.size() - 1}});
    return pool_positions(pool, ops::gather(embeddings_.read_rows(rows.ids), rows.ids),
                          rows.weights);
  }
  return ops::embedding_pool(embeddings_.read_rows(rows.ids), rows.ids, rows.row_splits,
                             rows.weights, combiner_from_name(options_.combiner));
}

// Looks up ids in a table with dynamic ids like call() does.
Tensor EmbedReduceLayer::call_dynamic(const TensorLike& ids,
                                      const std::optional<TensorLike>& weights) const {
  const std::string caller = "EmbedReduce " + name();
  const bool single = ids.spec().shape.rank() == 1;
  const bool dense_weights = weights && weights->layout() == Layout::kDense;
  if (ids.layout() == Layout::kDense && (dense_weights || single)) {
    if (!dense_weights) return dynamic_->look_up(ids.tensor());
    check_weights_are_finite(caller, weights->tensor().cast(DType::kFloat32));
    if (single && options_.combiner != "sum") return dynamic_->look_up(ids.tensor());
    // Ids that are left out must not count in the divisors, so that their weights become 0.
    Tensor present;
    const Tensor embedded = dynamic_->look_up(ids.tensor(), &present);
    Tensor w = ops::cast(weights->tensor(), DType::kFloat32);
    const int rank = std::max(w.rank(), present.rank());
    while (w.rank() < rank) w = ops::expand_dims(w, w.rank());
    while (present.rank() < rank) present = ops::expand_dims(present, present.rank());
    return reduce_weighted(embedded, w * present);
  }
  const IdRows rows =
      to_key_rows(caller, dynamic_->key(), ids, weights, {.combiner = options_.combiner});
  return dynamic_->pool(rows, combiner_from_name(options_.combiner));
}

// Uses differentiable ops, so that weights can be trained.
Tensor EmbedReduceLayer::reduce_weighted(const Tensor& embedded, const Tensor& weights) const {
  Tensor w = ops::cast(weights, dtype());
  while (w.rank() < embedded.rank()) w = ops::expand_dims(w, w.rank());
  Tensor weighted = ops::multiply(embedded, w);
  if (embedded.rank() == 2) return weighted;  // one id for each row
  Tensor sum = ops::sum(weighted, {1});
  if (options_.combiner == "sum") return sum;
  // The weight of a row applies to each of its ids, so the divisor sums it once per id.
  w = ops::broadcast_to(w, Shape{embedded.dim(0), embedded.dim(1), w.dim(2)});
  if (options_.combiner == "mean") return ops::divide_no_nan(sum, ops::sum(w, {1}));
  // The square root has no finite derivative at 0. Shifting a zero argument to 1 keeps its gradient
  // 0 instead of NaN.
  const Tensor squares = ops::sum(ops::square(w), {1});
  const Tensor absent = ops::cast(ops::equal(squares, Tensor::zeros({}, dtype())), dtype());
  return ops::divide_no_nan(sum, ops::sqrt(squares + absent) - absent);
}

std::optional<PlanValues> EmbedReduceLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const bool is_pair = inputs.is_sequence() && inputs.items().size() == 2;
  if (dtype() != DType::kFloat32 || !(inputs.is_leaf() || is_pair)) return {};
  const NoGradient pause;
  IdRowsPlan rows = {.caller = "EmbedReduce " + name(),
                     .ids = is_pair ? inputs[0].leaf() : inputs.leaf(),
                     .weights = is_pair ? std::optional(inputs[1].leaf()) : std::nullopt,
                     .combiner = options_.combiner};
  if (dynamic_ != nullptr) {
    const DynamicTable table = dynamic_->table();
    rows.keys = std::make_shared<const ServingKeys>(table.state(), table.options());
  } else {
    rows.table = embeddings_.read();
  }
  const auto out = plan_id_rows(planner, rows);
  if (!out) return {};
  return *out;
}

DynamicTable EmbedReduceLayer::dynamic_table() const {
  refuse_dynamic_table("EmbedReduce " + name(), dynamic_ == nullptr);
  return dynamic_->table();
}

std::vector<std::pair<std::string, DynamicTable>> EmbedReduceLayer::dynamic_tables() const {
  if (dynamic_ == nullptr) return {};
  return dynamic_->tables();
}

std::vector<std::string> EmbedReduceLayer::training_notices() const {
  if (dynamic_ == nullptr) return {};
  return dynamic_->notices();
}

std::vector<StateEntry> EmbedReduceLayer::state_entries() const {
  std::vector<StateEntry> out = Layer::state_entries();
  if (dynamic_ != nullptr) dynamic_->replace_entry(out);
  return out;
}

// keras_rs does not have the key `dynamic`, so it is only written if set.
Config EmbedReduceLayer::get_config() const {
  Config out = to_config(options_);
  if (!options_.dynamic) out.erase("dynamic");
  return out;
}

KEEL_REGISTER(
    Layer, EmbedReduceLayer, .package = "keras_rs", .call = "inputs, weights",
    .ignored_keys =
        "input_length=*, lora_rank=null, lora_alpha=null, quantization_config=null, sparse=false")

}  // namespace keel
