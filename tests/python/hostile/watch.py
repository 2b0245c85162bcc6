"""Starts processes that make hostile calls, and reports calls without a good error."""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from hostile.clock import LIMIT, Clock

HERE = pathlib.Path(__file__).resolve().parent.parent
# Calls that write files wait for the disk, which takes longer than all others together.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Finding:
    """A call with an unacceptable end."""

    what: str
    target: str
    number: int
    seed: int
    detail: str = ""

    def __str__(self) -> str:
        again = f"python -m hostile.calls --seed {self.seed} --target {self.target} --call {self.number} --show"
        return f"{self.what}: {self.target}\n  {again}\n  {self.detail}"


def _environment(debug: bool) -> dict[str, str]:
    found_at = os.pathsep.join([str(HERE), *(os.path.abspath(p) for p in sys.path if p)])
    out = {**os.environ, "PYTHONPATH": found_at, "BAREGRAD_NUM_THREADS": "1"}
    out.pop("BAREGRAD_DATA", None)
    if debug:
        out["PYTHONMALLOC"] = "debug"
    return out


def watch(
    names: list[str], seed: int, calls: int, debug: bool = False, limit: float = LIMIT
) -> tuple[list[Finding], dict[str, int]]:
    """Calls of these targets; what went wrong, and how many calls were made of each."""
    findings: list[Finding] = []
    made = dict.fromkeys(names, 0)
    remaining = sorted(names)
    first = 0
    while remaining:
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
            child = _Child(remaining, seed, calls, first, debug, limit, folder)
            ended = child.run()
            findings += child.findings(ended)
            for name, count in child.made().items():
                made[name] += count
        if ended:
            break
        # Continues with the call after the one that ended the process, unless the target ends too
        # many.
        last = findings[-1]
        remaining = remaining[remaining.index(last.target) :]
        first = last.number + 1
        if first >= calls or sum(f.target == last.target for f in findings) >= 5:
            remaining, first = remaining[1:], 0
    return findings, made


class _Child:
    """One process that makes calls."""

    def __init__(
        self,
        names: list[str],
        seed: int,
        calls: int,
        first: int,
        debug: bool,
        limit: float,
        folder: str,
    ) -> None:
        self.names, self.seed, self.calls, self.first = names, seed, calls, first
        self.debug, self.limit = debug, limit
        self.work = pathlib.Path(folder, "work")
        self.work.mkdir()
        self.report, self.progress = pathlib.Path(folder, "report"), pathlib.Path(folder, "progress")
        self.stderr = pathlib.Path(folder, "stderr")
        self.report.touch()
        self.progress.write_bytes(struct.pack("qq", -1, -1))
        self.how = ""

    def run(self) -> bool:
        """Whether it ran to its end."""
        command = [sys.executable, "-B", "-m", "hostile.calls", "--seed", str(self.seed)]
        command += ["--calls", str(self.calls), "--first", str(self.first)]
        command += ["--limit", str(self.limit)]
        command += ["--report", str(self.report), "--progress", str(self.progress)]
        for name in self.names:
            command += ["--target", name]
        with open(self.stderr, "wb") as errors:
            child = subprocess.Popen(
                command,
                cwd=self.work,
                env=_environment(self.debug),
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
            hung = self._wait(child)
        self.how = "a hang" if hung else f"exit status {child.returncode}"
        return child.returncode == 0 and not hung

    def _wait(self, child: subprocess.Popen[bytes]) -> bool:
        """Until the process ends; True when it had to be ended, since a call did not return."""
        clock = Clock(child.pid)
        place, began = b"", clock.now()
        try:
            while True:
                try:
                    child.wait(timeout=0.1)
                    return False
                except subprocess.TimeoutExpired:
                    now = self.progress.read_bytes()
                if now != place:
                    place, began = now, clock.now()
                elif clock.now() - began > self.limit + 1:  # what ends before is reported by the process
                    break
        finally:
            clock.close()
        child.send_signal(signal.SIGABRT)  # faulthandler says where it is
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        return True

    def _lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.report.read_text().splitlines()]

    def _number(self) -> int:
        return max(0, struct.unpack("qq", self.progress.read_bytes())[1])

    def _current(self) -> str | None:
        """The first target that is not done."""
        done = {fields[1] for fields in self._lines() if fields[0] == "done"}
        return next((name for name in self.names if name not in done), None)

    def made(self) -> dict[str, int]:
        """Calls that were made of each target, with the one that ended the process."""
        out = {fields[1]: int(fields[2]) for fields in self._lines() if fields[0] == "done"}
        current = self._current()
        if current is not None:
            first = self.first if current == self.names[0] else 0
            out[current] = self._number() + 1 - first
        return out

    def findings(self, ended: bool) -> list[Finding]:
        """The failures; the last one is the call that ended the process, if it did not end by
        itself."""
        out = []
        for fields in self._lines():
            if fields[0] == "error":
                out.append(Finding(fields[3], fields[1], int(fields[2]), self.seed, fields[4]))
        if not ended:
            current = self._current() or self.names[-1]
            lines = self.stderr.read_text(errors="replace").strip().splitlines()
            detail = "\n  ".join(lines[-25:])
            out.append(Finding(self.how, current, self._number(), self.seed, detail))
        return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--match", default="", help="only targets whose names hold this")
    parser.add_argument("--debug", action="store_true", help="PYTHONMALLOC=debug")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a call may take")
    parser.add_argument("--part", default="0/1", help="I/N: every Nth target from the Ith on")
    parser.add_argument("--log", help="a file for the calls made of each target; skips what it holds")
    options = parser.parse_args()
    from hostile.surface import targets  # noqa: PLC0415: only the command needs the package here

    part, parts = map(int, options.part.split("/"))
    names = [t.name for t in targets() if options.match in t.name][part::parts]
    if options.log and os.path.exists(options.log):
        with open(options.log, encoding="utf-8") as log:
            had = {line.split("\t")[0] for line in log}
        names = [name for name in names if name not in had]
    findings, made, began = [], 0, time.monotonic()
    for begin in range(0, len(names), 50):
        some = names[begin : begin + 50]
        found, counts = watch(some, options.seed, options.calls, options.debug, options.limit)
        made += sum(counts.values())
        if options.log:
            with open(options.log, "a", encoding="utf-8") as log:
                log.writelines(f"{name}\t{count}\n" for name, count in counts.items())
        findings += found
        for finding in found:
            print(finding, flush=True)
        done = f"{made} calls of {begin + len(some)} targets, {time.monotonic() - began:.0f} s"
        print("--", done, file=sys.stderr, flush=True)
    print(f"{made} calls of {len(names)} targets, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
