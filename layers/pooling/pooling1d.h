// Pooling1DLayer: the base class of AveragePooling1D and MaxPooling1D.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Pooling1D.
struct Pooling1DOptions {
  Length1D pool_size = 2;                     // steps in a window, > 0
  std::optional<Length1D> strides = {};       // steps between windows, > 0; unset: pool_size
  std::string padding = "valid";              // or "same": steps / strides windows, rounded up
  std::string data_format = "channels_last";  // or "channels_first": steps are axis 2
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

// Input [batch, steps, features]; output [batch, windows, features]. With padding "valid" all
// windows lie within the sequence. With "same" they may extend beyond both ends, at most one step
// further at the last. As in Keras, masks are ignored.
class Pooling1DLayer : public TensorLayer {
 public:
  using Options = Pooling1DOptions;
  Config get_config() const override;

 protected:
  // Throws ValueError for sizes that are not positive, and for an unknown padding or data_format.
  Pooling1DLayer(const char* class_name, Options options);

  // The positions of the windows in a sequence.
  struct Windows {
    int64_t steps = 0, size = 0, stride = 0, count = 0;
    int64_t before = 0;  // number of steps by which the first window starts before the sequence
  };
  // Pools windows; elements[k] has the k-th elements of all windows, [batch, windows, features].
  // Elements beyond the ends of the sequence have the value beyond().
  virtual Tensor pool(const std::vector<Tensor>& elements, const Windows& windows) const = 0;
  // Returns the value of elements beyond the ends of the sequence.
  virtual double beyond() const = 0;

 private:
  // Throws ValueError unless the input has rank 3, and for padding "valid" if it is shorter than a
  // window.
  Tensor call(const Tensor& input, const CallContext& context) final;
  Windows windows_of(int64_t steps) const;
  std::vector<Tensor> elements_of(const Tensor& x, const Windows& windows) const;

  const Options options_;
  const bool channels_last_;
};

}  // namespace keel
