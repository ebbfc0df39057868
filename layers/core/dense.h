// Dense and EinsumDense: matrix products with a kernel (keras.layers).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/activations.h>
#include <keel/layers/core/projection.h>

namespace keel {

// The options of DenseLayer.
struct DenseOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "linear";                   // applied to the result
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the output
  Constraint kernel_constraint = {};      // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};        // applied to bias after each step; unset: none
  std::optional<int64_t> lora_rank = {};  // adapts the kernel by matrices of this rank
  std::optional<double> lora_alpha = {};  // factor of their product, times lora_rank
  std::optional<KernelQuantization> quantization_config = {};  // see ProjectionLayer::quantize()
  static constexpr bool kQuantizes = true;                     // the dtype policy may be int8
  static constexpr bool kQuantizesToInt4 = true;               // the dtype policy may be int4
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("units", self.units);
    field("activation", self.activation);
    field("use_bias", self.use_bias);
    field("kernel_initializer", self.kernel_initializer);
    field("bias_initializer", self.bias_initializer);
    field("kernel_regularizer", self.kernel_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("kernel_constraint", self.kernel_constraint);
    field("bias_constraint", self.bias_constraint);
    field("lora_rank", self.lora_rank);
    field("lora_alpha", self.lora_alpha);
    field("quantization_config", self.quantization_config);
  }
};

// Computes activation(x . kernel + bias) over the last axis. Input: [batch, ..., in]; output:
// [batch, ..., units]. Weights: kernel [in, units] and bias [units]. Numeric inputs of another
// dtype are cast to the layer's dtype.
class DenseLayer final : public ProjectionLayer {
 public:
  using Options = DenseOptions;
  static constexpr char kClassName[] = "Dense";
  // Throws ValueError unless units > 0.
  explicit DenseLayer(Options options);

  bool supports_masking() const override { return true; }
  Config get_config() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  // Throws ValueError unless the rank is at least 2 and the last dimension is known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& x, const CallContext& context) override;
  ProjectionTerms projection_terms(int input_rank) const override;
  bool has_flat_scale() const override { return true; }

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Dense = LayerHandle<DenseLayer>;
}  // namespace layers

// The shape of an output without the batch. A single integer is a shape of rank 1.
struct PartialShape {
  PartialShape() = default;
  // Stores the dimensions.
  PartialShape(int64_t dim) : shape({dim}) {}                         // NOLINT: implicit
  PartialShape(std::initializer_list<int64_t> dims) : shape(dims) {}  // NOLINT: implicit
  Shape shape = {};                                                   // without the batch
};
// Converts to and from a list of dimensions. A single integer can also be read.
Config encode(const PartialShape& shape);
void decode(const Config& config, PartialShape& shape);

// The options of EinsumDenseLayer.
struct EinsumDenseOptions {
  std::string equation = {};                  // required: input,kernel->output
  PartialShape output_shape = {};             // required; kUnknown: the dimension of the input
  Activation activation = "linear";           // applied to the result
  std::optional<std::string> bias_axes = {};  // letters of the output; unset: no bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the output
  Constraint kernel_constraint = {};      // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};        // applied to bias after each step; unset: none
  std::optional<int64_t> lora_rank = {};  // adapts the kernel by matrices of this rank
  std::optional<double> lora_alpha = {};  // factor of their product, times lora_rank
  std::optional<KernelQuantization> quantization_config = {};  // see ProjectionLayer::quantize()
  static constexpr bool kQuantizes = true;                     // the dtype policy may be int8
  static constexpr bool kQuantizesToInt4 = true;               // the dtype policy may be int4
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("equation", self.equation);
    field("output_shape", self.output_shape);
    field("activation", self.activation);
    field("bias_axes", self.bias_axes);
    field("kernel_initializer", self.kernel_initializer);
    field("bias_initializer", self.bias_initializer);
    field("kernel_regularizer", self.kernel_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("kernel_constraint", self.kernel_constraint);
    field("bias_constraint", self.bias_constraint);
    field("lora_rank", self.lora_rank);
    field("lora_alpha", self.lora_alpha);
    field("quantization_config", self.quantization_config);
  }
};

// Computes activation(einsum(equation, x, kernel) + bias). The equation has the form
// "abc,cde->abde", or contains dots for the first dimensions ("...x,xy->...y") or the last ones
// ("ab...,bc->ac..."). output_shape holds the output's dimensions except for the batch and the
// dots. The kernel's shape follows from the input and the output. The bias has the output's
// dimensions from the first letter of bias_axes on, with 1 for letters that bias_axes does not
// contain.
class EinsumDenseLayer final : public ProjectionLayer {
 public:
  using Options = EinsumDenseOptions;
  static constexpr char kClassName[] = "EinsumDense";
  // Throws ValueError for an equation of another form.
  explicit EinsumDenseLayer(Options options);

  Config get_config() const override;

 private:
  struct Terms {
    std::string input, kernel, output;  // letters
    bool dots_first = false, dots_last = false;
  };
  static Terms terms_of(const std::string& equation, const std::string& caller);
  // Throws ValueError for shapes that do not match the equation, for an unknown dimension of the
  // kernel or bias, and for bias_axes that the output does not have.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& x, const CallContext& context) override;
  // Returns the output's dimensions that have letters.
  Shape lettered_output(const Shape& input) const;
  Shape kernel_shape(const Shape& input, const Shape& output) const;
  Shape bias_shape(const Shape& output, int dots) const;
  std::string caller() const { return "EinsumDense " + name(); }

  ProjectionTerms projection_terms(int input_rank) const override;

  const Options options_;
  const Terms terms_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using EinsumDense = LayerHandle<EinsumDenseLayer>;
}  // namespace layers

}  // namespace keel
