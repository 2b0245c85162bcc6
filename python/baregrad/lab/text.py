"""Formats numbers for readers."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """Formats with so many significant digits and no exponent: 0.0123, 1.23, 12.3, 123; thousands
    are not rounded: 1,234."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    # The exponent after rounding: 0.9996 is 1.00, not 1.000.
    exponent = int(f"{abs(value):.{digits - 1}e}".split("e")[1])
    return f"{value:,.{min(12, max(0, digits - 1 - exponent))}f}"


def time(ns: float) -> str:
    """1.23 µs."""
    # A unit ends where its value would be rounded up to the next unit.
    for scale, unit in ((1.0, "ns"), (1e3, "µs"), (1e6, "ms")):
        if abs(ns) / scale < 999.5:
            return f"{number(ns / scale)} {unit}"
    return f"{number(ns / 1e9)} s"


def size(count: float) -> str:
    """1.5 MiB."""
    for scale, unit in ((1, "B"), (2**10, "KiB"), (2**20, "MiB")):
        if count / scale < 1023.5:
            return f"{count / scale:.4g} {unit}"
    return f"{count / 2**30:.4g} GiB"


def times(ratio: float) -> str:
    """12.3×."""
    return f"{number(ratio)}×"


def percent(share: float) -> str:
    """0.123 as 12.3 %."""
    return f"{number(100 * share)} %"


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else text + "."
