// Types of options of image layers: the range of a random factor, and the range of pixel values.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// A number or a pair [low, high], from which an image layer draws a factor for each image. Configs
// keep the form that was given. A layer says which range a number stands for.
class FactorRange {
 public:
  FactorRange() = default;  // none; options without a default value begin with it
  // Make a number or a pair.
  FactorRange(double number)  // NOLINT: implicit
      : low_(number), high_(number), is_set_(true) {}
  FactorRange(double low, double high) : low_(low), high_(high), is_set_(true), is_pair_(true) {}

  double low() const { return low_; }        // the number, or the first one of a pair
  double high() const { return high_; }      // the number, or the second one of a pair
  bool is_set() const { return is_set_; }    // false if neither was given
  bool is_pair() const { return is_pair_; }  // true if a pair was given
  // Returns the pair in ascending order, or [max(-x, lowest), x] for a number of magnitude x.
  // Throws ValueError, naming `argument`, if nothing is set, for a number outside [lowest, highest]
  // and for a pair that has no number of this interval.
  FactorRange symmetric(double lowest, double highest, const std::string& argument) const;
  // Returns the pair in ascending order, or [-x, x] for a number of magnitude x. Throws ValueError,
  // naming `argument`, if nothing is set and unless all numbers are in [lowest, highest].
  FactorRange within(double lowest, double highest, const std::string& argument) const;

 private:
  double low_ = 0, high_ = 0;
  bool is_set_ = false, is_pair_ = false;
};

// Converts to and from a number or a list of two numbers. Whole numbers are written as integers,
// and a range that is not set as null.
Config encode(const FactorRange& range);
void decode(const Config& config, FactorRange& range);

// The lowest and the highest value of pixels. Configs write a list of two numbers.
struct ValueRange {
  // Make the range of the two numbers.
  ValueRange(double a = 0, double b = 255) : low(a < b ? a : b), high(a < b ? b : a) {}  // NOLINT

  double low;   // the value of black
  double high;  // the value of white
};

// Converts to and from a list of two numbers. Whole numbers are written as integers.
Config encode(const ValueRange& range);
void decode(const Config& config, ValueRange& range);

}  // namespace keel
