#include <keel/savedmodel/tool/arguments.h>

#include <algorithm>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/tool/number_text.h>

namespace keel::tool {
namespace {

constexpr const char* kRepeated = "...";

}  // namespace

std::string Syntax::usage() const {
  std::string out = "keel " + command;
  for (const std::string& operand : operands) out += " " + operand;
  for (const Flag& flag : flags) {
    out += " [--" + flag.name;
    for (const std::string& value : flag.values) out += " " + value;
    out += "]";
  }
  return out;
}

Arguments::Arguments(const Syntax& syntax, const std::vector<std::string>& words)
    : caller_("keel " + syntax.command) {
  const std::string hint = "; see keel help " + syntax.command;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") {
      operands_.push_back(words[i]);
      continue;
    }
    const size_t equals = words[i].find('=');
    const std::string word = words[i].substr(0, equals);
    const auto flag =
        std::ranges::find_if(syntax.flags, [&](const Flag& f) { return "--" + f.name == word; });
    if (flag == syntax.flags.end()) throw ValueError(caller_, ": unknown flag '", word, "'", hint);
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(words[i].substr(equals + 1));
    while (values.size() < flag->values.size() && i + 1 < words.size() &&
           !words[i + 1].starts_with("--")) {
      values.push_back(words[++i]);
    }
    if (values.size() != flag->values.size()) {
      throw ValueError(caller_, ": ", word, " needs ", flag->values.size(), " values, received ",
                       values.size(), hint);
    }
    if (!flags_.emplace(flag->name, std::move(values)).second) {
      throw ValueError(caller_, ": ", word, " is given twice", hint);
    }
  }
  const bool repeats = !syntax.operands.empty() && syntax.operands.back().ends_with(kRepeated);
  if (operands_.size() > syntax.operands.size() && !repeats) {
    throw ValueError(caller_, ": unexpected argument '", operands_[syntax.operands.size()], "'",
                     hint);
  }
  if (operands_.size() < syntax.operands.size()) {
    const std::string& missing = syntax.operands[operands_.size()];
    throw ValueError(caller_, ": ", missing.substr(0, missing.find(kRepeated)), " is missing",
                     hint);
  }
}

std::vector<std::string> Arguments::operands_from(size_t position) const {
  return {operands_.begin() + static_cast<std::ptrdiff_t>(position), operands_.end()};
}

std::vector<std::string> Arguments::values(const std::string& flag) const {
  const auto at = flags_.find(flag);
  return at == flags_.end() ? std::vector<std::string>() : at->second;
}

std::optional<std::string> Arguments::value(const std::string& flag) const {
  const auto at = flags_.find(flag);
  if (at == flags_.end()) return {};
  return at->second.at(0);
}

double Arguments::number(const std::string& flag, double otherwise, double least) const {
  const std::optional<std::string> text = value(flag);
  if (!text) return otherwise;
  const auto parsed = parse_number<double>(*text);
  if (!parsed || !(*parsed >= least)) {
    throw ValueError(caller_, ": --", flag, " must be a number of at least ", least, ", received '",
                     *text, "'");
  }
  return *parsed;
}

int64_t Arguments::integer(const std::string& flag, int64_t otherwise, int64_t least) const {
  const std::optional<std::string> text = value(flag);
  if (!text) return otherwise;
  const auto parsed = parse_number<int64_t>(*text);
  if (!parsed || *parsed < least) {
    throw ValueError(caller_, ": --", flag, " must be a whole number of at least ", least,
                     ", received '", *text, "'");
  }
  return *parsed;
}

}  // namespace keel::tool
