#!/usr/bin/env python3
"""Checks what the documentation shows: README.md, CONTRIBUTING.md, docs/*.md and docs/guides/*.md.

  code_blocks.py extract ROOT OUT
      Writes every ```cpp block as a source, OUT/<document>_<n>.cc (OUT/guides_<document>_<n>.cc
      for a guide), and prints their paths, one a line. Each block is in a namespace of its own, so
      that doc_blocks.cc can be one program of all of them. A block without main() is a fragment:
      its includes and using-directives stay outside, the rest becomes the body of main(). Files
      that have not changed are not touched.
  code_blocks.py commands ROOT BIN
      Checks the commands in ```sh blocks and in indented blocks: programs of build/<preset>/bin
      must exist in BIN, their --help must list the flags, and ./dev must have the command. Exits
      with 1 and prints the faults if a check fails.
  code_blocks.py python ROOT WORK
      Runs the ```python blocks of each document, one after the other, in the folder WORK, which
      holds the files that they read. Blocks that need a model server or Keras, marked
      ```python server and ```python keras, are only compiled. Exits with 77 without numpy.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^\s*#include\b.*$")
HOISTED = re.compile(r"^\s*(using namespace .*;|namespace \w+ = .*;)$")
PROGRAM = re.compile(r"(?:\./)?build/\w+/bin/(\w+)$")
FLAG = re.compile(r"^--?([A-Za-z][\w-]*)")


def documents(root: pathlib.Path):
    return [root / "README.md", root / "CONTRIBUTING.md",
            *sorted((root / "docs").glob("*.md")), *sorted((root / "docs/guides").glob("*.md"))]


def blocks(text: str, language: str):
    """Yields (line number, block) for every fenced block of a language."""
    for match in FENCE.finditer(text):
        if match[1] == language:
            yield text.count("\n", 0, match.start()) + 2, match[2]


def as_source(block: str, line: int, document: pathlib.Path, name: str) -> str:
    if "#include <keel/keel.h>" not in block:
        sys.exit(f"{document}:{line}: the block must include <keel/keel.h>")
    place = f'#line {line} "{document}"'
    lines = block.splitlines()
    is_program = re.search(r"\bint main\(", block) is not None
    # Lines keep their numbers: a line that moves to the top leaves an empty line.
    outside = [text for text in lines if INCLUDE.match(text)]
    inside = [] if is_program else [text for text in lines if HOISTED.match(text)]
    body = ["" if INCLUDE.match(text) or (not is_program and HOISTED.match(text)) else text for text in lines]
    if is_program:
        begin = next(i for i, text in enumerate(body) if re.search(r"\bint main\(", text))
        body[begin] = body[begin].replace("int main(", "int block_main(")
        if not body[begin].rstrip().endswith("}"):  # main() may lack the return statement
            body[body.index("}", begin)] = "  return 0; }"
    else:
        body = ["int block_main() {", place, *body, "  return 0; }"]
    return "\n".join([*outside, '#include "tests/docs/doc_block.h"', f"namespace keel_docs::block_{name} {{", *inside, place,
                      *body, f'static const Block block("{name}", block_main);', "}", ""])


def write_if_changed(path: pathlib.Path, text: str):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def extract(root: pathlib.Path, out: pathlib.Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for document in documents(root):
        name = re.sub(r"\W", "_", document.stem.lower())
        if document.parent.name == "guides":
            name = "guides_" + name
        for number, (line, block) in enumerate(blocks(document.read_text(), "cpp"), 1):
            path = out / f"{name}_{number}.cc"
            write_if_changed(path, as_source(block, line, document, path.stem))
            written.append(path)
    for path in out.glob("*.cc"):
        if path not in written:
            path.unlink()
    print("\n".join(str(path) for path in written))
    return 0


def without_fences(text: str) -> str:
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def command_lines(text: str):
    """Yields (line number, command) of sh blocks and indented blocks; joins continued lines."""
    sources = [(line, block) for line, block in blocks(text, "sh")]
    for number, line in enumerate(without_fences(text).splitlines(), 1):
        if re.match(r"    (\./dev|(\./)?build/\w+/bin/)", line):
            sources.append((number, line))
    for first, block in sources:
        joined, start = "", 0
        for offset, line in enumerate(block.splitlines()):
            start = start if joined else first + offset
            joined += line.strip().removeprefix("$ ")
            if joined.endswith("\\"):
                joined = joined[:-1] + " "
                continue
            yield start, joined
            joined = ""


def commands_of(line: str):
    """Yields the simple commands of a line as lists of words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.wordchars += "{}$:"
    command = []
    for word in list(lexer) + [";"]:
        if set(word) <= set(";&|()"):
            while command and re.match(r"\w+=", command[0]):
                del command[0]
            if command:
                yield command
            command = []
        else:
            command.append(word)


class Checker:
    def __init__(self, root: pathlib.Path, programs: pathlib.Path):
        self.root, self.programs, self.helps = root, programs, {}

    def help_of(self, program: str, command: list[str]) -> str:
        key = (program, *command)
        if key not in self.helps:
            run = subprocess.run([self.programs / program, *command, "--help"], capture_output=True,
                                 text=True, timeout=60, check=False)
            self.helps[key] = run.stdout + run.stderr
        return self.helps[key]

    def faults(self, command):
        if command[0] in ("mpiexec", "mpirun"):
            program = [i for i, word in enumerate(command) if PROGRAM.match(word)]
            command = command[program[0]:] if program else command
        if command[0] in ("./dev", "dev"):
            yield from self.dev_faults(command[1:])
        elif match := PROGRAM.match(command[0]):
            yield from self.program_faults(match[1], command[1:])

    def dev_faults(self, words):
        known = re.findall(r"^  (\w+)\)", (self.root / "dev").read_text(), re.MULTILINE)
        known += re.findall(r"^  (\w+) \| ", (self.root / "dev").read_text(), re.MULTILINE)
        if words and words[0] not in known:
            yield f"./dev has no command '{words[0]}'"

    def program_faults(self, program, words):
        if not (self.programs / program).exists():
            # Sanitizer builds do not build the benchmarks.
            if not (self.root / "benchmarks" / f"{program}.cc").exists():
                yield f"there is no program {program}"
            return
        command = words[:1] if program == "keel" and not words[0].startswith("-") else []
        for word in words:
            flag = FLAG.match(word)
            if flag and not re.search(rf"--?{re.escape(flag[1])}\b", self.help_of(program, command)):
                yield f"{program} has no flag {word}"


def run_python(root: pathlib.Path, work: pathlib.Path) -> int:
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: no numpy")
        return 77
    os.chdir(work)
    count = 0
    for document in documents(root):
        names = {"__name__": document.stem}
        text = document.read_text()
        for language in ("python", "python keras", "python server"):
            for line, block in blocks(text, language):
                # Errors name the line of the document.
                code = compile("\n" * (line - 1) + block, document, "exec")
                count += 1
                if language == "python":
                    exec(code, names)  # pylint: disable=exec-used
    print(f"{count} blocks")
    return 0


def check_commands(root: pathlib.Path, programs: pathlib.Path) -> int:
    checker, wrong, checked = Checker(root, programs), 0, 0
    for document in documents(root):
        for line, text in command_lines(document.read_text()):
            for command in commands_of(text):
                checked += 1
                for fault in checker.faults(command):
                    wrong += 1
                    print(f"{document.relative_to(root)}:{line}: {fault}")
    print(f"{checked} commands checked, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    MODES = {"extract": extract, "commands": check_commands, "python": run_python}
    if len(sys.argv) != 4 or sys.argv[1] not in MODES:
        sys.exit(__doc__)
    sys.exit(MODES[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
