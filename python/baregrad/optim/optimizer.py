"""The base class of all optimizers: groups of parameters, steps, saving and loading."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar, TypeAlias

from baregrad._core import Tensor
from baregrad._core import autograd as _autograd
from baregrad._text import shown as _shown
from baregrad.autograd import enable_grad

Params: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]


class ParamGroup(MutableMapping[str, Any]):
    """Parameters that share option values: a dict that the optimizer reads in every step.

    >>> w = bg.zeros(2, requires_grad=True)
    >>> group = bg.optim.Adam([w], lr=0.1).param_groups[0]
    >>> group["lr"], group["betas"]
    (0.1, (0.9, 0.999))
    >>> group["lr"] = 0.01
    >>> group["params"]
    [tensor([0., 0.], requires_grad=True)]
    """

    def __init__(self, optimizer: Optimizer, index: int, names: list[str] | None) -> None:
        self._optimizer = optimizer
        self._index = index
        self._names = names

    def __getitem__(self, name: str) -> Any:
        engine = self._optimizer._engine
        if name == "params":
            return engine.params(self._index)
        if name == "param_names" and self._names is not None:
            return list(self._names)
        default = self._optimizer.defaults[name]
        parts = [engine.get(self._index, part) for part in _flat({name: default})]
        if isinstance(default, tuple):
            return tuple(parts)
        return bool(parts[0]) if isinstance(default, bool) else parts[0]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._optimizer.defaults:
            raise KeyError(
                f"{type(self._optimizer).__name__}: {_shown(name)} cannot be set; options are "
                + ", ".join(self._optimizer.defaults)
            )
        for part, number in _flat({name: value}).items():
            self._optimizer._engine.set(self._index, part, float(number))

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"ParamGroup: {_shown(name)} cannot be deleted, the optimizer uses it")

    def __iter__(self) -> Iterator[str]:
        yield "params"
        if self._names is not None:
            yield "param_names"
        yield from self._optimizer.defaults

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


class Optimizer:
    """The base of all optimizers.

    ``params`` are tensors, or pairs ``(name, tensor)``, or dicts: groups with their own options.

    >>> w, b = bg.zeros((2, 2), requires_grad=True), bg.zeros(2, requires_grad=True)
    >>> bg.optim.AdamW([{"params": w}, {"params": b, "weight_decay": 0.0}], lr=0.01)
    AdamW (
    Parameter Group 0
        betas: (0.9, 0.999)
        eps: 1e-08
        lr: 0.01
        maximize: False
        weight_decay: 0.01
    <BLANKLINE>
    Parameter Group 1
        betas: (0.9, 0.999)
        eps: 1e-08
        lr: 0.01
        maximize: False
        weight_decay: 0.0
    )
    """

    #: The optimizer of the engine. Its options become the arguments of __init__.
    _kind: ClassVar[Any]

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "_kind" in cls.__dict__ and "__init__" not in cls.__dict__:
            cls.__init__ = _init_with(cls._kind.defaults)  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if not hasattr(self, "_kind"):
            raise TypeError("Optimizer: take one of its subclasses, such as AdamW")
        #: The options of a group that does not set them.
        self.defaults = defaults
        self._engine: Any = None
        self._held: list[Tensor] = []
        self._groups: list[ParamGroup] = []
        #: The initial learning rate of each group, set by the first schedule.
        self._initial_lrs: list[float] = []
        for group in _groups_in(params, type(self).__name__):
            self.add_param_group(group)

    @property
    def param_groups(self) -> list[ParamGroup]:
        """The groups; ``param_groups[0]["lr"] = 0.1`` takes effect at the next step."""
        return list(self._groups)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Adds parameters: ``{"params": tensors, "lr": 0.1}``.

        >>> w, b = bg.zeros(2, requires_grad=True), bg.zeros(2, requires_grad=True)
        >>> optimizer = bg.optim.SGD([w], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.2})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.2]
        """
        who = type(self).__name__
        options = dict(param_group)
        if "params" not in options:
            raise ValueError(f"{who}: a group needs 'params', this one has {_shown([*options])}")
        tensors, names = _tensors_in(options.pop("params"), who)
        if unknown := [name for name in options if name not in self.defaults]:
            raise ValueError(
                f"{who}: no option {', '.join(map(_shown, unknown))}; options are "
                + ", ".join(self.defaults)
            )
        values = _flat({**self.defaults, **options})
        if self._engine is None:
            self._engine = type(self)._kind(tensors, **values)
        else:
            self._engine.add_group(tensors, **values)
        self._groups.append(ParamGroup(self, len(self._groups), names))
        # Hooks belong to the Python objects, which the optimizer keeps alive.
        self._held.extend(tensors)
        _autograd._keeps(tensors)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        ``closure`` computes the loss and its gradients again; its result is returned.

        >>> w = bg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = bg.optim.SGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.8000, 1.6000], requires_grad=True)
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._engine.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients, or fills them with zeros in place."""
        self._engine.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Tensor | str]:
        """The state of the optimizer as a flat dict, for bg.io.save_checkpoint.

        Tensors are named by the index of their parameter over all groups: ``"3.exp_avg"``. The rest
        is text that reads back to the same bits: ``"3.step"``, ``"group.0.lr"``. The tensors are not
        copies: the next step writes to them.

        >>> optimizer = bg.optim.SGD([bg.zeros(2, requires_grad=True)], lr=0.1)
        >>> optimizer.state_dict()["group.0.lr"]
        '0.1'
        """
        state: dict[str, Tensor | str] = self._engine.state()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor | str]) -> None:
        """Restores a state, with the same bits. One ``ValueError`` lists all mismatches."""
        self._engine.load_state(dict(state_dict))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self._groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(self.defaults)]
        return "\n".join([*lines, ")"])


def _groups_in(params: Params, who: str) -> list[Mapping[str, Any]]:
    if isinstance(params, Tensor | Mapping):
        raise TypeError(
            f"{who}: params are an iterable of tensors or of dicts, not a {type(params).__name__};"
            " put it into a list"
        )
    items = list(params)
    if items and isinstance(items[0], Mapping):
        return items  # type: ignore[return-value]
    return [{"params": items}]


def _tensors_in(params: Any, who: str) -> tuple[list[Tensor], list[str] | None]:
    """The tensors of a group, and their names if they were given."""
    items = [params] if isinstance(params, Tensor) else list(params)
    named = bool(items) and isinstance(items[0], tuple)
    names, tensors = zip(*items, strict=True) if named else (None, items)
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{who}: parameter {i} is a {type(tensor).__name__}, not a tensor")
    return list(tensors), list(names) if names is not None else None


def _init_with(defaults: Mapping[str, Any]) -> Callable[..., None]:
    """An __init__ whose arguments are these options; maximize is given by name alone."""
    place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("self", place),
        inspect.Parameter("params", place, annotation="Params"),
    ]
    for name, default in _grouped(defaults).items():
        kind = by_name if name == "maximize" else place
        annotation = tuple[float, float] if name == "betas" else type(default)
        parameters.append(
            inspect.Parameter(name, kind, default=default, annotation=annotation)
        )
    signature = inspect.Signature(parameters, return_annotation=None)

    def __init__(self: Optimizer, /, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        given.apply_defaults()
        options = dict(given.arguments)
        del options["self"]
        Optimizer.__init__(self, options.pop("params"), options)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _grouped(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the engine as Python names them: beta1 and beta2 are one pair, betas."""
    grouped: dict[str, Any] = {}
    for name, value in options.items():
        if name == "beta1":
            grouped["betas"] = (value, options["beta2"])
        elif name != "beta2":
            grouped[name] = value
    return grouped


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with the engine's names: there, betas are two numbers."""
    flat = dict(options)
    if "betas" in flat:
        try:
            flat["beta1"], flat["beta2"] = flat.pop("betas")
        except (TypeError, ValueError):
            raise ValueError(f"betas: takes two numbers, not {_shown(options['betas'])}") from None
    return flat
