#!/usr/bin/env python3
"""Prints what Doxygen says about the public headers, most often that a symbol is not documented, and how
often it does in each folder. Fails if there is anything: `undocumented.py ROOT WARNINGS`."""
import collections
import os
import pathlib
import sys

ROOT, WARNINGS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
# Doxygen repeats a warning for each class that inherits the member.
found = sorted({line.replace(f"{ROOT}{os.sep}", "").replace("\n", "")
                for line in WARNINGS.read_text().splitlines() if line})
print("\n".join(found))
folders = collections.Counter(os.path.dirname(line.partition(":")[0]) for line in found)
for folder, count in sorted(folders.items()):
    print(f"{count:6} {folder}")
print(f"{len(found):6} warnings")
sys.exit(bool(found))
