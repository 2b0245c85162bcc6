"""Small types that modules return."""

from __future__ import annotations

from typing import Any, NamedTuple

from baregrad._core import nn as _engine


class LoadResult(NamedTuple):
    """The keys that load_state_dict skipped; both lists are empty after a strict load."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class HookHandle:
    """A handle of a hook: remove() or the end of a with block removes it."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self._number = max(hooks, default=-1) + 1
        hooks[self._number] = hook

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self._number, None)
        self._number = -1

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def rebuild(kind: type, native: type, arguments: dict[str, Any]) -> Any:
    """Called by copies and pickles of modules, which need a Python function with a name."""
    return _engine._rebuild(kind, native, arguments)
