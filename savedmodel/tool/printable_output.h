// Keeps control characters of names in files from the terminal.
#pragma once

#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace keel::tool {

// Returns the text with control characters, but for line feeds, written as "\x1b".
std::string printable(std::string_view text);
// The same, with line feeds as "\x0a": for a name within a line.
std::string printable_name(std::string_view name);

// During its lifetime, std::cout writes control characters, but for line feeds and tabs, as "\x1b".
class PrintableOutput {
 public:
  PrintableOutput();
  // Writes what is left. std::cout keeps its error state.
  ~PrintableOutput();
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  class Buffer;
  const std::unique_ptr<Buffer> buffer_;
  std::streambuf* const before_;
};

}  // namespace keel::tool
