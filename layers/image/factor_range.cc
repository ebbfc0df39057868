#include <keel/layers/image/factor_range.h>

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

Config encode_number(double x) {
  if (std::floor(x) == x && std::abs(x) < 0x1p53) return static_cast<int64_t>(x);
  return x;
}

Config encode_pair(double low, double high) {
  return Config::list({encode_number(low), encode_number(high)});
}

std::pair<double, double> decode_pair(const Config& config) {
  const Config::List& items = config.items();
  if (items.size() != 2) throw ValueError("expected two numbers, received ", to_json(config));
  return {items[0].number(), items[1].number()};
}

void check_set(const FactorRange& range, const std::string& argument) {
  if (!range.is_set())
    throw ValueError(argument, " is not set; pass a number or a pair of numbers");
}

[[noreturn]] void throw_out_of_range(const FactorRange& range, double lowest, double highest,
                                     const std::string& argument) {
  throw ValueError(argument, " must be a number or a pair of numbers in [", lowest, ", ", highest,
                   "], received ", to_json(encode(range)));
}

}  // namespace

FactorRange FactorRange::symmetric(double lowest, double highest,
                                   const std::string& argument) const {
  check_set(*this, argument);
  if (is_pair_) {
    // As in Keras, the ends of a pair may lie outside.
    if (!(low_ <= highest && high_ >= lowest)) {
      throw_out_of_range(*this, lowest, highest, argument);
    }
    return {std::min(low_, high_), std::max(low_, high_)};
  }
  if (!(low_ >= lowest && low_ <= highest)) throw_out_of_range(*this, lowest, highest, argument);
  const double x = std::abs(low_);
  return {std::max(x == 0 ? 0 : -x, lowest), x};
}

FactorRange FactorRange::within(double lowest, double highest, const std::string& argument) const {
  check_set(*this, argument);
  for (const double end : {low_, high_}) {
    if (!(end >= lowest && end <= highest)) throw_out_of_range(*this, lowest, highest, argument);
  }
  if (is_pair_) return {std::min(low_, high_), std::max(low_, high_)};
  const double x = std::abs(low_);
  return {x == 0 ? 0 : -x, x};
}

Config encode(const FactorRange& range) {
  if (!range.is_set()) return {};
  if (!range.is_pair()) return encode_number(range.low());
  return encode_pair(range.low(), range.high());
}

void decode(const Config& config, FactorRange& range) {
  if (config.is_number()) {
    range = FactorRange(config.number());
    return;
  }
  const auto [low, high] = decode_pair(config);
  range = FactorRange(low, high);
}

Config encode(const ValueRange& range) { return encode_pair(range.low, range.high); }

void decode(const Config& config, ValueRange& range) {
  const auto [low, high] = decode_pair(config);
  range = ValueRange(low, high);
}

}  // namespace keel
