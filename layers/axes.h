// Types of layer options that a config may write either as one item or as a list of items.
#pragma once

#include <array>
#include <initializer_list>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel {

// One axis or a list of axes. Configs keep the form that was given.
class Axes {
 public:
  // Stores one axis, or a list. Negative axes count from the last.
  Axes(int axis = 0) : values_{axis}, is_list_(false) {}  // NOLINT: implicit
  Axes(std::initializer_list<int> axes) : Axes(std::vector<int>(axes)) {}
  explicit Axes(std::vector<int> axes) : values_(std::move(axes)), is_list_(true) {}

  const std::vector<int>& values() const { return values_; }  // as given
  bool is_list() const { return is_list_; }                   // true if given as a list
  // Returns the axes counted from 0 for tensors of this shape, in ascending order. Throws
  // ValueError, naming `caller`, if an axis is out of range or given twice, or if there is none.
  std::vector<int> normalized(const Shape& shape, const std::string& caller) const;

 private:
  std::vector<int> values_;
  bool is_list_;
};

// Converts to and from an integer or a list of integers.
Config encode(const Axes& axes);
void decode(const Config& config, Axes& axes);

// One number or a list of numbers. Configs keep the form that was given.
class ScalarOrList {
 public:
  // Stores one number, or a list.
  ScalarOrList(double value = 0) : values_{value}, is_list_(false) {}  // NOLINT: implicit
  ScalarOrList(std::initializer_list<double> values) : ScalarOrList(std::vector<double>(values)) {}
  explicit ScalarOrList(std::vector<double> values) : values_(std::move(values)), is_list_(true) {}

  const std::vector<double>& values() const { return values_; }  // as given
  bool is_list() const { return is_list_; }                      // true if given as a list
  // Returns a scalar tensor for one number, or a vector for a list. `dtype` must be floating point.
  Tensor tensor(DType dtype) const;

 private:
  std::vector<double> values_;
  bool is_list_;
};

// Converts to and from a number or a list of numbers. Nested lists are flattened when read.
Config encode(const ScalarOrList& numbers);
void decode(const Config& config, ScalarOrList& numbers);

// One length for each of N spatial axes, such as the size of a window. Configs write a list.
template <int N>
class Lengths {
 public:
  // Sets all lengths to one number, or each of them. Throws ValueError for a list of another
  // length.
  Lengths(int64_t all = 0) { values_.fill(all); }  // NOLINT: implicit
  Lengths(std::initializer_list<int64_t> values) : Lengths(std::vector<int64_t>(values)) {}
  explicit Lengths(const std::vector<int64_t>& values);

  // Returns the length of an axis. A single length also converts to the integer.
  int64_t operator[](int axis) const { return values_[axis]; }
  operator int64_t() const  // NOLINT: implicit
    requires(N == 1)
  {
    return values_[0];
  }
  std::vector<int64_t> values() const { return {values_.begin(), values_.end()}; }  // for all axes

 private:
  std::array<int64_t, N> values_;
};
using Length1D = Lengths<1>;  // for steps of a sequence
using Length2D = Lengths<2>;  // for height and width
using Length3D = Lengths<3>;  // for three axes

// Converts to and from a list of N integers. A plain integer, which sets all lengths, can also be
// read. Throws ValueError for a list of another length.
template <int N>
Config encode(const Lengths<N>& lengths);
template <int N>
void decode(const Config& config, Lengths<N>& lengths);

// The number of steps to add or remove before and after a sequence. One number sets both. Configs
// write a list of two.
struct Padding1D {
  // Sets both numbers, or each of them.
  Padding1D(int64_t both = 0) : before(both), after(both) {}  // NOLINT: implicit
  Padding1D(int64_t before_, int64_t after_) : before(before_), after(after_) {}
  int64_t before;  // number of steps before the sequence
  int64_t after;   // number of steps after the sequence
};

// Converts to and from a list of two integers. A plain integer, which sets both, can also be read.
// Throws ValueError for a list of another length.
Config encode(const Padding1D& margins);
void decode(const Config& config, Padding1D& margins);

// A Padding1D for each of N spatial axes.
template <int N>
class Paddings {
 public:
  // Sets the number of steps at all ends, or at both ends of each axis: {1, 2} and {{1, 0}, {2,
  // 2}}. Throws ValueError for a list of another length.
  Paddings(int64_t all = 0) { values_.fill(Padding1D(all)); }  // NOLINT: implicit
  Paddings(std::initializer_list<Padding1D> values) : Paddings(std::vector<Padding1D>(values)) {}
  explicit Paddings(const std::vector<Padding1D>& values);

  const Padding1D& operator[](int axis) const { return values_[axis]; }  // for one axis

 private:
  std::array<Padding1D, N> values_;
};
using Padding2D = Paddings<2>;  // for height and width
using Padding3D = Paddings<3>;  // for three axes

// Converts to and from a list of N lists of two integers. An integer in place of a list sets both
// numbers of an axis, and a plain integer all numbers. Throws ValueError for lists of other
// lengths.
template <int N>
Config encode(const Paddings<N>& paddings);
template <int N>
void decode(const Config& config, Paddings<N>& paddings);

}  // namespace keel
