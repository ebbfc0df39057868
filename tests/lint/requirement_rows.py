#!/usr/bin/env python3
"""Fails if a requirement of the model server has no test: its id must stand in a test's name, as in
swap_s034_..., or in a comment or docstring of a test, as in "S-192: bodies of predictions"."""
import pathlib
import re
import sys

# The rows of the server's specification, from S-001.
ROWS = [*range(1, 15), *range(20, 40), *range(50, 67), *range(70, 81), *range(90, 108), *range(120, 128),
        *range(140, 147), *range(150, 155), *range(160, 169), *range(180, 186), *range(190, 195)]
FOLDERS = ("savedmodel/serving", "savedmodel/mapped", "fuzz")
NAMED = re.compile(r"(?:\bS-|_s|\bs)(\d{3})(?!\d)")
RANGE = re.compile(r"S-(\d{3}) to S-(\d{3})")


def main(root: pathlib.Path) -> int:
    tested = {}
    for folder in FOLDERS:
        for path in sorted((root / "tests" / folder).rglob("*")):
            if path.suffix not in (".py", ".cc", ".sh") or path.name in ("harness.py", "full.sh"):
                continue
            text = path.read_text()
            numbers = [int(number) for number in NAMED.findall(text)]
            for first, last in RANGE.findall(text):
                numbers += range(int(first), int(last) + 1)
            for number in numbers:
                tested.setdefault(number, path.name)
    missing = [row for row in ROWS if row not in tested]
    unknown = [row for row in tested if row not in ROWS]
    for row in missing:
        print(f"no test names row S-{row:03}")
    for row in unknown:
        print(f"no such row S-{row:03}, named in {tested[row]}")
    print(f"{len(ROWS) - len(missing)} of {len(ROWS)} rows have tests")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
