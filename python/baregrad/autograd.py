"""Gradients: switching recording on and off, gradient functions, functions with their own gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar, Self, TypeVar, cast, overload

from baregrad._core import Tensor
from baregrad._core import autograd as _autograd
from baregrad._core.autograd import (
    FunctionCtx,
    backward,
    detect_anomaly,
    grad,
    gradcheck,
    gradgradcheck,
    is_grad_enabled,
    label,
    live_nodes,
)

__all__ = [
    "Function",
    "FunctionCtx",
    "backward",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "is_grad_enabled",
    "label",
    "live_nodes",
    "no_grad",
    "set_grad_enabled",
]

_F = TypeVar("_F", bound=Callable[..., Any])


class _GradMode:
    """Switches recording on or off, as a context manager and as a decorator; reentrant."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(is_grad_enabled())
        _autograd._set_grad_enabled(self._mode)

    def __exit__(self, *args: object) -> None:
        _autograd._set_grad_enabled(self._before.pop())

    def __call__(self, function: _F) -> _F:
        mode = self._mode
        if inspect.isgeneratorfunction(function):
            return cast(_F, _wrap_generator(function, mode))

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with _GradMode(mode):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def _wrap_generator(function: Any, mode: bool) -> Any:
    """The mode holds while the generator runs, but not in the code that takes its values."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        step, value = generator.send, None
        while True:
            try:
                with _GradMode(mode):
                    made = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield made
                step = generator.send
            except GeneratorExit:
                with _GradMode(mode):
                    generator.close()
                raise
            except BaseException as error:
                step, value = generator.throw, error

    return wrapped


class _FixedMode(_GradMode):
    """A mode without arguments: it decorates with or without parentheses."""

    _switch: ClassVar[bool]

    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        if function is None:
            return mode
        mode.__init__()  # type: ignore[misc]
        return mode(function)

    def __init__(self) -> None:
        super().__init__(self._switch)


class no_grad(_FixedMode):
    """Switches recording off in its scope, in this thread.

    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> with bg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False

    As a decorator, with or without parentheses:

    >>> @bg.no_grad()
    ... def double(x):
    ...     return x * 2
    >>> double(x).requires_grad
    False
    """

    _switch = False


class enable_grad(_FixedMode):
    """Switches recording on in its scope, even inside no_grad.

    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> with bg.no_grad(), bg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    _switch = True


class set_grad_enabled(_GradMode):
    """Switches recording on or off at once. A `with` block restores the mode at its end.

    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> with bg.set_grad_enabled(False):
    ...     y = x * x
    >>> y.requires_grad, bg.is_grad_enabled()
    (False, True)
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._outer = is_grad_enabled()
        _autograd._set_grad_enabled(self._mode)

    def __enter__(self) -> None:
        # The constructor has switched the mode: restore the one before that.
        self._before.append(self._outer)
        _autograd._set_grad_enabled(self._mode)

    def __call__(self, function: _F) -> _F:
        _autograd._set_grad_enabled(self._outer)
        return super().__call__(function)


class Function:
    """A differentiable function with its own backward: derive a class, and call `apply`.

    `forward(ctx, *args)` runs without recording and returns a tensor or a tuple of them;
    `backward(ctx, *gradients)` returns one gradient per argument of forward, None for arguments
    without one. Backward itself is recorded if a second derivative is requested.

    >>> class Cube(bg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return gradient * 3 * x * x
    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)

    In a class with `setup_context(ctx, inputs, output)`, forward is `forward(*args)` without ctx,
    and setup_context is called after it.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the result: forward(ctx, *args), or forward(*args) with a setup_context."""
        raise NotImplementedError("Function: a subclass must define forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what backward needs; `inputs` are the arguments of forward, `output` its result."""
        raise NotImplementedError("Function: setup_context is not defined")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Computes the gradients of the arguments from those of the results."""
        raise NotImplementedError("Function: a subclass must define backward(ctx, *gradients)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward and records it."""
        separate = cls.setup_context is not Function.setup_context
        return _autograd._apply(cls, separate, *args)


class _Place:
    """The position of a tensor in a function's result."""


_PLACE = _Place()


def _take_tensors(value: Any, found: list[Tensor]) -> Any:
    """`value` with its tensors replaced by positions; the tensors are appended to `found`."""
    if isinstance(value, Tensor):
        found.append(value)
        return _PLACE
    return _rebuilt(value, lambda part: _take_tensors(part, found))


def _put_tensors(outline: Any, tensors: Iterator[Tensor]) -> Any:
    """The inverse of _take_tensors."""
    if outline is _PLACE:
        return next(tensors)
    return _rebuilt(outline, lambda part: _put_tensors(part, tensors))


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A container with its parts changed; any other object unchanged."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(change, value))
    if type(value) in (tuple, list):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {key: change(part) for key, part in value.items()}
    return value


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls function(*args, **kwargs) without keeping its intermediate results.

    Backward calls the function again, with the same random numbers; gradients have the same bits as
    those of a plain call. The function must do the same each time. It may return a tensor, or
    tuples, lists and dictionaries of tensors and other objects; the other objects are those of the
    first call.

    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> bg.autograd.checkpoint(lambda x: bg.exp(x) * x, x).backward()
    """
    places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    # The engine keeps the tensors; a second reference here would keep them alive longer.
    others = [None if isinstance(arg, Tensor) else arg for arg in args]
    first: list[Any] = []

    def run(*tensors: Tensor) -> list[Tensor]:
        filled = list(others)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        found: list[Tensor] = []
        outline = _take_tensors(function(*filled, **kwargs), found)
        if not first:
            first.append(outline)
        return found

    outputs = _autograd._checkpoint(run, [args[i] for i in places])
    # Popped: the graph keeps `run`, which must not keep the caller's other objects alive.
    outline, first[:] = first[0], [None]
    return _put_tensors(outline, iter(outputs))
