"""Python objects that raise, return wrong values, or change a container while it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

import baregrad as bg


class Hostility(Exception):
    """Raised by the objects below. It must reach the caller unchanged, or be replaced by our own
    error."""


CONVERSIONS = (
    "__index__ __int__ __float__ __bool__ __len__ __iter__ __getitem__ __call__ __array__ __dlpack__ "
    "__dlpack_device__ __array_interface__ __buffer__ __fspath__ __str__ __repr__ __hash__ __eq__ "
    "__lt__ __contains__ __enter__ __exit__ __next__ __complex__ __bytes__ __format__ __reduce_ex__ "
    "__add__ __radd__ __mul__ __neg__ keys items __deepcopy__ __copy__ shape dtype data"
).split()


def _raise(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise Hostility("raised on purpose")


def raising(*names: str) -> Any:
    """An object whose methods of these names raise."""
    return type("Raises", (), dict.fromkeys(names, _raise))()


def answering(value: Any, *names: str) -> Any:
    """An object whose methods of these names return the value, valid or not."""

    def answer(self: Any, *args: Any, **keywords: Any) -> Any:
        # Iteration ends: Python's own list() never returns for an endless sequence.
        if args and type(args[0]) is int and args[0] > 100:
            raise IndexError(args[0])
        return value

    return type("Answers", (), dict.fromkeys([n for n in names if n != "__next__"], answer))()


class Anything:
    """Has every attribute, and accepts every call."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


class Pretends:
    """Claims to be a tensor."""

    __class__ = property(lambda self: bg.Tensor)  # type: ignore[assignment]


class LongerThanItIs:
    """A sequence whose length differs from the number of its items."""

    def __init__(self, length: int, items: int) -> None:
        self.length = length
        self.items = items

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int) or not 0 <= index < self.items:
            raise IndexError(index)
        return index


class Clears:
    """Empties its container at the first conversion, and returns a number."""

    def __init__(self, container: Any, answer: Any = 1) -> None:
        self.container = container
        self.answer = answer

    def _clear(self) -> Any:
        self.container.clear()
        return self.answer

    def __index__(self) -> int:
        return int(self._clear())

    def __float__(self) -> float:
        return float(self._clear())

    def __int__(self) -> int:
        return int(self._clear())

    def __bool__(self) -> bool:
        return bool(self._clear())

    def __str__(self) -> str:
        return str(self._clear())

    def __fspath__(self) -> str:
        return str(self._clear())

    def __len__(self) -> int:
        return int(self._clear())

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.container.clear()
        return False


class Grows(Clears):
    """Adds to its container at each conversion, up to a limit."""

    def _clear(self) -> Any:
        if len(self.container) < 50:
            self.container.extend([self.answer] * 20)
        return self.answer


class BadInt(int):
    """An int whose conversions raise."""

    __index__ = __int__ = __float__ = __bool__ = _raise  # type: ignore[assignment]


class BadFloat(float):
    """A float whose conversions raise."""

    __float__ = __int__ = __bool__ = _raise  # type: ignore[assignment]


class BadStr(str):
    """A str whose methods raise."""

    __str__ = __len__ = __hash__ = __eq__ = encode = split = __format__ = _raise  # type: ignore[assignment]


class BadList(list):
    """A list that raises when it is read through its methods."""

    __iter__ = __len__ = __getitem__ = _raise  # type: ignore[assignment]


class BadTuple(tuple):
    """A tuple that raises when it is read through its methods."""

    __iter__ = __len__ = __getitem__ = _raise  # type: ignore[assignment]


class LyingTuple(tuple):
    """A tuple that says it is longer than it is."""

    def __len__(self) -> int:
        return 7


class BadDict(dict):
    """A dict that raises when it is read through its methods."""

    keys = items = values = __iter__ = __getitem__ = __len__ = _raise  # type: ignore[assignment]


class SubTensor(bg.Tensor):
    """A tensor of another class, with methods that raise."""

    shape = property(_raise)  # type: ignore[assignment]
    __len__ = __bool__ = _raise  # type: ignore[assignment]


class SubModule(bg.nn.Module):
    """A module that never called the constructor of its base."""

    def __init__(self) -> None:
        pass


class ModuleThat(bg.nn.Module):
    """A module with a given forward."""

    def __init__(self, does: Any) -> None:
        super().__init__()
        self.does = does

    def forward(self, *args: Any) -> Any:
        return self.does(*args)


class Function(bg.autograd.Function):
    """A Function that doubles."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


class BadFunction(bg.autograd.Function):
    """A Function that keeps its output, and whose backward returns any object."""

    gives: Any = None

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.everything = args
        return args[0] if args else None

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> Any:  # type: ignore[override]
        return cls.gives


def cleared_list(answer: Any = 1, kind: type = Clears) -> list[Any]:
    """A list with an item that changes the list while it is read."""
    items: list[Any] = [1, 2]
    items.append(kind(items, answer))
    items.extend([3, 4])
    return items


def cleared_dict(value: Any) -> dict[Any, Any]:
    """A dict with a value that empties the dict while it is read."""
    items: dict[Any, Any] = {"a": value}
    items["b"] = Clears(items)
    items["c"] = value
    return items


def loop_list() -> list[Any]:
    """A list that holds itself."""
    loop: list[Any] = []
    loop.append(loop)
    return loop


def deep_list(depth: int) -> list[Any]:
    """Lists in lists."""
    out: list[Any] = [1.0]
    for _ in range(depth):
        out = [out]
    return out


def stopping_generator(count: int) -> Any:
    """Yields some numbers, then raises."""
    yield from range(count)
    raise Hostility("a generator raised")


def read_only_array() -> Any:
    """An array that must not be written."""
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    return array


def released_view() -> Any:
    """A memoryview whose memory was given back."""
    view = memoryview(bytearray(b"abcdefgh"))
    view.release()
    return view


def used_capsule() -> Any:
    """A DLPack capsule that was taken already."""
    capsule = np.arange(3.0).__dlpack__()
    try:
        bg.from_dlpack(answering(capsule, "__dlpack__"))
    except Exception:  # noqa: BLE001, S110: it is only to be used up
        pass
    return capsule
