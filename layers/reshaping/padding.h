// Layers that remove or add positions at the ends of spatial axes: Cropping1D, 2D and 3D, and
// ZeroPadding1D, 2D and 3D. They accept any dtype, and the output has no mask. They throw
// ValueError for an input of another rank than stated.
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Cropping2D and Cropping3D.
template <int N>
struct CroppingOptions {
  Paddings<N> cropping = N == 2 ? 0 : 1;      // number of positions removed at each end, >= 0
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("cropping", self.cropping);
    field("data_format", self.data_format);
  }
};
// Options of Cropping1D.
template <>
struct CroppingOptions<1> {
  Padding1D cropping = 1;  // number of steps removed at the beginning and at the end, >= 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("cropping", self.cropping);
  }
};

// Removes positions at both ends of N spatial axes (keras.layers.Cropping1D, Cropping2D,
// Cropping3D): [batch, spatial axes ..., channels] -> [batch, smaller axes ..., channels]. Throws
// ValueError for a negative number, for an unknown data_format, and if no position remains.
template <ClassName kName, int N>
class CroppingLayer final : public OptionsLayer<CroppingOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = CroppingOptions<N>;
  explicit CroppingLayer(Options options);

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of ZeroPadding2D and ZeroPadding3D.
template <int N>
struct ZeroPaddingOptions {
  Paddings<N> padding = 1;                    // number of zeros at each end, >= 0
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("padding", self.padding);
    field("data_format", self.data_format);
  }
};
// Options of ZeroPadding1D.
template <>
struct ZeroPaddingOptions<1> {
  Padding1D padding = 1;                      // number of zeros before and after, >= 0
  std::string data_format = "channels_last";  // or "channels_first": steps are axis 2
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("padding", self.padding);
    field("data_format", self.data_format);
  }
};

// Adds zeros at both ends of N spatial axes (keras.layers.ZeroPadding1D, ZeroPadding2D,
// ZeroPadding3D): [batch, spatial axes ..., channels] -> [batch, larger axes ..., channels]. Throws
// ValueError for a negative number and for an unknown data_format.
template <ClassName kName, int N>
class ZeroPaddingLayer final : public OptionsLayer<ZeroPaddingOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = ZeroPaddingOptions<N>;
  explicit ZeroPaddingLayer(Options options);

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// The options of the layers of this family.
using Cropping1DOptions = CroppingOptions<1>;
using Cropping2DOptions = CroppingOptions<2>;
using Cropping3DOptions = CroppingOptions<3>;
using ZeroPadding1DOptions = ZeroPaddingOptions<1>;
using ZeroPadding2DOptions = ZeroPaddingOptions<2>;
using ZeroPadding3DOptions = ZeroPaddingOptions<3>;
// The layers of this family.
using Cropping1DLayer = CroppingLayer<"Cropping1D", 1>;
using Cropping2DLayer = CroppingLayer<"Cropping2D", 2>;
using Cropping3DLayer = CroppingLayer<"Cropping3D", 3>;
using ZeroPadding1DLayer = ZeroPaddingLayer<"ZeroPadding1D", 1>;
using ZeroPadding2DLayer = ZeroPaddingLayer<"ZeroPadding2D", 2>;
using ZeroPadding3DLayer = ZeroPaddingLayer<"ZeroPadding3D", 3>;

namespace layers {
// Handles to the layers, under Keras's names.
using Cropping1D = LayerHandle<Cropping1DLayer>;
using Cropping2D = LayerHandle<Cropping2DLayer>;
using Cropping3D = LayerHandle<Cropping3DLayer>;
using ZeroPadding1D = LayerHandle<ZeroPadding1DLayer>;
using ZeroPadding2D = LayerHandle<ZeroPadding2DLayer>;
using ZeroPadding3D = LayerHandle<ZeroPadding3DLayer>;
}  // namespace layers

}  // namespace keel
