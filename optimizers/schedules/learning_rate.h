// LearningRate: a number, a schedule, or a function of no arguments.
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

// A rate as a function of the number of completed steps (keras.optimizers.schedules). Immutable.
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  virtual double operator()(int64_t step) const = 0;
  virtual const char* class_name() const = 0;
  virtual Config get_config() const = 0;
};

// ValueError for a number that is negative, infinite or NaN, a null schedule, and an empty
// function. Equal are equal numbers, the same schedule
// object, and the same function (see SharedFunction).
class LearningRate {
 public:
  LearningRate(double rate);  // NOLINT: implicit
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(std::shared_ptr<T> schedule)  // NOLINT: implicit
      : LearningRate(Schedule(std::move(schedule)), Callable()) {}
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(const Handle<T>& schedule)  // NOLINT: implicit
      : LearningRate(schedule.shared()) {}
  // A function without arguments, called once for each step, before it.
  template <class F>
    requires std::is_invocable_r_v<double, F&>
  LearningRate(F function)  // NOLINT: implicit
      : LearningRate(nullptr, Callable(std::move(function))) {}

  // The rate of the step after `step` completed ones. ValueError for a rate that is negative,
  // infinite or NaN.
  double operator()(int64_t step) const;

  std::optional<double> number() const;  // empty unless it is a plain number
  const std::shared_ptr<const LearningRateSchedule>& schedule() const { return schedule_; }
  // Null unless it is a function.
  const std::shared_ptr<const std::function<double()>>& callable() const {
    return callable_.function();
  }

  friend bool operator==(const LearningRate& a, const LearningRate& b) = default;
  size_t hash() const;

 private:
  using Schedule = std::shared_ptr<const LearningRateSchedule>;
  using Callable = SharedFunction<double()>;
  LearningRate(Schedule schedule, Callable callable);  // one of them

  double rate_ = 0;
  Schedule schedule_;
  Callable callable_;
};

// A number, or {"class_name", "config"} of a schedule, with the "module" of Keras if it is one of
// Keras's. NotImplementedError for a callable: a function cannot be written to a file.
// decode: TypeError for anything else, ValueError for a schedule that is not registered.
Config encode(const LearningRate& rate);
void decode(const Config& config, LearningRate& rate);

}  // namespace keel
