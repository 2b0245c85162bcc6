#!/usr/bin/env python3
"""Compiles and runs the C++ examples of the documents against an installed copy and compares their
output.

Usage: readme_example.py PREFIX [CMAKE_ARGUMENT...]

The example is the first ```cpp block of a document, its expected output the fenced block after it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/seeing.md", "docs/training.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(readme_example CXX)
find_package(baregrad REQUIRED CONFIG)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE baregrad::baregrad)
"""


def extract(text: str, document: str = "README.md") -> tuple[str, str]:
    """The example's source and the output that the document says it has."""
    blocks = FENCE.findall(text)
    for at, (language, source) in enumerate(blocks):
        if language == "cpp":
            if at + 1 == len(blocks) or blocks[at + 1][0] not in ("", "text", "console"):
                sys.exit(f"readme_example: {document}: no block with the output follows ```cpp")
            return source, blocks[at + 1][1]
    sys.exit(f"readme_example: {document} has no ```cpp block")


def run(*command: str, folder: str) -> str:
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"readme_example: {' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def without_line_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def check(document: str, prefix: pathlib.Path, cmake_arguments: list[str]) -> None:
    source, expected = extract((ROOT / document).read_text(encoding="utf-8"), document)
    cmake = os.environ.get("CMAKE", "cmake")
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        (project / "CMakeLists.txt").write_text(PROJECT)
        (project / "example.cpp").write_text(source)
        build = project / "build"
        run(cmake, "-S", folder, "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}",
            *cmake_arguments, folder=folder)
        run(cmake, "--build", str(build), folder=folder)
        printed = run(str(build / "example"), folder=folder)
    if without_line_ends(printed) != without_line_ends(expected):
        sys.exit(f"readme_example: {document} says\n{expected}\nbut the example printed\n{printed}")
    print(f"readme_example: {document}: {len(source.splitlines())} lines compiled, output as stated")


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for document in DOCUMENTS:
        check(document, pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
