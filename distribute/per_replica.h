// PerReplica: one value for each replica of this process.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

namespace keel::distribute {

template <class T>
class PerReplica {
  static_assert(!std::is_same_v<T, bool>,
                "replicas write their values at once, and a vector of bool has no place for each");

 public:
  PerReplica() = default;
  explicit PerReplica(std::vector<T> values) : values_(std::move(values)) {}
  const std::vector<T>& values() const { return values_; }
  const T& operator[](int replica) const { return values_.at(replica); }
  int size() const { return static_cast<int>(values_.size()); }

 private:
  std::vector<T> values_;
};

}  // namespace keel::distribute
