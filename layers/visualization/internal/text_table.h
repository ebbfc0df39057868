// print_table(): prints a table with box-drawing characters.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace keel {

// Describes a column.
struct TextColumn {
  std::string title = {};
  bool right_aligned = false;
  bool wraps = true;  // may be narrower than its longest cell
};

// Prints `rows` under the titles of `columns`. Cells are UTF-8. Columns are as wide as their
// longest cell. If a line is then longer than `line_length`, the widest columns that wrap are
// narrowed, down to 8 characters.
void print_table(const std::vector<TextColumn>& columns,
                 const std::vector<std::vector<std::string>>& rows, int64_t line_length,
                 std::ostream& out);

}  // namespace keel
