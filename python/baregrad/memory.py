"""The allocators of tensors, and their counters."""

from baregrad._core.memory import limit, reset_peak, scope, set_limit, stats, trim

__all__ = ["limit", "reset_peak", "scope", "set_limit", "stats", "trim"]
