#include <keel/layers/core/embedding.h>

#include <absl/strings/str_cat.h>
#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/internal/quantizers.h>
#include <keel/layers/embedding/tables/internal/dynamic_embeddings.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

EmbeddingLayer::EmbeddingLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.dynamic) {
    make_dynamic();
  } else if (options_.input_dim <= 0 || options_.output_dim <= 0) {
    throw ValueError("Embedding ", name(), ": input_dim and output_dim must be positive, received ",
                     options_.input_dim, " and ", options_.output_dim);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void EmbeddingLayer::make_dynamic() {
  const std::string caller = "Embedding " + name();
  refuse_with_dynamic(caller, "mask_zero", options_.mask_zero);
  dynamic_ = dynamic_embeddings_of(caller, name(), options_, dtype_policy().name(),
                                   !dtype_policy().int8_weights() && dtype() == DType::kFloat32);
}

void EmbeddingLayer::build_weights(const TensorSpec&) {
  if (dynamic_ != nullptr) {
    embeddings_ = add_weight(dynamic_->build());
    return;
  }
  const Shape shape = {options_.input_dim, options_.output_dim};
  if (dtype_policy().int8_weights()) {
    return add_quantized(Tensor::zeros(shape, DType::kInt8),
                         Tensor::full<float>({options_.input_dim}, 1));
  }
  embeddings_ = add_weight({.name = "embeddings",
                            .shape = shape,
                            .initializer = options_.embeddings_initializer,
                            .regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint,
                            .dtype = dtype()});
}

void EmbeddingLayer::add_quantized(Tensor codes, Tensor scales) {
  embeddings_ = add_weight(Variable(std::move(codes), {.name = "embeddings", .trainable = false}));
  scale_ =
      add_weight(Variable(std::move(scales), {.name = "embeddings_scale", .trainable = false}));
}

void EmbeddingLayer::quantize(const std::string& mode) {
  const std::string caller = absl::StrCat("Embedding ", name(), ".quantize");
  if (mode != "int8") throw ValueError(caller, ": mode must be int8, received '", mode, "'");
  refuse_with_dynamic(caller, "quantize", dynamic_ != nullptr);
  if (!built()) throw ValueError(caller, ": the layer is not built; call it once first");
  if (dtype_policy().int8_weights()) {
    throw ValueError(caller, ": the table is already quantized (", dtype_policy().name(),
                     "); call quantize() once");
  }
  const NoGradient pause;
  QuantizedTable table = abs_max_quantize(embeddings_.read(), caller);
  const DTypePolicy policy = dtype_policy().with_int8_weights();
  reset_weights(policy);
  options_.dtype = policy;
  add_quantized(std::move(table.codes), std::move(table.scales));
}

std::vector<StateEntry> EmbeddingLayer::state_entries() const {
  std::vector<StateEntry> out = TensorLayer::state_entries();
  if (dynamic_ != nullptr) dynamic_->replace_entry(out);
  if (!scale_) return out;
  StateEntry& scales = out.back();
  scales.check = [caller = "Embedding " + name()](const Tensor& values) {
    for (const float scale : values.data<float>()) {
      if (scale > 0 && std::isfinite(scale)) continue;
      throw ValueError(caller, ": embeddings_scale must be positive and finite, received ", scale);
    }
  };
  scales.set = [check = scales.check, set = std::move(scales.set)](const Tensor& values) {
    check(values);
    set(values);
  };
  return out;
}

std::vector<Tensor> EmbeddingLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  if (!options_.mask_zero) return {};
  const Tensor ids = inputs.tensor();
  return {ops::not_equal(ids, ops::zeros_like(ids))};
}

Tensor EmbeddingLayer::call(const Tensor& ids, const CallContext&) {
  if (dynamic_ != nullptr) {
    if (ids.is_symbolic()) {
      check_key_type("Embedding " + name(), dynamic_->key(), ids.dtype());
      return Tensor::symbolic(
          {.shape = ids.shape() + Shape{options_.output_dim}, .dtype = DType::kFloat32});
    }
    return dynamic_->look_up(ids);
  }
  const Tensor rows = as_ids("Embedding", name(), ids);
  if (scale_) return ops::gather_quantized(embeddings_.read(), scale_.read(), rows);
  // Only the rows that are looked up need to be up to date.
  return ops::gather(embeddings_.read_rows(rows), rows);
}

std::optional<PlanValues> EmbeddingLayer::plan(Planner& planner, const PlanValues& inputs) const {
  if (options_.mask_zero || planner.spec(inputs.leaf()).layout != Layout::kDense) return {};
  const NoGradient pause;
  if (dynamic_ != nullptr) {
    const DynamicTable rows = dynamic_->table();
    const auto keys = std::make_shared<const ServingKeys>(rows.state(), rows.options());
    const auto out = planner.look_up({.caller = "Embedding " + name(),
                                      .table = keys->table(),
                                      .scales = {},
                                      .ids = inputs.leaf(),
                                      .weights = {},
                                      .int8 = nullptr,
                                      .keys = keys});
    if (!out) return {};
    return *out;
  }
  const std::optional<PlanValue> out = planner.look_up({.caller = "Embedding " + name(),
                                                        .table = embeddings_.read(),
                                                        .scales = scale_ ? scale_.read() : Tensor(),
                                                        .ids = inputs.leaf()});
  if (!out) return {};
  return *out;
}

DynamicTable EmbeddingLayer::dynamic_table() const {
  refuse_dynamic_table("Embedding " + name(), dynamic_ == nullptr);
  return dynamic_->table();
}

std::vector<std::pair<std::string, DynamicTable>> EmbeddingLayer::dynamic_tables() const {
  if (dynamic_ == nullptr) return {};
  return dynamic_->tables();
}

std::vector<std::string> EmbeddingLayer::training_notices() const {
  if (dynamic_ == nullptr) return {};
  return dynamic_->notices();
}

// Keras does not have the key `dynamic`, so it is only written if set.
Config EmbeddingLayer::get_config() const {
  Config out = to_config(options_);
  if (!options_.dynamic) out.erase("dynamic");
  return out;
}

KEEL_REGISTER(Layer, EmbeddingLayer, .package = "keras",
              .ignored_keys =
                  "input_length=*, weights=null, lora_rank=null, lora_alpha=null, "
                  "quantization_config=*, sparse=false")

}  // namespace keel
