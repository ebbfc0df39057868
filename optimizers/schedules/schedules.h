// Learning rates that change with the steps done (keras.optimizers.schedules).
//
//   SGD sgd({.learning_rate = schedules::ExponentialDecay(
//                {.initial_learning_rate = 0.1, .decay_steps = 1000, .decay_rate = 0.96})});
//
// Below, s is the number of completed steps and r the initial learning rate. Computed in double.
// All: ValueError unless steps to decay over are positive.
#pragma once

#include <keel/optimizers/schedules/learning_rate.h>

namespace keel::optimizers::schedules {

struct ExponentialDecayOptions {
  double initial_learning_rate = 0.001;
  int64_t decay_steps = 0;  // required
  double decay_rate = 0;    // required, > 0 (ValueError)
  bool staircase = false;   // s / decay_steps is rounded down
  std::string name = "ExponentialDecay";

  static void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("decay_rate", self.decay_rate);
    field("staircase", self.staircase);
    field("name", self.name);
  }
};

// r decay_rate^(s / decay_steps).
class ExponentialDecaySchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "ExponentialDecay";
  using Options = ExponentialDecayOptions;
  explicit ExponentialDecaySchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries = {};  // ascending (ValueError)
  std::vector<double> values = {};       // one more than boundaries (ValueError)
  std::string name = "PiecewiseConstant";

  static void fields(auto& self, auto&& field) {
    field("boundaries", self.boundaries);
    field("values", self.values);
    field("name", self.name);
  }
};

// values[i] for the first i with s <= boundaries[i]; the last value beyond all boundaries.
class PiecewiseConstantDecaySchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "PiecewiseConstantDecay";
  using Options = PiecewiseConstantDecayOptions;
  explicit PiecewiseConstantDecaySchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

struct PolynomialDecayOptions {
  double initial_learning_rate = 0.001;
  int64_t decay_steps = 0;  // required
  double end_learning_rate = 0.0001;
  double power = 1.0;  // >= 0 (ValueError)
  // Past decay_steps: false stays at the end; true stretches decay_steps to its next multiple.
  bool cycle = false;
  std::string name = "PolynomialDecay";

  static void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("end_learning_rate", self.end_learning_rate);
    field("power", self.power);
    field("cycle", self.cycle);
    field("name", self.name);
  }
};

// (r - end) (1 - s / decay_steps)^power + end.
class PolynomialDecaySchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "PolynomialDecay";
  using Options = PolynomialDecayOptions;
  explicit PolynomialDecaySchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

struct InverseTimeDecayOptions {
  double initial_learning_rate = 0.001;
  int64_t decay_steps = 0;  // required
  double decay_rate = 0;    // required, >= 0 (ValueError)
  bool staircase = false;   // s / decay_steps is rounded down
  std::string name = "InverseTimeDecay";

  static void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("decay_rate", self.decay_rate);
    field("staircase", self.staircase);
    field("name", self.name);
  }
};

// r / (1 + decay_rate s / decay_steps).
class InverseTimeDecaySchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "InverseTimeDecay";
  using Options = InverseTimeDecayOptions;
  explicit InverseTimeDecaySchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

struct CosineDecayOptions {
  double initial_learning_rate = 0.001;
  int64_t decay_steps = 0;  // required; after the warmup
  double alpha = 0.0;       // the last rate, as a fraction of the highest
  std::string name = "CosineDecay";
  // Given: the rate climbs from r to this one in a straight line over warmup_steps, then decays
  // from there. Without it there is no warmup.
  std::optional<double> warmup_target = {};
  int64_t warmup_steps = 0;  // >= 0 (ValueError)

  static void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("alpha", self.alpha);
    field("name", self.name);
    field("warmup_target", self.warmup_target);
    field("warmup_steps", self.warmup_steps);
  }
};

// r ((1 - alpha) (1 + cos(pi s / decay_steps)) / 2 + alpha) up to decay_steps, constant then
// (Loshchilov and Hutter 2017).
class CosineDecaySchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "CosineDecay";
  using Options = CosineDecayOptions;
  explicit CosineDecaySchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

struct CosineDecayRestartsOptions {
  double initial_learning_rate = 0.001;
  int64_t first_decay_steps = 0;  // required
  double t_mul = 2.0;  // each period is this times as long as the last; >= 1 (ValueError)
  double m_mul = 1.0;  // and starts at this times its rate; >= 0 (ValueError)
  double alpha = 0.0;  // the last rate of the first period, as a fraction of r
  std::string name = "SGDRDecay";

  static void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("first_decay_steps", self.first_decay_steps);
    field("t_mul", self.t_mul);
    field("m_mul", self.m_mul);
    field("alpha", self.alpha);
    field("name", self.name);
  }
};

// In period i, f of the way through it: r ((1 - alpha) m_mul^i (1 + cos(pi f)) / 2 + alpha).
class CosineDecayRestartsSchedule final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "CosineDecayRestarts";
  using Options = CosineDecayRestartsOptions;
  explicit CosineDecayRestartsSchedule(Options options);
  double operator()(int64_t step) const override;
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

using ExponentialDecay = Handle<ExponentialDecaySchedule>;
using PiecewiseConstantDecay = Handle<PiecewiseConstantDecaySchedule>;
using PolynomialDecay = Handle<PolynomialDecaySchedule>;
using InverseTimeDecay = Handle<InverseTimeDecaySchedule>;
using CosineDecay = Handle<CosineDecaySchedule>;
using CosineDecayRestarts = Handle<CosineDecayRestartsSchedule>;

}  // namespace keel::optimizers::schedules
