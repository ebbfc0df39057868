// RepeatVector: a sequence of one vector (keras.layers.RepeatVector).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct RepeatVectorOptions {
  int64_t n = 0;  // required: how many times, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("n", self.n);
  }
};

// Input [batch, features]; output [batch, n, features]. Any dtype.
class RepeatVectorLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "RepeatVector";
  using Options = RepeatVectorOptions;
  // ValueError unless n > 0.
  explicit RepeatVectorLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError unless x is of rank 2.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using RepeatVector = LayerHandle<RepeatVectorLayer>;
}

}  // namespace keel
