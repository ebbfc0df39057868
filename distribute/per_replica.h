// PerReplica: one value for each replica of this process.
#pragma once

#include <utility>
#include <vector>

namespace keel::distribute {

template <class T>
class PerReplica {
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
