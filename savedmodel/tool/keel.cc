// keel: inspects, runs, converts, compares and draws model files.
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/c_api.h>
#include <keel/savedmodel/tool/commands.h>

namespace keel::tool {
namespace {

constexpr int kBadInput = 2;

std::vector<Command> commands() {
  return {convert_command(), diff_command(), inspect_command(), plot_command(), predict_command()};
}

const Command& command_named(const std::vector<Command>& all, const std::string& name) {
  const auto at =
      std::ranges::find_if(all, [&](const Command& c) { return c.syntax.command == name; });
  if (at == all.end()) throw ValueError("keel: unknown command '", name, "'; see keel help");
  return *at;
}

void print_flags(const Syntax& syntax) {
  for (const Flag& flag : syntax.flags) {
    std::string left = "  --" + flag.name;
    for (const std::string& value : flag.values) left += " " + value;
    left.resize(std::max<size_t>(left.size() + 2, 28), ' ');
    std::cout << left << flag.help << '\n';
  }
}

void print_help(const Command& command) {
  std::cout << "usage: " << command.syntax.usage() << "\n\n" << command.details << '\n';
  if (!command.syntax.flags.empty()) std::cout << '\n';
  print_flags(command.syntax);
}

void print_help(const std::vector<Command>& all, std::ostream& out) {
  out << "keel: looks into, runs, converts, compares and draws the files of models.\n\n";
  for (const Command& command : all) {
    out << "  " << command.syntax.usage() << "\n      " << command.summary << '\n';
  }
  out << "  keel help [COMMAND]\n      says more of a command\n"
         "  keel --version\n\n"
         "Files: models (.keras, .h5, .hdf5), weights (.weights.h5, .h5) and checkpoints, and the "
         "folders of these.\n"
         "Exit status: 0 if all went well; 1 if predictions or files differ, or a converted model\n"
         "lacks its training configuration; 2 for bad arguments or files.\n";
}

int help(const std::vector<Command>& all, const std::vector<std::string>& words) {
  if (words.empty()) {
    print_help(all, std::cout);
  } else {
    print_help(command_named(all, words[0]));
  }
  return 0;
}

int run(const std::vector<std::string>& words) {
  const std::vector<Command> all = commands();
  if (words.empty()) {
    print_help(all, std::cerr);
    return kBadInput;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "help" || words[0] == "--help" || words[0] == "-h") return help(all, rest);
  if (words[0] == "version" || words[0] == "--version") {
    std::cout << "keel " << keel_version() << '\n';
    return 0;
  }
  const Command& command = command_named(all, words[0]);
  if (std::ranges::find(rest, "--help") != rest.end()) return help(all, {words[0]});
  return command.run(Arguments(command.syntax, rest));
}

int fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  std::cout.flush();
  std::cerr << (message.starts_with("keel") ? "" : "keel: ") << message << '\n';
  return kBadInput;
}

}  // namespace
}  // namespace keel::tool

int main(int argc, char** argv) {
  try {
    const int status = keel::tool::run({argv + 1, argv + argc});
    if (!std::cout.flush()) return keel::tool::fail("the standard output cannot be written");
    return status;
  } catch (const std::bad_alloc&) {
    return keel::tool::fail("there is not enough memory");
  } catch (const std::exception& error) {
    return keel::tool::fail(error.what());
  }
}
