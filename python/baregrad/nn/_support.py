"""Small types that modules hand out."""

from __future__ import annotations

from typing import Any, NamedTuple

from baregrad._core import nn as _engine


class LoadResult(NamedTuple):
    """What load_state_dict left out; both are empty after a strict load."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class HookHandle:
    """Removes a hook: by remove(), or at the end of a with block."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self._number = max(hooks, default=-1) + 1
        hooks[self._number] = hook

    def remove(self) -> None:
        """The hook is called no more; a second time does nothing."""
        self._hooks.pop(self._number, None)
        self._number = -1

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def rebuild(kind: type, native: type, arguments: dict[str, Any]) -> Any:
    """What copies and pickles of modules call; a function of the engine has no name for them."""
    return _engine._rebuild(kind, native, arguments)
