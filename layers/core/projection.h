// ProjectionLayer: the base of Dense and EinsumDense, whose kernels can be quantized and adapted by
// matrices of low rank.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/core/kernel_quantization.h>
#include <keel/layers/layer.h>

namespace keel {

class QuantizedProjection;  // layers/core/internal/quantized_projection.h
struct QuantizedKernel;
struct ProjectionTerms;

// The options that Dense and EinsumDense have in common.
struct ProjectionOptions {
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Constraint kernel_constraint = {};      // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};        // applied to bias after each step; unset: none
  std::optional<int64_t> lora_rank = {};  // see ProjectionLayer::enable_lora()
  std::optional<double> lora_alpha = {};  // likewise; unset: lora_rank
  std::optional<KernelQuantization> quantization_config = {};  // see ProjectionLayer::quantize()
};

// A layer that multiplies its inputs by a kernel and adds a bias.
//
// quantize() replaces the kernel by int8 or int4 codes with Keras's algorithms. The kernel is then
// not trainable; the bias is. Such a layer is also made by a dtype policy such as
// "int8_from_float32" or "int4/128_from_float32", which files of quantized layers contain. The
// weights are
//   kernel        int8; for int4, two codes in each byte
//   kernel_scale  float32: a scale for each column or, for int4 with blocks, [groups, columns]
//   zero_point    int8 [groups, columns]; only int4 with blocks has it
//   g_idx         float32 [rows]: the group of each row of the kernel; likewise
//
// enable_lora() freezes the kernel and adds the product of two trainable matrices to it (Hu et al.
// 2021): kernel + lora_alpha / lora_rank * lora_kernel_a . lora_kernel_b. Model files and
// checkpoints hold the sum as the kernel, as Keras's do; only .h5 files hold the matrices. Reading
// one sets lora_kernel_b to 0, and reading a .keras or .weights.h5 file also lora_kernel_a.
class ProjectionLayer : public TensorLayer {
 public:
  const Variable& kernel() const { return kernel_; }       // empty until built; codes if quantized
  const Variable& bias() const { return bias_; }           // empty until built, and without a bias
  const Variable& kernel_scale() const { return scale_; }  // empty unless quantized
  const Variable& lora_kernel_a() const { return lora_a_; }  // empty without LoRA
  const Variable& lora_kernel_b() const { return lora_b_; }  // likewise

  // Quantizes the kernel; compile a model again before you train it further. Throws ValueError if
  // the layer is not built or already quantized, or if the kernel is not float32 and finite.
  void quantize(const KernelQuantization& config);
  // Quantizes with the default settings of a mode, "int8" or "int4". Throws ValueError for another.
  template <std::convertible_to<std::string> Mode>
  void quantize(const Mode& mode) {
    quantize(KernelQuantization::of_mode(mode));
  }
  // Adapts the kernel by matrices of rank `rank`; lora_kernel_a starts with values of `a`,
  // lora_kernel_b with values of `b`. An unset `alpha` is `rank`. The options lora_rank and
  // lora_alpha do it when the layer is built. Throws ValueError if the rank is not positive, if the
  // kernel has a constraint, if the layer is not built or if it has such matrices.
  void enable_lora(int64_t rank, std::optional<double> alpha = {},
                   const Initializer& a = "he_uniform", const Initializer& b = "zeros");

  std::vector<StateEntry> state_entries() const override;

 protected:
  // Takes the common options of a class. The config of the class adds the keys of
  // add_projection_keys().
  template <class Options>
  ProjectionLayer(const char* class_name, Options& options)
      : TensorLayer(class_name, options),
        projection_({.kernel_initializer = options.kernel_initializer,
                     .bias_initializer = options.bias_initializer,
                     .kernel_regularizer = options.kernel_regularizer,
                     .bias_regularizer = options.bias_regularizer,
                     .kernel_constraint = options.kernel_constraint,
                     .bias_constraint = options.bias_constraint,
                     .lora_rank = options.lora_rank,
                     .lora_alpha = options.lora_alpha,
                     .quantization_config = options.quantization_config}) {
    check_lora_options();
  }
  // Sets the dtype and the keys quantization_config, lora_rank and lora_alpha of a config.
  void add_projection_keys(Config& config) const;

  // Returns the einsum of the product for inputs of a rank.
  virtual ProjectionTerms projection_terms(int input_rank) const = 0;
  // Returns true if the scales of an int8 kernel have one axis.
  virtual bool has_flat_scale() const { return false; }
  // Creates the weights; a bias if `bias` is set.
  void build_projection(int input_rank, const Shape& kernel, const std::optional<Shape>& bias);

  // True if the kernel is stored as codes.
  bool is_quantized() const { return dtype_policy().quantized_weights(); }
  // True if matrices of low rank adapt the kernel.
  bool has_lora() const { return static_cast<bool>(lora_a_); }
  // Returns the float kernel, with the product of the LoRA matrices. Must not be called if
  // quantized.
  Tensor effective_kernel() const;
  // Returns the product of a quantized layer, without the bias.
  Tensor quantized_product(const Tensor& x) const;

 private:
  void check_lora_options() const;
  std::string caller(const char* function) const;
  QuantizedProjection quantized_projection(int input_rank) const;
  QuantizedKernel quantized_kernel() const;
  void add_quantized(QuantizedKernel kernel, const std::optional<Shape>& bias);
  void add_bias(const Shape& shape);
  void add_lora(int64_t rank, const Initializer& a, const Initializer& b);
  // Returns the kernel that files hold: with the product of the LoRA matrices.
  QuantizedKernel merged_quantized() const;
  Tensor lora_product() const;  // lora_alpha / lora_rank * a . b

  ProjectionOptions projection_;
  int input_rank_ = 2;
  Shape kernel_shape_;
  Variable kernel_, bias_, scale_, zero_point_, groups_, lora_a_, lora_b_;
};

}  // namespace keel
