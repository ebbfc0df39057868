// Shape: the dimensions of a dense row-major tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <vector>

namespace keel {

inline constexpr int64_t kUnknown = -1;  // a dimension not known until run time

// Rank 0 is a scalar. At most kMaxRank dimensions, held inline: a Shape never allocates.
// ValueError for more dimensions, for a dimension below kUnknown, and for an axis out of range.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[normalize_axis(axis)]; }
  // Axis in [0, rank); a negative one counts from the end.
  int normalize_axis(int axis) const;
  int64_t size() const;  // product of the dimensions; ValueError if any is unknown
  bool fully_defined() const;
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  Shape with(int axis, int64_t dim) const;      // one dimension replaced
  Shape without(int axis) const;                // one dimension dropped
  Shape inserted(int axis, int64_t dim) const;  // one dimension more; axis in [0, rank]
  Shape drop_last() const { return without(-1); }
  // The dimensions [begin, end).
  Shape slice(int begin, int end) const;
  friend Shape operator+(const Shape& a, const Shape& b);  // the dimensions of a, then of b

  friend bool operator==(const Shape& a, const Shape& b);
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);  // "(?, 4)"

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  int rank_ = 0;
};

// Shape of a op b under numpy broadcasting. An unknown dimension against 1 or itself stays
// unknown; against a known one it becomes that. ValueError, naming `caller`, if they do not agree.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* caller);

// True if every dimension known on both sides agrees and the ranks are equal.
bool compatible(const Shape& a, const Shape& b);

}  // namespace keel
