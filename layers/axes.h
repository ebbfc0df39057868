// Small values of layer options that configs write in two ways: one item, or a list of them.
#pragma once

#include <initializer_list>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel {

// One axis or several. Written to configs as it was given.
class Axes {
 public:
  Axes(int axis = 0) : values_{axis}, is_list_(false) {}  // NOLINT: implicit
  Axes(std::initializer_list<int> axes) : Axes(std::vector<int>(axes)) {}
  explicit Axes(std::vector<int> axes) : values_(std::move(axes)), is_list_(true) {}

  const std::vector<int>& values() const { return values_; }
  bool is_list() const { return is_list_; }
  // Counted from 0 for tensors of this shape, ascending. ValueError, naming `caller`, for an axis
  // out of range, one given twice, or none.
  std::vector<int> normalized(const Shape& shape, const std::string& caller) const;

 private:
  std::vector<int> values_;
  bool is_list_;
};

Config encode(const Axes& axes);
void decode(const Config& config, Axes& axes);

// One number or several. Written to configs as it was given.
class ScalarOrList {
 public:
  ScalarOrList(double value = 0) : values_{value}, is_list_(false) {}  // NOLINT: implicit
  ScalarOrList(std::initializer_list<double> values) : ScalarOrList(std::vector<double>(values)) {}
  explicit ScalarOrList(std::vector<double> values) : values_(std::move(values)), is_list_(true) {}

  const std::vector<double>& values() const { return values_; }
  bool is_list() const { return is_list_; }
  // A scalar, or a vector. `dtype` is floating.
  Tensor tensor(DType dtype) const;

 private:
  std::vector<double> values_;
  bool is_list_;
};

Config encode(const ScalarOrList& numbers);
void decode(const Config& config, ScalarOrList& numbers);  // nested lists are flattened

// A length in steps of a window over a sequence: an integer, which configs write as a list of one.
class Length1D {
 public:
  Length1D(int64_t value = 0) : value_(value) {}  // NOLINT: implicit
  operator int64_t() const { return value_; }     // NOLINT: implicit

 private:
  int64_t value_;
};

Config encode(const Length1D& steps);
void decode(const Config& config, Length1D& steps);  // one, or a list of one

// How much before and after; one number stands for both. Written as a list of two.
struct Padding1D {
  Padding1D(int64_t both = 0) : before(both), after(both) {}  // NOLINT: implicit
  Padding1D(int64_t before_, int64_t after_) : before(before_), after(after_) {}
  int64_t before, after;
};

Config encode(const Padding1D& margins);
void decode(const Config& config, Padding1D& margins);

}  // namespace keel
