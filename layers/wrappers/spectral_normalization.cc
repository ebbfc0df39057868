#include <keel/layers/wrappers/spectral_normalization.h>

#include <algorithm>

#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Returns x / |x|, where 1 / |x| is at most 1e7, as in Keras.
Tensor normalized(const Tensor& x) {
  const Tensor limit = Tensor::full<double>({}, 1e7).cast(x.dtype());
  return x * ops::minimum(ops::rsqrt(ops::sum(ops::square(x))), limit);
}

bool all_zero(const Tensor& x) {
  bool zero = true;
  visit_floating(x.dtype(), "SpectralNormalization", [&]<class T>(const T&) {
    zero = std::ranges::all_of(x.data<T>(), [](T value) { return value == 0; });
  });
  return zero;
}

}  // namespace

SpectralNormalizationLayer::SpectralNormalizationLayer(Options options)
    : WrapperLayer(kClassName, options), power_iterations_(options.power_iterations) {
  if (power_iterations_ > 0) return;
  throw ValueError("SpectralNormalization ", name(),
                   ": power_iterations must be positive, received ", power_iterations_);
}

// The state entries do not include those of layers inside the layer.
Variable SpectralNormalizationLayer::find_kernel() const {
  const std::vector<StateEntry> entries = layer()->state_entries();
  for (const char* name : {"kernel", "embeddings"}) {
    for (const StateEntry& entry : entries) {
      if (entry.name != name || entry.variable_id == 0 || !is_floating(entry.spec.dtype)) continue;
      for (const Variable& weight : layer()->weights()) {
        if (weight.id() == entry.variable_id) return weight;
      }
    }
  }
  throw ValueError("SpectralNormalization ", name(), ": ", layer()->class_name(), " ",
                   layer()->name(),
                   " has no floating-point weight 'kernel' or 'embeddings'; pass another layer");
}

void SpectralNormalizationLayer::build_weights(const Specs& inputs) {
  build_layer(inputs);
  kernel_ = find_kernel();
  vector_u_ = add_weight({.name = "vector_u",
                          .shape = {1, kernel_.shape()[-1]},
                          .initializer = initializers::truncated_normal(0, 0.02),
                          .trainable = false,
                          .dtype = kernel_.dtype()});
}

void SpectralNormalizationLayer::normalize_kernel() const {
  const ReplicaContext* const context = current_replica_context();
  if (context != nullptr && context->replicas > 1) {
    throw NotImplementedError("SpectralNormalization ", name(),
                              ": several replicas cannot change the kernel that they share; train ",
                              "with one replica");
  }
  const NoGradient pause;
  const Tensor kernel = kernel_.read();
  if (all_zero(kernel)) return;
  const Tensor matrix = ops::reshape(kernel, {kUnknown, kernel.dim(-1)});
  Tensor u = vector_u_.read(), v;
  for (int64_t i = 0; i < power_iterations_; ++i) {
    v = normalized(ops::matmul(u, matrix, false, true));
    u = normalized(ops::matmul(v, matrix));
  }
  const Tensor sigma = ops::matmul(ops::matmul(v, matrix), u, false, true);
  vector_u_.assign(u);
  kernel_.assign(kernel / ops::reshape(sigma, {}));
}

Tensors SpectralNormalizationLayer::call(const Tensors& inputs, const CallContext& context) {
  if (context.training && !any_symbolic(inputs)) normalize_kernel();
  const DType dtype = inputs.tensor().dtype();
  return map_structure(layer()(inputs), [&](const TensorLike& output) -> TensorLike {
    return output.layout() == Layout::kDense ? TensorLike(as_dtype(output.tensor(), dtype))
                                             : output;
  });
}

Config SpectralNormalizationLayer::get_config() const {
  Config out = WrapperLayer::get_config();
  out.set("power_iterations", power_iterations_);
  return out;
}

std::shared_ptr<Layer> SpectralNormalizationLayer::from_config(const Config& config) {
  return make_wrapper<SpectralNormalizationLayer>(config);
}

KEEL_REGISTER(Layer, SpectralNormalizationLayer, .package = "keras", .call = "inputs, training")

}  // namespace keel
