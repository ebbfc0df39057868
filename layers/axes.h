// Types of layer options that a config may write either as one item or as a list of items.
#pragma once

#include <initializer_list>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel {

// One axis or a list of axes. Configs keep the form that was given.
class Axes {
 public:
  Axes(int axis = 0) : values_{axis}, is_list_(false) {}  // NOLINT: implicit
  Axes(std::initializer_list<int> axes) : Axes(std::vector<int>(axes)) {}
  explicit Axes(std::vector<int> axes) : values_(std::move(axes)), is_list_(true) {}

  const std::vector<int>& values() const { return values_; }
  bool is_list() const { return is_list_; }  // true if given as a list
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
  ScalarOrList(double value = 0) : values_{value}, is_list_(false) {}  // NOLINT: implicit
  ScalarOrList(std::initializer_list<double> values) : ScalarOrList(std::vector<double>(values)) {}
  explicit ScalarOrList(std::vector<double> values) : values_(std::move(values)), is_list_(true) {}

  const std::vector<double>& values() const { return values_; }
  bool is_list() const { return is_list_; }  // true if given as a list
  // Returns a scalar tensor for one number, or a vector for a list. `dtype` must be floating point.
  Tensor tensor(DType dtype) const;

 private:
  std::vector<double> values_;
  bool is_list_;
};

// Converts to and from a number or a list of numbers. Nested lists are flattened when read.
Config encode(const ScalarOrList& numbers);
void decode(const Config& config, ScalarOrList& numbers);

// The length in steps of a window over a sequence. Configs write this integer as a list of one.
class Length1D {
 public:
  Length1D(int64_t value = 0) : value_(value) {}  // NOLINT: implicit
  operator int64_t() const { return value_; }     // NOLINT: implicit

 private:
  int64_t value_;
};

// Converts to and from a list of one integer. A plain integer can also be read. Throws ValueError
// for a list of another length.
Config encode(const Length1D& steps);
void decode(const Config& config, Length1D& steps);

// The number of steps to add or remove before and after a sequence. One number sets both. Configs
// write a list of two.
struct Padding1D {
  Padding1D(int64_t both = 0) : before(both), after(both) {}  // NOLINT: implicit
  Padding1D(int64_t before_, int64_t after_) : before(before_), after(after_) {}
  int64_t before, after;
};

// Converts to and from a list of two integers. A plain integer, which sets both, can also be read.
// Throws ValueError for a list of another length.
Config encode(const Padding1D& margins);
void decode(const Config& config, Padding1D& margins);

}  // namespace keel
