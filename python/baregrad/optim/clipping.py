"""Bounds on gradients, between backward() and step()."""

from __future__ import annotations

from collections.abc import Iterable

from baregrad._core import Tensor
from baregrad._core import optim as _engine
from baregrad._text import shown as _shown


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scales all gradients together so that their norm is at most ``max_norm``.

    Returns the norm before. Only the Euclidean norm is supported.

    >>> w = bg.zeros(2, requires_grad=True)
    >>> (w * bg.tensor([3.0, 4.0])).sum().backward()
    >>> bg.optim.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    if norm_type != 2:
        raise ValueError(f"clip_grad_norm_: norm_type is {_shown(norm_type)}, takes 2 only")
    return _engine.clip_grad_norm(_tensors(parameters), max_norm, error_if_nonfinite)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clips every element of every gradient to ``[-clip_value, clip_value]``.

    >>> w = bg.zeros(2, requires_grad=True)
    >>> (w * bg.tensor([3.0, -4.0])).sum().backward()
    >>> bg.optim.clip_grad_value_([w], 3.5)
    >>> w.grad
    tensor([ 3.0000, -3.5000])
    """
    _engine.clip_grad_value(_tensors(parameters), clip_value)


def _tensors(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)
