// PerReplica holds one value for each replica of this process.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

namespace keel::distribute {

// A vector of values by local replica. operator[] throws std::out_of_range for an invalid index.
template <class T>
class PerReplica {
  static_assert(!std::is_same_v<T, bool>,
                "replicas write their values concurrently, and elements of a vector of bool share "
                "memory");

 public:
  PerReplica() = default;
  explicit PerReplica(std::vector<T> values) : values_(std::move(values)) {}  // by local replica
  const std::vector<T>& values() const { return values_; }
  const T& operator[](int replica) const { return values_.at(replica); }
  int size() const { return static_cast<int>(values_.size()); }

 private:
  std::vector<T> values_;
};

}  // namespace keel::distribute
