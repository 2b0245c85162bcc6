#!/usr/bin/env python3
"""Compiles and runs the README's C++ example against an installed copy and compares its output.

Usage: readme_example.py PREFIX [CMAKE_ARGUMENT...]

The example is the first ```cpp block of README.md, its expected output the fenced block after it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(readme_example CXX)
find_package(baregrad REQUIRED CONFIG)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE baregrad::baregrad)
"""


def extract(readme: str) -> tuple[str, str]:
    """The example's source and the output that the README says it has."""
    blocks = FENCE.findall(readme)
    for at, (language, source) in enumerate(blocks):
        if language == "cpp":
            if at + 1 == len(blocks) or blocks[at + 1][0] not in ("", "text", "console"):
                sys.exit("readme_example: no block with the output follows the ```cpp block")
            return source, blocks[at + 1][1]
    sys.exit("readme_example: README.md has no ```cpp block")


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"readme_example: {' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def without_line_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    prefix = pathlib.Path(sys.argv[1]).resolve()
    source, expected = extract((ROOT / "README.md").read_text(encoding="utf-8"))
    cmake = os.environ.get("CMAKE", "cmake")
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        (project / "CMakeLists.txt").write_text(PROJECT)
        (project / "example.cpp").write_text(source)
        build = project / "build"
        run(cmake, "-S", folder, "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}", *sys.argv[2:])
        run(cmake, "--build", str(build))
        printed = run(str(build / "example"))
    if without_line_ends(printed) != without_line_ends(expected):
        sys.exit(f"readme_example: README.md says\n{expected}\nbut the example printed\n{printed}")
    print(f"readme_example: {len(source.splitlines())} lines compiled, output as stated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
