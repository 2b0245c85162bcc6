#!/usr/bin/env python3
"""Checks that no object of the library waits for the lock of a function-local static.

Usage: check_guards.py BUILD_DIR

The compiler initialises such a static at its first use, under a lock. If another thread forks
during the initialisation, the lock stays closed in the child, which then waits forever.
src/core/made_once.h has an alternative. Thread-local objects have no such lock.
"""

import pathlib
import re
import subprocess
import sys

# Objects of the library and of the extension. nanobind's own objects are exempt: its statics are
# initialised while the module is imported.
LIBRARY_FOLDER = re.compile(r"baregrad\w*\.dir")
# Programs that use the library; nothing links to them.
EXCLUDED = re.compile(r"bench|lab|ladder|test|fuzz|peer|cli")
GUARD = "__cxa_guard_acquire"


def objects_in(build: pathlib.Path) -> list[pathlib.Path]:
    found = []
    for path in build.rglob("*.o"):
        folders = [p for p in path.relative_to(build).parts if p.endswith(".dir")]
        if any(LIBRARY_FOLDER.fullmatch(f) and not EXCLUDED.search(f) for f in folders):
            found.append(path)
    return sorted(found)


def functions_with_guards(path: pathlib.Path) -> list[str]:
    """The functions of an object that call the guard, if it refers to it."""
    symbols = subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True).stdout
    if GUARD not in symbols:
        return []
    code = subprocess.run(
        ["objdump", "-drC", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    ).stdout
    found, function = [], "?"
    for line in code.splitlines():
        if line.endswith(">:"):
            function = line.split("<", 1)[1][:-2]
        elif GUARD in line and function not in found:
            found.append(function)
    return found or ["?"]


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    objects = objects_in(build)
    if not objects:
        print(f"check_guards: no objects of the library below {build}")
        return 1
    problems = [f"{path}: {f}" for path in objects for f in functions_with_guards(path)]
    for problem in problems:
        print(f"check_guards: a function-local static with a lock: {problem}")
    if not problems:
        print(f"check_guards: no static with a lock in {len(objects)} objects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
