"""The optimizers. Each class declares its options; the engine has the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from baregrad._core import optim as _engine
from baregrad.optim.optimizer import Optimizer, Params


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    >>> w = bg.tensor([1.0], requires_grad=True)
    >>> optimizer = bg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.4600], requires_grad=True)
    """

    _kind = _engine.SGD

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )


class Adam(Optimizer):
    """Adam: the mean of the gradients divided by the root of the mean of their squares.

    Kingma and Ba 2015. Weight decay is added to the gradient; see AdamW.

    >>> w = bg.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = bg.optim.Adam([w], lr=0.1, betas=(0.9, 0.99))
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -2.9000], requires_grad=True)
    """

    _kind: ClassVar[Callable[..., Any]] = _engine.Adam

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters shrink by lr * weight_decay.

    Loshchilov and Hutter 2019.

    >>> w = bg.tensor([1.0], requires_grad=True)
    >>> optimizer = bg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (0 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9500], requires_grad=True)
    """

    _kind = _engine.AdamW

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize)


class RMSprop(Optimizer):
    """RMSprop: divides the gradient by the root of the mean of its squares, or of its variance.

    ``centered`` selects the variance.

    >>> w = bg.tensor([1.0], requires_grad=True)
    >>> optimizer = bg.optim.RMSprop([w], lr=0.1, alpha=0.75)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _kind = _engine.RMSprop

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )


class Adagrad(Optimizer):
    """Adagrad: the gradient divided by the root of the sum of its squares so far.

    Duchi, Hazan and Singer 2011.

    >>> w = bg.tensor([1.0], requires_grad=True)
    >>> optimizer = bg.optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000], requires_grad=True)
    """

    _kind = _engine.Adagrad

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
                "maximize": maximize,
            },
        )


class Lion(Optimizer):
    """Lion: the sign of a mean of gradients, and decoupled weight decay. Chen et al. 2023.

    >>> w = bg.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = bg.optim.Lion([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.7500, -2.7500], requires_grad=True)
    """

    _kind = _engine.Lion

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize},
        )
