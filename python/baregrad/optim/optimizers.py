"""The optimizers. Their options and formulas are in the engine.

The arguments of a class are the options of the engine's optimizer, in its order. The stub of this
file, with all signatures, is written when the package is built.
"""

from __future__ import annotations

from baregrad._core import optim as _engine
from baregrad.optim.optimizer import Optimizer

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Lion", "RMSprop"]


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

    _kind = _engine.Adam


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters are multiplied by 1 - lr * weight_decay.

    Loshchilov and Hutter 2019.

    >>> w = bg.tensor([1.0], requires_grad=True)
    >>> optimizer = bg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (0 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9500], requires_grad=True)
    """

    _kind = _engine.AdamW


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


class Lion(Optimizer):
    """The sign of a mean of gradients, with decoupled weight decay. Chen et al. 2023.

    >>> w = bg.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = bg.optim.Lion([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.7500, -2.7500], requires_grad=True)
    """

    _kind = _engine.Lion
