#!/usr/bin/env python3
"""Ours against PyTorch and NumPy from Python: every CPU row of the targets, in one process, in
turns, with the same threads and the same inputs.

    compare.py [--threads 1 2] [--rows 9 15] [--only TEXT] [--quick] [--json F] [--plot F] [--markdown F]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[min(2, os.cpu_count() or 1)])
    parser.add_argument("--rows", type=int, nargs="+", help="rows of the targets; all by default")
    parser.add_argument("--only", help="cases with this in their name")
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing that takes seconds")
    parser.add_argument("--rounds", type=int, help="samples of each; 25 by default, 5 in --quick and for epochs")
    parser.add_argument("--mnist", type=Path, help="folder of MNIST's files, for row 21")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> Iterator[object]:
    from comparison import cases_ops, cases_train

    for module_cases in (cases_ops.cases(), cases_train.cases(options.mnist)):
        for case in module_cases:
            if options.rows and case.row not in options.rows:
                continue
            if options.only and options.only not in case.name:
                continue
            if options.quick and case.long:
                continue
            yield case


def set_threads(threads: int) -> None:
    import torch

    import baregrad as bg

    bg.set_num_threads(threads)
    torch.set_num_threads(threads)


def about() -> dict[str, object]:
    import numpy
    import torch

    import baregrad as bg

    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())
    return {"baregrad": bg.__version__, "torch": torch.__version__, "numpy": numpy.__version__,
            "python": platform.python_version(), "cpu": model, "cores": os.cpu_count()}


def run(options: argparse.Namespace, threads: int) -> int:
    """Runs all cases at one number of threads. NumPy reads it from the environment at import."""
    from comparison import report
    from comparison.timing import measure

    set_threads(threads)
    if options.mnist is None:
        print("row 21 is left out: --mnist names the folder of MNIST's files", file=sys.stderr)
    machine = about() | {"threads": threads}
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(report.header())
    lines = []
    for case in chosen(options):
        rounds = options.rounds or (5 if options.quick or case.long else 25)
        times = measure(case.make(), rounds, 0.005 if options.quick else 0.02)
        for line in report.lines_of(case, threads, times):
            lines.append(line)
            print(report.text(line), flush=True)
    judged = [line for line in lines if line.met is not None]
    print(f"{sum(bool(line.met) for line in judged)} of {len(judged)} targets met")
    if options.json:
        report.write_json(options.json, machine, lines)
    if options.markdown:
        options.markdown.write_text(report.markdown(lines))
    if options.plot:
        report.write_plot(options.plot, lines)
    return 0


def suffixed(path: Path | None, threads: int) -> Path | None:
    return path and path.with_name(f"{path.stem}-{threads}{path.suffix}")


def main() -> int:
    options = arguments()
    sys.path.insert(0, str(Path(__file__).parent))
    if len(options.threads) == 1:
        threads = options.threads[0]
        # The libraries read these variables when they are loaded: set them before any import.
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(threads)
        return run(options, threads)
    # A process for each number of threads.
    status = 0
    for threads in options.threads:
        passed = sys.argv[1:]
        at = passed.index("--threads")
        passed[at + 1:at + 1 + len(options.threads)] = [str(threads)]
        for name in ("json", "plot", "markdown"):
            path = suffixed(getattr(options, name), threads)
            if path is not None:
                passed[passed.index(f"--{name}") + 1] = str(path)
        status |= os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, *passed])
    return status


if __name__ == "__main__":
    sys.exit(main())
