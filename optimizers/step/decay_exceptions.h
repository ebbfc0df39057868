// DecayExceptions: which variables weight decay leaves alone.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// Thread safe.
class DecayExceptions {
 public:
  // Replaces what was excepted. ValueError, with `caller`, for a malformed pattern.
  void set(const std::string& caller, const std::vector<Variable>& variables,
           const std::vector<std::string>& patterns);
  bool empty() const;
  // By its identity, or because a pattern is found in its name.
  bool contains(const Variable& variable) const;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::vector<std::regex> patterns_;
  mutable std::map<uint64_t, bool> known_;  // by Variable::id; what was listed, and answers
  bool empty_ = true;
};

}  // namespace keel
