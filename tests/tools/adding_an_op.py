#!/usr/bin/env python3
"""Follows docs/adding_an_op.md in a scratch copy of the repository, builds it and runs the new op's
rows: the page is correct if this passes.

    adding_an_op.py [--jobs N]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding_an_op.md"
BLOCK = re.compile(r'^```cpp file=(\S+) (after|before)="([^"]+)"\n(.*?)^```$', re.M | re.S)


def edit(path: pathlib.Path, where: str, anchor: str, text: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    hits = [i for i, line in enumerate(lines) if anchor in line]
    if not hits:
        sys.exit(f"adding_an_op: {path.name} has no line with {anchor!r}")
    at = hits[0] + (1 if where == "after" else 0)
    lines.insert(at, text)
    path.write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--cmake", default="cmake")
    args = parser.parse_args()
    blocks = BLOCK.findall(PAGE.read_text())
    if len(blocks) < 4:
        sys.exit(f"adding_an_op: found {len(blocks)} marked blocks in {PAGE.name}, expected more")
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "copy"
        ignore = shutil.ignore_patterns("build", ".venv", ".git", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=ignore)
        for file, where, anchor, text in blocks:
            edit(copy / file, where, anchor, text)
        build = pathlib.Path(scratch) / "build"
        run = lambda *command: subprocess.run(command, check=True, stdout=sys.stderr)
        run(args.cmake, "-S", str(copy), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DBAREGRAD_BUILD_CLI=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
        run(args.cmake, "--build", str(build), "-j", args.jobs, "--target", "test_op_table",
            "test_autograd")
        total = 0
        for program, least in (("test_op_table", 50), ("test_autograd", 6)):
            result = subprocess.run(
                [build / "tests" / program, "--gtest_filter=*logit*:OpTable.*:Rules.*"],
                stdout=subprocess.PIPE, text=True)
            print(result.stdout[-2000:], file=sys.stderr)
            ran = re.search(r"^\[==========\] (\d+) tests? from", result.stdout, re.M)
            count = int(ran.group(1)) if ran else 0
            if result.returncode != 0 or count < least:
                sys.exit(f"adding_an_op: {count} tests of the new op in {program}, not all passed")
            total += count
        print(f"adding_an_op: the page works, {total} tests of the new op pass")


if __name__ == "__main__":
    main()
