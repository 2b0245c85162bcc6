#!/usr/bin/env python3
"""Runs clang-tidy over src/, several sources at a time.

Usage: run_tidy.py [-j N] [--thorough] BUILD_DIR [PATH_PART...]     (parts of paths choose among the sources)

Most of the time of a source on its own goes into the headers it includes. So the sources of a folder
that are compiled with the same flags are read as one text, and findings are told by the places they
came from. Sources that declare the same name in an unnamed namespace come into different batches; a
batch that does not compile for another reason is read source by source.

Kernels are compiled once per instruction set; one of these commands is enough.

python/src is left to the compiler's warnings: with nanobind's headers each of its sixty files takes
five seconds, and bindings hold no logic.

A batch that was clean is not read again until something it is made of changes: a file named after
the hash of its preprocessed text (comments and all), the checks and the tool's version is kept in the
user's cache.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
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
KERNEL_FOLDERS = [ROOT / "src" / "backends"]
KERNEL_CHECKS = ["--checks=-clang-analyzer-*"]
# Elsewhere it takes functions of the standard library, and templates, by what they declare and gives a function
# up after a third of its usual number of states: a quarter of the time. `--thorough` (make test-long) goes without.
ANALYZER_LIMITS = [f"--extra-arg={word}"
                   for setting in ("c++-stdlib-inlining=false", "c++-template-inlining=false", "max-nodes=75000")
                   for word in ("-Xclang", "-analyzer-config", "-Xclang", setting)]
MOST_SOURCES = 12


@dataclasses.dataclass
class Batch:
    """Sources that clang-tidy reads as one text."""

    folder: pathlib.Path
    kernel: bool
    entry: dict
    sources: list[pathlib.Path] = dataclasses.field(default_factory=list)
    names: set[str] = dataclasses.field(default_factory=set)
    lines: int = 0

    def title(self) -> str:
        if len(self.sources) == 1:
            return str(self.sources[0].relative_to(ROOT))
        return f"{len(self.sources)} of {self.folder.relative_to(ROOT)}"

    def cost(self) -> int:
        """For beginning with the longest: the analyzer takes most of the time."""
        return self.lines * (1 if self.kernel else 4)


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


def shared_flags(entry: dict) -> list[str]:
    """The command without what is the source's own, and without how hard to optimise."""
    words = entry["arguments"]
    place = words.index("-o")
    rest = [*words[:place], *words[place + 2:]]
    return [word for word in rest if word not in ("-c", entry["file"]) and not word.startswith("-O")]


def private_names(text: str) -> set[str]:
    """What a source declares for itself alone: macros, and in unnamed namespaces; functions with their parameters."""
    names = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    inside = re.compile(r"^namespace (?:HWY_NAMESPACE )?\{\n(.*?)^\}  // namespace", re.MULTILINE | re.DOTALL)
    for lines in inside.findall(text):
        for line in re.findall(r"^[A-Za-z].*", lines, re.MULTILINE):
            found = (re.match(r"(?:struct|class|enum class|enum|union) (\w+)|using (\w+) =", line)
                     or re.search(r"(\w+\(.*)|(\w+)(?: = |\{|;|\[)", line))
            if found:
                names.add(found.group(found.lastindex))
    return names


def make_batches(chosen: dict[pathlib.Path, dict]) -> list[Batch]:
    """Sources of one folder and with the same flags, in batches of about the same length."""
    groups: dict[tuple, list[pathlib.Path]] = {}
    for source in sorted(chosen):
        kernel = any(source.is_relative_to(folder) for folder in KERNEL_FOLDERS)
        key = (source.parent, kernel, *shared_flags(chosen[source]))
        groups.setdefault(key, []).append(source)
    batches = []
    for (folder, kernel, *_), sources in groups.items():
        own = [Batch(folder, kernel, chosen[sources[0]]) for _ in range(-(-len(sources) // MOST_SOURCES))]
        for source in sources:
            text = source.read_text()
            names = private_names(text)
            fitting = [batch for batch in own if not batch.names & names and len(batch.sources) < MOST_SOURCES]
            if not fitting:
                own.append(Batch(folder, kernel, chosen[source]))
                fitting = own[-1:]
            batch = fitting[0]
            batch.sources.append(source)
            batch.names |= names
            batch.lines += text.count("\n")
        batches += own
    return sorted(batches, key=Batch.cost, reverse=True)


def cache_folder() -> pathlib.Path | None:
    """Where clean batches are remembered; None where nothing can be written."""
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


def fingerprint(command: list[str], directory: str, options: list[str]) -> str | None:
    """Of all that decides what clang-tidy says of a text; None when it does not preprocess."""
    done = subprocess.run([*command, "-E", "-C", "-P"], cwd=directory, check=False, capture_output=True)
    if done.returncode != 0:
        return None
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    parts = [version, (ROOT / ".clang-tidy").read_bytes(), repr([*EXTRA, *options]).encode(), done.stdout]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def write_text(batch: Batch, path: pathlib.Path) -> list[tuple[int, pathlib.Path]]:
    """Writes the batch's text; returns the line before each source's first."""
    starts = []
    lines: list[str] = []
    for source in batch.sources:
        starts.append((len(lines), source))
        lines += source.read_text().split("\n")
    path.write_text("\n".join(lines))
    return starts


def told_by_source(text: str, path: pathlib.Path, starts: list[tuple[int, pathlib.Path]]) -> str:
    """The findings, with lines of the text replaced by the places they came from."""
    def place(found: re.Match) -> str:
        line = int(found.group(1))
        before, source = max(start for start in starts if start[0] < line)
        return f"{source}:{line - before}:"
    return re.sub(re.escape(str(path)) + r":(\d+):", place, text)


class Tidy:
    """Reads batches, each in a file of its own in one folder."""

    def __init__(self, folder: pathlib.Path, cache: pathlib.Path | None, thorough: bool) -> None:
        self.folder = folder
        self.cache = cache
        self.limits = [] if thorough else ANALYZER_LIMITS

    def read(self, batch: Batch, name: str) -> list[str]:
        """What is to be told of a batch, one text for each that has findings."""
        path = self.folder / name / "batch.cpp"
        path.parent.mkdir()
        starts = write_text(batch, path)
        command = [*shared_flags(batch.entry), str(path)]
        directory = batch.entry["directory"]
        options = KERNEL_CHECKS if batch.kernel else self.limits
        key = fingerprint(command, directory, options) if self.cache else None
        clean = self.cache / key if key else None
        if clean and clean.exists():
            clean.touch()
            return []
        entry = {"directory": directory, "file": str(path), "arguments": command}
        (path.parent / "compile_commands.json").write_text(json.dumps([entry]))
        done = subprocess.run([TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", "-p", str(path.parent),
                               *EXTRA, *options, str(path)], check=False, capture_output=True, text=True)
        if done.returncode == 0:
            if clean:
                clean.touch()
            return []
        if "[clang-diagnostic-error" in done.stdout and len(batch.sources) > 1:
            return self.read_apart(batch, name)
        # Standard error holds counts of suppressed warnings, and is of use when clang-tidy itself fails.
        text = told_by_source(done.stdout, path, starts).strip() or done.stderr.strip()
        return [text or f"{batch.title()}: {TIDY} ended with status {done.returncode}"]

    def read_apart(self, batch: Batch, name: str) -> list[str]:
        told = []
        for number, source in enumerate(batch.sources):
            alone = Batch(batch.folder, batch.kernel, batch.entry, [source])
            told += self.read(alone, f"{name}_{number}")
        if not told:
            print(f"run_tidy: {batch.title()} do not compile as one text and were read one by one", flush=True)
        return told

    def timed(self, number: int, batch: Batch) -> tuple[list[str], float]:
        start = time.monotonic()
        told = self.read(batch, f"batch_{number}")
        return told, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy over src/, each source once.")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--thorough", action="store_true", help="let the analyzer follow all that it can")
    parser.add_argument("build", type=pathlib.Path, help="folder with compile_commands.json")
    parser.add_argument("parts", nargs="*", help="only sources whose path contains one of these")
    args = parser.parse_args()
    start = time.monotonic()
    entries = json.loads((args.build / "compile_commands.json").read_text())
    chosen = choose_commands(entries, args.parts)
    if not chosen:
        sys.exit(f"run_tidy: no sources of src/ in {args.build}/compile_commands.json")
    batches = make_batches(chosen)
    failed = 0
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        tidy = Tidy(pathlib.Path(folder), cache_folder(), args.thorough)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for batch, (told, seconds) in zip(batches, pool.map(tidy.timed, range(len(batches)), batches)):
                slowest = max(slowest, (seconds, batch.title()))
                for text in told:
                    failed += 1
                    print(text, flush=True)
    total = time.monotonic() - start
    print(f"run_tidy: {len(chosen)} sources in {len(batches)} batches, {failed} with findings, {total:.0f} s"
          f" (slowest: {slowest[1]}, {slowest[0]:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
