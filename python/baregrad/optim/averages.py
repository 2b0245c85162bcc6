"""Moving averages of weights, which often test better than the weights themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from baregrad._core import Tensor
from baregrad._core import optim as _engine


class EMA:
    """Exponential moving averages of parameters, starting from their current values.

    After each update, average = decay * average + (1 - decay) * parameter.

    >>> w = bg.tensor([0.0, 0.0])
    >>> ema = bg.optim.EMA([w], decay=0.75)
    >>> w += 4
    >>> ema.update()
    >>> ema.averages
    [tensor([1., 1.])]
    >>> ema.swap()  # to test with the averages; again to continue training
    >>> w
    tensor([1., 1.])
    """

    def __init__(self, params: Iterable[Tensor], decay: float = 0.999) -> None:
        self._engine = _engine.EMA(list(params), decay)

    @property
    def decay(self) -> float:
        """The share of the average that an update keeps."""
        return self._engine.decay

    @property
    def updates(self) -> int:
        """The number of updates."""
        return self._engine.updates

    @property
    def averages(self) -> list[Tensor]:
        """One average per parameter, in float32 for float16 and bfloat16 parameters."""
        return self._engine.averages

    def update(self) -> None:
        """Updates the averages; call it after each step of the optimizer."""
        self._engine.update()

    def copy_to(self) -> None:
        """Writes the averages into the parameters."""
        self._engine.copy_to()

    def swap(self) -> None:
        """Exchanges averages and parameters: before an evaluation, and after it."""
        self._engine.swap()

    def state_dict(self) -> dict[str, Tensor | str]:
        """The averages and the number of updates: a flat dict, for bg.io.save_checkpoint."""
        state: dict[str, Tensor | str] = self._engine.state()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor | str]) -> None:
        """Continues from a saved state, bit for bit."""
        self._engine.load_state(dict(state_dict))
