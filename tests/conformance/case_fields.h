// Access to the fields of a reference case, which detects unknown fields, and comparison of nested
// lists of numbers with the library's results.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel::conformance {

// A dict that records which of its keys were read.
class Fields {
 public:
  // Throws ValueError, naming `caller`, if `dict` is not a dict.
  Fields(const Config& dict, std::string caller);

  const Config& need(const std::string& key);  // throws ValueError if absent or null
  const Config* find(const std::string& key);  // null if absent or null
  double number(const std::string& key, double otherwise);
  bool boolean(const std::string& key, bool otherwise);
  int64_t integer(const std::string& key, int64_t otherwise);
  std::string string(const std::string& key, const std::string& otherwise);

  std::vector<std::string> keys() const;
  void finish() const;  // throws ValueError, naming the keys that were not read

 private:
  const Config& dict_;
  const std::string caller_;
  std::set<std::string> asked_;
};

// A nested list of numbers with equal lengths at each depth.
struct Array {
  std::vector<int64_t> shape = {};
  std::vector<double> values = {};
};
Array array_of(const Config& nested);  // throws ValueError for other values
Array array_of(const Tensor& tensor);  // float32 or int64
Tensor float_tensor(const Array& array);
std::vector<int64_t> integers_of(const Config& list);

// Collects differences. |got - expected| must be at most rtol |expected| + atol + of_largest max
// |expected|, where the maximum is over the array.
class Comparison {
 public:
  Comparison(double rtol, double atol, double of_largest = 0)
      : rtol_(rtol), atol_(atol), of_largest_(of_largest) {}
  void compare(const std::string& what, const Array& expected, const Array& got);
  void compare(const std::string& what, int64_t expected, int64_t got);
  void compare(const std::string& what, double expected, double got);
  // Adds a difference of another kind.
  void report(const std::string& what, const std::string& expected, const std::string& got);
  const std::string& differences() const { return differences_; }  // empty: none

 private:
  const double rtol_, atol_, of_largest_;
  std::string differences_;
};

}  // namespace keel::conformance
