// What AveragePooling1D and MaxPooling1D have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

struct Pooling1DOptions {
  Length1D pool_size = 2;                // of a window, > 0
  std::optional<Length1D> strides = {};  // from window to window, > 0; unset: pool_size
  std::string padding = "valid";  // or "same": as many windows as steps / strides, rounded up
  std::string data_format = "channels_last";  // or "channels_first": the steps stand at axis 2
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("pool_size", self.pool_size);
    field("padding", self.padding);
    field("strides", self.strides);
    field("data_format", self.data_format);
  }
};

// Input [batch, steps, features]; output [batch, windows, features], where "valid" has the windows
// that lie within the sequence, and "same" lets them reach beyond both ends, further at the last.
// Masks count for nothing here, as in Keras.
class Pooling1DLayer : public TensorLayer {
 public:
  using Options = Pooling1DOptions;
  Config get_config() const override;

 protected:
  // ValueError for numbers that are not positive, and another padding or data_format.
  Pooling1DLayer(const char* class_name, Options options);

  // How the windows lie over a sequence.
  struct Windows {
    int64_t steps = 0, size = 0, stride = 0, count = 0;
    int64_t before = 0;  // how far the first one begins ahead of the sequence
  };
  // elements[k] is the k-th element, [batch, windows, features], of all windows; what lies beyond
  // the ends is `beyond`.
  virtual Tensor pool(const std::vector<Tensor>& elements, const Windows& windows) const = 0;
  virtual double beyond() const = 0;

 private:
  // ValueError for an input of another rank than 3, or shorter than a window that must lie in it.
  Tensor call(const Tensor& input, const CallContext& context) final;
  Windows windows_of(int64_t steps) const;
  std::vector<Tensor> elements_of(const Tensor& x, const Windows& windows) const;

  const Options options_;
  const bool channels_last_;
};

}  // namespace keel
