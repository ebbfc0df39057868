#!/usr/bin/env python3
"""Fails if includes do not run one way, or if a file or folder has outgrown its limits:

- a top-level folder includes one to its right;
- a folder of layers/ includes one above it (FLOORS), or two folders anywhere depend on each other,
  directly or through others;
- a third-party header is included where it may not be, or by a public header;
- a folder has more than MAX_FILES files, or a header more than MAX_HEADER_LINES lines.
"""
import collections
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
# The folders of layers/, lowest first. A folder includes those of earlier lines, and its own.
FLOORS = [
    "layers",
    "layers/losses layers/serving/steps",
    "layers/metrics",
    "layers/metrics/confusion layers/activation layers/convolution layers/core layers/merging "
    "layers/normalization layers/pooling layers/preprocessing layers/regularization "
    "layers/reshaping layers/retrieval layers/embedding/tables",
    "layers/attention layers/interaction layers/recurrent layers/embedding "
    "layers/feature_columns",
    "layers/wrappers layers/embedding/distributed layers/embedding/mid_level",
    "layers/embedding/v1",
    "layers/training/compile",
    "layers/training",
    "layers/functional",
    "layers/serving layers/callbacks layers/visualization layers/ctr",
]
FLOOR_OF = {folder: k for k, floor in enumerate(FLOORS) for folder in floor.split()}
MAX_FILES = 32
MAX_HEADER_LINES = 200
# Headers that are to be split; none may be added.
LONG_HEADERS = {
    "framework/kernels/gemm/gemm_bf16_vectors.h", "framework/kernels/gemm/gemm_tile.h",
    "framework/internal/math.h", "framework/nest.h", "layers/layer.h", "layers/metrics/ranking.h",
    "optimizers/embedding/tpu_parameters.h", "optimizers/optimizer.h",
    "optimizers/schedules/schedules.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](?:keel/)?([^">]+)[">]', re.MULTILINE)


def listed(root: pathlib.Path, variable: str) -> tuple[str, ...]:
    """A list that cmake/KeelInstall.cmake sets."""
    text = (root / "cmake/KeelInstall.cmake").read_text()
    return tuple(re.search(rf"set\({variable}\s([^)]*)\)", text)[1].split())


ROOT = pathlib.Path(sys.argv[1])
# Folders whose headers are not installed, beside those called internal, and the private headers that
# public ones include; none may be added.
PRIVATE_FOLDERS = tuple(folder + "/" for folder in listed(ROOT, "private_folders"))
LEAKED_HEADERS = listed(ROOT, "leaked_headers")

def is_private(header: str) -> bool:
    return (header.startswith(PRIVATE_FOLDERS) and header not in LEAKED_HEADERS
            or "/internal/" in header or header.endswith("_internal.h"))


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
                if path.suffix == ".h" and not is_private(name):
                    if header.startswith(NEVER_IN_HEADERS) or is_private(header):
                        yield f"{name}: a public header may not include {header}"


def sources(root: pathlib.Path):
    """Name and text of each header and source, without the umbrella headers, which see everything."""
    for folder in ORDER:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".h", ".cc") and not name.startswith("savedmodel/umbrella/"):
                yield name, path.read_text()


def folder_of(name: str) -> str:
    return name.rpartition("/")[0].removesuffix("/internal")


def folder_edges(root: pathlib.Path):
    """For each pair of folders of which the first includes the second, one include that does. A folder
    and its folder internal are one."""
    texts = dict(sources(root))
    edges = {}
    for name, text in texts.items():
        folder = folder_of(name)
        for header in INCLUDE.findall(text):
            other = folder_of(header)
            if header in texts and other != folder:
                edges.setdefault((folder, other), f"{name} includes {header}")
    return edges


def upward_faults(edges):
    for (folder, other), example in sorted(edges.items()):
        if folder in FLOOR_OF and other in FLOOR_OF and FLOOR_OF[other] >= FLOOR_OF[folder]:
            yield f"{folder} may not include {other}: {example}"


def cycle_faults(edges):
    """The folders that remain once those that include no remaining folder are taken away, again and
    again, depend on each other."""
    below = collections.defaultdict(set)
    for folder, other in edges:
        below[folder].add(other)
    left = set(below)
    while True:
        settled = {folder for folder in left if not below[folder] & left}
        if not settled:
            break
        left -= settled
    for (folder, other), example in sorted(edges.items()):
        if folder in left and other in left:
            yield f"{folder} and {other} depend on each other: {example}"


def size_faults(root: pathlib.Path):
    count = collections.Counter()
    for folder in ORDER:
        for path in (root / folder).rglob("*"):
            if path.is_file():
                count[path.parent.relative_to(root).as_posix()] += 1
    for folder, files in sorted(count.items()):
        if files > MAX_FILES:
            yield f"{folder}: {files} files; divide it (at most {MAX_FILES})"
    for name, text in sources(root):
        lines = text.count("\n")
        if name.endswith(".h") and lines > MAX_HEADER_LINES and name not in LONG_HEADERS:
            yield f"{name}: {lines} lines; divide it (at most {MAX_HEADER_LINES})"


if __name__ == "__main__":
    folders = folder_edges(ROOT)
    found = [*faults(ROOT), *upward_faults(folders), *cycle_faults(folders), *size_faults(ROOT)]
    print("\n".join(found) or "includes run one way, and no file or folder is too large")
    sys.exit(bool(found))
