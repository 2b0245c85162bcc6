"""Runs commands that must end soon: 5 seconds, on a busy machine as on a quiet one."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from hostile.clock import LIMIT, ClockOfThreads  # noqa: E402


def run_in_time(words, limit=LIMIT, **options):
    """subprocess.run that raises TimeoutExpired for what takes longer than the limit.

    Time in which a thread of the process waits for a processor does not count.
    """
    if options.pop("capture_output", False):
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with subprocess.Popen(words, **options) as process:
        clock = ClockOfThreads(process.pid)
        began = clock.now()
        try:
            while True:
                try:
                    out, errors = process.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    took = clock.now() - began
                    if took > limit:
                        raise subprocess.TimeoutExpired(words, limit) from None
                else:
                    return subprocess.CompletedProcess(words, process.returncode, out, errors)
        finally:
            clock.close()
            process.kill()
