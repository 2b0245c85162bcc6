#!/usr/bin/env python3
"""Writes index_cases.inc: the results of NumPy's x[...]. --check only compares."""

import pathlib
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).with_name("index_cases.inc")
ALL = slice(None)
NEW = None


def ints(*values):
    return np.array(values, dtype=np.int64)


def mask(*values):
    return np.array(values, dtype=bool)


CHECKS = np.arange(6).reshape(2, 3) % 2 == 0
DIAGONAL = np.arange(12).reshape(3, 4) % 5 == 0
BESIDE = np.arange(12).reshape(3, 4) % 5 == 1

CASES = [
    ((4,), (ints(2, 0, -1),)),
    ((4,), (np.array(1),)),
    ((4,), (ints([0, 1], [3, -4]),)),
    ((4,), (ints(),)),
    ((4,), (mask(1, 0, 1, 0),)),
    ((4,), (np.array(True),)),
    ((4,), (np.array(False),)),
    ((), (np.array(True),)),
    ((), (np.array(False),)),
    ((3, 4), (ints(2, 0),)),
    ((3, 4), (ALL, ints(3, 1))),
    ((3, 4), (ints(0, 2), ints(3, 1))),
    ((3, 4), (ints([0], [2]), ints(3, 1, 0))),
    ((3, 4), (1, ints(3, 1))),
    ((3, 4), (ints(2, 1), -1)),
    ((3, 4), (slice(None, None, -1), ints(3, 1))),
    ((3, 4), (slice(None, None, 2), ints([1, 2], [0, -1]))),
    ((3, 4), (..., ints(1, 2))),
    ((3, 4), (ints(1, 2), ...)),
    ((3, 4), (ints(1, 2), ..., ints(0, 3))),
    ((3, 4), (NEW, ints(1, 2))),
    ((3, 4), (ints(1, 2), NEW)),
    ((3, 4), (ints(1, 2), NEW, ints(0, 3))),
    ((3, 4), (mask(1, 0, 1),)),
    ((3, 4), (mask(1, 0, 1), ints(1, 2))),
    ((3, 4), (mask(1, 0, 1), slice(1, 3))),
    ((3, 4), (ALL, mask(0, 1, 1, 0))),
    ((3, 4), (DIAGONAL,)),
    ((3, 4), (np.zeros((3, 4), bool),)),
    ((3, 4), (mask(1, 0, 1), NEW, mask(0, 1, 1, 0))),
    ((3, 4), (np.array(True), 1)),
    ((3, 4), (np.array(True), ints(1, 2))),
    ((3, 4), (ints(1, 2), np.array(True))),
    ((3, 4), (slice(1, None), np.array(True), ints(1, 2))),
    ((3, 4), (np.array(True), slice(1, None), ints(1, 2))),
    ((3, 4), (np.array(False), ints(1))),
    ((3, 4), ()),
    ((3, 4), (-1,)),
    ((3, 4), (..., -4)),
    ((3, 4), (slice(5, None, -2), NEW, slice(-3, 9))),
    ((2, 3, 4), (1, ..., slice(None, None, -3))),
    ((2, 3, 4), (NEW, 0, NEW, ..., NEW)),
    ((2, 3, 4), (ALL, ints(0, 2), ALL)),
    ((2, 3, 4), (ALL, ints(0, 2), ints(1, 3))),
    ((2, 3, 4), (ALL, ints(0, 2), ..., ints(1, 3))),
    ((2, 3, 4), (ALL, ints(0, 2), ints(1, 3), ...)),
    ((2, 3, 4), (ints(0, 1), ALL, ints(1, 3))),
    ((2, 3, 4), (0, ALL, ints(1, 3))),
    ((2, 3, 4), (ALL, 0, ints(1, 3))),
    ((2, 3, 4), (ints(1, 0), ALL, -1)),
    ((2, 3, 4), (ALL, ALL, ints(0, 2))),
    ((2, 3, 4), (..., ints(0, 2), ints(1, 3))),
    ((2, 3, 4), (..., 1, ints(0, 2), NEW)),
    ((2, 3, 4), (ints([0], [1]), slice(None, None, 2), ints(0, 3))),
    ((2, 3, 4), (ALL, ints([0, 1], [2, 0]), 1)),
    ((2, 3, 4), (np.array(1), ALL, ints(1, 3))),
    ((2, 3, 4), (CHECKS,)),
    ((2, 3, 4), (CHECKS, ints(3))),
    ((2, 3, 4), (CHECKS, slice(1, 3))),
    ((2, 3, 4), (1, BESIDE)),
    ((2, 3, 4), (slice(None, None, -1), BESIDE)),
    ((2, 3, 4), (mask(1, 1), ALL, mask(1, 0, 0, 1))),
    ((2, 1, 3, 2), (ALL, ints(0), ints(2, 0), ALL)),
    ((2, 1, 3, 2), (ints(1, 0), ALL, ints(2, 0), ALL)),
    ((2, 1, 3, 2), (ALL, 0, ALL, ints(1, 0))),
    ((2, 1, 3, 2), (ALL, 0, ints(1), 1)),
    ((2, 0, 3), (ints(1, 0),)),
    ((2, 0, 3), (ALL, ALL, ints(1, 0))),
    ((2, 0, 3), (ALL, ints())),
    ((1, 2, 1, 2, 1, 2, 1, 2), (0, ints(1, 0), ..., ints(0, -1), 1)),
]


def numbers(values):
    return "{" + ", ".join(str(int(v)) for v in values) + "}"


def cpp(index):
    if isinstance(index, np.ndarray):
        kind = "mask" if index.dtype == bool else "ints"
        return f"{kind}({numbers(index.ravel())}, {numbers(index.shape)})"
    if index is Ellipsis:
        return "Ellipsis{}"
    if index is NEW:
        return "NewAxis{}"
    if isinstance(index, slice):
        parts = [index.start, index.stop, index.step]
        return "Slice{" + ", ".join("{}" if p is None else str(p) for p in parts) + "}"
    return str(index)


def text(index):
    if isinstance(index, np.ndarray):
        if index.dtype == bool:
            return f"mask{list(index.shape)}"
        return str(index.tolist())
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        parts = [index.start, index.stop] + ([] if index.step is None else [index.step])
        return ":".join("" if p is None else str(p) for p in parts)
    return str(index)


def main():
    lines = [
        "// x = arange(n).reshape(shape); x[...] in NumPy. Written by make_index_cases.py.",
        "// what, shape of x, indices, shape of x[...], its elements",
        "// clang-format off",
    ]
    for shape, indices in CASES:
        x = np.arange(int(np.prod(shape))).reshape(shape)
        result = x[indices]
        what = ", ".join(text(i) for i in indices)
        call = ", ".join(cpp(i) for i in indices)
        lines.append(
            f'{{"[{what}]", {numbers(shape)}, {{{call}}}, '
            f"{numbers(result.shape)}, {numbers(result.ravel())}}},"
        )
    golden = "\n".join(lines) + "\n// clang-format on\n"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if GOLDEN.read_text() == golden else f"{GOLDEN.name} is out of date")
    GOLDEN.write_text(golden)


if __name__ == "__main__":
    main()
