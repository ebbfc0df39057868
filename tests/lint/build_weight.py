#!/usr/bin/env python3
"""Fails if `./dev demo` compiles a tenth more than its budget.

  build_weight.py BUILD BUDGET

BUILD is a build folder in which the demo is built, BUDGET a file with a line "<what> <number>" for each of
  units           object files, each of which costs its headers
  template_bytes  code of weak symbols in them: templates and inline functions that each unit compiles again
  bytes           code and data of all symbols
Seconds depend on the machine; these numbers do not, but for the instructions of the processor in `bytes`.
A change that needs more raises the budget in the same commit and says why.
"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("train_ctr", "serve_hdf5")


def output(*command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def objects_of(build: pathlib.Path):
    commands = output("ninja", "-C", str(build), "-t", "commands", *PROGRAMS)
    return sorted({build / name for name in re.findall(r" -o (\S+\.o)\b", commands)})


def weigh(build: pathlib.Path):
    weight = {"units": 0, "template_bytes": 0, "bytes": 0}
    for path in objects_of(build):
        weight["units"] += 1
        for line in output("nm", "-S", str(path)).splitlines():
            fields = line.split()
            if len(fields) == 4:
                size = int(fields[1], 16)
                weight["bytes"] += size
                weight["template_bytes"] += size if fields[2] == "W" else 0
    return weight


def main() -> int:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    budget = dict(line.split() for line in pathlib.Path(sys.argv[2]).read_text().splitlines())
    failed = False
    for what, used in weigh(pathlib.Path(sys.argv[1])).items():
        limit = int(budget[what])
        print(f"{what}: {used:,}, budget {limit:,}")
        if used > 1.1 * limit:
            print(f"the demo compiles too much: {what} exceed the budget by more than a tenth; "
                  f"use fewer templates, or raise {sys.argv[2]} and say why", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
