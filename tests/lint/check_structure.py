#!/usr/bin/env python3
"""Fails if a folder includes one to its right, or if a third party is included where it may not be."""
import pathlib
import re
import sys

ORDER = ["framework", "autodiff", "distribute", "optimizers", "layers", "savedmodel"]
HOME_OF = {
    "Eigen/": "framework/kernels/",
    "omp.h": "framework/kernels/",
    "Random123/": "framework/",
    "nlohmann/": "framework/",
    "hdf5.h": "savedmodel/",
    "mpi.h": "distribute/",
    "zlib.h": "framework/data/",
}
NEVER_IN_HEADERS = ("absl/", "Eigen/", "google/protobuf/", "hdf5.h", "nlohmann/", "Random123/",
                    "mpi.h", "zlib.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](?:keel/)?([^">]+)[">]', re.MULTILINE)


def faults(root: pathlib.Path):
    for folder in ORDER:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            name = path.relative_to(root).as_posix()
            for header in INCLUDE.findall(path.read_text()):
                first = header.split("/")[0]
                if first in ORDER and ORDER.index(first) > ORDER.index(folder):
                    yield f"{name}: {folder} may not include {header}"
                for prefix, home in HOME_OF.items():
                    if header.startswith(prefix) and not name.startswith(home):
                        yield f"{name}: only {home} may include {header}"
                public = path.suffix == ".h" and not name.endswith("internal.h")
                if public and header.startswith(NEVER_IN_HEADERS):
                    yield f"{name}: a public header may not include {header}"


if __name__ == "__main__":
    root_folder = pathlib.Path(sys.argv[1])
    found = list(faults(root_folder))
    print("\n".join(found) or "includes run one way")
    sys.exit(bool(found))
