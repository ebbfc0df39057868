#!/usr/bin/env python3
"""Fails if includes do not run one way, or if a file or folder has outgrown its limits:

- a top-level folder includes one to its right;
- a folder of layers/ includes one above it (FLOORS), or two folders anywhere depend on each other,
  directly or through others;
- a third-party header is included where it may not be, or by a public header;
- a folder has more than MAX_FILES files, or a header more than MAX_HEADER_LINES lines;
- a layer registers that no list of layers/*_layers.cc names;
- a public header of layers/ or optimizers/ is not a part of <keel/keel.h>;
- a source has no test. The test of layers/core/dense.cc is tests/layers/core/dense_test.cc, or any
  test whose first comment names it: "Tests layers/core/dense.cc." A comment may name several
  sources, "Tests layers/core/dense.cc, embedding.cc and internal/codes.cc.", where each path
  continues in the folder of the one before it, and all sources of a folder, "Tests layers/core/."
"""
import collections
import pathlib
import re
import sys

from public_headers import FOLDERS as ORDER
from public_headers import PublicHeaders

HOME_OF = {
    "CLI/": "savedmodel/tool/",
    "Eigen/": "framework/kernels/",
    "unsupported/Eigen/": "framework/kernels/",
    "omp.h": "framework/kernels/",
    "Random123/": "framework/",
    "nlohmann/": "framework/",
    "grpc/": "savedmodel/serving/grpc/",
    "grpcpp/": "savedmodel/serving/grpc/",
    "hdf5.h": "savedmodel/",
    "mpi.h": "distribute/",
    "zlib.h": ("framework/data/", "savedmodel/serving/base/"),
}
NEVER_IN_HEADERS = ("absl/", "CLI/", "Eigen/", "google/protobuf/", "grpc/", "grpcpp/", "hdf5.h", "nlohmann/", "Random123/",
                    "mpi.h", "unsupported/", "zlib.h")
# The folders of layers/, lowest first. A folder includes those of earlier lines, and its own.
FLOORS = [
    "layers",
    "layers/losses layers/serving/steps",
    "layers/metrics",
    "layers/embedding/tables",
    "layers/metrics/confusion layers/activation layers/audio layers/convolution layers/core "
    "layers/image layers/merging "
    "layers/normalization layers/pooling layers/preprocessing layers/regularization "
    "layers/reshaping layers/retrieval",
    "layers/attention layers/interaction layers/keras_ops layers/recurrent layers/embedding "
    "layers/feature_columns",
    "layers/wrappers layers/embedding/distributed",
    "layers/embedding/mid_level",
    "layers/embedding/v1",
    "layers/training/compile",
    "layers/training",
    "layers/functional",
    "layers/serving layers/callbacks layers/visualization layers/ctr layers/utils",
]
FLOOR_OF = {folder: k for k, floor in enumerate(FLOORS) for folder in floor.split()}
MAX_FILES = 32
MAX_HEADER_LINES = 200
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](?:keel/)?([^">]+)[">]', re.MULTILINE)


ROOT = pathlib.Path(sys.argv[1])
is_private = PublicHeaders(ROOT).is_private


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
        for name in {folder, other}:
            if name.startswith("layers/") and name not in FLOOR_OF:
                yield f"{name} has no floor; add it to FLOORS of check_structure.py ({example})"
        if folder in FLOOR_OF and other in FLOOR_OF and FLOOR_OF[other] >= FLOOR_OF[folder]:
            yield f"{folder} may not include {other} (FLOORS of check_structure.py): {example}"


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


def registration_faults(root: pathlib.Path):
    """Layers that register but that no list names: no file could name them."""
    listed = set()
    for path in (root / "layers").glob("*_layers.cc"):
        listed |= set(re.findall(r"^\s*X\((\w+)\)", path.read_text(), re.MULTILINE))
    for name, text in sources(root):
        if not name.startswith("layers/") or not name.endswith(".cc"):
            continue
        for layer in re.findall(r"^KEEL_REGISTER\(Layer, (\w+)", text, re.MULTILINE):
            if layer not in listed:
                yield f"{name} registers {layer}; add X({layer}) to layers/builtin_layers.cc, catalog_layers.cc or compat_layers.cc"


def field_faults(root: pathlib.Path):
    """Options whose `fields` are not constexpr: check_fields() could not compare them with the members."""
    for name, text in sources(root):
        for match in re.finditer(r"^[^/\n]*\bstatic void fields\(", text, re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: declare `fields` as static constexpr void, so that missing members do not compile"


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
        if name.endswith(".h") and lines > MAX_HEADER_LINES:
            yield f"{name}: {lines} lines; divide it (at most {MAX_HEADER_LINES})"


def umbrella_faults(root: pathlib.Path):
    """Public headers of layers and optimizers that <keel/keel.h> does not include, directly or
    through others. Programs that write steps of serving plans include those of their own accord."""
    reached, left = set(), ["keel.h"]
    while left:
        name = left.pop()
        if name in reached:
            continue
        reached.add(name)
        path = root / name
        if not path.exists():
            path = root / "savedmodel/umbrella" / name
        if path.exists():
            left += INCLUDE.findall(path.read_text())
    for name in PublicHeaders(root):
        folder = name.split("/")[0]
        if folder not in ("layers", "optimizers") or name.startswith("layers/serving/steps/"):
            continue
        if name not in reached:
            yield (f"{name}: <keel/keel.h> does not include it; add it to a header of "
                   "savedmodel/umbrella/")


SOURCE = r"[\w/]+(?:\.cc\b|/)"
TESTS = re.compile(rf"\bTests ({SOURCE}(?:(?:,| and|, and) {SOURCE})*)")


def first_comment(text: str) -> str:
    """The lines of comments that a test begins with, as one line."""
    lines = []
    for line in text.splitlines():
        if not (mark := re.match(r"(//|#!?|\"\"\")\s*", line)):
            break
        lines.append(line[mark.end():])
    return " ".join(lines)


def named_sources(comment: str):
    """The paths that a comment names, from the root of the project."""
    for sentence in TESTS.findall(comment):
        folder = ""
        for name in re.findall(SOURCE, sentence):
            path = name if name.split("/")[0] in ORDER else folder + name
            folder = path[:path.rfind("/") + 1]
            yield path


def test_faults(root: pathlib.Path):
    every = {name for name, _ in sources(root) if name.endswith(".cc")}
    untested = {name for name in every if not (root / "tests" / f"{name[:-3]}_test.cc").exists()}
    for test in sorted((root / "tests").rglob("*")):
        if not (test.name.endswith("_test.cc") or test.suffix in (".sh", ".py")):
            continue
        for path in named_sources(first_comment(test.read_text())):
            of_path = {name for name in every
                       if name == path or name.rpartition("/")[0] + "/" == path}
            if not of_path:
                yield f"{test.relative_to(root)}: there is no source {path}"
            untested -= of_path
    for name in sorted(untested):
        yield (f"{name}: no test; add tests/{name[:-3]}_test.cc, or name the source in the first "
               "comment of its test")


if __name__ == "__main__":
    folders = folder_edges(ROOT)
    found = [*faults(ROOT), *upward_faults(folders), *cycle_faults(folders), *registration_faults(ROOT), *field_faults(ROOT), *size_faults(ROOT),
             *umbrella_faults(ROOT), *test_faults(ROOT)]
    print("\n".join(found) or "includes run one way, no file or folder is too large, and all sources have tests")
    sys.exit(bool(found))
