#!/usr/bin/env python3
"""Fails if a row of the reference cases of embeddings (tests/cases/embedding_spec_cases.json) has
no test: its id must begin the name of a TEST, or follow another id in it, as in
TEST(SpecRowsB, B07_RaggedSum...) and TEST(SpecRowsD, D11_D12_Momentum...)."""
import json
import pathlib
import re
import sys

TEST = re.compile(r"^TEST(?:_[FP])?\(\s*\w+,\s*(\w+)", re.MULTILINE)
IDS = re.compile(r"^((?:[A-Z]\d{2}_)+)")


def tested_rows(tests: pathlib.Path):
    for path in sorted(tests.rglob("*_test.cc")):
        for name in TEST.findall(path.read_text()):
            if ids := IDS.match(name):
                yield from ((row, path.name, name) for row in ids[1].rstrip("_").split("_"))


def main(root: pathlib.Path) -> int:
    cases = json.loads((root / "tests/cases/embedding_spec_cases.json").read_text())
    wanted = {case["id"]: case for case in cases}
    tested = {}
    for row, file, name in tested_rows(root / "tests"):
        tested.setdefault(row, []).append(f"{file}: {name}")
    missing = [row for row in wanted if row not in tested]
    for row in missing:
        print(f"no test for row {row}: {wanted[row]['property']}")
    unknown = [row for row in tested if row not in wanted]
    for row in unknown:
        print(f"no such row {row}, tested by {tested[row][0]}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} rows have tests")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
