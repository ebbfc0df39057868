// Layers that pool sequences, images and volumes by the maximum or the average: MaxPooling1D, 2D
// and 3D, GlobalMaxPooling1D, AdaptiveMaxPooling1D, AveragePooling1D and their like.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The operation of a pooling layer.
enum class PoolingKind { kMax, kAverage };

// Options of PoolingLayer.
template <int N>
struct PoolingOptions {
  Lengths<N> pool_size = 2;                   // positions in a window, > 0
  std::optional<Lengths<N>> strides = {};     // positions between windows, > 0; unset: pool_size
  std::string padding = "valid";              // or "same": size / strides windows, rounded up
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("pool_size", self.pool_size);
    field("padding", self.padding);
    field("strides", self.strides);
    field("data_format", self.data_format);
  }
};

// Takes the maximum or the average of each window over N spatial axes (keras.layers.MaxPooling1D,
// AveragePooling1D and their like). Input [batch, spatial axes ..., channels]; output [batch,
// windows ..., channels]. With padding "valid" all windows lie within the input. With "same" they
// may extend beyond both ends, at most one position further at the last. Positions beyond the ends
// are not counted. As in Keras, masks are ignored. The gradient of a maximum goes to the first of
// equal maxima.
//
// Throws ValueError for sizes that are not positive, for an unknown padding or data_format, for an
// input of another rank, and for padding "valid" if the input is smaller than a window.
template <ClassName kName, int N, PoolingKind kKind>
class PoolingLayer final : public OptionsLayer<PoolingOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = PoolingOptions<N>;
  explicit PoolingLayer(Options options);
  Config get_config() const override;

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// The layers that pool windows.
using MaxPooling1DLayer = PoolingLayer<"MaxPooling1D", 1, PoolingKind::kMax>;
using MaxPooling2DLayer = PoolingLayer<"MaxPooling2D", 2, PoolingKind::kMax>;
using MaxPooling3DLayer = PoolingLayer<"MaxPooling3D", 3, PoolingKind::kMax>;
using AveragePooling1DLayer = PoolingLayer<"AveragePooling1D", 1, PoolingKind::kAverage>;
using AveragePooling2DLayer = PoolingLayer<"AveragePooling2D", 2, PoolingKind::kAverage>;
using AveragePooling3DLayer = PoolingLayer<"AveragePooling3D", 3, PoolingKind::kAverage>;

// Options of GlobalPoolingLayer and GlobalAveragePooling1DLayer.
struct GlobalPoolingOptions {
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  bool keepdims = false;                      // keep the spatial dimensions, with size 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("keepdims", self.keepdims);
  }
};

// Takes the maximum or the mean over N spatial axes (keras.layers.GlobalMaxPooling1D,
// GlobalAveragePooling2D and their like). Input [batch, spatial axes ..., channels]; output [batch,
// channels]. As in Keras, masks are ignored. The gradient of a maximum is divided evenly among
// equal maxima. Throws ValueError for an unknown data_format and for an input of another rank.
template <ClassName kName, int N, PoolingKind kKind>
class GlobalPoolingLayer final : public OptionsLayer<GlobalPoolingOptions> {
 public:
  static constexpr const char* kClassName = kName.text;
  explicit GlobalPoolingLayer(Options options);

 private:
  std::string caller() const { return str(kClassName, " ", name()); }
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// Takes the mean over the steps, or over the steps that the input's mask [batch, steps] selects
// (keras.layers.GlobalAveragePooling1D). Input [batch, steps, features]; output [batch, features]
// without a mask. As in Keras, the result is NaN if the mask selects no step. Throws ValueError for
// an unknown data_format, and for an input or mask of another rank.
class GlobalAveragePooling1DLayer final : public OptionsLayer<GlobalPoolingOptions> {
 public:
  static constexpr char kClassName[] = "GlobalAveragePooling1D";
  explicit GlobalAveragePooling1DLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const int steps_axis_;
};

// The other global layers.
using GlobalMaxPooling1DLayer = GlobalPoolingLayer<"GlobalMaxPooling1D", 1, PoolingKind::kMax>;
using GlobalMaxPooling2DLayer = GlobalPoolingLayer<"GlobalMaxPooling2D", 2, PoolingKind::kMax>;
using GlobalMaxPooling3DLayer = GlobalPoolingLayer<"GlobalMaxPooling3D", 3, PoolingKind::kMax>;
using GlobalAveragePooling2DLayer =
    GlobalPoolingLayer<"GlobalAveragePooling2D", 2, PoolingKind::kAverage>;
using GlobalAveragePooling3DLayer =
    GlobalPoolingLayer<"GlobalAveragePooling3D", 3, PoolingKind::kAverage>;

// Options of AdaptivePoolingLayer.
template <int N>
struct AdaptivePoolingOptions {
  Lengths<N> output_size = 0;                 // required: number of windows, > 0
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("output_size", self.output_size);
    field("data_format", self.data_format);
  }
};

// Takes the maximum or the average of windows that divide the input as evenly as possible
// (keras.layers.AdaptiveMaxPooling1D, AdaptiveAveragePooling1D and their like). Along an axis of n
// positions, window i of m covers the positions from floor(i n / m) to before ceil((i + 1) n / m).
// Input [batch, spatial axes ..., channels]; output [batch, output_size ..., channels]. With
// channels_first, channels are axis 1 of both. The gradient of a maximum goes to the first of equal
// maxima. Throws ValueError for sizes that are not positive, an unknown data_format, and an input
// of another rank or without positions.
template <ClassName kName, int N, PoolingKind kKind>
class AdaptivePoolingLayer final : public OptionsLayer<AdaptivePoolingOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = AdaptivePoolingOptions<N>;
  explicit AdaptivePoolingLayer(Options options);

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// The adaptive layers.
using AdaptiveMaxPooling1DLayer =
    AdaptivePoolingLayer<"AdaptiveMaxPooling1D", 1, PoolingKind::kMax>;
using AdaptiveMaxPooling2DLayer =
    AdaptivePoolingLayer<"AdaptiveMaxPooling2D", 2, PoolingKind::kMax>;
using AdaptiveMaxPooling3DLayer =
    AdaptivePoolingLayer<"AdaptiveMaxPooling3D", 3, PoolingKind::kMax>;
using AdaptiveAveragePooling1DLayer =
    AdaptivePoolingLayer<"AdaptiveAveragePooling1D", 1, PoolingKind::kAverage>;
using AdaptiveAveragePooling2DLayer =
    AdaptivePoolingLayer<"AdaptiveAveragePooling2D", 2, PoolingKind::kAverage>;
using AdaptiveAveragePooling3DLayer =
    AdaptivePoolingLayer<"AdaptiveAveragePooling3D", 3, PoolingKind::kAverage>;

namespace layers {
// Handles to the layers, under Keras's names.
using MaxPooling1D = LayerHandle<MaxPooling1DLayer>;
using MaxPooling2D = LayerHandle<MaxPooling2DLayer>;
using MaxPooling3D = LayerHandle<MaxPooling3DLayer>;
using AveragePooling1D = LayerHandle<AveragePooling1DLayer>;
using AveragePooling2D = LayerHandle<AveragePooling2DLayer>;
using AveragePooling3D = LayerHandle<AveragePooling3DLayer>;
using GlobalMaxPooling1D = LayerHandle<GlobalMaxPooling1DLayer>;
using GlobalMaxPooling2D = LayerHandle<GlobalMaxPooling2DLayer>;
using GlobalMaxPooling3D = LayerHandle<GlobalMaxPooling3DLayer>;
using GlobalAveragePooling1D = LayerHandle<GlobalAveragePooling1DLayer>;
using GlobalAveragePooling2D = LayerHandle<GlobalAveragePooling2DLayer>;
using GlobalAveragePooling3D = LayerHandle<GlobalAveragePooling3DLayer>;
using AdaptiveMaxPooling1D = LayerHandle<AdaptiveMaxPooling1DLayer>;
using AdaptiveMaxPooling2D = LayerHandle<AdaptiveMaxPooling2DLayer>;
using AdaptiveMaxPooling3D = LayerHandle<AdaptiveMaxPooling3DLayer>;
using AdaptiveAveragePooling1D = LayerHandle<AdaptiveAveragePooling1DLayer>;
using AdaptiveAveragePooling2D = LayerHandle<AdaptiveAveragePooling2DLayer>;
using AdaptiveAveragePooling3D = LayerHandle<AdaptiveAveragePooling3DLayer>;
}  // namespace layers

}  // namespace keel
