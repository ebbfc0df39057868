// DecayExceptions: the variables that weight decay leaves unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/base/internal/regular_expression.h>

namespace keel {

// A set of variables, given by identity or by patterns of their names. Thread safe.
class DecayExceptions {
 public:
  // Replaces the set. Throws ValueError, naming `caller`, if a pattern is malformed.
  void set(const std::string& caller, const std::vector<Variable>& variables,
           const std::vector<std::string>& patterns);
  bool empty() const;
  // Returns true if the variable was listed, or if a pattern matches a part of its name.
  bool contains(const Variable& variable) const;

 private:
  mutable std::mutex mutex_;  // guards all members below
  std::vector<RegularExpression> patterns_;
  mutable std::map<uint64_t, bool> known_;  // by Variable::id: listed variables and cached answers
  bool empty_ = true;
};

}  // namespace keel
