#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/framework/exact_cast.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/registry.h>

namespace keel {

CategoryEncodingLayer::CategoryEncodingLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "CategoryEncoding " + name())) {
  if (options_.num_tokens <= 0) {
    throw ValueError("CategoryEncoding ", name(), ": num_tokens must be positive, received ",
                     options_.num_tokens);
  }
  if (mode_ == OutputMode::kInt) {
    throw ValueError("CategoryEncoding ", name(),
                     ": output_mode must be 'one_hot', 'multi_hot' or 'count', received '",
                     options_.output_mode, "'");
  }
}

Tensors CategoryEncodingLayer::operator()(const Tensors& inputs, const CallOptions& options) {
  const keel::CallOptions base = {.training = options.training};
  if (!options.count_weights) return Layer::operator()(inputs, base);
  return Layer::operator()(Tensors::tuple({inputs, *options.count_weights}), base);
}

Tensor CategoryEncodingLayer::operator()(const Tensor& input, const CallOptions& options) {
  return (*this)(Tensors(input), options).tensor();
}

Tensors CategoryEncodingLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

Tensor CategoryEncodingLayer::checked(const Tensor& categories) const {
  for (int64_t category : categories.data<int64_t>()) {
    if (category < 0 || category >= options_.num_tokens) {
      throw ValueError("CategoryEncoding ", name(), ": categories must be in [0, ",
                       options_.num_tokens, "), received ", category);
    }
  }
  return categories;
}

Tensors CategoryEncodingLayer::call(const Tensors& inputs, const CallContext&) {
  const bool pair = inputs.is_sequence() && inputs.items().size() == 2;
  const TensorLike& x = pair ? inputs[0].leaf() : inputs.leaf();
  std::optional<TensorLike> weights;
  if (pair) {
    weights = map_values(inputs[1].leaf(), DType::kFloat32,
                         [](const Tensor& t) { return t.cast(DType::kFloat32); });
  }
  const TensorLike ids = x.is_symbolic() ? x : integer_ids("CategoryEncoding " + name(), x);
  const TensorLike categories =
      map_values(ids, DType::kInt64, [this](const Tensor& t) { return checked(t); });
  const TensorLike encoded = encode_categories(
      categories, {.mode = mode_, .depth = options_.num_tokens, .sparse = options_.sparse},
      "CategoryEncoding " + name(), weights);
  if (!options_.sparse) return ops::cast(encoded.tensor(), dtype());
  return map_values(encoded, dtype(), [this](const Tensor& t) { return t.cast(dtype()); });
}

KEEL_REGISTER(Layer, CategoryEncodingLayer, .package = "keras", .call = "inputs, count_weights")

}  // namespace keel
