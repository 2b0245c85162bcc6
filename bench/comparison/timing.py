"""Times of several implementations of one piece of work, taken in turns."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Work = Callable[[], object]

# Threads of OpenBLAS and of OpenMP spin for 20 ms and more after their work: wait until they sleep.
SETTLE_SECONDS = 0.04
# After this the candidate's own threads are awake and its caches are warm.
WARM_SECONDS = 0.001


@dataclass(frozen=True)
class Times:
    """Seconds per call: the median of the samples, and the range of the middle eight tenths."""

    median: float
    p10: float
    p90: float

    @staticmethod
    def of(samples: list[float]) -> Times:
        ordered = sorted(samples)
        last = len(ordered) - 1
        return Times(
            statistics.median(ordered), ordered[round(0.1 * last)], ordered[round(0.9 * last)]
        )


def _calls_per_sample(work: Work, seconds: float) -> int:
    """The number of calls in one sample. The first calls, which warm the caches, do not count."""
    work()
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds or calls >= 1_000_000:
            return calls
        # At most ten times more calls per step: the first measurement may be far off.
        calls = max(calls + 1, min(10 * calls, int(1.2 * calls * seconds / max(elapsed, 1e-9))))


def _sample(work: Work, calls: int) -> float:
    time.sleep(SETTLE_SECONDS)
    awake = time.perf_counter() + WARM_SECONDS
    while True:
        work()
        if time.perf_counter() >= awake:
            break
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def measure(works: Mapping[str, Work], rounds: int, sample_seconds: float) -> dict[str, Times]:
    """Each round takes one sample of every implementation, in a new random order."""
    calls = {name: _calls_per_sample(work, sample_seconds) for name, work in works.items()}
    samples: dict[str, list[float]] = {name: [] for name in works}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(works), len(works)):
            samples[name].append(_sample(works[name], calls[name]))
    return {name: Times.of(taken) for name, taken in samples.items()}
