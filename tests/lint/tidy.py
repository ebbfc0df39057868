#!/usr/bin/env python3
"""Runs clang-tidy over the sources, as many at once as there are processors, and prints each
finding once, however many sources include its header. Ends with 1 if there is any.

usage: tidy.py DATABASE_FOLDER [PATH...]        a path is a source or a folder; none: all sources
       tidy.py DATABASE_FOLDER --changed BASE   sources that differ from the commit BASE, or whose header
                                                does; at most MOST_CHANGED, those with most lines first
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

CLANG_TIDY = "clang-tidy-19"
MOST_CHANGED = 40  # four minutes on two cores
# What the database says to GCC only; libstdc++ 12 uses what it deprecates, and -march=native names
# what Clang has renamed.
ARGUMENTS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option",
             "--extra-arg=-Wno-unused-command-line-argument",
             "--extra-arg=-Wno-deprecated-declarations",
             "--extra-arg=-Wno-invalid-feature-combination"]
# Headers are seen through the links of the build (cmake/KeelTargets.cmake).
PLACE = re.compile(rf"^{re.escape(os.getcwd())}/(build/\w+/include/\w+/keel/)?", re.MULTILINE)
FINDING = re.compile(r"^\S[^:]*:\d+:\d+: (warning|error): |^error: ")


def linted(name: str) -> bool:
    """Not the tests, what is generated, or what includes libtorch, which Clang does not take."""
    return (name.endswith(".cc") and not name.startswith(("build/", "tests/"))
            and not name.endswith("_torch.cc"))


def chosen(sources: list[str], paths: list[str]) -> list[str]:
    if not paths:
        return sources
    found = set()
    for path in paths:
        name = os.path.relpath(path)
        of_path = [source for source in sources
                   if source == name or name == "." or source.startswith(name + "/")]
        if not of_path:
            sys.exit(f"lint: no source that is linted is in {path}")
        found.update(of_path)
    return sorted(found)


def changed(sources: list[str], base: str) -> list[str]:
    command = ["git", "diff", "--numstat", "--no-renames", "--diff-filter=d", base, "--"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:  # a clone without history
        print(f"lint: no commit {base} to compare with", file=sys.stderr)
        return []
    lines = collections.Counter()
    for line in run.stdout.splitlines():
        added, _, name = line.split("\t")
        source = name.removesuffix(".h") + ".cc" if name.endswith(".h") else name
        if source in sources:
            lines[source] += int(added)
    most = [source for source, _ in lines.most_common(MOST_CHANGED)]
    if len(lines) > len(most):
        print(f"lint: {len(lines) - len(most)} changed sources are left out", file=sys.stderr)
    return most


def findings_of(output: str) -> list[str]:
    """Each finding with the lines that explain it, under the names that files have in the tree."""
    found: list[list[str]] = []
    for line in PLACE.sub("", output).splitlines():
        if FINDING.match(line):
            found.append([])
        if found:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found]


def tidy(database: str, source: str) -> tuple[str, list[str]]:
    command = [CLANG_TIDY, "-p", database, *ARGUMENTS, source]
    run = subprocess.run(command, capture_output=True, text=True)
    found = findings_of(run.stdout)
    if run.returncode != 0 and not found:
        found = [f"{source}: clang-tidy failed: {run.stdout}{run.stderr}"]
    return source, found


def main(database: str, paths: list[str]) -> int:
    root = pathlib.Path.cwd()
    entries = json.loads((pathlib.Path(database) / "compile_commands.json").read_text())
    files = {pathlib.Path(entry["file"]) for entry in entries}
    names = sorted(file.relative_to(root).as_posix() for file in files if file.is_relative_to(root))
    names = [name for name in names if linted(name)]
    sources = changed(names, paths[1]) if paths[:1] == ["--changed"] else chosen(names, paths)
    told: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = [pool.submit(tidy, database, source) for source in sources]
        for count, done in enumerate(concurrent.futures.as_completed(running), 1):
            source, found = done.result()
            print(f"{count} of {len(sources)}: {source}", file=sys.stderr, flush=True)
            for finding in found:
                if finding not in told:
                    told.add(finding)
                    print(finding, flush=True)
    print(f"lint: {len(told)} findings in {len(sources)} sources", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
