// FormulaLoss: makes a loss class from a formula.
//
// A formula is an aggregate that holds the options of a loss and computes it:
//
//   struct PowerLossOptions {
//     double p = 2;                                   // >= 1
//     std::string reduction = "sum_over_batch_size";  // the name of a Reduction
//     std::string name = {};                          // empty: "power", the class in snake case
//
//     static constexpr void fields(auto& self, auto&& field) {
//       loss_fields(self, field);
//       field("p", self.p);
//     }
//     Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const;
//   };
//   using PowerLoss = FormulaLoss<"Power", PowerLossOptions>;
//   using Power = Handle<PowerLoss>;
//
// The functions of a formula are those of Loss with the same name. It has per_sample(), and may
// have uses_mask(), mixes_rows() and sparse_labels(). A function check(caller) throws ValueError if
// an option is out of range.
#pragma once

#include <utility>

#include <keel/layers/losses/loss.h>

namespace keel {

// The loss class that `Formula` computes. Files name it `kName`.
template <ClassName kName, class Formula>
class FormulaLoss final : public Loss {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = Formula;                               // the formula with its options

  // Throws ValueError for an unknown reduction and in the cases of Formula::check().
  explicit FormulaLoss(Options options) : Loss(kClassName, options), formula_(std::move(options)) {
    formula_.name = name();
    if constexpr (requires { formula_.check(kClassName); }) formula_.check(kClassName);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override {
    return formula_.per_sample(y_true, y_pred);
  }
  Config get_config() const override { return to_config(formula_); }

 private:
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const override {
    if constexpr (requires { formula_.sparse_labels(y_true, y_pred); }) {
      return formula_.sparse_labels(y_true, y_pred);
    } else {
      return Loss::sparse_labels(y_true, y_pred);
    }
  }
  bool uses_mask() const override {
    if constexpr (requires { Formula::uses_mask(); }) return Formula::uses_mask();
    return Loss::uses_mask();
  }
  bool mixes_rows(int rank) const override {
    if constexpr (requires { formula_.mixes_rows(rank); }) return formula_.mixes_rows(rank);
    return Loss::mixes_rows(rank);
  }

  Formula formula_;  // constant after construction
};

// The options of a loss that has none of its own. `kFunction` computes the loss of each sample from
// labels and predictions.
template <auto kFunction>
struct LossOptions {
  std::string reduction = "sum_over_batch_size";  // the name of a Reduction
  std::string name = {};                          // empty: the class name in snake case

  // Lists the options.
  static constexpr void fields(auto& self, auto&& field) { loss_fields(self, field); }
  // Returns the loss of each sample.
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return kFunction(y_true, y_pred);
  }
};

}  // namespace keel
