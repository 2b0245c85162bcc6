"""Starts processes that make hostile calls, and reports what did not end in a good error."""

from __future__ import annotations

import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent.parent
# A call may use this much time of the processor, and wait this long.
CPU_SECONDS = 5.0
WALL_SECONDS = 60.0


@dataclass
class Finding:
    """One call that did not end as it should."""

    what: str
    target: str
    number: int
    seed: int
    detail: str = ""

    def __str__(self) -> str:
        again = f"python -m hostile.calls --seed {self.seed} --target '{self.target}' --first {self.number}"
        return f"{self.what}: {self.target} call {self.number}\n  {again} --calls 1 --show\n  {self.detail}"


def _cpu_seconds(process: int) -> float:
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _environment(debug: bool) -> dict[str, str]:
    found_at = os.pathsep.join([str(HERE), *(os.path.abspath(p) for p in sys.path if p)])
    out = {**os.environ, "PYTHONPATH": found_at, "BAREGRAD_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if debug:
        out["PYTHONMALLOC"] = "debug"
    return out


def watch(names: list[str], seed: int, calls: int, debug: bool = False) -> tuple[list[Finding], int]:
    """Calls of these targets; what went wrong, and how many calls were made."""
    findings: list[Finding] = []
    made = 0
    remaining = list(names)
    first = 0
    while remaining:
        with tempfile.TemporaryDirectory() as folder:
            ended, problems, finding, counted = _run(remaining, seed, calls, first, debug, folder)
        findings += problems
        made += counted
        if finding is None:
            break
        findings.append(finding)
        # On with the call after the one that ended the process, unless the target fails too often.
        remaining = remaining[remaining.index(finding.target) :]
        first = finding.number + 1
        bad = sum(f.target == finding.target for f in findings)
        if first >= calls or bad >= 5:
            remaining, first = remaining[1:], 0
    return findings, made


def _run(
    names: list[str], seed: int, calls: int, first: int, debug: bool, folder: str
) -> tuple[bool, list[Finding], Finding | None, int]:
    report, progress = os.path.join(folder, "report"), os.path.join(folder, "progress")
    pathlib.Path(report).touch()
    pathlib.Path(progress).write_bytes(struct.pack("qq", -1, -1))
    work = os.path.join(folder, "work")
    os.mkdir(work)
    command = [sys.executable, "-B", "-m", "hostile.calls", "--seed", str(seed), "--calls", str(calls)]
    command += ["--report", report, "--progress", progress, "--first", str(first)]
    # The number of calls is counted from the first of each target, the first target apart.
    command[command.index("--calls") + 1] = str(calls)
    for name in names:
        command += ["--target", name]
    stderr = pathlib.Path(folder, "stderr")
    hung = False
    with open(stderr, "wb") as errors:
        child = subprocess.Popen(command, cwd=work, env=_environment(debug), stdin=subprocess.DEVNULL, stderr=errors)
        place, cpu, wall = b"", 0.0, time.monotonic()
        pause = 0.02
        while True:
            try:
                child.wait(timeout=pause)
                break
            except subprocess.TimeoutExpired:
                pause = min(0.25, pause * 1.5)
            now = pathlib.Path(progress).read_bytes()
            if now != place:
                place, cpu, wall = now, _cpu_seconds(child.pid), time.monotonic()
            elif _cpu_seconds(child.pid) - cpu > CPU_SECONDS or time.monotonic() - wall > WALL_SECONDS:
                hung = True
                child.send_signal(6)  # faulthandler says where it is
                try:
                    child.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                break
    _, number = struct.unpack("qq", pathlib.Path(progress).read_bytes())
    problems, counted = [], 0
    done = set()
    for line in pathlib.Path(report).read_text(errors="replace").splitlines():
        fields = line.split("\t")
        if fields[0] == "done":
            done.add(fields[1])
            counted += calls
        elif fields[0] == "error":
            problems.append(Finding(fields[3], fields[1], int(fields[2]), seed, fields[4]))
    if child.returncode == 0 and not hung:
        return True, problems, None, counted
    current = next((n for n in sorted(names) if n not in done), names[-1])
    text = stderr.read_text(errors="replace")
    what = "hang" if hung else f"exit status {child.returncode}"
    detail = "\n  ".join(text.strip().splitlines()[:25])
    return False, problems, Finding(what, current, max(number, 0), seed, detail), counted + max(number, 0)


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
        print(f"-- {made} calls of {begin + 50} targets, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{made} calls of {len(names)} targets, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
