#!/usr/bin/env python3
"""Checks that includes point downwards only, and that public headers stay free of foreign types.

cli/python/capi/lab -> train -> profile -> nn/optim/data/io/linalg -> graph -> autograd -> ops -> backends -> parallel -> core

A backend that is a library of its own (src/backends/sim) includes backend.h and its own files.

A file may include what lies in its own layer or in a lower one, by quotes; what is public has a
layer too. A file that would need an upward include is in the wrong room.
"""

import pathlib
import posixpath
import re
import sys

from repo_files import ROOT, list_files

LAYERS = [
    {"core"},
    {"parallel"},
    {"backends"},
    {"ops"},
    {"autograd"},
    {"graph"},
    {"linalg", "nn", "optim", "data", "io"},
    {"profile"},
    {"train"},
    {"cli", "python", "capi", "lab", "bench"},
]
# Lower rooms that a room must not include: what runs without gradients is profiled without autograd.
APART = {"profile": {"autograd", "graph"}}
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

# Ops and kernels share this data. The files lie with the ops, but count as part of backends, and so
# may include nothing above backends.
SHARED_WITH_BACKENDS = {
    "src/ops/ops.def",
    "src/ops/op_id.h",
    "src/ops/attr_kind.h",
    "src/ops/attrs.h",
    "src/ops/attr_types.h",
    "src/ops/op_call.h",
    "src/ops/random_blocks.h",
    "src/ops/functors.h",
    "src/ops/scalar_math.h",
}

# Backends that are libraries of their own: an engine built by another compiler may open them.
SEPARATE_BACKENDS = ("src/backends/sim/",)
PLAIN_INTERFACE = "src/backends/backend.h"

# The room of each public header whose name is not that of a room.
PUBLIC_ROOMS = {
    "activation": "backends",
    "allocator": "core",
    "data_files": "data",
    "data_loader": "data",
    "data_sets": "data",
    "dataset": "data",
    "device": "core",
    "dims": "core",
    "dtype": "core",
    "error": "core",
    "export": "core",
    "generator": "core",
    "graph_node": "core",
    "half": "core",
    "layout": "core",
    "scalar": "core",
    "state": "core",
    "storage": "core",
    "ops_conv": "ops",
    "ops_fused": "ops",
    "tensor": "core",
    "indexing": "core",
    "print": "core",
    "baregrad": "cli",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SOURCE_SUFFIXES = (".h", ".cpp", ".def", ".inc", ".cu")


class UnknownRoom(Exception):
    """A file without a layer."""


def room_of(path: str) -> str | None:
    """The room of a repository path; None for paths outside the layered folders."""
    if path in SHARED_WITH_BACKENDS:
        return "backends"
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        if parts[1] not in RANK:
            raise UnknownRoom(f"src/{parts[1]}/ has no layer: add it to LAYERS in check_layers.py")
        return parts[1]
    if parts[:2] == ["include", "baregrad"] and len(parts) > 2:
        stem = parts[2].removesuffix(".h")
        room = stem if stem in RANK else PUBLIC_ROOMS.get(stem)
        if room is None:
            raise UnknownRoom(f"{path} has no layer: add it to PUBLIC_ROOMS in check_layers.py")
        return room
    if parts[0] in RANK and len(parts) > 1:
        return parts[0]
    return None


def resolve(including: str, target: str, known: set[str]) -> str | None:
    """The repository path an include names, or None when it names none of ours."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(including), target))
    for candidate in (beside, f"src/{target}", f"include/{target}", target):
        if candidate in known:
            return candidate
    return None


def is_standard(header: str) -> bool:
    """Headers of C++ itself have neither a dot nor a slash; all others bring foreign types."""
    return re.fullmatch(r"[a-z_0-9]+", header) is not None


def check(root: pathlib.Path, files: list[str]) -> list[str]:
    problems = []
    known = set(files)
    for path in files:
        if not path.endswith(SOURCE_SUFFIXES):
            continue
        try:
            room = room_of(path)
        except UnknownRoom as error:
            problems.append(str(error))
            continue
        if room is None:
            continue
        text = (root / path).read_text(encoding="utf-8")
        # Comments are blanked and newlines kept, so that line numbers stay right.
        text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        for match in INCLUDE.finditer(text):
            quoted, angled = match.groups()
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            target = quoted or angled
            found = resolve(path, target, known)
            if found is None:
                if path.startswith("include/") and not (angled and is_standard(angled)):
                    problems.append(
                        f"{where}: a public header includes {target}, which is neither ours nor"
                        " part of standard C++"
                    )
                continue
            apart = next((folder for folder in SEPARATE_BACKENDS if path.startswith(folder)), None)
            if apart and found != PLAIN_INTERFACE and not found.startswith(apart):
                problems.append(f"{where}: {apart} is a library of its own and must not include {found}")
                continue
            if path.startswith("include/") and not found.startswith("include/"):
                problems.append(f"{where}: a public header includes the private {found}")
                continue
            try:
                below = room_of(found)
            except UnknownRoom:
                continue  # Reported at the file itself.
            if below is None:
                problems.append(f"{where}: includes {found}, which lies outside the layers")
            elif RANK[below] > RANK[room]:
                problems.append(
                    f"{where}: {room} must not include {found}: {below} lies above {room}"
                )
            elif below in APART.get(room, ()):
                problems.append(
                    f"{where}: {room} must not include {found}: {room} does without {below}"
                )
    return sorted(set(problems))


def main() -> int:
    files = list_files()
    problems = check(ROOT, files)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"check_layers: {len(problems)} problems", file=sys.stderr)
        return 1
    print("check_layers: every include points down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
