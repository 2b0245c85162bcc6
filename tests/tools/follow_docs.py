#!/usr/bin/env python3
"""Follows the worked examples of pages in docs/ to the letter, in a scratch copy of the repository:
a page is true as long as this passes.

    follow_docs.py [--jobs N] [--cmake CMAKE] [--folder FOLDER] PAGE...

A block that opens with ```LANGUAGE file=PATH after="TEXT" is put after the first line of the file
that holds the text; `before` and `replace` do what they say. A block that opens with ```sh run least=N
holds commands: a test program of the preset dev, or `.venv/bin/python -m pytest`. Only what they need
is built. N is the least number of tests that each must run. The changes of all pages are made in one
copy, which is built once.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDIT = re.compile(r'^```\w+ file=(\S+) (after|before|replace)="([^"]+)"\n(.*?)^```$', re.M | re.S)
RUN = re.compile(r"^```sh run least=(\d+)\n(.*?)^```$", re.M | re.S)
PROGRAM = "build/dev/tests/"
PYTEST = [".venv/bin/python", "-m", "pytest"]


def edit(path: pathlib.Path, where: str, anchor: str, text: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    hits = [i for i, line in enumerate(lines) if anchor in line]
    if not hits:
        sys.exit(f"follow_docs: {path.name} has no line with {anchor!r}")
    begin = hits[0] + (where == "after")
    lines[begin : begin + (where == "replace")] = [text]
    path.write_text("".join(lines), encoding="utf-8")


def commands_of(text: str) -> list[tuple[int, list[str]]]:
    """(least number of tests, words) of every command."""
    found = []
    for least, block in RUN.findall(text):
        found += [(int(least), shlex.split(line)) for line in block.splitlines() if line.strip()]
    return found


def target_of(words: list[str]) -> str:
    if words[0].startswith(PROGRAM):
        return words[0].removeprefix(PROGRAM)
    if words[:3] == PYTEST:
        return "baregrad_package"
    sys.exit(f"follow_docs: cannot run {shlex.join(words)!r}")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def count_of(words: list[str], copy: pathlib.Path, build: pathlib.Path) -> int:
    """Runs one command in the copy; how many tests passed, 0 when any failed."""
    environment = dict(os.environ)
    if words[0].startswith(PROGRAM):
        command = [str(build / "tests" / target_of(words)), *words[1:]]
        passed = r"^\[  PASSED  \] (\d+) tests?"
    else:
        environment["PYTHONPATH"] = str(build / "python")
        command = [sys.executable, "-B", *words[1:], "-q", "-p", "no:cacheprovider"]
        passed = r"^(\d+) passed"
    done = subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.PIPE, text=True,
                          check=False)
    print(done.stdout[-2000:], file=sys.stderr)
    found = re.search(passed, done.stdout, re.M)
    return int(found.group(1)) if found and done.returncode == 0 else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "docs",
                        help="emptied; the same folder each time lets ccache find what it has")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    copy, build = args.folder / "copy", args.folder / "build"
    shutil.rmtree(args.folder, ignore_errors=True)
    ignore = shutil.ignore_patterns("build", ".venv*", ".git", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=ignore)
    commands = {}
    for page in args.pages:
        text = page.read_text(encoding="utf-8")
        edits, commands[page.name] = EDIT.findall(text), commands_of(text)
        marked = len(re.findall(r"^```.*\b(?:file=|run\b)", text, re.M))
        if not edits or not commands[page.name] or marked != len(edits) + len(RUN.findall(text)):
            sys.exit(f"follow_docs: {page.name} has {marked} marked blocks, not all can be followed")
        for file, where, anchor, block in edits:
            edit(copy / file, where, anchor, block)
    targets = sorted({target_of(words) for all_ in commands.values() for _, words in all_})
    python = "ON" if "baregrad_package" in targets else "OFF"
    run(args.cmake, "-S", str(copy), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DBAREGRAD_BUILD_CLI=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
        # Half of the time to compile kernels; CI tests all sets elsewhere.
        "-DBAREGRAD_ISAS=scalar;avx2",
        f"-DBAREGRAD_BUILD_PYTHON={python}", f"-DPython_EXECUTABLE={sys.executable}")
    run(args.cmake, "--build", str(build), "-j", args.jobs, "--target", *targets)
    for page, all_ in commands.items():
        total = 0
        for least, words in all_:
            count = count_of(words, copy, build)
            if count < least:
                sys.exit(f"follow_docs: {page}: {shlex.join(words)}: {count} tests passed, not all"
                         f" of at least {least}")
            total += count
        print(f"follow_docs: {page} works, {total} tests pass")


if __name__ == "__main__":
    main()
