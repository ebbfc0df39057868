// Layers that combine several tensors: Add, Multiply, Subtract, Average, Maximum, Minimum,
// Concatenate and Dot. Floating-point inputs are cast to the dtype of the layer. Other inputs are
// promoted by the rules of keras_ops::result_type(): int32 and float32 give float32, and integers
// remain integers.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Add, Multiply, Subtract, Average, Maximum and Minimum.
struct MergeOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Base class of the layers that merge a list of tensors elementwise. Input: a list of tensors
// [batch, ...] that broadcast to each other, or a single tensor. Tensors of lower
// rank get dimensions of length 1 after the batch. The output has the broadcast shape. Throws
// ValueError for shapes that do not broadcast, and TypeError for a structure other than a list.
// The output has a mask if all inputs have one. It is true where the mask of any input is true.
class MergeLayer : public OptionsLayer<MergeOptions, Layer> {
 public:
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 protected:
  // The operation of the layer.
  enum class Kind { kAdd, kMultiply, kSubtract, kAverage, kMaximum, kMinimum };
  // Creates a layer that performs this operation.
  MergeLayer(const char* class_name, Options options, Kind kind)
      : OptionsLayer(class_name, std::move(options)), kind_(kind) {}

 private:
  class Step;

  size_t least_inputs() const { return kind_ == Kind::kSubtract ? 2 : 1; }
  Tensors call(const Tensors& inputs, const CallContext& context) final;
  Tensor merge(const std::vector<Tensor>& inputs) const;

  const Kind kind_;
};

// Adds the inputs from left to right (keras.layers.Add).
class AddLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Add";
  explicit AddLayer(Options options) : MergeLayer(kClassName, std::move(options), Kind::kAdd) {}
};

// Multiplies the inputs from left to right (keras.layers.Multiply). Elements that a mask excludes
// count as 1. If all inputs have masks, the product is 0 where all masks are false.
class MultiplyLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Multiply";
  explicit MultiplyLayer(Options options)
      : MergeLayer(kClassName, std::move(options), Kind::kMultiply) {}
};

// Subtracts the second input from the first (keras.layers.Subtract). Throws ValueError unless there
// are two.
class SubtractLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Subtract";
  explicit SubtractLayer(Options options)
      : MergeLayer(kClassName, std::move(options), Kind::kSubtract) {}
};

// Computes the sum of the inputs divided by their number (keras.layers.Average). The result of
// integers is float32.
class AverageLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Average";
  explicit AverageLayer(Options options)
      : MergeLayer(kClassName, std::move(options), Kind::kAverage) {}
};

// Computes the maximum of the elements that masks do not exclude (keras.layers.Maximum). The
// gradient of equal elements is shared like in ops::maximum.
class MaximumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Maximum";
  explicit MaximumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), Kind::kMaximum) {}
};

// Computes the minimum, with the same rules as Maximum (keras.layers.Minimum).
class MinimumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Minimum";
  explicit MinimumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), Kind::kMinimum) {}
};

// Options of Concatenate.
struct ConcatenateOptions {
  int axis = -1;  // counted from the last axis if negative
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// Concatenates a list of tensors along `axis` (keras.layers.Concatenate). Their shapes
// agree except for `axis`. Throws ValueError for other shapes.
// If any input has a mask, so has the output. The mask has the output's shape without the last
// dimension. It is true where at least one element is not excluded by its input's mask. A tensor
// without a mask excludes nothing.
class ConcatenateLayer final : public OptionsLayer<ConcatenateOptions, Layer> {
 public:
  static constexpr char kClassName[] = "Concatenate";
  explicit ConcatenateLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
};

// Options of Dot.
struct DotOptions {
  // Axis of both tensors, or {axis of the first, axis of the second}; never the batch.
  Axes axes = 1;
  bool normalize = false;  // scale to length 1 along the axis first, which gives the cosine
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axes", self.axes);
    field("normalize", self.normalize);
  }
};

// Sums the products of x and y over one axis of each, for each sample (keras.layers.Dot). Input: a
// list of x [batch, I..., k, ...] and y [batch, J..., k, ...].
// Output: the other dimensions of x followed by those of y, [batch, I..., J...], or [batch, 1] if
// there are none. The output has no mask.
class DotLayer final : public OptionsLayer<DotOptions, Layer> {
 public:
  static constexpr char kClassName[] = "Dot";
  // Throws ValueError unless there are one or two axes.
  explicit DotLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }

 private:
  // Throws ValueError unless there are two tensors of rank 2 or more, for an axis that is the batch
  // or out of range, and if the lengths of the axes or the batch sizes differ.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Add = LayerHandle<AddLayer>;
using Multiply = LayerHandle<MultiplyLayer>;
using Subtract = LayerHandle<SubtractLayer>;
using Average = LayerHandle<AverageLayer>;
using Maximum = LayerHandle<MaximumLayer>;
using Minimum = LayerHandle<MinimumLayer>;
using Concatenate = LayerHandle<ConcatenateLayer>;
using Dot = LayerHandle<DotLayer>;
}  // namespace layers

}  // namespace keel
