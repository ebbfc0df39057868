#include "layers/interaction/dot_interaction.h"

#include "autodiff/ops.h"
#include "layers/merging/merge.h"

namespace keel {
namespace {

// 1 at the pairs of features, 0 elsewhere.
Tensor pairs_mask(int64_t features, bool self_interaction, DType dtype) {
  Tensor mask = Tensor::zeros({features, features});
  const auto elements = mask.mutable_data<float>();
  for (int64_t i = 0; i < features; ++i) {
    const int64_t end = self_interaction ? i + 1 : i;
    for (int64_t j = 0; j < end; ++j) elements[i * features + j] = 1;
  }
  return mask.cast(dtype);
}

}  // namespace

Tensors DotInteractionLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, 1);
  const bool stacked = tensors.size() == 1 && tensors[0].rank() == 3;
  for (const Tensor& t : tensors) {
    if (!stacked && (t.rank() != 2 || !compatible(t.shape(), tensors[0].shape()))) {
      throw ValueError("DotInteraction ", name(), ": needs tensors of one shape [batch, dim], or ",
                       "one [batch, features, dim], received ", t.shape());
    }
  }
  const Tensor x = stacked ? tensors[0] : ops::stack(tensors, 1);
  if (!options_.skip_gather) return ops::dot_interaction(x, options_.self_interaction);
  const int64_t features = x.dim(1);
  if (features == kUnknown) {
    throw ValueError("DotInteraction ", name(), ": needs a known number of features, received ",
                     x.shape());
  }
  const Tensor products =
      ops::matmul(x, x, false, true) * pairs_mask(features, options_.self_interaction, x.dtype());
  return ops::reshape(products, {x.dim(0), features * features});
}

}  // namespace keel
