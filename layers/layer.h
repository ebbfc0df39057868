// Everything that a layer class needs: Layer (layer_base.h), and bases for layers of one tensor and
// for layers that keep their options.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include <keel/layers/layer_base.h>

namespace keel {

// Base class of the many layers that take one dense tensor and return one. A sparse tensor of
// floating-point values, such as a sparse encoding, is converted to a dense one first.
class TensorLayer : public Layer {
 protected:
  using Layer::Layer;
  // Creates the weights for an input of this spec; see Layer::build_weights().
  virtual void build_weights(const TensorSpec&) {}
  // Computes the output; see Layer::call().
  virtual Tensor call(const Tensor& x, const CallContext& context) = 0;

 private:
  void build_weights(const Specs& inputs) final;
  Tensors call(const Tensors& inputs, const CallContext& context) final;
};

// Base class of layers that keep their options, which are also their config. `Base` is Layer or a
// class derived from it.
template <class OptionsType, class Base = TensorLayer>
class OptionsLayer : public Base {
 public:
  using Options = OptionsType;
  Config get_config() const override { return to_config(options_); }

 protected:
  // Stores the options, with the name that Layer chooses if it is empty.
  OptionsLayer(const char* class_name, Options options)
      : Base(class_name, options), options_(std::move(options)) {}

  const Options options_;  // those of the constructor
};

// Creates a handle to your own layer class: auto model = make_layer<TwoTower>(64);
template <std::derived_from<Layer> T, class... Args>
LayerHandle<T> make_layer(Args&&... args) {
  return LayerHandle<T>(kAdopt, make_owned<T>(std::forward<Args>(args)...));
}

// Lists the fields that come first in every layer's options:
//   name       empty: the class name in snake case with a number, unique within the process
//   trainable  whether optimizers update the weights; default true
//   dtype      the dtypes of computation and weights; default: the global policy
constexpr void base_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("trainable", self.trainable);
  field("dtype", self.dtype);
}

}  // namespace keel
