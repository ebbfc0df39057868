// LearningRate: a number, a schedule, or a function of no arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "framework/config.h"
#include "framework/handle.h"

namespace keel {

// A rate as a function of the number of completed steps (keras.optimizers.schedules). Immutable.
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  virtual double operator()(int64_t step) const = 0;
  virtual const char* class_name() const = 0;
  virtual Config get_config() const = 0;
};

// ValueError for a null schedule and an empty function.
class LearningRate {
 public:
  LearningRate(double rate) : rate_(rate) {}  // NOLINT: implicit
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(std::shared_ptr<T> schedule)  // NOLINT: implicit
      : LearningRate(Schedule(std::move(schedule)), nullptr) {}
  template <std::derived_from<LearningRateSchedule> T>
  LearningRate(const Handle<T>& schedule)  // NOLINT: implicit
      : LearningRate(schedule.shared()) {}
  // A function without arguments, called once for each step, before it.
  template <class F>
  requires std::is_invocable_r_v<double, F&> LearningRate(F callable)  // NOLINT: implicit
      : LearningRate(nullptr,
                     std::make_shared<const std::function<double()>>(std::move(callable))) {}

  // The rate of the step after `step` completed ones.
  double operator()(int64_t step) const;

  std::optional<double> number() const;  // empty unless it is a plain number
  const std::shared_ptr<const LearningRateSchedule>& schedule() const { return schedule_; }
  const std::shared_ptr<const std::function<double()>>& callable() const { return callable_; }

 private:
  using Schedule = std::shared_ptr<const LearningRateSchedule>;
  using Callable = std::shared_ptr<const std::function<double()>>;
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
