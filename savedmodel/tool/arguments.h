// The words after a command of the tool: flags with their values, and the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keel::tool {

struct Flag {
  std::string name;                      // without "--"
  std::vector<std::string> values = {};  // what each of its values is: {"FILE"}
  std::string help = {};
};

struct Syntax {
  std::string command;
  std::vector<std::string> operands;  // {"MODEL", "INPUTS..."}, all of them needed; the last one
                                      // as often as one likes if it ends in "..."
  std::vector<Flag> flags = {};

  std::string usage() const;  // "keel predict MODEL INPUTS... [--atol A]"
};

class Arguments {
 public:
  // "--flag VALUE", "--flag=VALUE" and operands in any order. ValueError for an unknown flag, one
  // given twice or without its values, and another number of operands.
  Arguments(const Syntax& syntax, const std::vector<std::string>& words);

  const std::string& operand(size_t position) const { return operands_.at(position); }
  std::vector<std::string> operands_from(size_t position) const;
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  // All values of a flag; none if it was not given.
  std::vector<std::string> values(const std::string& flag) const;
  std::optional<std::string> value(const std::string& flag) const;
  // ValueError for text that is no number, or below `least`.
  double number(const std::string& flag, double otherwise, double least) const;
  int64_t integer(const std::string& flag, int64_t otherwise, int64_t least) const;

 private:
  std::string caller_;
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>> flags_;
};

}  // namespace keel::tool
