#include <keel/framework/base/shape.h>

#include <algorithm>
#include <ostream>

#include <keel/framework/base/errors.h>

namespace keel {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > kMaxRank) {
    throw ValueError("Shape: rank must be at most ", kMaxRank, ", received ", dims.size());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < kUnknown)
      throw ValueError("Shape: dimension ", i, " must be -1 (unknown) or more, received ", dims[i]);
    dims_[i] = dims[i];
  }
}

int Shape::normalize_axis(int axis) const {
  const int positive = axis < 0 ? axis + rank_ : axis;
  if (positive < 0 || positive >= rank_) {
    throw ValueError("Shape: axis ", axis, " is out of range for shape ", *this,
                     "; pass an axis in [-rank, rank)");
  }
  return positive;
}

int64_t Shape::size() const {
  int64_t product = 1;
  for (int64_t dim : dims()) {
    if (dim == kUnknown) {
      throw ValueError("Shape: the size of ", *this,
                       " is unknown; it must have no dimension of -1");
    }
    if (__builtin_mul_overflow(product, dim, &product)) {
      throw ValueError("Shape: the size of ", *this, " overflows 64 bits; use smaller dimensions");
    }
  }
  return product;
}

bool Shape::fully_defined() const {
  return std::none_of(dims().begin(), dims().end(), [](int64_t d) { return d == kUnknown; });
}

Shape Shape::with(int axis, int64_t dim) const {
  Shape out = *this;
  out.dims_[normalize_axis(axis)] = dim;
  return out;
}

Shape Shape::without(int axis) const {
  const int at = normalize_axis(axis);
  return slice(0, at) + slice(at + 1, rank_);
}

Shape Shape::inserted(int axis, int64_t dim) const {
  const int at = axis < 0 ? axis + rank_ + 1 : axis;
  if (at < 0 || at > rank_) {
    throw ValueError("Shape: axis ", axis, " is out of range for an insertion into shape ", *this,
                     "; pass an axis in [-rank - 1, rank]");
  }
  return slice(0, at) + Shape{dim} + slice(at, rank_);
}

Shape Shape::slice(int begin, int end) const {
  return Shape(dims().subspan(begin, static_cast<size_t>(end - begin)));
}

Shape operator+(const Shape& a, const Shape& b) {
  std::vector<int64_t> all(a.dims().begin(), a.dims().end());
  all.insert(all.end(), b.dims().begin(), b.dims().end());
  return Shape(all);
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) out << ", ";
    if (shape[i] == kUnknown) {
      out << '?';
    } else {
      out << shape[i];
    }
  }
  return out << (shape.rank() == 1 ? ",)" : ")");
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* caller) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a[-i] : 1;
    const int64_t y = i <= b.rank() ? b[-i] : 1;
    int64_t& out = dims[rank - i];
    if (x == y || y == 1) {
      out = x;
    } else if (x == 1) {
      out = y;
    } else if (x == kUnknown || y == kUnknown) {
      out = std::max(x, y);
    } else {
      throw ValueError(caller, ": shapes ", a, " and ", b,
                       " cannot be broadcast to a common shape; each dimension must be equal or 1");
    }
  }
  return Shape(dims);
}

bool compatible(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.dims(), b.dims(), [](int64_t x, int64_t y) {
    return x == y || x == kUnknown || y == kUnknown;
  });
}

}  // namespace keel
