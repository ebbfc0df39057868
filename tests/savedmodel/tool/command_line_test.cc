#include <keel/savedmodel/tool/command_line.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::tool::command_line_test {
namespace {

using testing::HasSubstr;

using Words = std::vector<std::string>;

// A program with two commands, and the variables that its command line sets.
struct Program {
  std::string file;
  std::vector<std::string> inputs, row;
  double rate = 0.5;
  int64_t count = 3;
  bool verbose = true;
  std::optional<std::string> output;

  // Returns the exit status, or -1 if the run of the command was reached.
  int run(std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    CommandLine line("tool", "tool: has commands");
    CommandLine& show = line.add_command("show", "shows a file");
    show.argument("FILE", &file, "a file");
    show.option("--row", &row, "a row", {.placeholder = "TABLE ID"});
    show.option("--verbose", &verbose, "print more");
    show.set_run([] { return -1; });
    CommandLine& join = line.add_command("join", "joins files");
    join.argument("INPUTS", &inputs, "files");
    join.option("--rate", &rate, "a rate", {.limits = {.above = 0, .below = 1}});
    join.option("--count", &count, "a number", {.limits = {.least = 1, .most = 9}});
    join.option("--output", &output, "a file");
    join.set_run([] { return -1; });
    return line.run(static_cast<int>(words.size()), words.data());
  }

  // Returns the error that a wrong command line prints.
  std::string error(const std::vector<const char*>& words) {
    testing::internal::CaptureStderr();
    const int status = run(words);
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, 2) << text;
    return text;
  }
};

TEST(CommandLineTest, OptionsStandAnywhereInBothForms) {
  Program p;
  EXPECT_EQ(p.run({"join", "--rate=0.25", "a", "--count", "08", "b", "--output", "c"}), -1);
  EXPECT_EQ(p.inputs, (Words{"a", "b"}));
  EXPECT_EQ(p.rate, 0.25);
  EXPECT_EQ(p.count, 8);
  EXPECT_EQ(p.output, "c");
}

TEST(CommandLineTest, DefaultsRemainWithoutOptions) {
  Program p;
  EXPECT_EQ(p.run({"join", "-"}), -1);
  EXPECT_EQ(p.inputs, (Words{"-"}));
  EXPECT_EQ(p.rate, 0.5);
  EXPECT_EQ(p.count, 3);
  EXPECT_FALSE(p.output.has_value());
}

TEST(CommandLineTest, AnOptionOfTwoWordsTakesTwo) {
  Program p;
  EXPECT_EQ(p.run({"show", "--row", "users", "-3", "file", "--verbose=false"}), -1);
  EXPECT_EQ(p.row, (Words{"users", "-3"}));
  EXPECT_EQ(p.file, "file");
  EXPECT_FALSE(p.verbose);
}

TEST(CommandLineTest, TheLastValueOfAnOptionCounts) {
  Program p;
  EXPECT_EQ(p.run({"join", "a", "--count", "4", "--count=5"}), -1);
  EXPECT_EQ(p.count, 5);
}

TEST(CommandLineTest, ErrorsNameTheWord) {
  Program p;
  EXPECT_EQ(p.error({"sow"}), "tool: unknown command 'sow'; see tool --help\n");
  EXPECT_EQ(p.error({"show", "--fast=1"}),
            "tool show: unknown option '--fast'; see tool show --help\n");
  EXPECT_EQ(p.error({"show", "a", "b"}),
            "tool show: unexpected argument 'b'; see tool show --help\n");
  EXPECT_EQ(p.error({"join"}), "tool join: INPUTS is required; see tool join --help\n");
  EXPECT_EQ(p.error({"join", "a", "--count", "many"}),
            "tool join: --count: must be a whole number, received 'many'; see tool join --help\n");
  EXPECT_EQ(p.error({"join", "a", "--count", "10"}),
            "tool join: --count: must be at least 1 and at most 9, received '10'; see tool join "
            "--help\n");
  EXPECT_EQ(p.error({"join", "a", "--rate", "nan"}),
            "tool join: --rate: must be above 0 and below 1, received 'nan'; see tool join "
            "--help\n");
}

TEST(CommandLineTest, HelpNamesOptionsWithDefaults) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(Program().run({"join", "--help"}), 0);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("Usage: tool join [OPTIONS...] INPUTS..."));
  EXPECT_THAT(text, HasSubstr("--rate FLOAT=0.5"));
}

}  // namespace
}  // namespace keel::tool::command_line_test
