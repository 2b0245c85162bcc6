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

HERE = pathlib.Path(__file__).resolve().parent.parent
# The limits of a call: CPU time, and waiting time.
CPU_SECONDS = 5.0
WALL_SECONDS = 60.0
# Calls that write files wait for the disk, which takes longer than all other calls.
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


def _cpu_seconds(process: int) -> float:
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _environment(debug: bool) -> dict[str, str]:
    found_at = os.pathsep.join([str(HERE), *(os.path.abspath(p) for p in sys.path if p)])
    out = {**os.environ, "PYTHONPATH": found_at, "BAREGRAD_NUM_THREADS": "1"}
    if debug:
        out["PYTHONMALLOC"] = "debug"
    return out


def watch(
    names: list[str], seed: int, calls: int, debug: bool = False
) -> tuple[list[Finding], int]:
    """Makes calls of these targets; returns the failures and the number of calls."""
    findings: list[Finding] = []
    made = 0
    remaining = sorted(names)
    first = 0
    while remaining:
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
            child = _Child(remaining, seed, calls, first, debug, folder)
            ended = child.run()
            findings += child.findings(ended)
            made += child.made()
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
        self, names: list[str], seed: int, calls: int, first: int, debug: bool, folder: str
    ) -> None:
        self.names, self.seed, self.calls, self.first = names, seed, calls, first
        self.debug = debug
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
        """Waits until the process ends; True if it had to be killed, since a call did not return."""
        place, cpu, wall = b"", 0.0, time.monotonic()
        while True:
            try:
                child.wait(timeout=0.1)
                return False
            except subprocess.TimeoutExpired:
                now = self.progress.read_bytes()
            if now != place:
                place, cpu, wall = now, _cpu_seconds(child.pid), time.monotonic()
                continue
            used = _cpu_seconds(child.pid) - cpu
            if used > CPU_SECONDS or time.monotonic() - wall > WALL_SECONDS:
                child.send_signal(signal.SIGABRT)  # faulthandler says where it is
                try:
                    child.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                return True

    def _lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.report.read_text().splitlines()]

    def _number(self) -> int:
        return max(0, struct.unpack("qq", self.progress.read_bytes())[1])

    def made(self) -> int:
        """The number of calls that returned."""
        done = sum(int(fields[2]) for fields in self._lines() if fields[0] == "done")
        whole = len(self.names) == sum(fields[0] == "done" for fields in self._lines())
        return done if whole else done + self._number() + 1

    def findings(self, ended: bool) -> list[Finding]:
        """The failures; the last one is the call that ended the process, if it did not end by
        itself."""
        out = []
        done = set()
        for fields in self._lines():
            if fields[0] == "done":
                done.add(fields[1])
            else:
                out.append(Finding(fields[3], fields[1], int(fields[2]), self.seed, fields[4]))
        if not ended:
            current = next((name for name in self.names if name not in done), self.names[-1])
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
    parser.add_argument("--part", default="0/1", help="I/N: every Nth target from the Ith on")
    options = parser.parse_args()
    from hostile.surface import targets  # noqa: PLC0415: only the command needs the package here

    part, parts = map(int, options.part.split("/"))
    names = [t.name for t in targets() if options.match in t.name][part::parts]
    findings, made, began = [], 0, time.monotonic()
    for begin in range(0, len(names), 50):
        found, count = watch(names[begin : begin + 50], options.seed, options.calls, options.debug)
        made += count
        findings += found
        for finding in found:
            print(finding, flush=True)
        done = f"{made} calls of {begin + 50} targets, {time.monotonic() - began:.0f} s"
        print("--", done, file=sys.stderr, flush=True)
    print(f"{made} calls of {len(names)} targets, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
