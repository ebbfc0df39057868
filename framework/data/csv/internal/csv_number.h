// Parses the numbers of CSV fields.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

namespace keel::data {

// Returns the text without leading and trailing spaces and tabs.
inline std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Parses a number that must be all of `text`.
template <class T>
std::errc parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

// Given a decimal number that is outside the range of every type, returns true if its magnitude is
// too small and false if it is too large.
inline bool is_below_one(std::string_view text) {
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  // The power of ten of the first digit that is not 0.
  const size_t point = std::min(digits.find('.'), digits.size());
  const int64_t power = static_cast<int64_t>(point) - static_cast<int64_t>(first) -
                        static_cast<int64_t>(first < point);
  std::string_view exponent = text.substr(std::min(e + 1, text.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int64_t scale = 0;
  if (parse_all(exponent, scale) == std::errc::result_out_of_range) {
    return exponent.starts_with('-');
  }
  return scale < -power;
}

// Parses `text`, which must consist of one number and optional surrounding spaces. Returns nullopt
// if it does not, if T cannot hold the number or if it is not finite.
template <class T>
std::optional<T> parse_csv_number(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value = {};
  const std::errc error = parse_all(text, value);
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      // Numbers that are too small are rounded to 0 instead of rejected.
      if (!is_below_one(text)) return std::nullopt;
      return text.starts_with('-') ? -T{0} : T{0};
    }
    if (!std::isfinite(value)) return std::nullopt;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

// Up to 15 digits with at most one decimal point.
struct PlainDigits {
  int64_t value = 0;      // the digits without the point
  uint32_t decimals = 0;  // number of digits after the point
  bool has_point = false;
  bool plain = false;  // if false, the other members are undefined
};

// Parses the `count` bytes at p. Always reads 16 bytes. It has no data-dependent branches, which
// would be mispredicted because lengths and decimal points are practically random.
inline PlainDigits plain_digits(const char* p, uint32_t count) {
  PlainDigits out;
  const bool fits = count <= 16;
  count = fits ? count : 16;
#if defined(__SSE4_1__)
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const auto points =
      static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('.'))));
  const uint32_t point = static_cast<uint32_t>(std::countr_zero(points | 1U << count));
  const uint32_t has_point = point < count ? 1 : 0;
  const uint32_t digits = count - has_point;
  // Moves the digits to the end, removes the point and puts zeros in front.
  const __m128i place =
      _mm_add_epi8(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                   _mm_set1_epi8(static_cast<char>(static_cast<int>(digits) - 16)));
  const __m128i behind_point =
      _mm_cmpgt_epi8(place, _mm_set1_epi8(static_cast<char>(static_cast<int>(point) - 1)));
  const __m128i units =
      _mm_shuffle_epi8(_mm_xor_si128(text, _mm_set1_epi8('0')), _mm_sub_epi8(place, behind_point));
  const __m128i nine = _mm_set1_epi8(9);
  const bool all_digits =
      _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(units, nine), nine)) == 0xFFFF;
  const __m128i pairs = _mm_maddubs_epi16(
      units, _mm_setr_epi8(10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1));
  const __m128i fours = _mm_madd_epi16(pairs, _mm_setr_epi16(100, 1, 100, 1, 100, 1, 100, 1));
  const __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours),
                                        _mm_setr_epi16(10000, 1, 10000, 1, 10000, 1, 10000, 1));
  const auto both = static_cast<uint64_t>(_mm_cvtsi128_si64(eights));
  out.value = static_cast<int64_t>((both & 0xFFFFFFFF) * 100'000'000 + (both >> 32));
  out.decimals = count - has_point - point;
  out.has_point = has_point != 0;
#else
  uint32_t digits = 0, point = count;
  bool all_digits = true;
  for (uint32_t i = 0; i < count; ++i) {
    const auto unit = static_cast<uint32_t>(static_cast<unsigned char>(p[i])) - '0';
    if (unit < 10) {
      out.value = 10 * out.value + unit;
      ++digits;
    } else {
      all_digits &= p[i] == '.' && point == count;
      point = i;
    }
  }
  out.decimals = digits - (point < digits ? point : digits);
  out.has_point = point < count;
#endif
  out.plain = fits && all_digits && digits - 1 < 15;
  out.decimals &= 15;
  return out;
}

inline constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// Parses the `size` bytes at p if they are a short number without an exponent. The result equals
// that of parse_csv_number bit for bit. Returns false for all other text, for which the caller must
// use parse_csv_number. Reads up to 17 bytes, whatever `size` is.
template <class T>
bool parse_plain(const char* p, uint32_t size, T& out) {
  const uint32_t sign = *p == '-' ? 1 : 0;
  const PlainDigits digits = plain_digits(p + sign, size - sign);
  if constexpr (std::is_floating_point_v<T>) {
    // A number of 15 digits and these powers of ten are exact in double, so their quotient is
    // correctly rounded. The sign is set without a branch, because it is practically random too.
    const auto magnitude =
        std::bit_cast<uint64_t>(static_cast<double>(digits.value) / kPowersOfTen[digits.decimals]);
    out = static_cast<T>(std::bit_cast<double>(magnitude | static_cast<uint64_t>(sign) << 63));
    if constexpr (std::is_same_v<T, double>) return digits.plain;
    // Rounding the double once more gives the nearest float, unless the double lies halfway between
    // two floats.
    constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1;
    const bool halfway = (magnitude & kDropped) == (kDropped + 1) / 2;
    return digits.plain && !halfway;
  } else {
    const int64_t negative = -static_cast<int64_t>(sign);
    out = static_cast<T>((digits.value ^ negative) - negative);
    constexpr int64_t kMost = std::numeric_limits<T>::max();
    return digits.plain && !digits.has_point && digits.value <= kMost;
  }
}

}  // namespace keel::data
