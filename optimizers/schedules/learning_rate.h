// LearningRate: a number, a schedule, or a function without arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <keel/framework/base/handle.h>
#include <keel/framework/base/shared_function.h>
#include <keel/framework/config/config.h>

namespace keel {

// A learning rate as a function of the number of completed steps (keras.optimizers.schedules).
// Immutable.
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  // Returns the learning rate after `step` completed steps.
  virtual double operator()(int64_t step) const = 0;
  // Returns the name of the class in files.
  virtual const char* class_name() const = 0;
  // Returns the config with which the schedule is written to files.
  virtual Config get_config() const = 0;
};

// The learning rate of an optimizer. Construction throws ValueError for a number that is negative,
// infinite or NaN, for a null schedule, and for an empty function. Two rates are equal if they hold
// equal numbers, the same schedule object, or the same function (see SharedFunction).
class LearningRate {
 public:
  // A constant rate.
  LearningRate(double rate);  // NOLINT: implicit
  // A schedule.
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(std::shared_ptr<T> schedule)  // NOLINT: implicit
      : LearningRate(Schedule(std::move(schedule)), Callable()) {}
  // A handle to a schedule.
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(const Handle<T>& schedule)  // NOLINT: implicit
      : LearningRate(schedule.shared()) {}
  // Takes a function without arguments, which is called once before each step.
  template <class F>
    requires std::is_invocable_r_v<double, F&>
  LearningRate(F function)  // NOLINT: implicit
      : LearningRate(nullptr, Callable(std::move(function))) {}

  // Returns the rate of the step after `step` completed steps. Throws ValueError if the schedule or
  // function returns a rate that is negative, infinite or NaN.
  double operator()(int64_t step) const;

  std::optional<double> number() const;  // empty if the rate is a schedule or a function
  // Returns null unless the rate is a schedule.
  const std::shared_ptr<const LearningRateSchedule>& schedule() const { return schedule_; }
  // Returns null unless the rate is a function.
  const std::shared_ptr<const std::function<double()>>& callable() const {
    return callable_.function();
  }

  // Compares as described above.
  friend bool operator==(const LearningRate& a, const LearningRate& b) = default;
  size_t hash() const;  // equal for equal rates

 private:
  using Schedule = std::shared_ptr<const LearningRateSchedule>;
  using Callable = SharedFunction<double()>;
  LearningRate(Schedule schedule, Callable callable);  // exactly one of them is set

  double rate_ = 0;
  Schedule schedule_;
  Callable callable_;
};

// Encodes a rate as a number, or as {"class_name", "config"} of a schedule, with Keras's "module"
// if the schedule is built in. encode() throws NotImplementedError for a function, which cannot be
// written to a file.
Config encode(const LearningRate& rate);
// Decodes what encode() returns. Throws TypeError for any other value, and ValueError for a
// schedule that is not registered.
void decode(const Config& config, LearningRate& rate);

}  // namespace keel
