// Layers that enlarge spatial axes: UpSampling1D, UpSampling2D and UpSampling3D. The output has no
// mask. They throw ValueError for sizes that are not positive, an unknown data_format, and an input
// of another rank than stated.
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of UpSampling1D.
struct UpSampling1DOptions {
  int64_t size = 2;  // number of repetitions of a step, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("size", self.size);
  }
};

// Repeats each step of a sequence (keras.layers.UpSampling1D). Input [batch, steps, features], of
// any dtype; output [batch, steps * size, features].
class UpSampling1DLayer final : public OptionsLayer<UpSampling1DOptions> {
 public:
  static constexpr char kClassName[] = "UpSampling1D";
  explicit UpSampling1DLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of UpSampling2D.
struct UpSampling2DOptions {
  Length2D size = 2;                          // factors of height and width, > 0
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string interpolation = "nearest";      // see UpSampling2DLayer
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("size", self.size);
    field("data_format", self.data_format);
    field("interpolation", self.interpolation);
  }
};

// Enlarges images by whole factors (keras.layers.UpSampling2D). Input [batch, height, width,
// channels]; output [batch, height * size[0], width * size[1], channels]. The interpolation
// "nearest" repeats rows and columns, for any dtype. "bilinear", "bicubic", "lanczos3" and
// "lanczos5" interpolate as ops::resize_axis() does. Throws ValueError for another interpolation.
class UpSampling2DLayer final : public OptionsLayer<UpSampling2DOptions> {
 public:
  static constexpr char kClassName[] = "UpSampling2D";
  explicit UpSampling2DLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of UpSampling3D.
struct UpSampling3DOptions {
  Length3D size = 2;                          // numbers of repetitions along each axis, > 0
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("size", self.size);
    field("data_format", self.data_format);
  }
};

// Repeats the positions of volumes along each axis (keras.layers.UpSampling3D). Input [batch, three
// spatial axes, channels], of any dtype; output [batch, larger axes ..., channels].
class UpSampling3DLayer final : public OptionsLayer<UpSampling3DOptions> {
 public:
  static constexpr char kClassName[] = "UpSampling3D";
  explicit UpSampling3DLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using UpSampling1D = LayerHandle<UpSampling1DLayer>;
using UpSampling2D = LayerHandle<UpSampling2DLayer>;
using UpSampling3D = LayerHandle<UpSampling3DLayer>;
}  // namespace layers

}  // namespace keel
