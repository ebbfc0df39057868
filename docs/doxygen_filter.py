#!/usr/bin/env python3
"""Prints a header with its comments as Doxygen's: `//` before a declaration becomes `///`, `//` behind
one becomes `///<`. The headers themselves are free of markup. Used by docs/Doxyfile."""
import re
import sys

# A line of code, in which `//` inside a string is no comment, and the comment behind it.
BEHIND_CODE = re.compile(r'^(?P<code>(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*\S\s*)//(?!/) ?(?P<text>.*)$')
IGNORED = re.compile(r"^\s*(NOLINT|clang-format|IWYU)")
EXAMPLE = re.compile(r"^ {2,}\S")  # indented further than a sentence
NO_WORD = re.compile(r"([\\@#<>|*~])")


def escaped(text: str) -> str:
    """Text that Doxygen and Markdown print as it is."""
    return re.sub(r"(?<![\w`])_|_(?![\w`])", r"\\_", NO_WORD.sub(r"\\\1", text))


class Filter:
    def __init__(self):
        self.is_file_comment = True
        self.in_example = False
        self.behind_column = 0  # of the comment behind the line before

    def comment(self, indent: str, text: str) -> str:
        if self.behind_column and len(indent) == self.behind_column:
            return f"{indent}///< {escaped(text.strip())}"
        self.behind_column = 0
        lines = []
        if self.is_file_comment:
            lines.append(f"{indent}/// @file")
            self.is_file_comment = False
        if EXAMPLE.match(text) and not self.in_example:
            self.in_example = True
            lines.append(f"{indent}/// @code")
        elif self.in_example and text.strip() and not EXAMPLE.match(text):
            self.in_example = False
            lines.append(f"{indent}/// @endcode")
        body = text if self.in_example else " " + escaped(text.strip())
        lines.append(f"{indent}///{body.rstrip()}")
        return "\n".join(lines)

    def code(self, line: str) -> str:
        end = ""
        if self.in_example:
            self.in_example = False
            end = "/// @endcode\n"
        self.is_file_comment = False
        self.behind_column = 0
        match = BEHIND_CODE.match(line)
        if match and not IGNORED.match(match["text"]):
            self.behind_column = len(match["code"])
            return f"{end}{match['code']}///< {escaped(match['text'])}"
        return end + line

    def line(self, line: str) -> str:
        text = line.lstrip()
        indent = line[:len(line) - len(text)]
        if text.startswith("//") and not IGNORED.match(text[2:]):
            return self.comment(indent, text[2:])
        return self.code(line)


if __name__ == "__main__":
    one = Filter()
    with open(sys.argv[1], encoding="utf-8") as header:
        for each in header:
            print(one.line(each.rstrip("\n")))
