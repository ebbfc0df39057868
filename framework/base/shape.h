// Shape: the dimensions of a dense row-major tensor. TensorSpec: the shape, dtype and layout of a
// tensor, known before the tensor has values.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <keel/framework/base/dtype.h>

namespace keel {

inline constexpr int64_t kUnknown = -1;  // a dimension that is not known until run time

// The dimensions of a tensor. Rank 0 is a scalar. A Shape holds at most kMaxRank dimensions inline
// and owns no heap memory. Constructors throw ValueError for more dimensions and for a dimension
// below kUnknown. Every function with an `axis` throws ValueError if it is out of range.
class Shape {
 public:
  // The largest rank.
  static constexpr int kMaxRank = 8;

  // Makes the shape of a scalar, or a shape with the given dimensions.
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  // Returns the number of dimensions.
  int rank() const { return rank_; }
  // Returns the dimension at an axis. A negative axis counts from the end.
  int64_t operator[](int axis) const { return dims_[normalize_axis(axis)]; }
  // Returns `axis` as a number in [0, rank): -1 becomes rank - 1.
  int normalize_axis(int axis) const;
  // Returns the product of the dimensions, which is 1 for a scalar. Throws ValueError if a
  // dimension is unknown or if the product overflows 64 bits.
  int64_t size() const;
  // Returns true if no dimension is unknown.
  bool fully_defined() const;
  // Returns all dimensions. The span is valid as long as the shape.
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  Shape with(int axis, int64_t dim) const;  // a copy with one dimension replaced
  Shape without(int axis) const;            // a copy with one dimension removed
  // Returns a copy with `dim` inserted so that result[axis] == dim, for an axis in [-rank - 1,
  // rank].
  Shape inserted(int axis, int64_t dim) const;
  // Returns a copy without the last dimension.
  Shape drop_last() const { return without(-1); }
  // Returns the dimensions [begin, end). Requires 0 <= begin <= end <= rank().
  Shape slice(int begin, int end) const;
  friend Shape operator+(const Shape& a, const Shape& b);  // concatenation

  friend bool operator==(const Shape& a, const Shape& b);
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);  // prints e.g. "(?, 4)"

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  int rank_ = 0;
};

// Returns the shape of an elementwise operation on `a` and `b` under NumPy broadcasting. An unknown
// dimension stays unknown if the other one is 1 or unknown, and otherwise becomes the other one.
// Throws ValueError, with `caller` in the message, if the shapes do not broadcast.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* caller);

// Returns true if the ranks are equal and every dimension known in both shapes agrees.
bool compatible(const Shape& a, const Shape& b);

// The storage layout of a tensor.
enum class Layout : uint8_t {
  kDense,   // a Tensor
  kRagged,  // a RaggedTensor
  kSparse   // a SparseTensor
};

// The shape, dtype and layout of a tensor. Dimension 0 is the batch by convention. Unknown
// dimensions are kUnknown. The shape of a ragged tensor is [batch, kUnknown, ...]; that of a sparse
// tensor is its dense shape.
struct TensorSpec {
  Shape shape = {};                // shape of the dense equivalent; default: a scalar
  DType dtype = DType::kFloat32;   // dtype of the values
  Layout layout = Layout::kDense;  // how the values are stored

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace keel
