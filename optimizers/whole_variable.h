// Optimizers whose steps need a whole variable at once: Adafactor and Muon.
//
// In the formulas w is a weight, g its gradient, lr the learning rate, and t the number of the
// step, counted from 1. Constructors throw ValueError if an option is out of range, and for
// lazy_rows, because a step changes all rows of a table by quantities that depend on all of them.
// Sparse gradients are made dense. With several replicas, one of them updates each variable.
#pragma once

#include <keel/optimizers/rule_optimizer.h>

namespace keel {

// Options of Adafactor.
struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;   // must be negative: the power of t in the decay of v
  double epsilon_1 = 1e-30;     // must be >= 0; added to squared gradients
  double epsilon_2 = 1e-3;      // must be >= 0; the smallest scale of a variable
  double clip_threshold = 1.0;  // must be positive: the largest root mean square of a step
  bool relative_step = true;    // without effect, as in Keras: lr is at most 1 / sqrt(t)
  // Common options; see OptimizerOptions.
  std::optional<double> weight_decay = {}, clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;  // must be kOff
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("beta_2_decay", self.beta_2_decay);
    field("epsilon_1", self.epsilon_1);
    field("epsilon_2", self.epsilon_2);
    field("clip_threshold", self.clip_threshold);
    field("relative_step", self.relative_step);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Adafactor (Shazeer and Stern 2018), which stores averages of squared gradients for the rows and
// the columns of a matrix instead of one for each element:
//   v = b v + (1 - b) (g^2 + epsilon_1), with b = 1 - t^beta_2_decay
//   u = g / sqrt(v)
//   w -= max(epsilon_2, rms(w)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / clip_threshold)
// where rms is the root mean square over the variable. For variables of rank 2 or higher, v is
// row x column / mean(row), where the slots "row" and "column" average g^2 + epsilon_1 over the
// last two axes. As in Keras, v itself is stored too, in the slot "velocity".
using AdafactorOptimizer = RuleOptimizer<"Adafactor", AdafactorOptions>;

// Options of Muon.
struct MuonOptions {
  LearningRate learning_rate = 0.001;
  double adam_beta_1 = 0.9;          // must be in [0, 1)
  double adam_beta_2 = 0.999;        // must be in [0, 1)
  double adam_weight_decay = 0.004;  // must be >= 0; of the variables that take Adam's step
  double epsilon = 1e-7;             // must be >= 0; of Adam's step
  std::optional<double> weight_decay = 0.004;    // decay of the matrices
  std::vector<std::string> exclude_layers = {};  // regular expressions, matched in variable paths
  bool exclude_embeddings = true;                // variables whose path contains "embedding"
  double muon_a = 3.4445, muon_b = -4.775, muon_c = 2.0315;  // the polynomial
  double adam_lr_ratio = 1;                                  // factor of lr in Adam's step
  double momentum = 0.95;                                    // must be in [0, 1)
  int64_t ns_steps = 5;                                      // must be >= 0
  bool nesterov = true;                  // orthogonalize g + momentum m instead of m
  std::optional<double> rms_rate = 0.2;  // size of a step, relative to the root mean square 1
  // Common options; see OptimizerOptions.
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  LazyRows lazy_rows = LazyRows::kOff;  // must be kOff
  std::string name = {};

  static constexpr void fields(auto& self, auto&& field) {
    optimizer_fields(self, field);
    field("adam_beta_1", self.adam_beta_1);
    field("adam_beta_2", self.adam_beta_2);
    field("epsilon", self.epsilon);
    field("exclude_layers", self.exclude_layers);
    field("muon_a", self.muon_a);
    field("muon_b", self.muon_b);
    field("muon_c", self.muon_c);
    field("adam_lr_ratio", self.adam_lr_ratio);
    field("momentum", self.momentum);
    field("ns_steps", self.ns_steps);
    field("nesterov", self.nesterov);
    field("exclude_embeddings", self.exclude_embeddings);
    field("adam_weight_decay", self.adam_weight_decay);
    field("rms_rate", self.rms_rate);
  }
  void check(const char* caller) const;            // throws ValueError for an option out of range
  std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
};
// Muon, which orthogonalizes the steps of matrices (Jordan 2024; Liu et al. 2025):
//   m = momentum m + g
//   u = orthogonalized(g + momentum m), or orthogonalized(m) without nesterov
//   w -= lr rms_rate sqrt(max(rows, columns)) u, or lr u without rms_rate
// orthogonalized(x) divides x by its Frobenius norm and then replaces it ns_steps times by
//   muon_a x + (muon_b y + muon_c y^2) x, with y = x x^T
// Variables that are not matrices, embeddings, and variables that exclude_layers names take the
// step of AdamWOptimizer. The slots are named "momentum" and, for Adam's step, "velocity".
using MuonOptimizer = RuleOptimizer<"Muon", MuonOptions>;

namespace optimizers {
// Handles to the optimizers, under Keras's names.
using Adafactor = Handle<AdafactorOptimizer>;
using Muon = Handle<MuonOptimizer>;
}  // namespace optimizers

}  // namespace keel
