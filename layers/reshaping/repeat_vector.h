// RepeatVector: repeats a vector to form a sequence (keras.layers.RepeatVector).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of RepeatVector.
struct RepeatVectorOptions {
  int64_t n = 0;  // number of repetitions; required, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("n", self.n);
  }
};

// Input [batch, features]; output [batch, n, features]. Accepts any dtype.
class RepeatVectorLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "RepeatVector";
  using Options = RepeatVectorOptions;
  // Throws ValueError unless n > 0.
  explicit RepeatVectorLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless x has rank 2.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using RepeatVector = LayerHandle<RepeatVectorLayer>;
}

}  // namespace keel
