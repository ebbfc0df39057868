// ListMLELoss: how unlikely the right order of a list is (keras_rs.losses.ListMLELoss).
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

struct ListMLELossOptions {
  double temperature = 1;  // > 0; scores are divided by it
  std::string reduction = "sum_over_batch_size";
  std::string name = "list_mle_loss";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("temperature", self.temperature);
  }
};

// Minus the log of the probability that items drawn one after the other, each by the softmax of
// the scores that are left, come in the order of their labels (Xia et al. 2008, "Listwise approach
// to learning to rank"): with s in that order, the greatest label first and equal ones as they
// are,
//   loss = sum over i of log(sum over j >= i of e^s_j) - s_i
// y_true and y_pred are [batch, items], or [items] for one list; losses are [batch]. Items are left
// out as in losses of pairs (pairwise.h); a list without items has the loss 0.
// Time and memory grow with batch * items^2.
// NotImplementedError for symbols of unknown items; else what item_lists() throws.
class ListMLELoss final : public Loss {
 public:
  static constexpr char kClassName[] = "ListMLELoss";
  using Options = ListMLELossOptions;
  explicit ListMLELoss(Options options);  // ValueError unless the temperature is positive
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  bool uses_mask() const override { return true; }
  const Options options_;
};

namespace losses {
using ListMLELoss = Handle<keel::ListMLELoss>;
}

}  // namespace keel
