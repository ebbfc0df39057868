#include <keel/optimizers/optimizer_options.h>

#include <absl/strings/str_cat.h>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

void check(bool holds, const std::string& class_name, const char* option, const char* required,
           const auto& received) {
  if (!holds) throw ValueError(class_name, ": ", option, " ", required, ", received ", received);
}

std::string text(const std::optional<double>& value) {
  return value ? absl::StrCat(*value) : "none";
}

}  // namespace

void check_not_negative(const std::string& class_name, const char* option, double value) {
  check(value >= 0, class_name, option, "must not be negative", value);
}

void check_fraction(const std::string& class_name, const char* option, double value) {
  check(value >= 0 && value <= 1, class_name, option, "must be in [0, 1]", value);
}

void check_beta(const std::string& class_name, const char* option, double value) {
  check(value >= 0 && value < 1, class_name, option, "must be in [0, 1)", value);
}

Config encode(LazyRows rows) {
  switch (rows) {
    case LazyRows::kOff:
      return "off";
    case LazyRows::kReplay:
      return "replay";
    case LazyRows::kClosedForm:
      break;
  }
  return "closed_form";
}

void decode(const Config& config, LazyRows& rows) {
  for (const LazyRows r : {LazyRows::kOff, LazyRows::kReplay, LazyRows::kClosedForm}) {
    if (encode(r) == config) {
      rows = r;
      return;
    }
  }
  throw ValueError("lazy_rows: must be off, replay or closed_form, received ", to_json(config));
}

void check_optimizer_options(const std::string& class_name, const OptimizerOptions& o) {
  if (o.clipnorm.has_value() + o.clipvalue.has_value() + o.global_clipnorm.has_value() > 1) {
    throw ValueError(class_name,
                     ": at most one of clipnorm, clipvalue and global_clipnorm may be set, "
                     "received clipnorm ",
                     text(o.clipnorm), ", clipvalue ", text(o.clipvalue), ", global_clipnorm ",
                     text(o.global_clipnorm), "; leave the others unset");
  }
  check_not_negative(class_name, "weight_decay", o.weight_decay.value_or(0));
  check_not_negative(class_name, "clipnorm", o.clipnorm.value_or(0));
  check_not_negative(class_name, "clipvalue", o.clipvalue.value_or(0));
  check_not_negative(class_name, "global_clipnorm", o.global_clipnorm.value_or(0));
  const double scale = o.loss_scale_factor.value_or(1);
  check(scale > 0, class_name, "loss_scale_factor", "must be positive", scale);
  const int64_t steps = o.gradient_accumulation_steps.value_or(2);
  check(steps >= 2, class_name, "gradient_accumulation_steps", "must be at least 2", steps);
  if (o.lazy_rows != LazyRows::kOff && (o.use_ema || o.gradient_accumulation_steps)) {
    throw ValueError(class_name, ": lazy_rows ", to_json(encode(o.lazy_rows)),
                     " cannot be combined with ",
                     o.use_ema ? "use_ema" : "gradient_accumulation_steps",
                     ", which requires all rows in every step; use LazyRows::kOff");
  }
  if (!o.use_ema) return;
  check(o.ema_momentum >= 0 && o.ema_momentum <= 1, class_name, "ema_momentum", "must be in [0, 1]",
        o.ema_momentum);
  const int64_t frequency = o.ema_overwrite_frequency.value_or(1);
  check(frequency >= 1, class_name, "ema_overwrite_frequency", "must be at least 1", frequency);
}

}  // namespace keel
