"""Schedules of learning rates, with PyTorch's names and arguments.

A schedule sets the lr of every group at its construction, and after each ``step()``. Its values are
closed forms of the number of steps, so that a resumed run has the bits of an uninterrupted one:
save ``state_dict()`` instead of a ``last_epoch``. For the same reason several schedules of one
optimizer do not multiply; chain them with ``SequentialLR``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from baregrad._core import Tensor
from baregrad._core import optim as _engine
from baregrad._text import shown
from baregrad.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _Schedule:
    """The common base of both kinds of schedules."""

    def __init__(self, optimizer: Optimizer, engine: Any) -> None:
        self.optimizer = optimizer
        self._engine = engine

    def get_last_lr(self) -> list[float]:
        """The current learning rates, by group."""
        lrs: list[float] = self._engine.last_lr()
        return lrs

    def state_dict(self) -> dict[str, Tensor | str]:
        """The position of the schedule: a flat dict of text, a part for bg.io.save_checkpoint.

        It does not contain the schedule's arguments: construct the schedule with the same ones.
        """
        state: dict[str, Tensor | str] = self._engine.state()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor | str]) -> None:
        """Continues from a saved state, bit for bit."""
        self._engine.load_state(dict(state_dict))


class LRScheduler(_Schedule):
    """The base of all schedules that depend only on the number of steps."""

    def __init__(self, optimizer: Optimizer, make: Callable[..., Any], *arguments: Any) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: {type(optimizer).__name__} is no optimizer")
        _rewind(optimizer)
        super().__init__(optimizer, make(optimizer._engine, *arguments))

    def step(self) -> None:
        """Sets the learning rates of the next step; call it after the optimizer's step."""
        self._engine.step()

    @property
    def last_epoch(self) -> int:
        """The number of steps so far."""
        steps: int = self._engine.last_step
        return steps

    @property
    def base_lrs(self) -> list[float]:
        """The learning rates that the schedule starts from, by group."""
        state = self._engine.state()
        return [float(state[f"base.{i}"]) for i in range(int(state["groups"]))]


def _rewind(optimizer: Optimizer) -> None:
    """Every schedule starts from the learning rates before the first schedule was constructed."""
    initial = optimizer._initial_lrs
    groups = optimizer.param_groups
    initial += [group["lr"] for group in groups[len(initial) :]]
    for group, lr in zip(groups, initial, strict=True):
        group["lr"] = lr


class StepLR(LRScheduler):
    """Multiplies lr by gamma every ``step_size`` steps.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     schedule.step()
    [1.0]
    [1.0]
    [0.5]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer, _engine.step_lr, step_size, gamma)


class MultiStepLR(LRScheduler):
    """Multiplies lr by gamma at each milestone.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1
    ) -> None:
        super().__init__(optimizer, _engine.multi_step_lr, list(milestones), gamma)


class ExponentialLR(LRScheduler):
    """Multiplies lr by gamma at every step.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        super().__init__(optimizer, _engine.exponential_lr, gamma)


class CosineAnnealingLR(LRScheduler):
    """Lowers lr to eta_min in ``T_max`` steps along a cosine, and raises it again.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        super().__init__(optimizer, _engine.cosine_annealing_lr, T_max, eta_min)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers lr to eta_min in ``T_0`` steps, then restarts, each time with ``T_mult`` times as many steps.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0
    ) -> None:
        super().__init__(optimizer, _engine.cosine_annealing_warm_restarts, T_0, T_mult, eta_min)


class LinearLR(LRScheduler):
    """Multiplies lr by a factor that changes linearly from one value to another: a warm-up.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        super().__init__(optimizer, _engine.linear_lr, start_factor, end_factor, total_iters)


class LambdaLR(LRScheduler):
    """Multiplies the initial lr by a function of the number of steps.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = lr_lambda
        # A weak reference: the garbage collector does not see references of the engine, and functions
        # often refer to the object that holds their schedule.
        this: Callable[[], Any] = weakref.ref(self)
        super().__init__(optimizer, _engine.lambda_lr, lambda step: this().lr_lambda(step))


class SequentialLR(LRScheduler):
    """One schedule after the other, each from its milestone on.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> lr = bg.optim.lr_scheduler
    >>> warm_up = lr.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    >>> cosine = lr.CosineAnnealingLR(optimizer, T_max=90)
    >>> schedule = lr.SequentialLR(optimizer, [warm_up, cosine], milestones=[10])
    >>> for _ in range(10):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]
    ) -> None:
        for i, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler) or isinstance(scheduler, OneCycleLR):
                raise TypeError(
                    f"SequentialLR: schedule {i} is a {type(scheduler).__name__}; takes those that"
                    " depend on the number of steps and the first lr alone"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"SequentialLR: schedule {i} is that of another optimizer")
        self._schedulers = tuple(schedulers)
        engines = [scheduler._engine for scheduler in schedulers]
        super().__init__(optimizer, _engine.sequential_lr, engines, list(milestones))


class OneCycleLR(LRScheduler):
    """Raises lr to max_lr and lowers it again, and the reverse for momentum. Smith and Topin 2018.

    A step beyond the last is an error.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], momentum=0.9)
    >>> lr = bg.optim.lr_scheduler
    >>> schedule = lr.OneCycleLR(optimizer, max_lr=1.0, total_steps=10, div_factor=4.0)
    >>> schedule.get_last_lr(), optimizer.param_groups[0]["momentum"]
    ([0.25], 0.95)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        super().__init__(
            optimizer,
            _engine.one_cycle_lr,
            [max_lr] if isinstance(max_lr, int | float) else list(max_lr),
            total_steps,
            pct_start,
            _chosen("anneal_strategy", anneal_strategy, "cos", "linear") == 1,
            cycle_momentum,
            base_momentum,
            max_momentum,
            div_factor,
            final_div_factor,
            three_phase,
        )


class ReduceLROnPlateau(_Schedule):
    """Multiplies lr by a factor when a metric has not improved for more than ``patience`` steps.

    >>> optimizer = bg.optim.SGD([bg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = bg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> schedule.best, schedule.get_last_lr()
    (2.0, [0.5])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        maximize = _chosen("mode", mode, "min", "max") == 1
        relative = _chosen("threshold_mode", threshold_mode, "abs", "rel") == 1
        engine = _engine.ReduceLROnPlateau(
            optimizer._engine,
            maximize,
            factor,
            patience,
            threshold,
            relative,
            cooldown,
            min_lr,
            eps,
        )
        super().__init__(optimizer, engine)

    def step(self, metrics: float | Tensor) -> None:
        """Takes a metric, and lowers the learning rates if it has stopped improving."""
        self._engine.step(float(metrics))

    @property
    def best(self) -> float:
        """The best metric so far."""
        best: float = self._engine.best
        return best


def _chosen(name: str, given: str, *choices: str) -> int:
    """The index of `given` in the choices."""
    if given not in choices:
        raise ValueError(f"{name} is {shown(given)}, takes one of " + ", ".join(map(repr, choices)))
    return choices.index(given)
