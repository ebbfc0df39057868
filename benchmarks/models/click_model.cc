#include "benchmarks/models/click_model.h"

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/activation/activation.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>

namespace keel::bench {
namespace {

// Two digits, so that the alphabetical order of dicts is the order of the columns.
std::string name_of_column(size_t column) {
  return (column < 10 ? "c0" : "c") + std::to_string(column);
}

std::string name_of_linear(size_t column) { return "linear_" + name_of_column(column); }

OptimizerHandle embedding_optimizer(const ClickWork& work) {
  if (work.adagrad) return optimizers::Adagrad({.learning_rate = work.learning_rate});
  return optimizers::SGD({.learning_rate = work.learning_rate});
}

FeatureConfig feature(const ClickWork& work, int64_t rows, int64_t dim) {
  std::optional<DynamicVocabulary> dynamic = work.dynamic;
  if (dynamic && dynamic->eviction.policy != Eviction::Policy::kNone) {
    dynamic->capacity = std::max<int64_t>(
        1, static_cast<int64_t>(work.capacity_factor * static_cast<double>(rows)));
  }
  return {.table = make_table({.vocabulary_size = dynamic ? 0 : rows,
                               .dim = dim,
                               .initializer = "random_uniform",
                               .combiner = "sum",
                               .dynamic = dynamic})};
}

layers::TPUEmbedding make_embedding(const ClickWork& work) {
  const bool linear = work.model == ModelKind::kWideAndDeep;
  std::map<std::string, Nest<FeatureConfig>> features;
  for (size_t c = 0; c < work.rows.size(); ++c) {
    features[name_of_column(c)] = feature(work, work.rows[c], work.dim);
    if (linear) features[name_of_linear(c)] = feature(work, work.rows[c], 1);
  }
  return layers::TPUEmbedding({.feature_config = Nest<FeatureConfig>::dict(std::move(features)),
                               .optimizer = embedding_optimizer(work)});
}

// Builds a graph and records the weights in the order of their creation.
class Builder {
 public:
  Builder(const ClickWork& work, std::vector<Variable>& weights)
      : policy_(work.bfloat16 ? "mixed_bfloat16" : "float32"), weights_(weights) {}

  Tensor tower(const Tower& of, Tensor x, bool last_is_linear) {
    for (size_t i = 0; i < of.widths.size(); ++i) {
      const bool linear = last_is_linear && i + 1 == of.widths.size();
      x = dense(x, of.widths[i], linear ? "linear" : "relu");
    }
    return x;
  }
  Tensor dense(const Tensor& x, int64_t units, const char* activation) {
    const layers::Dense layer({.units = units, .activation = activation, .dtype = policy_});
    const Tensor y = layer(x);
    keep(layer->kernel(), layer->bias());
    return y;
  }
  Tensor cross(const Tensor& x0, const Tensor& x) {
    const layers::FeatureCross layer({.dtype = policy_});
    const Tensor y = layer(Tensors::list({x0, x})).tensor();
    keep(layer->kernel(), layer->bias());
    return y;
  }

 private:
  void keep(const Variable& kernel, const Variable& bias) {
    weights_.push_back(kernel);
    weights_.push_back(bias);
  }
  const DTypePolicy policy_;
  std::vector<Variable>& weights_;
};

Tensor join(const Tensors::Items& parts) {
  return layers::Concatenate({})(Tensors::list(parts)).tensor();
}

Tensor logits(const ClickWork& work, const Tensor& numbers, const Tensors& found,
              Builder& builder) {
  Tensors::Items columns, linear;
  for (size_t c = 0; c < work.rows.size(); ++c) {
    columns.push_back(found[name_of_column(c)]);
    if (work.model == ModelKind::kWideAndDeep) linear.push_back(found[name_of_linear(c)]);
  }
  if (work.model == ModelKind::kDlrm) {
    const Tensor x = builder.tower(bottom_tower(work), numbers, false);
    columns.insert(columns.begin(), x);
    const Tensor products = layers::DotInteraction({})(Tensors::list(columns)).tensor();
    return builder.tower(top_tower(work), join({x, products}), true);
  }
  columns.push_back(numbers);
  const Tensor joined = join(columns);
  if (work.model == ModelKind::kDcn) {
    const Tensor crossed = builder.cross(joined, builder.cross(joined, joined));
    return builder.tower(top_tower(work), crossed, true);
  }
  const Tensor deep = builder.tower(top_tower(work), joined, true);
  const Tensor wide = builder.dense(numbers, 1, "linear");
  return deep + wide + ops::sum(join(linear), {1}, /*keepdims=*/true);
}

}  // namespace

ClickModel make_click_model(const ClickWork& work, ClickOutput output) {
  const layers::TPUEmbedding embedding = make_embedding(work);
  std::map<std::string, Tensors> inputs, ids;
  for (size_t c = 0; c < work.rows.size(); ++c) {
    const InputOptions options = {.dtype = DType::kInt64, .name = name_of_column(c)};
    const TensorLike input = work.bag == 1 ? TensorLike(layers::input(options))
                                           : TensorLike(layers::ragged_input(options));
    inputs.emplace(name_of_column(c), input);
    ids.emplace(name_of_column(c), input);
    if (work.model == ModelKind::kWideAndDeep) ids.emplace(name_of_linear(c), input);
  }
  const Tensor numbers = layers::input({.shape = {kNumbers}, .name = "numbers"});
  inputs.emplace("numbers", numbers);
  std::vector<Variable> dense;
  Builder builder(work, dense);
  Tensor out = logits(work, numbers, embedding(Tensors::dict(std::move(ids))), builder);
  if (output == ClickOutput::kProbabilities) {
    out = layers::Activation({.activation = "sigmoid"})(out);
  }
  return {.embedding = embedding,
          .model = Functional({.inputs = Tensors::dict(std::move(inputs)), .outputs = out}),
          .dense = std::move(dense)};
}

StartValues start_values(const ClickModel& model) {
  const auto copy = [](const Tensor& t) {
    const auto values = t.data<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  StartValues out;
  for (const Variable& v : model.dense) out.dense.push_back(copy(v.read()));
  // Columns precede the linear part in alphabetical order: "c" < "linear".
  for (const auto& [table, values] : model.embedding->embedding_tables()) {
    out.tables.push_back(copy(values));
  }
  return out;
}

Tensors click_tensors(const ClickWork& work, const ClickBatch& batch, int64_t begin, int64_t end) {
  const int64_t rows = end - begin;
  std::map<std::string, Tensors> features;
  const auto part = [&](const auto& values, int64_t width) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    return std::vector<T>(values.begin() + begin * width, values.begin() + end * width);
  };
  std::vector<int64_t> splits(rows + 1);
  for (int64_t row = 0; row <= rows; ++row) splits[row] = row * work.bag;
  for (size_t c = 0; c < batch.ids.size(); ++c) {
    const Tensor ids = Tensor::from(part(batch.ids[c], work.bag), {rows * work.bag});
    features.emplace(name_of_column(c),
                     work.bag == 1
                         ? TensorLike(ids)
                         : TensorLike(RaggedTensor{
                               .values = ids, .row_splits = Tensor::from(splits, {rows + 1})}));
  }
  features.emplace("numbers", Tensor::from(part(batch.numbers, kNumbers), {rows, kNumbers}));
  return Tensors::tuple(
      {Tensors::dict(std::move(features)), Tensor::from(part(batch.labels, 1), {rows, 1})});
}

}  // namespace keel::bench
