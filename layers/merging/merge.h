// Layers that merge a list of tensors elementwise: Add, Multiply, Subtract, Average, Maximum and
// Minimum (keras.layers).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// The options of MergeLayer.
struct MergeOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Returns the tensors of the list or tuple given to a layer. A single tensor is treated as a list
// of one. Throws TypeError, naming the layer, for a dict, a nested structure or a tensor that is
// not dense, and ValueError for fewer than `least` tensors.
std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least);

// The operations of the layers below.
enum class MergeKind { kAdd, kMultiply, kSubtract, kAverage, kMaximum, kMinimum };

// Base class of the layers below. Input: a list of tensors [batch, ...] of the same dtype that
// broadcast to each other. Tensors of lower rank get dimensions of length 1 after the batch. The
// output has the broadcast shape. Throws ValueError for shapes that do not broadcast.
// The output has a mask if all inputs have one. It is true where the mask of any input is true.
class MergeLayer : public Layer {
 public:
  using Options = MergeOptions;
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 protected:
  MergeLayer(const char* class_name, Options options, MergeKind kind, size_t least_inputs)
      : Layer(class_name, options),
        options_(std::move(options)),
        kind_(kind),
        least_inputs_(least_inputs) {}
  // Merges tensors of the same rank. They carry their masks, except for tensors whose rank was
  // raised.
  virtual Tensor merge(const std::vector<Tensor>& inputs) const = 0;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) final;

  const Options options_;
  const MergeKind kind_;
  const size_t least_inputs_;
};

// Adds the inputs from left to right.
class AddLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Add";
  explicit AddLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kAdd, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// Multiplies the inputs from left to right. Elements that a mask excludes count as 1. If all inputs
// have masks, the product is 0 where all masks are false.
class MultiplyLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Multiply";
  explicit MultiplyLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMultiply, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// Subtracts the second input from the first. Throws ValueError unless there are two.
class SubtractLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Subtract";
  explicit SubtractLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kSubtract, 2) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// Computes the sum of the inputs divided by their number.
class AverageLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Average";
  explicit AverageLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kAverage, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// Computes the maximum of the elements that masks do not exclude. The gradient of equal elements is
// shared like in ops::maximum.
class MaximumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Maximum";
  explicit MaximumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMaximum, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// Computes the minimum, with the same rules as Maximum.
class MinimumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Minimum";
  explicit MinimumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMinimum, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Add = LayerHandle<AddLayer>;
using Multiply = LayerHandle<MultiplyLayer>;
using Subtract = LayerHandle<SubtractLayer>;
using Average = LayerHandle<AverageLayer>;
using Maximum = LayerHandle<MaximumLayer>;
using Minimum = LayerHandle<MinimumLayer>;
}  // namespace layers

}  // namespace keel
