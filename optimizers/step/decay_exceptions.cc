#include <keel/optimizers/step/decay_exceptions.h>

#include <algorithm>
#include <stdexcept>

namespace keel {

void DecayExceptions::set(const std::string& caller, const std::vector<Variable>& variables,
                          const std::vector<std::string>& patterns) {
  std::vector<RegularExpression> compiled;
  for (const std::string& pattern : patterns) {
    try {
      compiled.emplace_back(pattern);
    } catch (const std::runtime_error& error) {
      throw ValueError(caller, ": '", pattern,
                       "' is not a valid regular expression: ", error.what(),
                       "; use ECMAScript syntax");
    }
  }
  const std::lock_guard lock(mutex_);
  patterns_ = std::move(compiled);
  known_.clear();
  for (const Variable& variable : variables) known_.emplace(variable.id(), true);
  empty_ = variables.empty() && patterns.empty();
}

bool DecayExceptions::empty() const {
  const std::lock_guard lock(mutex_);
  return empty_;
}

bool DecayExceptions::contains(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  if (empty_) return false;
  const auto found = known_.find(variable.id());
  if (found != known_.end()) return found->second;
  const bool is = std::ranges::any_of(
      patterns_, [&](const RegularExpression& p) { return p.matches_part_of(variable.name()); });
  known_.emplace(variable.id(), is);
  return is;
}

}  // namespace keel
