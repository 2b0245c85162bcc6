"""The time that calls and commands take, on a busy machine as on a quiet one."""

from __future__ import annotations

import os
import time

# Seconds that a call may take, or a command with damaged input.
LIMIT = 5.0


class Clock:
    """Seconds of a process, without those in which its main thread waited for a processor."""

    def __init__(self, process: int | str = "self") -> None:
        self.waits = -1
        try:
            # Where the kernel keeps no such statistics, seconds of the wall count.
            self.waits = os.open(f"/proc/{process}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass

    def now(self) -> float:
        """Differences of it are durations."""
        return time.monotonic() - self.waited() * 1e-9

    def waited(self) -> int:
        """Nanoseconds in which it was ready to run and did not."""
        try:
            return int(os.pread(self.waits, 80, 0).split()[1])
        except (OSError, IndexError):
            return 0  # no statistics, or the process has ended

    def close(self) -> None:
        if self.waits >= 0:
            os.close(self.waits)
            self.waits = -1


class ClockOfThreads(Clock):
    """Seconds of a process, without those in which any of its threads waited for a processor."""

    def __init__(self, process: int) -> None:
        super().__init__(process)
        self.threads = f"/proc/{process}/task"
        self.seen: dict[str, int] = {}

    def waited(self) -> int:
        """The sum over the threads, also those that have ended."""
        try:
            for thread in os.listdir(self.threads):
                with open(f"{self.threads}/{thread}/schedstat", encoding="ascii") as file:
                    self.seen[thread] = int(file.read().split()[1])
        except (OSError, IndexError):
            pass  # it ends meanwhile, or there are no statistics
        return sum(self.seen.values())
