#include <keel/layers/core/projection.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <cmath>
#include <utility>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/core/internal/quantized_projection.h>

namespace keel {
namespace {

// Returns a letter that the equation does not use.
char free_label(const std::string& equation) {
  for (char label = 'a'; label <= 'z'; ++label) {
    if (!absl::StrContains(equation, label)) return label;
  }
  return 'Z';
}

std::string replaced(std::string text, char from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, 1, to);
}

// Returns x . a . b, contracting the rank by name. The last axis of the kernel may be one of the
// output or one that is summed over.
Tensor lora_einsum(const ProjectionTerms& terms, const Tensor& x, const Tensor& a,
                   const Tensor& b) {
  const char last = terms.kernel.back();
  const std::string rank(1, free_label(terms.equation()));
  const std::string first = terms.kernel.substr(0, terms.kernel.size() - 1);
  if (absl::StrContains(terms.output, last)) {
    const std::string middle = replaced(terms.output, last, rank);
    const Tensor y = ops::einsum(terms.input + "," + first + rank + "->" + middle, x, a);
    return ops::einsum(middle + "," + rank + last + "->" + terms.output, y, b);
  }
  const std::string middle = replaced(terms.input, last, rank);
  const Tensor y = ops::einsum(terms.input + "," + rank + last + "->" + middle, x, b);
  return ops::einsum(middle + "," + first + rank + "->" + terms.output, y, a);
}

}  // namespace

void ProjectionLayer::check_lora_options() const {
  if (!projection_.lora_rank) return;
  if (*projection_.lora_rank < 1) {
    throw ValueError(caller("lora_rank"), " must be positive, received ", *projection_.lora_rank);
  }
  if (projection_.kernel_constraint) {
    throw ValueError(caller("lora_rank"),
                     " cannot be used with a kernel_constraint; remove one of them");
  }
}

std::string ProjectionLayer::caller(const char* function) const {
  return absl::StrCat(class_name(), " ", name(), ".", function);
}

void ProjectionLayer::add_projection_keys(Config& config) const {
  config.set("dtype", encode(dtype_policy()));
  config.set("quantization_config", encode(projection_.quantization_config));
  for (const char* key : {"lora_rank", "lora_alpha"}) config.erase(key);
  if (!projection_.lora_rank) return;
  const double rank = static_cast<double>(*projection_.lora_rank);
  const double alpha = projection_.lora_alpha.value_or(rank);
  config.set("lora_rank", *projection_.lora_rank);
  const bool whole = std::abs(alpha) < 0x1p53 && std::trunc(alpha) == alpha;
  config.set("lora_alpha", whole ? Config(static_cast<int64_t>(alpha)) : Config(alpha));
}

QuantizedProjection ProjectionLayer::quantized_projection(int input_rank) const {
  return {projection_terms(input_rank), kernel_shape_, has_flat_scale()};
}

void ProjectionLayer::add_bias(const Shape& shape) {
  bias_ = add_weight({.name = "bias",
                      .shape = shape,
                      .initializer = projection_.bias_initializer,
                      .regularizer = projection_.bias_regularizer,
                      .constraint = projection_.bias_constraint,
                      .dtype = dtype()});
}

void ProjectionLayer::build_projection(int input_rank, const Shape& kernel,
                                       const std::optional<Shape>& bias) {
  input_rank_ = input_rank;
  kernel_shape_ = kernel;
  if (is_quantized()) {
    add_quantized(quantized_projection(input_rank).empty(dtype_policy()), bias);
  } else {
    kernel_ = add_weight({.name = "kernel",
                          .shape = kernel,
                          .initializer = projection_.kernel_initializer,
                          .regularizer = projection_.kernel_regularizer,
                          .constraint = projection_.kernel_constraint,
                          .trainable = !projection_.lora_rank,
                          .dtype = dtype()});
    if (bias) add_bias(*bias);
  }
  if (projection_.lora_rank) add_lora(*projection_.lora_rank, "he_uniform", "zeros");
}

// The order is that of Keras's files.
void ProjectionLayer::add_quantized(QuantizedKernel kernel, const std::optional<Shape>& bias) {
  const auto add = [&](Tensor value, const char* name) {
    return add_weight(Variable(std::move(value), {.name = name, .trainable = false}));
  };
  kernel_ = add(std::move(kernel.codes), "kernel");
  if (bias) add_bias(*bias);
  scale_ = add(std::move(kernel.scale), "kernel_scale");
  if (!kernel.zero_point) return;
  zero_point_ = add(std::move(kernel.zero_point), "zero_point");
  groups_ = add(std::move(kernel.groups), "g_idx");
}

void ProjectionLayer::quantize(const KernelQuantization& config) {
  const std::string function = caller("quantize");
  if (!built()) throw ValueError(function, ": the layer is not built; call it once first");
  if (is_quantized()) {
    throw ValueError(function, ": the kernel is already quantized (", dtype_policy().name(), ")");
  }
  if (dtype() != DType::kFloat32) {
    throw ValueError(function, ": only float32 kernels can be quantized, received ", dtype());
  }
  const NoGradient pause;
  const KernelQuantization checked = KernelQuantization::of_mode(config.mode);
  const DTypePolicy policy = checked.mode == "int4"
                                 ? dtype_policy().with_int4_weights(config.block_size)
                                 : dtype_policy().with_int8_weights();
  const QuantizedKernel kernel =
      quantized_projection(input_rank_).quantized(kernel_.read(), policy, function);
  const Tensor bias = bias_ ? bias_.read() : Tensor();
  const Tensor a = has_lora() ? lora_a_.read() : Tensor();
  const Tensor b = has_lora() ? lora_b_.read() : Tensor();
  reset_weights(policy);
  projection_.quantization_config = config;
  add_quantized(kernel, bias ? std::optional(bias.shape()) : std::nullopt);
  if (bias) bias_.assign(bias);
  if (!a) return;
  add_lora(*projection_.lora_rank, "zeros", "zeros");
  lora_a_.assign(a);
  lora_b_.assign(b);
}

void ProjectionLayer::enable_lora(int64_t rank, std::optional<double> alpha, const Initializer& a,
                                  const Initializer& b) {
  const std::string function = caller("enable_lora");
  if (rank < 1) throw ValueError(function, ": the rank must be positive, received ", rank);
  if (projection_.kernel_constraint) {
    throw ValueError(function, ": the kernel has a constraint; remove kernel_constraint");
  }
  if (!built()) throw ValueError(function, ": the layer is not built; call it once first");
  if (has_lora()) throw ValueError(function, ": it was called before; call it once");
  const NoGradient pause;
  projection_.lora_rank = rank;
  projection_.lora_alpha = alpha;
  if (!is_quantized()) {
    // A variable cannot become frozen, so that the weights are made anew.
    const Tensor kernel = kernel_.read(), bias = bias_ ? bias_.read() : Tensor();
    reset_weights(dtype_policy());
    kernel_ = add_weight(Variable(kernel, {.name = "kernel", .trainable = false}));
    if (bias) {
      add_bias(bias.shape());
      bias_.assign(bias);
    }
  }
  add_lora(rank, a, b);
}

void ProjectionLayer::add_lora(int64_t rank, const Initializer& a, const Initializer& b) {
  const auto add = [&](const char* name, const Shape& shape, const Initializer& initializer) {
    return add_weight({.name = name,
                       .shape = shape,
                       .initializer = initializer,
                       .regularizer = projection_.kernel_regularizer,
                       .dtype = dtype()});
  };
  lora_a_ = add("lora_kernel_a", kernel_shape_.drop_last() + Shape{rank}, a);
  lora_b_ = add("lora_kernel_b", {rank, kernel_shape_[-1]}, b);
}

Tensor ProjectionLayer::lora_product() const {
  const auto rank = static_cast<double>(*projection_.lora_rank);
  return ops::scale(ops::matmul(lora_a_, lora_b_), projection_.lora_alpha.value_or(rank) / rank);
}

Tensor ProjectionLayer::effective_kernel() const {
  return has_lora() ? kernel_.read() + lora_product() : kernel_.read();
}

QuantizedKernel ProjectionLayer::quantized_kernel() const {
  const auto read = [](const Variable& v) { return v ? v.read() : Tensor(); };
  return {.codes = kernel_.read(),
          .scale = scale_.read(),
          .zero_point = read(zero_point_),
          .groups = read(groups_)};
}

Tensor ProjectionLayer::quantized_product(const Tensor& x) const {
  const bool int8 = dtype_policy().int8_weights();
  const auto& config = projection_.quantization_config;
  const Tensor y = quantized_projection(x.rank()).product(x, quantized_kernel(), dtype_policy(),
                                                          config ? config->quantize_inputs : int8);
  if (!has_lora()) return y;
  const auto rank = static_cast<double>(*projection_.lora_rank);
  return y + ops::scale(lora_einsum(projection_terms(x.rank()), x, lora_a_, lora_b_),
                        projection_.lora_alpha.value_or(rank) / rank);
}

QuantizedKernel ProjectionLayer::merged_quantized() const {
  const NoGradient pause;
  const QuantizedProjection projection = quantized_projection(input_rank_);
  const Tensor kernel = projection.dequantized(quantized_kernel(), dtype_policy()) + lora_product();
  return projection.quantized(kernel, dtype_policy(), caller("state_entries"));
}

std::vector<StateEntry> ProjectionLayer::state_entries() const {
  std::vector<StateEntry> out = TensorLayer::state_entries();
  if (!has_lora()) return out;
  const auto reset_b = [b = lora_b_] { b.assign(Tensor::zeros(b.shape(), b.dtype())); };
  for (StateEntry& entry : out) {
    if (entry.name == "kernel") {
      entry.get = [this] {
        const NoGradient pause;
        return is_quantized() ? merged_quantized().codes : effective_kernel();
      };
      entry.set = [set = std::move(entry.set), reset_b](const Tensor& value) {
        set(value);
        reset_b();
      };
    } else if (entry.name == "kernel_scale") {
      entry.get = [this] { return merged_quantized().scale; };
    } else if (entry.name == "zero_point") {
      entry.get = [this] { return merged_quantized().zero_point; };
    }
  }
  // The kernel contains their product.
  std::erase_if(out, [](const StateEntry& entry) { return entry.name.starts_with("lora_"); });
  return out;
}

}  // namespace keel
