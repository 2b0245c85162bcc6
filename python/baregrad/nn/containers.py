"""Lists and dictionaries of modules and parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from baregrad._core.nn import Module, Parameter
from baregrad._text import shown

__all__ = ["ModuleDict", "ModuleList", "ParameterList"]


class _List(Module):
    """The common base of ModuleList and ParameterList: items named "0", "1", ..."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self._length = 0
        self.extend(items)

    def _name(self, index: int) -> str:
        index = operator.index(index)
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(
                f"{type(self).__name__}: position {shown(index)} of {self._length} items"
            )
        return str(at)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int | slice, item: Any) -> None:
        if isinstance(index, slice):
            items = list(self)
            items[index] = item
            self._refill(items)
        else:
            setattr(self, self._name(index), self._checked(item))

    def __delitem__(self, index: int | slice) -> None:
        items = list(self)
        if not isinstance(index, slice):
            index = int(self._name(index))
        del items[index]
        self._refill(items)

    def _refill(self, items: list[Any]) -> None:
        # An invalid item leaves the list unchanged.
        items = [self._checked(item) for item in items]
        for i in reversed(range(self._length)):
            delattr(self, str(i))
        self._length = 0
        self.extend(items)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._length))

    def append(self, item: Any) -> Self:
        """Adds an item at the end."""
        setattr(self, str(self._length), self._checked(item))
        self._length += 1
        return self

    def extend(self, items: Iterable[Any]) -> Self:
        """Adds items at the end."""
        # A copy first: the argument may be this list, which grows.
        for item in [self._checked(item) for item in items]:
            self.append(item)
        return self

    def pop(self, index: int | slice) -> Any:
        """Removes an item or a slice, and returns it."""
        item = self[index]
        del self[index]
        return item

    def __add__(self, other: Iterable[Any]) -> Self:
        return type(self)([*self, *other])

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)

    def insert(self, index: int, item: Any) -> None:
        """Inserts an item before another, as list.insert."""
        items = list(self)
        items.insert(index, item)
        self._refill(items)

    def _checked(self, item: Any) -> Any:
        """The stored form of an item; TypeError if it is invalid."""
        raise NotImplementedError


class ModuleList(_List):
    """A list of modules, all registered.

    >>> layers = bg.nn.ModuleList(bg.nn.Linear(4, 4) for _ in range(3))
    >>> len(layers), sum(p.ndim for p in layers.parameters())
    (3, 9)
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
    )
    """

    def _checked(self, item: Any) -> Module:
        if not isinstance(item, Module):
            raise TypeError(f"ModuleList: '{type(item).__name__}' is no Module")
        return item

    def __repr__(self) -> str:
        # Adjacent modules with the same text share a line.
        runs: list[list[Any]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            text = text.replace("\n", "\n  ")
            if first == last:
                lines.append(f"({first}): {text}")
            else:
                lines.append(f"({first}-{last}): {last - first + 1} x {text}")
        inside = "".join(f"\n  {line}" for line in lines)
        return f"{type(self).__name__}({inside}\n)" if lines else "ModuleList()"


class ParameterList(_List):
    """A list of parameters, all registered; tensors become parameters.

    >>> [p.shape for p in bg.nn.ParameterList([bg.ones(2), bg.ones(3)])]
    [(2,), (3,)]
    """

    def _checked(self, item: Any) -> Parameter:
        return item if isinstance(item, Parameter) else Parameter(item)

    def extra_repr(self) -> str:
        """The shapes and dtypes of the parameters, line by line."""
        return "\n".join(
            f"({i}): Parameter of {tuple(p.shape)}, {p.dtype}" for i, p in enumerate(self)
        )


class ModuleDict(Module):
    """A dictionary of modules, all registered.

    >>> parts = bg.nn.ModuleDict({"act": bg.nn.ReLU()})
    >>> parts["fc"] = bg.nn.Linear(2, 2)
    >>> list(parts)
    ['act', 'fc']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def _modules(self) -> dict[str, Module]:
        return dict(self.named_children())

    def __getitem__(self, key: str) -> Module:
        return self._modules()[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        self._modules()[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __contains__(self, key: object) -> bool:
        return key in self._modules()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules().keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules().values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules().items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules, or replaces those of the same names."""
        for key, module in dict(modules).items():
            self[key] = module

    def clear(self) -> None:
        """Removes all modules."""
        for key in reversed(list(self._modules())):
            delattr(self, key)

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module
