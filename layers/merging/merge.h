// Layers that merge a list of tensors element by element: Add, Multiply, Subtract, Average,
// Maximum and Minimum (keras.layers).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

struct MergeOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// The tensors of the list or tuple given to a layer; one alone is a list of one. TypeError,
// naming the layer, for a dict, a nested structure, or a tensor that is not dense; ValueError for
// fewer than `least`.
std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least);

enum class MergeKind { kAdd, kMultiply, kSubtract, kAverage, kMaximum, kMinimum };

// Base of the layers below. Input: a list of tensors of one dtype, [batch, ...], whose dimensions
// agree or are 1; those of a lower rank get dimensions of 1 after the batch. Output of the shape
// they broadcast to. ValueError for shapes that do not.
// The output has a mask if all tensors have one: what counts in one of them counts.
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
  // Merges tensors of one rank. They have their masks, but for those whose rank was lower.
  virtual Tensor merge(const std::vector<Tensor>& inputs) const = 0;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) final;

  const Options options_;
  const MergeKind kind_;
  const size_t least_inputs_;
};

// The sum, added from left to right.
class AddLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Add";
  explicit AddLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kAdd, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// The product, from left to right. What a mask leaves out is taken as 1; if all tensors have masks,
// the product is 0 where none of them counts.
class MultiplyLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Multiply";
  explicit MultiplyLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMultiply, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// The first minus the second. ValueError unless there are two.
class SubtractLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Subtract";
  explicit SubtractLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kSubtract, 2) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// The sum divided by the number of tensors.
class AverageLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Average";
  explicit AverageLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kAverage, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// The greatest of those that masks do not leave out; the gradient of equal ones is shared as
// ops::maximum does.
class MaximumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Maximum";
  explicit MaximumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMaximum, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

// The least, likewise.
class MinimumLayer final : public MergeLayer {
 public:
  static constexpr char kClassName[] = "Minimum";
  explicit MinimumLayer(Options options)
      : MergeLayer(kClassName, std::move(options), MergeKind::kMinimum, 1) {}

 private:
  Tensor merge(const std::vector<Tensor>& inputs) const override;
};

namespace layers {
using Add = LayerHandle<AddLayer>;
using Multiply = LayerHandle<MultiplyLayer>;
using Subtract = LayerHandle<SubtractLayer>;
using Average = LayerHandle<AverageLayer>;
using Maximum = LayerHandle<MaximumLayer>;
using Minimum = LayerHandle<MinimumLayer>;
}  // namespace layers

}  // namespace keel
