#include <keel/framework/base/internal/regular_expression.h>

#include <regex>

namespace keel {

struct RegularExpression::Compiled {
  explicit Compiled(const std::string& pattern) : regex(pattern) {}
  const std::regex regex;
};

RegularExpression::RegularExpression(const std::string& pattern)
    : compiled_(std::make_shared<const Compiled>(pattern)) {}

bool RegularExpression::matches(const std::string& text) const {
  return std::regex_match(text, compiled_->regex);
}

bool RegularExpression::matches_part_of(const std::string& text) const {
  return std::regex_search(text, compiled_->regex);
}

}  // namespace keel
