#include <keel/savedmodel/tool/command_line.h>

#include <CLI/CLI.hpp>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <algorithm>
#include <cmath>
#include <iostream>

#include <keel/framework/base/internal/text.h>

namespace keel::tool {
namespace {

constexpr int kBadInput = 2;
constexpr size_t kColumn = 32, kWidth = 100;

// Breaks the descriptions of options into lines.
class WrappedHelp final : public CLI::Formatter {
 public:
  WrappedHelp() {
    column_width(kColumn);
    label("Positionals", "Arguments");
    label("SUBCOMMAND", "COMMAND");
    label("OPTIONS", "OPTIONS...");
  }

 private:
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::vector<std::string> words = absl::StrSplit(
        option->get_description(), absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty());
    std::string out;
    size_t line = 0;
    for (const std::string& word : words) {
      if (line > 0 && kColumn + line + 1 + word.size() > kWidth) {
        out += '\n';
        line = 0;
      } else if (line > 0) {
        out += ' ';
        ++line;
      }
      out += word;
      line += word.size();
    }
    return out;
  }
};

// Describes the limits: "at least 0 and below 1".
std::string describe(const Limits& limits) {
  constexpr Limits kNone;
  std::string out;
  const auto add = [&](const char* what, double value) {
    out += (out.empty() ? "" : " and ") + absl::StrCat(what, value);
  };
  if (limits.least > kNone.least) add("at least ", limits.least);
  if (limits.above > kNone.above) add("above ", limits.above);
  if (limits.most < kNone.most) add("at most ", limits.most);
  if (limits.below < kNone.below) add("below ", limits.below);
  return out;
}

// Returns an error, or an empty text if the text is a number within the limits.
template <class T>
std::string check_number(const Limits& limits, const std::string& text) {
  const std::optional<T> parsed = parse_number<T>(text);
  const std::string kind = std::is_integral_v<T> ? "a whole number" : "a number";
  if (!parsed) return "must be " + kind + ", received '" + text + "'";
  const auto value = static_cast<double>(*parsed);
  const bool inside = std::isfinite(value) && value >= limits.least && value <= limits.most &&
                      !(value <= limits.above) && !(value >= limits.below);
  if (inside) return {};
  const std::string range = describe(limits);
  return "must be " + (range.empty() ? "finite" : range) + ", received '" + text + "'";
}

std::string check_allowed(const std::vector<std::string>& allowed, const std::string& text) {
  if (std::ranges::find(allowed, text) != allowed.end()) return {};
  return "must be " + CLI::detail::join(allowed, ", ") + "; received '" + text + "'";
}

// CLI11 reads "010" as 8 and limits numbers that are too large, so numbers are parsed here.
template <class T, class Variable>
CLI::Option* add_number(CLI::App& app, const std::string& name, Variable* value,
                        const std::string& help, const Limits& limits) {
  return app
      .add_option_function<std::string>(
          name, [value](const std::string& text) { *value = *parse_number<T>(text); }, help)
      ->type_name(std::is_integral_v<T> ? "INT" : "FLOAT")
      ->check([limits](const std::string& text) { return check_number<T>(limits, text); });
}

CLI::Option* add_to(CLI::App& app, const std::string& name, CommandLine::Target target,
                    const std::string& help, const Limits& limits) {
  return std::visit(
      [&]<class T>(T* value) -> CLI::Option* {
        if constexpr (std::is_same_v<T, bool>) {
          return app.add_flag(name, *value, help);
        } else if constexpr (std::is_arithmetic_v<T>) {
          return add_number<T>(app, name, value, help, limits)->default_str(number_text(*value));
        } else if constexpr (std::is_same_v<T, std::optional<double>>) {
          return add_number<double>(app, name, value, help, limits);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return app.add_option(name, *value, help)->capture_default_str();
        } else {
          return app.add_option(name, *value, help);
        }
      },
      target);
}

}  // namespace

CommandLine::CommandLine(const std::string& program, const std::string& summary,
                         const std::string& details)
    : CommandLine(std::make_shared<CLI::App>(summary, program)) {
  app_->footer(details);
  app_->formatter(std::make_shared<WrappedHelp>());
  app_->set_help_flag("-h,--help", "print this text");
}

CommandLine::CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

void CommandLine::option(const std::string& name, Target target, const std::string& help,
                         const Extra& extra) {
  CLI::Option* option = add_to(*app_, name, target, help, extra.limits);
  if (!extra.placeholder.empty()) option->option_text(extra.placeholder);
  if (std::holds_alternative<std::vector<std::string>*>(target)) {
    option->expected(1 + static_cast<int>(std::ranges::count(extra.placeholder, ' ')));
    option->allow_extra_args(false);  // the next word is an argument
  } else {
    // The last value counts, so that scripts can append to a list of options.
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  option->required(extra.required);
  if (!extra.allowed.empty()) {
    option->check([allowed = extra.allowed](const std::string& text) {
      return check_allowed(allowed, text);
    });
  }
}

void CommandLine::argument(const std::string& name, Target target, const std::string& help) {
  add_to(*app_, name, target, help, Limits())->required()->option_text(" ");
}

void CommandLine::set_version(const std::string& text) {
  app_->set_version_flag("--version", text, "print the version");
}

CommandLine& CommandLine::add_command(const std::string& name, const std::string& summary,
                                      const std::string& details) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->footer(details);
  command->group("Commands");
  app_->require_subcommand(1);
  commands_.push_back(CommandLine(app_->get_subcommand_ptr(command)));
  return commands_.back();
}

std::string CommandLine::name() const {
  const CLI::App* parent = app_->get_parent();
  return (parent == nullptr ? "" : parent->get_name() + " ") + app_->get_name();
}

// Returns the command that was parsed, or this command line if it has none.
const CommandLine& CommandLine::parsed() const {
  const auto at =
      std::ranges::find_if(commands_, [](const CommandLine& c) { return c.app_->parsed(); });
  return at == commands_.end() ? *this : *at;
}

int CommandLine::fail(const std::string& problem) const {
  std::cerr << name() << ": " << problem << "; see " << name() << " --help\n";
  return kBadInput;
}

// Names a word that is not known rather than what is missing because of it.
std::string CommandLine::describe_error(const std::exception& error) const {
  const std::vector<std::string> unknown = app_->remaining(true);
  if (unknown.empty()) return error.what();
  const std::string& word = unknown.front();
  const bool is_option = word.size() > 1 && word.starts_with("-");
  return is_option ? "unknown option '" + word.substr(0, word.find('=')) + "'"
                   : "unexpected argument '" + word + "'";
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  if (!commands_.empty() && argc < 2) {
    std::cerr << app_->help();
    return kBadInput;
  }
  // CLI11 would print the help of the program for an unknown command with --help.
  if (!commands_.empty() && argv[1][0] != '-' &&
      std::ranges::none_of(commands_,
                           [&](const CommandLine& c) { return c.app_->check_name(argv[1]); })) {
    return fail("unknown command '" + std::string(argv[1]) + "'");
  }
  try {
    app_->parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return parsed().fail(parsed().describe_error(error));
    app_->exit(error);
    if (std::cout.flush()) return 0;
    std::cerr << app_->get_name() << ": standard output cannot be written\n";
    return kBadInput;
  }
}

int CommandLine::run(int argc, const char* const* argv) {
  const std::optional<int> status = parse(argc, argv);
  return status ? *status : parsed().run_();
}

}  // namespace keel::tool
