// RegularExpression: std::regex in ECMAScript syntax, compiled in one source. The templates of
// <regex> take seconds to compile in every source that uses them.
#pragma once

#include <memory>
#include <string>

namespace keel {

// A constant pattern. Copies are cheap. Thread safe.
class RegularExpression {
 public:
  // Throws std::runtime_error, with the text of std::regex_error, if the pattern is malformed.
  explicit RegularExpression(const std::string& pattern);
  // Returns true if the pattern matches the whole text.
  bool matches(const std::string& text) const;
  // Returns true if the pattern matches a part of the text.
  bool matches_part_of(const std::string& text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // never null
};

}  // namespace keel
