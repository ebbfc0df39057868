#!/usr/bin/env python3
"""Fails if a requirement of the model server or of tables for unbounded ids has no test.

The id of a requirement of the server must stand in a test's name, as in swap_s034_..., or in a
comment or docstring of a test, as in "S-192: bodies of predictions". That of a requirement of
tables must begin the name of a TEST, or follow another id in it, as in
TEST(KeyedTableTest, D080D081CountersOfALongRunEqualBruteForce), or stand in a comment as D-104."""
import pathlib
import re
import sys
from typing import NamedTuple


class Requirements(NamedTuple):
    letter: str
    rows: list
    folders: tuple  # below tests/
    named: re.Pattern  # a number
    skipped: tuple = ()  # files that are no tests


ALL = (
    Requirements("S", [*range(1, 15), *range(20, 40), *range(50, 67), *range(70, 81), *range(90, 108),
                       *range(120, 128), *range(140, 147), *range(150, 155), *range(160, 169),
                       *range(180, 186), *range(190, 195)],
                 ("savedmodel/serving", "savedmodel/mapped", "fuzz"),
                 re.compile(r"(?:\bS-|_s|\bs)(\d{3})(?!\d)"), ("harness.py", "full.sh")),
    # D-120 to D-128 are those of tables on disk, which do not exist yet.
    Requirements("D", [*range(1, 8), *range(10, 19), *range(20, 29), *range(30, 47), *range(50, 56),
                       *range(60, 65), *range(70, 88), *range(90, 98), *range(100, 106),
                       *range(110, 117), 130],
                 ("conformance", "distribute", "examples", "faults", "layers", "optimizers", "savedmodel"),
                 re.compile(r"(?:\bD-|(?<=, )D|(?<=D\d{3})D)(\d{3})(?!\d)")),
)


def missing_tests(tests: pathlib.Path, of: Requirements) -> bool:
    between = re.compile(rf"{of.letter}-(\d{{3}}) to {of.letter}-(\d{{3}})")
    tested = {}
    for folder in of.folders:
        for path in sorted((tests / folder).rglob("*")):
            if path.suffix not in (".py", ".cc", ".sh") or path.name in of.skipped:
                continue
            text = path.read_text()
            numbers = [int(number) for number in of.named.findall(text)]
            for first, last in between.findall(text):
                numbers += range(int(first), int(last) + 1)
            for number in numbers:
                tested.setdefault(number, path.name)
    missing = [row for row in of.rows if row not in tested]
    unknown = [row for row in tested if row not in of.rows]
    for row in missing:
        print(f"no test names row {of.letter}-{row:03}")
    for row in unknown:
        print(f"no such row {of.letter}-{row:03}, named in {tested[row]}")
    print(f"{len(of.rows) - len(missing)} of {len(of.rows)} rows {of.letter} have tests")
    return bool(missing or unknown)


if __name__ == "__main__":
    sys.exit(any([missing_tests(pathlib.Path(sys.argv[1]) / "tests", of) for of in ALL]))
