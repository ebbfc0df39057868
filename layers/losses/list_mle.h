// ListMLELoss: the negative log likelihood of the correct order of a list
// (keras_rs.losses.ListMLELoss).
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of ListMLELoss.
struct ListMLELossOptions {
  double temperature = 1;  // > 0; scores are divided by it
  std::string reduction = "sum_over_batch_size";
  std::string name = "list_mle_loss";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("temperature", self.temperature);
  }
};

// Minus the log of the probability of the correct order, if the items are drawn one after another
// by the softmax of the scores that are left (Xia et al. 2008, "Listwise approach to learning to
// rank"). With s in descending order of the labels, where items with equal labels keep their order,
//   loss = sum over i of log(sum over j >= i of e^s_j) - s_i
// y_true and y_pred are [batch, items], or [items] for one list; losses are [batch]. Items are
// excluded under the same conditions as in pairwise losses (pairwise.h). A list without items has
// the loss 0. Time and memory grow with batch * items^2.
// When called, throws NotImplementedError for symbolic tensors with an unknown number of items, and
// the errors of item_lists().
class ListMLELoss final : public Loss {
 public:
  static constexpr char kClassName[] = "ListMLELoss";
  using Options = ListMLELossOptions;
  explicit ListMLELoss(Options options);  // Throws ValueError unless temperature > 0.
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  bool uses_mask() const override { return true; }
  const Options options_;
};

namespace losses {
// A handle to the loss, under Keras's name.
using ListMLELoss = Handle<keel::ListMLELoss>;
}  // namespace losses

}  // namespace keel
