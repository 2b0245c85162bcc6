#!/usr/bin/env python3
"""Runs clang-tidy over src/, each source once, several at a time.

Usage: run_tidy.py [-j N] BUILD_DIR [PATH_PART...]     (parts of paths choose among the sources)

Kernels are compiled once per instruction set. Given the build's own list of commands, clang-tidy
would read such a source once per entry; here it gets a list with one command for each.

python/src is left to the compiler's warnings: with nanobind's headers each of its sixty files takes
five seconds, and bindings hold no logic.

A source that was clean is not read again until something it is made of changes: a file named after
the hash of its preprocessed text (comments and all), the checks and the tool's version is kept in the
user's cache.
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
# The widest code most people run; the other instruction sets differ in Highway's headers alone.
PREFERRED = "baregrad_kernels_avx2"
# GCC's warnings are the build's business, and some of its flags are unknown to clang.
EXTRA = ["--extra-arg=-Wno-everything", "--extra-arg=-Qunused-arguments",
         "--extra-arg=-Wno-unknown-warning-option"]
# The path-sensitive analyzer is left to the other sources, to keep lint short: kernels and their
# walkers are loops over memory they are given, and in Eigen's templates it loses itself (two
# minutes, and leaks that are none).
KERNEL_FOLDERS = [ROOT / "src" / "kernels", ROOT / "src" / "linalg" / "decompose.cpp"]
KERNEL_CHECKS = ["--checks=-clang-analyzer-*"]


def without_launcher(entry: dict) -> dict:
    """The entry with the compiler as its first word, not ccache."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    if pathlib.Path(words[0]).name in ("ccache", "sccache"):
        words = words[1:]
    return {"directory": entry["directory"], "file": entry["file"], "arguments": words}


def choose_commands(entries: list[dict], parts: list[str]) -> dict[pathlib.Path, dict]:
    chosen = {}
    for entry in entries:
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if not source.is_relative_to(ROOT / "src"):
            continue
        if parts and not any(part in str(source.relative_to(ROOT)) for part in parts):
            continue
        entry = without_launcher(entry)
        if source not in chosen or any(PREFERRED in word for word in entry["arguments"]):
            chosen[source] = entry
    return chosen


def cache_folder() -> pathlib.Path | None:
    """Where clean sources are remembered; None where nothing can be written."""
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = base / "baregrad" / "tidy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        month_ago = time.time() - 30 * 86400
        for old in folder.iterdir():
            if old.stat().st_mtime < month_ago:
                old.unlink(missing_ok=True)
    except OSError:
        return None
    return folder


def fingerprint(entry: dict, options: list[str]) -> str | None:
    """Of all that decides what clang-tidy says of a source; None when it does not preprocess."""
    words = entry["arguments"]
    place = words.index("-o")
    command = [*words[:place], *words[place + 2:], "-E", "-C", "-P"]
    done = subprocess.run(command, cwd=entry["directory"], check=False, capture_output=True)
    if done.returncode != 0:
        return None
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    parts = [version, (ROOT / ".clang-tidy").read_bytes(), repr([*EXTRA, *options]).encode(), done.stdout]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def tidy(source: pathlib.Path, entry: dict, database: str,
         cache: pathlib.Path | None) -> tuple[pathlib.Path, int, str, float]:
    start = time.monotonic()
    kernel = any(source.is_relative_to(folder) for folder in KERNEL_FOLDERS)
    options = KERNEL_CHECKS if kernel else []
    key = fingerprint(entry, options) if cache else None
    clean = cache / key if key else None
    if clean and clean.exists():
        clean.touch()
        return source, 0, "", time.monotonic() - start
    done = subprocess.run([TIDY, "--quiet", "-p", database, *EXTRA, *options, str(source)],
                          check=False, capture_output=True, text=True)
    if done.returncode == 0 and clean:
        clean.touch()
    # Standard error holds counts of suppressed warnings, and is of use when clang-tidy itself fails.
    text = done.stdout if done.stdout.strip() or done.returncode == 0 else done.stderr
    return source, done.returncode, text, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy over src/, each source once.")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", type=pathlib.Path, help="folder with compile_commands.json")
    parser.add_argument("parts", nargs="*", help="only sources whose path contains one of these")
    args = parser.parse_args()
    start = time.monotonic()
    entries = json.loads((args.build / "compile_commands.json").read_text())
    chosen = choose_commands(entries, args.parts)
    if not chosen:
        sys.exit(f"run_tidy: no sources of src/ in {args.build}/compile_commands.json")
    failed = 0
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as database:
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps(list(chosen.values())))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            cache = cache_folder()
            results = pool.map(lambda s: tidy(s, chosen[s], database, cache), sorted(chosen))
            for source, status, text, seconds in results:
                name = str(source.relative_to(ROOT))
                slowest = max(slowest, (seconds, name))
                if status != 0:
                    failed += 1
                    print(text.strip() or f"{name}: {TIDY} ended with status {status}", flush=True)
    total = time.monotonic() - start
    print(f"run_tidy: {len(chosen)} sources, {failed} with findings, {total:.0f} s"
          f" (slowest: {slowest[1]}, {slowest[0]:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
