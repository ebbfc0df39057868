// LayerHandle: what users hold and call. Copies share the layer; never null.
#pragma once

#include <keel/autodiff/operation.h>
#include <keel/framework/base/handle.h>
#include <keel/framework/tensor_like.h>

namespace keel {

class Layer;

template <class T>
class LayerHandle : public Handle<T> {
 public:
  using Handle<T>::Handle;
  template <std::derived_from<T> U>
  LayerHandle(LayerHandle<U> other) : Handle<T>(std::move(other)) {}  // NOLINT: implicit upcast

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
