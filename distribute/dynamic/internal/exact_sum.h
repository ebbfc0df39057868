// ExactSum: a sum whose bits do not depend on the order of the summands.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace keel::distribute {

// Sums squares of float32 values, or sums of such squares. The rows of tables for unbounded ids
// have no order that all runs share, so their squares are added as integers. At most 2^32 summands.
class ExactSum {
 public:
  // Adds a number >= 0. NaN and infinity make the sum NaN.
  void operator+=(double x) {
    if (!std::isfinite(x)) {
      ++not_finite_;
      return;
    }
    // x is an integer of 53 bits times a power of two. The squares of floats have no lower bits
    // than 2^kLowest.
    int exponent = 0;
    const auto integer = static_cast<uint64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    if (integer == 0) return;
    const int position = exponent - 53 - kLowest, shift = position % kDigitBits;
    const auto digit = static_cast<size_t>(position / kDigitBits);
    const uint64_t low = integer << shift;
    digits_[digit] += low & kMask;
    digits_[digit + 1] += low >> kDigitBits;
    // Shifting by 64 is undefined.
    digits_[digit + 2] += shift == 0 ? 0 : integer >> (64 - shift);
  }
  void operator+=(const ExactSum& other) {
    ExactSum more = other;
    more.carry();
    carry();
    for (size_t i = 0; i < digits_.size(); ++i) digits_[i] += more.digits_[i];
    not_finite_ += other.not_finite_;
  }

  double value() const {
    if (not_finite_ > 0) return std::numeric_limits<double>::quiet_NaN();
    ExactSum sum = *this;
    sum.carry();  // equal sums have equal digits from here on
    double out = 0;
    for (size_t i = 0; i < digits_.size(); ++i) {
      out += std::ldexp(static_cast<double>(sum.digits_[i]),
                        kDigitBits * static_cast<int>(i) + kLowest);
    }
    return out;
  }

 private:
  static constexpr int kDigitBits = 32;
  static constexpr uint64_t kMask = (uint64_t{1} << kDigitBits) - 1;
  static constexpr int kLowest = -352;  // below 2^-298, the square of the least float, and 53 bits

  void carry() {
    uint64_t carried = 0;
    for (uint64_t& digit : digits_) {
      digit += carried;
      carried = digit >> kDigitBits;
      digit &= kMask;
    }
  }

  std::array<uint64_t, 24> digits_ = {};  // up to 2^416; carries are deferred
  uint64_t not_finite_ = 0;               // summands that are not finite
};

}  // namespace keel::distribute
