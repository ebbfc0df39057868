// Learning rate schedules: functions of the number of completed steps (keras.optimizers.schedules).
//
//   SGD sgd({.learning_rate = schedules::ExponentialDecay(
//                {.initial_learning_rate = 0.1, .decay_steps = 1000, .decay_rate = 0.96})});
//
// In the formulas below, s is the number of completed steps and r is the initial learning rate. All
// schedules compute in double precision. Their constructors throw ValueError if a number of decay
// steps is not positive, and for the ranges named below.
#pragma once

#include <keel/framework/config/registry.h>
#include <keel/optimizers/schedules/learning_rate.h>

namespace keel::optimizers::schedules {

// A schedule whose options compute it: rate(step) returns the rate after `step` completed steps,
// and check(caller) throws ValueError if an option is out of range.
template <ClassName kName, class OptionsType>
class FormulaSchedule final : public LearningRateSchedule {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = OptionsType;                           // the options of the constructor
  // Throws ValueError if an option is out of range.
  explicit FormulaSchedule(Options options) : options_(std::move(options)) {
    options_.check(kClassName);
  }
  double operator()(int64_t step) const override { return options_.rate(step); }
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// Options of ExponentialDecay.
struct ExponentialDecayOptions {
  double initial_learning_rate = 0.001;  // r
  int64_t decay_steps = 0;               // required, must be positive
  double decay_rate = 0;                 // required, must be > 0
  bool staircase = false;                // round s / decay_steps down
  std::string name = "ExponentialDecay";

  static constexpr void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("decay_rate", self.decay_rate);
    field("staircase", self.staircase);
    field("name", self.name);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate is r decay_rate^(s / decay_steps).
using ExponentialDecaySchedule = FormulaSchedule<"ExponentialDecay", ExponentialDecayOptions>;

// Options of PiecewiseConstantDecay.
struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries = {};  // must be strictly ascending
  std::vector<double> values = {};       // must have one element more than boundaries
  std::string name = "PiecewiseConstant";

  static constexpr void fields(auto& self, auto&& field) {
    field("boundaries", self.boundaries);
    field("values", self.values);
    field("name", self.name);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate is values[i] for the first i with s <= boundaries[i], and the last value beyond all
// boundaries.
using PiecewiseConstantDecaySchedule =
    FormulaSchedule<"PiecewiseConstantDecay", PiecewiseConstantDecayOptions>;

// Options of PolynomialDecay.
struct PolynomialDecayOptions {
  double initial_learning_rate = 0.001;  // r
  int64_t decay_steps = 0;               // required, must be positive
  double end_learning_rate = 0.0001;     // the last rate
  double power = 1.0;                    // must be >= 0
  // After decay_steps: if false, the rate stays at end_learning_rate; if true, decay_steps is
  // extended to its next multiple.
  bool cycle = false;
  std::string name = "PolynomialDecay";

  static constexpr void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("end_learning_rate", self.end_learning_rate);
    field("power", self.power);
    field("cycle", self.cycle);
    field("name", self.name);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate is (r - end) (1 - s / decay_steps)^power + end, where end is end_learning_rate.
using PolynomialDecaySchedule = FormulaSchedule<"PolynomialDecay", PolynomialDecayOptions>;

// Options of InverseTimeDecay.
struct InverseTimeDecayOptions {
  double initial_learning_rate = 0.001;  // r
  int64_t decay_steps = 0;               // required, must be positive
  double decay_rate = 0;                 // required, must be >= 0
  bool staircase = false;                // round s / decay_steps down
  std::string name = "InverseTimeDecay";

  static constexpr void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("decay_rate", self.decay_rate);
    field("staircase", self.staircase);
    field("name", self.name);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate is r / (1 + decay_rate s / decay_steps).
using InverseTimeDecaySchedule = FormulaSchedule<"InverseTimeDecay", InverseTimeDecayOptions>;

// Options of CosineDecay.
struct CosineDecayOptions {
  double initial_learning_rate = 0.001;  // r
  int64_t decay_steps = 0;               // required, must be positive; not counting the warmup
  double alpha = 0.0;                    // the last rate as a fraction of the highest
  std::string name = "CosineDecay";
  // If set, the rate rises linearly from r to warmup_target over warmup_steps and decays from
  // there. If unset, there is no warmup.
  std::optional<double> warmup_target = {};
  int64_t warmup_steps = 0;  // must be >= 0

  static constexpr void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("decay_steps", self.decay_steps);
    field("alpha", self.alpha);
    field("name", self.name);
    field("warmup_target", self.warmup_target);
    field("warmup_steps", self.warmup_steps);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate is r ((1 - alpha) (1 + cos(pi s / decay_steps)) / 2 + alpha) up to decay_steps and
// constant after that (Loshchilov and Hutter 2017).
using CosineDecaySchedule = FormulaSchedule<"CosineDecay", CosineDecayOptions>;

// Options of CosineDecayRestarts.
struct CosineDecayRestartsOptions {
  double initial_learning_rate = 0.001;  // r
  int64_t first_decay_steps = 0;         // required, must be positive
  double t_mul = 2.0;  // length of each period relative to the previous one; must be >= 1
  double m_mul = 1.0;  // amplitude of each period relative to the previous one; must be >= 0
  double alpha = 0.0;  // the rate at the end of each period as a fraction of r
  std::string name = "SGDRDecay";

  static constexpr void fields(auto& self, auto&& field) {
    field("initial_learning_rate", self.initial_learning_rate);
    field("first_decay_steps", self.first_decay_steps);
    field("t_mul", self.t_mul);
    field("m_mul", self.m_mul);
    field("alpha", self.alpha);
    field("name", self.name);
  }
  void check(const char* caller) const;
  double rate(int64_t step) const;  // see FormulaSchedule
};

// The rate at fraction f of period i is r ((1 - alpha) m_mul^i (1 + cos(pi f)) / 2 + alpha)
// (Loshchilov and Hutter 2017).
using CosineDecayRestartsSchedule =
    FormulaSchedule<"CosineDecayRestarts", CosineDecayRestartsOptions>;

// Handles to the schedules, under Keras's names.
using ExponentialDecay = Handle<ExponentialDecaySchedule>;
using PiecewiseConstantDecay = Handle<PiecewiseConstantDecaySchedule>;
using PolynomialDecay = Handle<PolynomialDecaySchedule>;
using InverseTimeDecay = Handle<InverseTimeDecaySchedule>;
using CosineDecay = Handle<CosineDecaySchedule>;
using CosineDecayRestarts = Handle<CosineDecayRestartsSchedule>;

}  // namespace keel::optimizers::schedules
