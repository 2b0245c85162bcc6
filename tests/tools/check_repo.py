#!/usr/bin/env python3
"""Checks the repository's own rules: file length, banned flags, unfinished work, machine paths."""

import pathlib
import re
import sys

from repo_files import ROOT, list_files

MAX_LINES = 800
SOURCE_SUFFIXES = (".h", ".cpp", ".def", ".inc", ".cu", ".py", ".sh", ".cmake")
CPP_SUFFIXES = (".h", ".cpp")
PROSE_SUFFIXES = (".md",)
# These two must spell out what they forbid.
SELF = {"tests/tools/check_repo.py", "tests/tools/test_repo_checks.py"}

# Flags and settings that take IEEE arithmetic away. Prose may name them, to say that they are banned, and so may
# the experiment that measures what they do, and its records. Nothing of ours is built with them.
MEASURES_RELAXED_MATH = {
    "lab/flags/exp_flags.cpp",
    "python/baregrad/lab/pages/flags.py",
    "tests/python/lab/test_flags.py",
}
RECORD_SUFFIXES = (".jsonl",)
RELAXED_MATH = re.compile(
    r"-ffast-math|-Ofast|-funsafe-math-optimizations|-ffinite-math-only|-fassociative-math"
    r"|-freciprocal-math|-fno-signed-zeros|-mdaz-ftz"
    r"|pragma\s+GCC\s+optimize|_MM_SET_FLUSH_ZERO_MODE|_MM_SET_DENORMALS_ZERO_MODE"
)
# What bindings read Python's text, containers and locks by, in one place each.
BINDINGS = re.compile(r"python/src/[^/]+")
ONE_PLACE = {
    re.compile(r"PyUnicode_AsUTF8|nanobind/stl/string(_view)?\.h|nb::(str|repr|type_name)\([^;]*\)\.c_str"):
        ("text.h has the one place where a str becomes bytes",
         {"python/src/text.h", "python/src/text.cpp"}),
    re.compile(r"PyDict_Next|PySequence_Fast\(|nanobind/stl/(pair|tuple|variant|list|set|array|unordered_\w+)\.h"):
        ("containers.h has what reads lists and dictionaries without borrowing", set()),
    re.compile(r"gil_scoped_acquire"):
        ("module_use.h has LockTaken, which lets modules change meanwhile",
         {"python/src/module_use.h"}),
}
# Above the backends, tensors are computed with by ops, and read through HostRead of core/host.h: their bytes may
# be another device's. These rooms and files are where bytes are the subject.
TENSOR_BYTES = re.compile(r"\bdata_ptr\(|(?:\.|->)data<")
MAY_TOUCH_BYTES = (
    "src/core/", "src/backends/", "src/ops/eager.cpp", "src/ops/aliasing.cpp", "src/io/", "src/data/",
)
# What computes on the host and has not been moved to ops yet, and why.
TOUCHES_BYTES_STILL: dict[str, str] = {}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(home|root|Users|work|mnt|scratch)/[\w.-]")


def opens_with_a_comment(path: str, lines: list[str]) -> bool:
    """Every source file says in its first line (after a #! line) what it is."""
    body = lines[1:] if lines and lines[0].startswith("#!") else lines
    start = body[0].lstrip() if body else ""
    if path.endswith((".sh", ".cmake")):
        return start.startswith("# ")
    if path.endswith(".py"):
        return start.startswith(('"""', "# "))
    return start.startswith(("// ", "/// ", "/* "))


def check_text(path: str, text: str) -> list[str]:
    """What is wrong with one file, as `path:line: message`."""
    problems = []
    lines = text.splitlines()
    is_source = path.endswith(SOURCE_SUFFIXES)
    if is_source and len(lines) > MAX_LINES:
        problems.append(f"{path}: {len(lines)} lines, the limit is {MAX_LINES}: split it")
    if is_source and lines and not opens_with_a_comment(path, lines):
        problems.append(f"{path}:1: the first line must be a comment saying what the file is")
    if path.endswith(".h") and "#pragma once" not in lines:
        problems.append(f"{path}: has no `#pragma once`")
    if text and not text.endswith("\n"):
        problems.append(f"{path}: does not end with a newline")
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        if line != line.rstrip() and path != "LICENSE":
            problems.append(f"{where}: trailing whitespace")
        if "\t" in line and path.endswith((*CPP_SUFFIXES, ".py", ".sh", ".cmake")):
            problems.append(f"{where}: tab")
        if path in SELF:
            continue
        may_name = path in MEASURES_RELAXED_MATH or path.endswith((*PROSE_SUFFIXES, *RECORD_SUFFIXES))
        if not may_name and (found := RELAXED_MATH.search(line)):
            problems.append(f"{where}: {found[0]} is banned: IEEE arithmetic stays on")
        for pattern, (why, places) in ONE_PLACE.items():
            if BINDINGS.fullmatch(path) and path not in places and (found := pattern.search(line)):
                problems.append(f"{where}: {found[0]}: {why}")
        above = path.startswith("src/") and not path.startswith(MAY_TOUCH_BYTES)
        if above and path not in TOUCHES_BYTES_STILL and (found := TENSOR_BYTES.search(line)):
            problems.append(f"{where}: {found[0]}: tensors may be on another device: HostRead (core/host.h) reads"
                            " their bytes, place_of (core/place.h) tells them apart")
        if found := UNFINISHED.search(line):
            problems.append(f"{where}: {found[0]}: finish it, or open an issue and leave no mark")
        if found := MACHINE_PATH.search(line):
            problems.append(f"{where}: {found[0]}...: a path of one machine")
    return problems


def check(root: pathlib.Path, files: list[str]) -> list[str]:
    problems = []
    for path in files:
        data = (root / path).read_bytes()
        if b"\0" in data:
            continue  # Binary.
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            problems.append(f"{path}: not UTF-8")
            continue
        problems += check_text(path, text)
        if path in TOUCHES_BYTES_STILL and not TENSOR_BYTES.search(text):
            problems.append(f"{path}: touches no bytes of tensors any longer: take it off TOUCHES_BYTES_STILL")
    return problems


def main() -> int:
    files = list_files()
    problems = check(ROOT, files)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"check_repo: {len(problems)} problems", file=sys.stderr)
        return 1
    print(f"check_repo: {len(files)} files follow the rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
