#include <keel/layers/merging/merge.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

Tensor fold(const std::vector<Tensor>& inputs, Tensor (*fn)(const Tensor&, const Tensor&)) {
  Tensor out = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) out = fn(out, inputs[i]);
  return out;
}

// Returns the mask of x with dimensions of length 1 appended, so that it broadcasts to a tensor of
// this rank, or an empty tensor if x has no mask.
Tensor spread_mask(const Tensor& x, int rank) {
  Tensor mask = x.mask();
  while (mask && mask.rank() < rank) mask = ops::expand_dims(mask, mask.rank());
  return mask;
}

// fold() where an element that the mask of one operand excludes is replaced by that of the other
// operand.
Tensor fold_what_counts(const std::vector<Tensor>& inputs,
                        Tensor (*fn)(const Tensor&, const Tensor&)) {
  Tensor out = inputs[0];
  Tensor out_mask = spread_mask(out, out.rank());
  for (size_t i = 1; i < inputs.size(); ++i) {
    Tensor x = inputs[i];
    const Tensor mask = spread_mask(x, x.rank());
    if (mask) x = ops::where(mask, x, out);
    if (out_mask) out = ops::where(out_mask, out, x);
    out_mask = mask && out_mask ? ops::logical_or(out_mask, mask) : Tensor();
    out = fn(out, x);
  }
  return out;
}

// Merges the inputs elementwise into y, for rows of `width` floats.
class MergeStep final : public PlanStep {
 public:
  MergeStep(MergeKind kind, std::vector<PlanValue> inputs, PlanValue y, int64_t width)
      : kind_(kind), inputs_(std::move(inputs)), y_(y), width_(width) {}

  void run(const PlanCall& call) const override {
    const PlanRows y = call[y_];
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const PlanRows x = call[inputs_[i]];
      for (int64_t r = 0; r < call.rows; ++r) {
        if (i == 0) {
          std::copy_n(x[r], width_, y[r]);
        } else {
          merge(x[r], y[r]);
        }
      }
    }
    if (kind_ != MergeKind::kAverage) return;
    const auto factor = static_cast<float>(1.0 / static_cast<double>(inputs_.size()));
    for (int64_t r = 0; r < call.rows; ++r) {
      for (int64_t j = 0; j < width_; ++j) y[r][j] *= factor;
    }
  }
  std::string what() const override {
    return str("merge of ", inputs_.size(), " rows of ", width_, " floats");
  }

 private:
  void merge(const float* x, float* y) const {
    const auto each = [&](const auto& fn) {
      for (int64_t j = 0; j < width_; ++j) y[j] = fn(y[j], x[j]);
    };
    switch (kind_) {
      case MergeKind::kAdd:
      case MergeKind::kAverage:
        return each([](float a, float b) { return a + b; });
      case MergeKind::kMultiply:
        return each([](float a, float b) { return a * b; });
      case MergeKind::kSubtract:
        return each([](float a, float b) { return a - b; });
      case MergeKind::kMaximum:  // NaN propagates
        return each([](float a, float b) { return a > b || a != a ? a : b; });
      case MergeKind::kMinimum:
        return each([](float a, float b) { return a < b || a != a ? a : b; });
    }
  }

  const MergeKind kind_;
  const std::vector<PlanValue> inputs_;
  const PlanValue y_;
  const int64_t width_;
};

}  // namespace

std::vector<Tensor> merge_inputs(const Layer& layer, const Tensors& inputs, size_t least) {
  const auto caller = [&] { return layer.class_name() + " " + layer.name(); };
  const auto dense = [&](const Tensors& item) -> Tensor {
    if (!item.is_leaf() || item.leaf().layout() != Layout::kDense) {
      throw TypeError(caller(), ": inputs must be a list of dense tensors, received ",
                      inputs.structure());
    }
    return item.tensor();
  };
  std::vector<Tensor> out;
  if (inputs.is_sequence()) {
    for (const Tensors& item : inputs.items()) out.push_back(dense(item));
  } else {
    out.push_back(dense(inputs));
  }
  if (out.size() < least) {
    throw ValueError(caller(), ": at least ", least, " tensors are required, received ",
                     out.size());
  }
  return out;
}

Tensors MergeLayer::call(const Tensors& inputs, const CallContext&) {
  std::vector<Tensor> tensors = merge_inputs(*this, inputs, least_inputs_);
  int rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, t.rank());
  for (Tensor& t : tensors) {
    while (t.rank() > 0 && t.rank() < rank) t = ops::expand_dims(t, 1);
  }
  return merge(tensors);
}

std::vector<Tensor> MergeLayer::compute_mask(const Tensors& inputs, const Tensors& outputs) const {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, least_inputs_);
  int rank = 0;
  for (const Tensor& t : tensors) {
    if (!t.mask()) return {};
    rank = std::max(rank, t.mask().rank());
  }
  Tensor any = spread_mask(tensors[0], rank);
  for (const Tensor& t : tensors) any = ops::logical_or(any, spread_mask(t, rank));
  return {ops::broadcast_to(any, outputs.tensor().shape().slice(0, rank))};
}

std::optional<PlanValues> MergeLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x || x->size() < least_inputs_) return {};
  const Shape row = planner.row_shape(x->front());
  for (PlanValue value : *x) {
    if (planner.row_shape(value) != row) return {};
  }
  const PlanValue y = planner.make_rows(row);
  planner.add(std::make_unique<MergeStep>(kind_, *x, y, row.size()), *x, {y});
  return y;
}

Tensor AddLayer::merge(const std::vector<Tensor>& inputs) const { return fold(inputs, ops::add); }

Tensor MultiplyLayer::merge(const std::vector<Tensor>& inputs) const {
  const auto constant = [&](int64_t value) {
    return Tensor::scalar<int64_t>(value).cast(inputs[0].dtype());
  };
  std::vector<Tensor> factors;
  std::vector<Tensor> masks;
  for (const Tensor& x : inputs) {
    const Tensor mask = spread_mask(x, x.rank());
    factors.push_back(mask ? ops::where(mask, x, constant(1)) : x);
    if (mask) masks.push_back(mask);
  }
  Tensor product = fold(factors, ops::multiply);
  if (masks.size() < inputs.size()) return product;
  return ops::where(fold(masks, ops::logical_or), product, constant(0));
}

Tensor SubtractLayer::merge(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != 2) {
    throw ValueError("Subtract ", name(), ": inputs must be two tensors, received ", inputs.size());
  }
  return ops::subtract(inputs[0], inputs[1]);
}

Tensor AverageLayer::merge(const std::vector<Tensor>& inputs) const {
  return ops::scale(fold(inputs, ops::add), 1.0 / static_cast<double>(inputs.size()));
}

Tensor MaximumLayer::merge(const std::vector<Tensor>& inputs) const {
  return fold_what_counts(inputs, ops::maximum);
}

Tensor MinimumLayer::merge(const std::vector<Tensor>& inputs) const {
  return fold_what_counts(inputs, ops::minimum);
}

KEEL_REGISTER(Layer, AddLayer)
KEEL_REGISTER(Layer, AverageLayer)
KEEL_REGISTER(Layer, MaximumLayer)
KEEL_REGISTER(Layer, MinimumLayer)
KEEL_REGISTER(Layer, MultiplyLayer)
KEEL_REGISTER(Layer, SubtractLayer)

}  // namespace keel
