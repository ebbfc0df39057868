// Wrapper: the base class of layers that contain one other layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>

namespace keel {

// Options of Wrapper. Options of a derived class have the same members, followed by their own.
struct WrapperOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr const char* kUnsaved[] = {"layer"};  // get_config() writes the layer
  // Lists the fields that configs hold besides the layer.
  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// A layer that contains another one, whose weights are its own (keras.layers.Wrapper). Files hold
// the config of the inner layer under the key "layer". A call calls the inner layer.
//
// To write a wrapper, derive from this class, override call(), and add from_config() if files may
// name it:
//   class Scaled final : public WrapperLayer {
//    public:
//     static constexpr char kClassName[] = "Mine>Scaled";
//     explicit Scaled(WrapperOptions options) : WrapperLayer(kClassName, options) {}
//     static std::shared_ptr<Layer> from_config(const Config& config) {
//       return make_wrapper<Scaled>(config);
//     }
//
//    private:
//     Tensors call(const Tensors& x, const CallContext&) override { return layer()(x.tensor() * 2);
//     }
//   };
class WrapperLayer : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "Wrapper";
  using Options = WrapperOptions;
  // Throws ValueError if the layer is missing.
  explicit WrapperLayer(Options options) : WrapperLayer(kClassName, options) {}

  const LayerHandle<Layer>& layer() const { return layer_; }  // the layer of the options
  std::vector<std::string> sublayer_attributes() const override { return {"layer"}; }
  Config get_config() const override;
  // Creates the layer from its config, and the layer inside it.
  static std::shared_ptr<Layer> from_config(const Config& config);

 protected:
  // `options` has the members of WrapperOptions. Throws ValueError if the layer is missing.
  template <class Options>
  WrapperLayer(const char* class_name, Options& options)
      : Layer(class_name, options), layer_(track(required(class_name, options.layer))) {}

  // Creates a wrapper of class T, which has T::Options, from a config.
  template <class T>
  static std::shared_ptr<Layer> make_wrapper(const Config& config) {
    Config rest = config;
    std::optional<LayerHandle<Layer>> layer = taken_layer(rest);
    auto options = keel::from_config<typename T::Options>(rest, T::kClassName);
    options.layer = std::move(layer);
    return make_owned<T>(std::move(options));
  }

  // Builds the inner layer for the same inputs.
  void build_weights(const Specs& inputs) override { build_layer(inputs); }
  // Builds the inner layer for these inputs.
  void build_layer(const Specs& inputs);
  Tensors call(const Tensors& inputs, const CallContext& context) override;

 private:
  static LayerHandle<Layer> required(const std::string& class_name,
                                     const std::optional<LayerHandle<Layer>>& layer);
  // Removes the key "layer" and returns its layer, if there is one.
  static std::optional<LayerHandle<Layer>> taken_layer(Config& config);

  const LayerHandle<Layer> layer_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Wrapper = LayerHandle<WrapperLayer>;
}  // namespace layers

}  // namespace keel
