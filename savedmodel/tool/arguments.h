// Parses the words after a command of the tool: flags with their values, and operands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keel::tool {

// A flag of a command.
struct Flag {
  std::string name;                      // without "--"
  std::vector<std::string> values = {};  // names of its values: {"FILE"}
  std::string help = {};
};

// The operands and flags of a command.
struct Syntax {
  std::string command;
  std::vector<std::string> operands;  // {"MODEL", "INPUTS..."}, all required; the last one
                                      // may be repeated if it ends in "..."
  std::vector<Flag> flags = {};

  std::string usage() const;  // "keel predict MODEL INPUTS... [--atol A]"
};

// The parsed arguments of a command.
class Arguments {
 public:
  // Accepts "--flag VALUE", "--flag=VALUE" and operands in any order. Throws ValueError for an
  // unknown flag, a flag that is given twice or without its values, and a wrong number of operands.
  Arguments(const Syntax& syntax, const std::vector<std::string>& words);

  const std::string& operand(size_t position) const { return operands_.at(position); }
  std::vector<std::string> operands_from(size_t position) const;
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  // Returns all values of a flag; empty if the flag was not given.
  std::vector<std::string> values(const std::string& flag) const;
  std::optional<std::string> value(const std::string& flag) const;
  // Return the value of a flag, or `otherwise` if it was not given. Throw ValueError for text that
  // is not a number, or for a number below `least`.
  double number(const std::string& flag, double otherwise, double least) const;
  int64_t integer(const std::string& flag, int64_t otherwise, int64_t least) const;

 private:
  std::string caller_;
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>> flags_;
};

}  // namespace keel::tool
