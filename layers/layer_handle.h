// LayerHandle: the shared, never null reference through which users hold and call a layer.
#pragma once

#include <keel/autodiff/operation.h>
#include <keel/framework/base/handle.h>
#include <keel/framework/tensor_like.h>

namespace keel {

class Layer;

// A handle to a layer of class T. Copies share the layer.
template <class T>
class LayerHandle : public Handle<T> {
 public:
  using Handle<T>::Handle;
  template <std::derived_from<T> U>
  LayerHandle(LayerHandle<U> other) : Handle<T>(std::move(other)) {}  // NOLINT: implicit upcast
  // Calls the layer; see Layer::operator().

  template <class U = T>
  Tensor operator()(const Tensor& x, const typename U::CallOptions& options = {}) const {
    return (**this)(x, options);
  }
  template <class U = T>
  Tensors operator()(const Tensors& x, const typename U::CallOptions& options = {}) const {
    return (**this)(x, options);
  }
};

}  // namespace keel
