#include <keel/layers/visualization/internal/text_table.h>

#include <algorithm>
#include <ostream>
#include <string_view>

namespace keel {
namespace {

constexpr size_t kNarrowest = 8;

using Widths = std::vector<size_t>;

// Returns the number of UTF-8 characters; each is assumed to be one column wide.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Returns the number of bytes of the first `width` characters.
size_t bytes_of(std::string_view text, size_t width) {
  size_t i = 0;
  while (i < text.size() && (width > 0 || (text[i] & 0xC0) == 0x80)) {
    if ((text[i++] & 0xC0) != 0x80) --width;
  }
  return i;
}

Widths column_widths(const std::vector<TextColumn>& columns,
                     const std::vector<std::vector<std::string>>& rows, int64_t line_length) {
  Widths widths;
  size_t total = 1;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = columns[c].title.size();
    for (const auto& row : rows) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
    total += width + 3;
  }
  while (total > static_cast<size_t>(line_length)) {
    size_t widest = widths.size();
    for (size_t c = 0; c < widths.size(); ++c) {
      const bool shrinks = columns[c].wraps && widths[c] > kNarrowest;
      if (shrinks && (widest == widths.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

// Splits text into pieces of at most `width` characters, at blanks where possible.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> out;
  while (true) {
    const size_t all = bytes_of(text, width);
    if (all == text.size()) break;
    const std::string_view line = text.substr(0, all + 1);
    const size_t blank = line.rfind(' ');
    const bool at_blank = blank != std::string_view::npos && line.find_first_not_of(' ') < blank;
    out.emplace_back(text.substr(0, at_blank ? blank : all));
    text.remove_prefix(at_blank ? blank + 1 : all);
  }
  out.emplace_back(text);
  return out;
}

struct Border {
  const char *left, *fill, *middle, *right;
};

void print_border(const Widths& widths, const Border& border, std::ostream& out) {
  out << border.left;
  for (size_t c = 0; c < widths.size(); ++c) {
    if (c > 0) out << border.middle;
    for (size_t i = 0; i < widths[c] + 2; ++i) out << border.fill;
  }
  out << border.right << '\n';
}

void print_row(const std::vector<TextColumn>& columns, const Widths& widths,
               const std::vector<std::string>& cells, const char* bar, std::ostream& out) {
  std::vector<std::vector<std::string>> pieces;
  size_t lines = 1;
  for (size_t c = 0; c < cells.size(); ++c) {
    pieces.push_back(wrapped(cells[c], widths[c]));
    lines = std::max(lines, pieces.back().size());
  }
  for (size_t line = 0; line < lines; ++line) {
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string text = line < pieces[c].size() ? pieces[c][line] : "";
      const std::string blanks(widths[c] - width_of(text), ' ');
      out << bar << ' ' << (columns[c].right_aligned ? blanks + text : text + blanks) << ' ';
    }
    out << bar << '\n';
  }
}

}  // namespace

void print_table(const std::vector<TextColumn>& columns,
                 const std::vector<std::vector<std::string>>& rows, int64_t line_length,
                 std::ostream& out) {
  const Widths widths = column_widths(columns, rows, line_length);
  std::vector<std::string> titles;
  for (const TextColumn& column : columns) titles.push_back(column.title);
  print_border(widths, {"┏", "━", "┳", "┓"}, out);
  print_row(columns, widths, titles, "┃", out);
  print_border(widths, {"┡", "━", "╇", "┩"}, out);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) print_border(widths, {"├", "─", "┼", "┤"}, out);
    print_row(columns, widths, rows[i], "│", out);
  }
  print_border(widths, {"└", "─", "┴", "┘"}, out);
}

}  // namespace keel
