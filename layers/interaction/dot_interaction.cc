#include <absl/strings/str_cat.h>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/kernels/embedding/interaction.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/internal/merge_inputs.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// Returns a matrix with 1 at the pairs of features and 0 elsewhere.
Tensor pairs_mask(int64_t features, bool self_interaction, DType dtype) {
  Tensor mask = Tensor::zeros({features, features});
  const auto elements = mask.mutable_data<float>();
  for (int64_t i = 0; i < features; ++i) {
    const int64_t end = self_interaction ? i + 1 : i;
    for (int64_t j = 0; j < end; ++j) elements[i * features + j] = 1;
  }
  return mask.cast(dtype);
}

// Computes the products of the pairs of features. The features are one value each, or are
// concatenated in one value.
class PairsStep final : public PlanStep {
 public:
  PairsStep(const kernels::FeaturePairs& pairs, std::vector<PlanValue> values, PlanValue y)
      : pairs_(pairs), values_(std::move(values)), y_(y) {}

  // The scratch holds pointers to the features of a sample, followed by the kernel's scratch.
  int64_t scratch() const { return pointers() + kernels::dot_pairs_scratch(pairs_); }
  void run(const PlanCall& call) const override {
    auto* const features = reinterpret_cast<const float**>(call.scratch);
    const PlanRows y = call[y_];
    for (int64_t r = 0; r < call.rows; ++r) {
      for (int64_t i = 0; i < pairs_.features; ++i) {
        const bool one = values_.size() == 1;
        features[i] = one ? call[values_[0]][r] + i * pairs_.dim : call[values_[i]][r];
      }
      kernels::dot_pairs(pairs_, {features, static_cast<size_t>(pairs_.features)},
                         call.scratch + pointers(), y[r]);
    }
  }
  std::string what() const override {
    return absl::StrCat("products of the pairs of ", pairs_.features, " features of ", pairs_.dim,
                        " floats");
  }

 private:
  int64_t pointers() const { return (pairs_.features * 2 + 15) / 16 * 16; }

  const kernels::FeaturePairs pairs_;
  const std::vector<PlanValue> values_;
  const PlanValue y_;
};

}  // namespace

Tensors DotInteractionLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, 1);
  const bool stacked = tensors.size() == 1 && tensors[0].rank() == 3;
  for (const Tensor& t : tensors) {
    if (!stacked && (t.rank() != 2 || !compatible(t.shape(), tensors[0].shape()))) {
      throw ValueError("DotInteraction ", name(),
                       ": inputs must be tensors of the same shape [batch, dim], or ",
                       "one tensor [batch, features, dim], received ", t.shape());
    }
  }
  if (!options_.skip_gather) {
    return stacked ? ops::dot_interaction(tensors[0], options_.self_interaction)
                   : ops::dot_interaction(tensors, options_.self_interaction);
  }
  const Tensor x = stacked ? tensors[0] : ops::stack(tensors, 1);
  const int64_t features = x.dim(1);
  if (features == kUnknown) {
    throw ValueError("DotInteraction ", name(),
                     ": the number of features must be known, received shape ", x.shape());
  }
  // Unrounded operands give the same values as the gathered products.
  const AutocastScope no_autocast(false);
  const Tensor products =
      ops::matmul(x, x, false, true) * pairs_mask(features, options_.self_interaction, x.dtype());
  return ops::reshape(products, {x.dim(0), features * features});
}

std::optional<PlanValues> DotInteractionLayer::plan(Planner& planner,
                                                    const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x || options_.skip_gather) return {};
  const Shape row = planner.row_shape(x->front());
  const bool stacked = x->size() == 1 && row.rank() == 2;
  for (PlanValue value : *x) {
    if (!stacked && (row.rank() != 1 || planner.row_shape(value) != row)) return {};
  }
  const kernels::FeaturePairs pairs = {
      .features = stacked ? row[0] : static_cast<int64_t>(x->size()),
      .dim = row[-1],
      .self = options_.self_interaction};
  const PlanValue y = planner.make_rows({pairs.count()});
  auto step = std::make_unique<PairsStep>(pairs, *x, y);
  planner.reserve_scratch(step->scratch());
  planner.add(std::move(step), *x, {y});
  return y;
}

KEEL_REGISTER(Layer, DotInteractionLayer, .package = "keras_rs")

}  // namespace keel
