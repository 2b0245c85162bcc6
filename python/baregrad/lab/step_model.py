"""A model of the time of a training step: a fixed part, a part per operation, a part per weight."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class StepModel:
    """time = fixed_ns + ns_per_flop * flops + ns_per_parameter * parameters."""

    fixed_ns: float
    ns_per_flop: float
    ns_per_parameter: float
    error: float  # the median of |model / measured - 1|

    @property
    def crossover_flops(self) -> float | None:
        """The number of operations that take as long as the fixed part; None if one of the two is
        zero."""
        if self.fixed_ns <= 0 or self.ns_per_flop <= 0:
            return None
        return self.fixed_ns / self.ns_per_flop


def _solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gaussian elimination with pivots; None if the matrix is singular. Plain Python: the same
    digits on every machine."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for step in range(size):
        pivot = max(range(step, size), key=lambda i: abs(rows[i][step]))
        if abs(rows[pivot][step]) < 1e-12:
            return None
        rows[step], rows[pivot] = rows[pivot], rows[step]
        for i in range(size):
            if i != step:
                factor = rows[i][step] / rows[step][step]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[step], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit_step_model(points: Sequence[tuple[float, float, float]]) -> StepModel | None:
    """Fits (flops, parameters, ns) by least squares of relative errors, with no part below zero.
    None for fewer than four."""
    if len(points) < 4:
        return None
    parts_of = [(1 / ns, flops / ns, parameters / ns) for flops, parameters, ns in points]
    scales = [max(row[i] for row in parts_of) or 1.0 for i in range(3)]
    rows = [[part / scale for part, scale in zip(row, scales, strict=True)] for row in parts_of]
    best: tuple[float, list[float]] | None = None
    for count in (3, 2, 1):
        for chosen in itertools.combinations(range(3), count):
            matrix = [[sum(row[i] * row[j] for row in rows) for j in chosen] for i in chosen]
            solved = _solve(matrix, [sum(row[i] for row in rows) for i in chosen])
            if solved is None or min(solved) < 0:
                continue
            parts = [0.0, 0.0, 0.0]
            for i, value in zip(chosen, solved, strict=True):
                parts[i] = value
            loss = sum((sum(a * b for a, b in zip(row, parts, strict=True)) - 1) ** 2 for row in rows)
            if best is None or loss < best[0]:
                best = loss, parts
    if best is None:
        return None
    errors = sorted(abs(sum(a * b for a, b in zip(row, best[1], strict=True)) - 1) for row in rows)
    fixed, per_flop, per_parameter = (part / scale for part, scale in zip(best[1], scales, strict=True))
    return StepModel(fixed, per_flop, per_parameter, errors[len(errors) // 2])
