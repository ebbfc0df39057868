#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/merging/internal/merge_inputs.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

Tensor floating(const Tensor& x) {
  return is_floating(x.dtype()) ? x : ops::cast(x, DType::kFloat32);
}

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

// Multiplies the inputs; see MultiplyLayer.
Tensor product_of(const std::vector<Tensor>& inputs) {
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

}  // namespace

// Merges the inputs elementwise into y, for rows of `width` floats.
class MergeLayer::Step final : public PlanStep {
 public:
  Step(Kind kind, std::vector<PlanValue> inputs, PlanValue y, int64_t width)
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
    if (kind_ != Kind::kAverage) return;
    const auto factor = static_cast<float>(1.0 / static_cast<double>(inputs_.size()));
    for (int64_t r = 0; r < call.rows; ++r) {
      for (int64_t j = 0; j < width_; ++j) y[r][j] *= factor;
    }
  }
  std::string what() const override {
    return absl::StrCat("merge of ", inputs_.size(), " rows of ", width_, " floats");
  }

 private:
  void merge(const float* x, float* y) const {
    const auto each = [&](const auto& fn) {
      for (int64_t j = 0; j < width_; ++j) y[j] = fn(y[j], x[j]);
    };
    switch (kind_) {
      case Kind::kAdd:
      case Kind::kAverage:
        return each([](float a, float b) { return a + b; });
      case Kind::kMultiply:
        return each([](float a, float b) { return a * b; });
      case Kind::kSubtract:
        return each([](float a, float b) { return a - b; });
      case Kind::kMaximum:  // NaN propagates
        return each([](float a, float b) { return a > b || a != a ? a : b; });
      case Kind::kMinimum:
        return each([](float a, float b) { return a < b || a != a ? a : b; });
    }
  }

  const Kind kind_;
  const std::vector<PlanValue> inputs_;
  const PlanValue y_;
  const int64_t width_;
};

Tensors MergeLayer::call(const Tensors& inputs, const CallContext&) {
  std::vector<Tensor> tensors = promoted_inputs(*this, inputs, least_inputs());
  int rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, t.rank());
  for (Tensor& t : tensors) {
    while (t.rank() > 0 && t.rank() < rank) t = ops::expand_dims(t, 1);
  }
  return merge(tensors);
}

std::vector<Tensor> MergeLayer::compute_mask(const Tensors& inputs, const Tensors& outputs) const {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, least_inputs());
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
  if (dtype() != DType::kFloat32) return {};
  const auto x = planner.rows(inputs);
  if (!x || x->size() < least_inputs()) return {};
  const Shape row = planner.row_shape(x->front());
  for (PlanValue value : *x) {
    if (planner.row_shape(value) != row) return {};
  }
  const PlanValue y = planner.make_rows(row);
  planner.add(std::make_unique<Step>(kind_, *x, y, row.size()), *x, {y});
  return y;
}

Tensor MergeLayer::merge(const std::vector<Tensor>& inputs) const {
  switch (kind_) {
    case Kind::kAdd:
      return fold(inputs, ops::add);
    case Kind::kMultiply:
      return product_of(inputs);
    case Kind::kSubtract:
      if (inputs.size() == 2) return ops::subtract(inputs[0], inputs[1]);
      throw ValueError("Subtract ", name(), ": inputs must be two tensors, received ",
                       inputs.size());
    case Kind::kAverage:
      return ops::scale(floating(fold(inputs, ops::add)), 1.0 / static_cast<double>(inputs.size()));
    case Kind::kMaximum:
      return fold_what_counts(inputs, ops::maximum);
    case Kind::kMinimum:
      return fold_what_counts(inputs, ops::minimum);
  }
  return {};
}

KEEL_REGISTER(Layer, AddLayer, .package = "keras")
KEEL_REGISTER(Layer, AverageLayer, .package = "keras")
KEEL_REGISTER(Layer, MaximumLayer, .package = "keras")
KEEL_REGISTER(Layer, MinimumLayer, .package = "keras")
KEEL_REGISTER(Layer, MultiplyLayer, .package = "keras")
KEEL_REGISTER(Layer, SubtractLayer, .package = "keras")

}  // namespace keel
