// The command lines of all programs: options, arguments and commands, their help, and errors that
// name the option. CLI11 parses them; only command_line.cc includes it, because it compiles slowly.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace keel::tool {

// The values that a number may have. Infinities and NaN are never among them.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double above = -std::numeric_limits<double>::infinity();  // excluded
  double most = std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();  // excluded
};

// A command line. Options are written as `--name value` or `--name=value`, in any order and between
// the arguments.
//
//   CommandLine line("keel", "inspects model files");
//   CommandLine& diff = line.add_command("diff", "lists the differences of two files");
//   diff.argument("A", &a, "the first file");
//   diff.option("--atol", &atol, "largest allowed difference", {.limits = {.least = 0}});
//   diff.set_run([&] { return compare(a, b, atol); });
//   return line.run(argc, argv);
class CommandLine {
 public:
  // A variable that parsing sets. Its value before is the default, which the help shows. A bool is
  // a flag without a value; --name=false clears it. The elements of a vector are the words of one
  // option (see Extra::placeholder), or all remaining arguments.
  using Target =
      std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::optional<double>*,
                   std::optional<std::string>*, std::vector<std::string>*>;
  struct Extra {
    // The value in the help: "FILE". A vector has as many elements as there are words: "TABLE ID".
    // By default, it is derived from the type.
    std::string placeholder = {};
    Limits limits = {};                     // for numbers
    std::vector<std::string> allowed = {};  // if not empty, the texts that are allowed
    bool required = false;                  // omitting the option is an error
  };

  // `details` are printed below the options. Text may have several lines.
  CommandLine(const std::string& program, const std::string& summary,
              const std::string& details = {});
  CommandLine(CommandLine&&) = default;

  // Adds an option such as "--atol", or a required argument such as "FILE". If an
  // option is given again, the last value counts. `target` must live until the command line was
  // parsed.
  void option(const std::string& name, Target target, const std::string& help) {
    option(name, target, help, Extra());
  }
  void option(const std::string& name, Target target, const std::string& help, const Extra& extra);
  void argument(const std::string& name, Target target, const std::string& help);

  // The name of the program or command.
  std::string name() const;

  // Adds the option --version, which prints the text.
  void set_version(const std::string& text);
  // Adds a command, which has options and arguments of its own.
  CommandLine& add_command(const std::string& name, const std::string& summary,
                           const std::string& details = {});
  void set_run(std::function<int()> run) { run_ = std::move(run); }

  // Parses the arguments and sets the variables. Returns the exit status if the program is to end:
  // 0 after --help or --version; 2 after an error, which is printed to std::cerr in one line.
  std::optional<int> parse(int argc, const char* const* argv);
  // Parses the arguments, then calls the function of the command and returns its status.
  int run(int argc, const char* const* argv);

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app);
  const CommandLine& parsed() const;
  int fail(const std::string& problem) const;
  std::string describe_error(const std::exception& error) const;

  std::shared_ptr<CLI::App> app_;
  std::list<CommandLine> commands_;
  std::function<int()> run_;
};

}  // namespace keel::tool
