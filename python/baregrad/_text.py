"""Values of other people in messages of errors."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """The value's repr: short, and a text where there is none, as of a list nested too deep."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001: the error that is about to be raised matters more
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
