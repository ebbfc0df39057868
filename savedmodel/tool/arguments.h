// Parses the command line arguments of a command: flags with their values, and operands.
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
  std::vector<std::string> values = {};  // the placeholder of each value in the help: {"FILE"}
  std::string help = {};
};

// The arguments that a command accepts.
struct Syntax {
  std::string command;
  // The placeholders of the operands, all required: {"MODEL", "INPUTS..."}. The last one may be
  // repeated if it ends in "...".
  std::vector<std::string> operands;
  std::vector<Flag> flags = {};

  std::string usage() const;  // "keel predict MODEL INPUTS... [--atol A]"
};

// The parsed arguments of a command.
class Arguments {
 public:
  // Parses "--flag VALUE", "--flag=VALUE" and operands in any order. Throws ValueError for a flag
  // that is unknown, repeated or without its values, and for a wrong number of operands.
  Arguments(const Syntax& syntax, const std::vector<std::string>& words);

  const std::string& operand(size_t position) const { return operands_.at(position); }
  std::vector<std::string> operands_from(size_t position) const;
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  // Return all values or the only value of a flag, or nothing if the flag was not given.
  std::vector<std::string> values(const std::string& flag) const;
  std::optional<std::string> value(const std::string& flag) const;
  // Return the value of a flag as a number, or `otherwise` if the flag was not given. Throw
  // ValueError if it is not a number or below `least`.
  double number(const std::string& flag, double otherwise, double least) const;
  int64_t integer(const std::string& flag, int64_t otherwise, int64_t least) const;

 private:
  std::string caller_;
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>> flags_;
};

}  // namespace keel::tool
