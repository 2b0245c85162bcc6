"""Where the bytes of tensors come from, and how many there are."""

from baregrad._core.memory import limit, reset_peak, scope, set_limit, stats, trim

__all__ = ["limit", "reset_peak", "scope", "set_limit", "stats", "trim"]
