// The parameters of embedding optimizers of the V1 engine (tf.compat.v1.tpu.experimental). Each
// converts to an EmbeddingOptimizer (optimizers/embedding/embedding_optimizer.h), which checks it.
// The V1 engine and EmbeddingConfigSpec accept these optimizers; other engines reject them.
#pragma once

#include <optional>

#include <keel/framework/config/config.h>

namespace keel::tpu {

// Parameters of all classes. They have the meaning of those in tpu_optimizers.h, except that
// clip_gradient_min and clip_gradient_max replace clipvalue; they require
// use_gradient_accumulation. learning_rate is a required number; functions of the step are set on
// tables. A missing required parameter throws ValueError on conversion.
template <class Self>
constexpr void common_parameters(Self& self, auto&& field) {
  field("learning_rate", self.learning_rate);
  field("clip_weight_min", self.clip_weight_min);
  field("clip_weight_max", self.clip_weight_max);
  field("weight_decay_factor", self.weight_decay_factor);
  field("multiply_weight_decay_factor_by_learning_rate",
        self.multiply_weight_decay_factor_by_learning_rate);
  field("clip_gradient_min", self.clip_gradient_min);
  field("clip_gradient_max", self.clip_gradient_max);
  if constexpr (requires { self.use_gradient_accumulation; }) {
    field("use_gradient_accumulation", self.use_gradient_accumulation);
  }
}

// SGD: w -= lr g. Gradients are summed over a batch only if they are clipped.
struct StochasticGradientDescentParameters {
  std::optional<double> learning_rate = {};  // required
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "StochasticGradientDescentParameters";
  static constexpr void fields(auto& self, auto&& field) { common_parameters(self, field); }
};

// Adagrad, as tpu::Adagrad. The slot is the variable "<table>/Adagrad".
struct AdagradParameters {
  std::optional<double> learning_rate = {};  // required
  double initial_accumulator = 0.1;          // > 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "AdagradParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("initial_accumulator", self.initial_accumulator);
  }
};

// Adam, as tpu::Adam but with another default epsilon. The slots are the variables "<table>/Adam/m"
// and "<table>/Adam/v".
struct AdamParameters {
  std::optional<double> learning_rate = {};  // required
  double beta1 = 0.9, beta2 = 0.999;         // in [0, 1)
  double epsilon = 1e-8;                     // > 0
  bool lazy_adam = true;                     // false needs use_gradient_accumulation
  bool sum_inside_sqrt = true;               // epsilon^2 is added to v under the root
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "AdamParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("beta1", self.beta1);
    field("beta2", self.beta2);
    field("epsilon", self.epsilon);
    field("lazy_adam", self.lazy_adam);
    field("sum_inside_sqrt", self.sum_inside_sqrt);
  }
};

// FTRL, as tpu::FTRL except that accumulators may start at 0. The slots are the variables
// "<table>/Ftrl" and "<table>/Ftrl_1".
struct FtrlParameters {
  std::optional<double> learning_rate = {};                               // required
  double learning_rate_power = -0.5;                                      // <= 0
  double initial_accumulator_value = 0.1;                                 // >= 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;  // >= 0
  bool multiply_linear_by_learning_rate = false;  // the slot holds lr times the linear term
  double beta = 0;                                // added to the root of the accumulator
  bool allow_zero_accumulator = false;            // has no effect
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "FtrlParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("learning_rate_power", self.learning_rate_power);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("multiply_linear_by_learning_rate", self.multiply_linear_by_learning_rate);
    field("beta", self.beta);
    field("allow_zero_accumulator", self.allow_zero_accumulator);
  }
};

// Proximal Adagrad (Duchi and Singer 2009). The slot is the variable "<table>/ProximalAdagrad" (a):
//   a += g^2;  e = lr / sqrt(a);  x = w - e g;  w = sign(x) max(|x| - e l1, 0) / (1 + e l2)
struct ProximalAdagradParameters {
  std::optional<double> learning_rate = {};                               // required
  double initial_accumulator = 0.1;                                       // > 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;  // >= 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "ProximalAdagradParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("initial_accumulator", self.initial_accumulator);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
  }
};

// Proximal Yogi (Zaheer et al. 2018) without bias correction. The slots are the variables
// "<table>/ProximalYogi" (v) and "<table>/ProximalYogi_1" (m):
//   m = beta1 m + (1 - beta1) g;  v += (1 - beta2) sign(g^2 - v) g^2
//   e = lr / (sqrt(v) + epsilon);  x = w - e m;  w = sign(x) max(|x| - e l1, 0) / (1 + e l2)
struct ProximalYogiParameters {
  std::optional<double> learning_rate = 0.01;                             // a number
  double beta1 = 0.9, beta2 = 0.999;                                      // in [0, 1)
  double epsilon = 1e-3;                                                  // > 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;  // >= 0
  double initial_accumulator_value = 1e-6;                                // start of v
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "ProximalYogiParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("beta1", self.beta1);
    field("beta2", self.beta2);
    field("epsilon", self.epsilon);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("initial_accumulator_value", self.initial_accumulator_value);
  }
};

// Momentum: m = momentum m + g; w -= lr m, with nesterov w -= lr (g + momentum m). The slot is the
// variable "<table>/Momentum".
struct MomentumParameters {
  std::optional<double> learning_rate = {}, momentum = {};  // required
  bool use_nesterov = false;                                // use Nesterov momentum
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "MomentumParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("momentum", self.momentum);
    field("use_nesterov", self.use_nesterov);
  }
};

// RMSProp: ms += (1 - rho) (g^2 - ms); mom = momentum mom + lr g / sqrt(ms + epsilon); w -= mom.
// The slots are the variables "<table>/RMSProp/ms" and "<table>/RMSProp/mom".
struct RMSPropParameters {
  std::optional<double> learning_rate = {}, rho = {}, momentum = {}, epsilon = {};  // required
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {}, weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  static constexpr char kClassName[] = "RMSPropParameters";
  static constexpr void fields(auto& self, auto&& field) {
    common_parameters(self, field);
    field("rho", self.rho);
    field("momentum", self.momentum);
    field("epsilon", self.epsilon);
  }
};

// Frequency estimator, for tables of dim 1: the mean number of steps between two lookups of a row.
// The table's learning rate must be a function that returns the step number; without one it is 1.
// The slot is the variable "<table>/FrequencyEstimator".
struct FrequencyEstimatorParameters {
  std::optional<double> tau = {}, max_delta = {}, outlier_threshold = {};  // required
  std::optional<double> weight_exponent = {};  // required; stored but not used
  static constexpr char kClassName[] = "FrequencyEstimatorParameters";
  static constexpr void fields(auto& self, auto&& field) {
    field("tau", self.tau);
    field("max_delta", self.max_delta);
    field("outlier_threshold", self.outlier_threshold);
    field("weight_exponent", self.weight_exponent);
  }
};

}  // namespace keel::tpu
