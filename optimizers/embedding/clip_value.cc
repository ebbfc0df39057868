#include <keel/optimizers/embedding/bounds_and_slots.h>

namespace keel {

ClipValue::ClipValue(double value) : set_(true), min_(-value), max_(value) {
  if (!(value >= 0)) throw ValueError("clipvalue: must not be negative, received ", value);
}

ClipValue::ClipValue(std::optional<double> min, std::optional<double> max)
    : set_(true), min_(min), max_(max) {
  if (min_ && max_ && !(*min_ <= *max_)) {
    throw ValueError("clipvalue: the first bound must not exceed the second, received ", *min_,
                     " and ", *max_);
  }
}

Config encode(const ClipValue& value) {
  if (!value.min() && !value.max()) return {};
  return Config::list({encode(value.min()), encode(value.max())});
}

void decode(const Config& config, ClipValue& value) {
  if (config.is_null()) {
    value = {};
  } else if (config.is_list()) {
    std::vector<std::optional<double>> bounds;
    decode(config, bounds);
    if (bounds.size() != 2) {
      throw ValueError("clipvalue: must be a number or a list of two bounds, received ",
                       to_json(config));
    }
    value = ClipValue(bounds[0], bounds[1]);
  } else {
    value = ClipValue(config.number());
  }
}

}  // namespace keel
