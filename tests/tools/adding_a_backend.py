#!/usr/bin/env python3
"""Follows docs/adding_a_backend.md. Compiles its blocks as a library, with only src/backends/backend.h
to see, and runs rows of the op table on the device that it makes.

    adding_a_backend.py --compiler CXX --op-table PROGRAM
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding_a_backend.md"
BLOCK = re.compile(r"^```cpp file=example\.cpp\n(.*?)^```$", re.M | re.S)
FILTER = "*Elementwise*negative*:*SameResultFromEveryLayout*:*MatchesTheTruth*float32*"
LEAST = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--op-table", required=True)
    args = parser.parse_args()
    blocks = BLOCK.findall(PAGE.read_text())
    if len(blocks) < 5:
        sys.exit(f"adding_a_backend: found {len(blocks)} marked blocks in {PAGE.name}, expected more")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "backends").mkdir()
        shutil.copy(ROOT / "src/backends/backend.h", folder / "backends")
        (folder / "example.cpp").write_text("\n".join(blocks))
        library = folder / "libexample.so"
        subprocess.run([args.compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall",
                        "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}", str(folder / "example.cpp"),
                        "-o", str(library)], check=True)
        environment = os.environ | {"BAREGRAD_SIM": "1", "BAREGRAD_SIM_LIBRARY": str(library),
                                    "BAREGRAD_TEST_DEVICE": "sim"}
        result = subprocess.run([args.op_table, f"--gtest_filter={FILTER}"], stdout=subprocess.PIPE, text=True,
                                env=environment)
    print(result.stdout[-2000:], file=sys.stderr)
    ran = re.search(r"^\[==========\] (\d+) tests? from .* ran", result.stdout, re.M)
    count = int(ran.group(1)) if ran else 0
    own = re.search(r"example:0: host memory, (\d+) calls of its own kernels", result.stdout)
    if result.returncode != 0 or count < LEAST:
        sys.exit(f"adding_a_backend: {count} tests on the new device, not all passed")
    if own is None or int(own.group(1)) == 0:
        sys.exit("adding_a_backend: the kernel of the page has not run")
    print(f"adding_a_backend: the page works, {count} tests pass on its device")


if __name__ == "__main__":
    main()
