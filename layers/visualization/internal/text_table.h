// TextTable: a table drawn with box characters.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace keel {

struct TextColumn {
  std::string title = {};
  bool right_aligned = false;
  bool wraps = true;  // may become narrower than its longest cell
};

// Cells are UTF-8. Columns are as wide as their longest cell; if a line is longer than
// `line_length` then, the widest of those that wrap are made narrower, down to 8 characters.
void print_table(const std::vector<TextColumn>& columns,
                 const std::vector<std::vector<std::string>>& rows, int64_t line_length,
                 std::ostream& out);

}  // namespace keel
