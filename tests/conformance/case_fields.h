// Fields of a reference case: what was asked for is known, all else is unknown; and the comparison
// of nested lists of numbers with what the library computed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel::conformance {

// A dict that remembers which of its keys were asked for.
class Fields {
 public:
  // ValueError, naming `caller`, if `dict` is no dict.
  Fields(const Config& dict, std::string caller);

  const Config& need(const std::string& key);  // ValueError, naming the key, if absent or null
  const Config* find(const std::string& key);  // null if absent or null
  double number(const std::string& key, double otherwise);
  bool boolean(const std::string& key, bool otherwise);
  int64_t integer(const std::string& key, int64_t otherwise);
  std::string string(const std::string& key, const std::string& otherwise);

  std::vector<std::string> keys() const;
  void finish() const;  // ValueError naming the keys that nobody has asked for

 private:
  const Config& dict_;
  const std::string caller_;
  std::set<std::string> asked_;
};

// A list of numbers, or of lists of equal lengths, to any depth.
struct Array {
  std::vector<int64_t> shape = {};
  std::vector<double> values = {};
};
Array array_of(const Config& nested);  // ValueError for other things
Array array_of(const Tensor& tensor);  // float32 or int64
Tensor float_tensor(const Array& array);
std::vector<int64_t> integers_of(const Config& list);

// Collects where expected and got differ: |got - expected| must be at most
// rtol |expected| + atol + of_largest max |expected|, the largest of its array.
class Comparison {
 public:
  Comparison(double rtol, double atol, double of_largest = 0)
      : rtol_(rtol), atol_(atol), of_largest_(of_largest) {}
  void compare(const std::string& what, const Array& expected, const Array& got);
  void compare(const std::string& what, int64_t expected, int64_t got);
  void compare(const std::string& what, double expected, double got);
  // A difference of another kind.
  void report(const std::string& what, const std::string& expected, const std::string& got);
  const std::string& differences() const { return differences_; }  // empty: none

 private:
  const double rtol_, atol_, of_largest_;
  std::string differences_;
};

}  // namespace keel::conformance
