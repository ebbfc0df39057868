// CTC: the loss of a transcription without alignment.
#pragma once

#include <keel/layers/losses/formula_loss.h>

namespace keel {
namespace losses {

// Returns minus the log of the probability of each sequence of labels, summed over all alignments
// with the time steps (Graves et al. 2006: connectionist temporal classification). y_true [batch,
// length] holds class numbers, padded by 0 at the end; y_pred [batch, steps, classes] holds logits,
// and class 0 is the blank. A sequence that needs more steps than there are has an infinite loss,
// whose gradient is 0. The result is [batch]. Throws ValueError for other shapes and for labels
// that are not in [0, classes), and TypeError for predictions that are not floating point. The
// gradient is not differentiable.
Tensor ctc(const Tensor& y_true, const Tensor& y_pred);

}  // namespace losses

// The options of losses::CTC; see losses::ctc().
struct CTCLossOptions {
  std::string reduction = "sum_over_batch_size";  // the name of a Reduction
  std::string name = "ctc";

  static constexpr void fields(auto& self, auto&& field) { loss_fields(self, field); }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::ctc(y_true, y_pred);
  }
};
using CTCLoss = FormulaLoss<"CTC", CTCLossOptions>;

namespace losses {
// A handle to the loss, under Keras's name.
using CTC = Handle<CTCLoss>;
}  // namespace losses

}  // namespace keel
