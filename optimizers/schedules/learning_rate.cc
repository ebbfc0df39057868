#include <keel/optimizers/schedules/learning_rate.h>

#include <cmath>

#include <keel/optimizers/schedules/internal/schedule_registry.h>

namespace keel {

namespace {

double checked(double rate, const char* source) {
  if (std::isfinite(rate) && rate >= 0) return rate;
  throw ValueError("learning_rate: must be finite and not negative, ", source, " ", rate);
}

}  // namespace

LearningRate::LearningRate(double rate) : rate_(checked(rate, "received")) {}

LearningRate::LearningRate(Schedule schedule, Callable callable)
    : schedule_(std::move(schedule)), callable_(std::move(callable)) {
  if (schedule_ == nullptr && !callable_) {
    throw ValueError(
        "LearningRate: the schedule or function is empty; pass a number, a schedule or a function");
  }
}

double LearningRate::operator()(int64_t step) const {
  if (callable_) return checked(callable_(), "the function returned");
  if (schedule_ != nullptr) return checked((*schedule_)(step), "the schedule returned");
  return rate_;
}

std::optional<double> LearningRate::number() const {
  if (schedule_ != nullptr || callable_) return {};
  return rate_;
}

size_t LearningRate::hash() const {
  if (callable_) return std::hash<const void*>()(callable_.identity());
  if (schedule_ != nullptr) return std::hash<const void*>()(schedule_.get());
  return std::hash<double>()(rate_);
}

Config encode(const LearningRate& rate) {
  if (rate.callable() != nullptr) {
    throw NotImplementedError(
        "LearningRate: a function cannot be written to a config; use a number or a schedule");
  }
  if (rate.schedule() != nullptr) return optimizers::schedules::serialize(*rate.schedule());
  return *rate.number();
}

void decode(const Config& config, LearningRate& rate) {
  if (config.is_dict()) {
    rate = optimizers::schedules::deserialize(config);
  } else {
    rate = config.number();
  }
}

}  // namespace keel
