// SpectralNormalization: divides the kernel of a layer by its greatest singular value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/wrappers/wrapper.h>

namespace keel {

// Options of SpectralNormalization.
struct SpectralNormalizationOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required; has a weight kernel or embeddings
  int64_t power_iterations = 1;                  // per call in training, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr const char* kUnsaved[] = {"layer"};  // get_config() writes the layer
  // Lists the fields that configs hold besides the layer.
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("power_iterations", self.power_iterations);
  }
};

// Limits the Lipschitz constant of a layer (keras.layers.SpectralNormalization; Miyato et al.
// 2018). In training, a call first replaces the weight `kernel` of the layer, or `embeddings`, by
//   kernel / sigma,   sigma = v W u',
// where W is the kernel as a matrix with one column per element of its last axis. The weight
// vector_u [1, columns], which is not trainable, approximates the first right singular vector. It
// is improved by power_iterations times v = normalized(u W'), u = normalized(v W). A kernel of
// zeros is left unchanged. Then, and outside of training, the layer is called. The output has the
// dtype of the input, as in Keras.
//
// Throws ValueError if the layer has no such weight, and NotImplementedError in training in one of
// several replicas, which share the kernel.
class SpectralNormalizationLayer final : public WrapperLayer, public SharedWeights {
 public:
  static constexpr char kClassName[] = "SpectralNormalization";
  using Options = SpectralNormalizationOptions;
  // Throws ValueError if the layer is missing, and unless power_iterations > 0.
  explicit SpectralNormalizationLayer(Options options);

  const Variable& kernel() const { return kernel_; }      // of the inner layer; empty until built
  const Variable& vector_u() const { return vector_u_; }  // empty until built
  std::vector<Variable> shared_weights() const override { return {kernel_}; }
  Config get_config() const override;
  // Creates the layer from its config, and the layer inside it.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Variable find_kernel() const;
  void normalize_kernel() const;

  const int64_t power_iterations_;
  Variable kernel_, vector_u_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using SpectralNormalization = LayerHandle<SpectralNormalizationLayer>;
}  // namespace layers

}  // namespace keel
