#!/usr/bin/env python3
"""Prints the public headers, which are installed: `public_headers.py ROOT`. cmake/KeelInstall.cmake lists
the folders whose headers are private; headers in folders called internal are private too."""
import pathlib
import re
import sys

FOLDERS = ["framework", "autodiff", "distribute", "optimizers", "layers", "savedmodel"]


class PublicHeaders:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.text = (root / "cmake/KeelInstall.cmake").read_text()
        self.private_folders = tuple(folder + "/" for folder in self.listed("private_folders"))

    def listed(self, variable: str) -> tuple[str, ...]:
        match = re.search(rf"set\({variable}\s([^)]*)\)", self.text)
        return tuple(match[1].split()) if match else ()

    def is_private(self, header: str) -> bool:
        return (header.startswith(self.private_folders) or "/internal/" in header
                or header.endswith("_internal.h"))

    def __iter__(self):
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*.h")):
                name = path.relative_to(self.root).as_posix()
                if not self.is_private(name):
                    yield name


if __name__ == "__main__":
    print("\n".join(PublicHeaders(pathlib.Path(sys.argv[1]))))
