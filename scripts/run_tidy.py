#!/usr/bin/env python3
"""Runs clang-tidy over src/, one process per source, several at a time.

Usage: run_tidy.py [-j N] [--thorough] BUILD_DIR [PATH_PART...]     (parts of paths choose among the sources)

The commands are those of BUILD_DIR/compile_commands.json. Kernels are compiled once per instruction set; the AVX2
command is enough, since the sets differ in Highway's headers alone. python/src is left to the compiler's warnings:
with nanobind's headers its sixty files would take as long as all of src/, and bindings hold no logic.

A source that was clean is skipped until its preprocessed text (with comments), its command, the checks or the tool
change: a file named after the hash of these is kept in the user's cache for a month.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY = "clang-tidy-14"
# GCC's warnings are the build's business, and some of its flags are unknown to clang.
OPTIONS = ["--quiet", f"--config-file={ROOT / '.clang-tidy'}",
           *(f"--extra-arg={flag}" for flag in ("-Wno-everything", "-Qunused-arguments"))]
# The path-sensitive analyzer is off for kernels and their walkers, which are loops over memory that they are given,
# and for Eigen's templates, in which it takes two minutes and reports leaks that are none.
WITHOUT_ANALYZER = ("src/backends/",)
# Elsewhere it takes functions of the standard library, and templates, by what they declare, and leaves a function
# after a third of the usual number of states. --thorough (make test-long) lifts these limits.
ANALYZER_LIMITS = [f"--extra-arg={word}"
                   for setting in ("c++-stdlib-inlining=false", "c++-template-inlining=false", "max-nodes=75000")
                   for word in ("-Xclang", "-analyzer-config", "-Xclang", setting)]


def choose_commands(entries: list[dict], root: pathlib.Path, parts: list[str]) -> dict[str, dict]:
    """One command for each source below root/src, by its path from root."""
    chosen: dict[str, dict] = {}
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root / "src"):
            continue
        source = str(path.relative_to(root))
        if (not parts or any(part in source for part in parts)) and (
                source not in chosen or "_avx2.dir" in entry["command"]):
            chosen[source] = entry
    return chosen


def cache_folder() -> pathlib.Path | None:
    """Where clean sources are remembered; None where nothing can be written."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "baregrad", "tidy")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.stat().st_mtime < time.time() - 30 * 86400:
                old.unlink(missing_ok=True)
    except OSError:
        return None
    return folder


def fingerprint(entry: dict, settings: list[str]) -> str | None:
    """Hash of all that decides what clang-tidy reports; None when the source does not preprocess."""
    command = [*shlex.split(entry["command"]), "-E", "-C", "-P"]
    command[command.index("-o") + 1] = "-"
    done = subprocess.run(command, cwd=entry["directory"], check=False, capture_output=True)
    if done.returncode != 0:
        return None
    return hashlib.sha256("\0".join([*settings, entry["command"]]).encode() + done.stdout).hexdigest()


def check(source: str, entry: dict, database: pathlib.Path, options: list[str], clean: pathlib.Path | None) -> str:
    """What clang-tidy reports of a source; nothing when it is clean."""
    done = subprocess.run([TIDY, "-p", str(database), *options, str(pathlib.Path(entry["directory"], entry["file"]))],
                          check=False, capture_output=True, text=True)
    if done.returncode == 0:
        if clean:
            clean.touch()
        return ""
    # Standard error holds counts of suppressed warnings, and is of use when clang-tidy itself fails.
    return done.stdout.strip() or done.stderr.strip() or f"{source}: {TIDY} ended with status {done.returncode}"


def run(chosen: dict[str, dict], jobs: int, thorough: bool, cache: pathlib.Path | None) -> tuple[int, int]:
    """Checks all; returns the number of sources with findings and of those that the cache knew to be clean."""
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True, text=True).stdout
    settings = [version, (ROOT / ".clang-tidy").read_text()]

    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder)
        (database / "compile_commands.json").write_text(json.dumps(list(chosen.values())))

        def check_unless_clean(item: tuple[str, dict]) -> str | None:
            source, entry = item
            options = [*OPTIONS]
            if source.startswith(WITHOUT_ANALYZER):
                options.append("--checks=-clang-analyzer-*")
            elif not thorough:
                options += ANALYZER_LIMITS
            key = fingerprint(entry, [*settings, *options]) if cache else None
            clean = cache / key if cache and key else None
            if clean and clean.exists():
                clean.touch()
                return None
            return check(source, entry, database, options, clean)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            failed = known = 0
            for text in pool.map(check_unless_clean, chosen.items()):
                if text:
                    failed += 1
                    print(text, flush=True)
                known += text is None
    return failed, known


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy over src/, each source once.")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--thorough", action="store_true", help="lift the analyzer's limits")
    parser.add_argument("build", type=pathlib.Path, help="folder with compile_commands.json")
    parser.add_argument("parts", nargs="*", help="only sources whose path contains one of these")
    args = parser.parse_args()
    start = time.monotonic()
    chosen = choose_commands(json.loads((args.build / "compile_commands.json").read_text()), ROOT, args.parts)
    if not chosen:
        sys.exit(f"run_tidy: no sources of src/ in {args.build}/compile_commands.json")
    failed, known = run(chosen, args.jobs, args.thorough, cache_folder())
    print(f"run_tidy: {len(chosen)} sources, {known} unchanged since they were clean, {failed} with findings,"
          f" {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
