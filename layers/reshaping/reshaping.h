// Layers that change the shape of their input: Flatten, Reshape, Permute and RepeatVector. They
// accept any dtype, and the output has no mask. They throw ValueError for an input of another rank
// than stated.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Options of Flatten.
struct FlattenOptions {
  std::string data_format = "channels_last";  // or "channels_first": features are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
  }
};

// Flattens each sample to a vector (keras.layers.Flatten). Input [batch, dims...]; output [batch,
// product of dims], or [batch, 1] for a vector. With "channels_first" values are output in the
// order of "channels_last". Throws ValueError for a scalar and for an unknown data_format.
class FlattenLayer final : public OptionsLayer<FlattenOptions> {
 public:
  static constexpr char kClassName[] = "Flatten";
  explicit FlattenLayer(Options options);
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of Reshape.
struct ReshapeOptions {
  std::vector<int64_t> target_shape = {};  // without the batch; one dimension may be -1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("target_shape", self.target_shape);
  }
};

// Changes the shape of each sample (keras.layers.Reshape). Input [batch, dims...]; output [batch,
// target_shape...], where -1 is replaced by the remaining size. Throws ValueError for several
// dimensions -1, for other negative dimensions, and if a sample has another number of values.
class ReshapeLayer final : public OptionsLayer<ReshapeOptions> {
 public:
  static constexpr char kClassName[] = "Reshape";
  explicit ReshapeLayer(Options options);
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of Permute.
struct PermuteOptions {
  std::vector<int> dims = {};  // required: input dimensions, counted from 1, in their new order
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("dims", self.dims);
  }
};

// Permutes the dimensions of each sample (keras.layers.Permute). Input [batch, ...]; dimension i of
// the output, counted from 1, is dimension dims[i - 1] of the input: {2, 1} maps [batch, steps,
// features] to [batch, features, steps]. Throws ValueError unless dims is a permutation of 1 ... n.
class PermuteLayer final : public OptionsLayer<PermuteOptions> {
 public:
  static constexpr char kClassName[] = "Permute";
  explicit PermuteLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of RepeatVector.
struct RepeatVectorOptions {
  int64_t n = 0;  // number of repetitions; required, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("n", self.n);
  }
};

// Repeats a vector to form a sequence (keras.layers.RepeatVector). Input [batch, features]; output
// [batch, n, features]. Throws ValueError unless n > 0.
class RepeatVectorLayer final : public OptionsLayer<RepeatVectorOptions> {
 public:
  static constexpr char kClassName[] = "RepeatVector";
  explicit RepeatVectorLayer(Options options);

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Flatten = LayerHandle<FlattenLayer>;
using Reshape = LayerHandle<ReshapeLayer>;
using Permute = LayerHandle<PermuteLayer>;
using RepeatVector = LayerHandle<RepeatVectorLayer>;
}  // namespace layers

}  // namespace keel
