"""One row of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from comparison.timing import Work


@dataclass(frozen=True)
class Case:
    """One piece of work in all its implementations.

    `make` builds them on the same inputs, "ours" among them, and checks that they compute the
    same. A target is the least ratio of the peer's time to our time.
    """

    row: int
    name: str
    make: Callable[[], Mapping[str, Work]]
    targets: Mapping[str, float] = field(default_factory=dict)
    long: bool = False  # takes seconds: few rounds, and left out by --quick
