"""One working object of each public class, for calls of its methods."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import baregrad as bg
from hostile import objects

nn, optim, data, io = bg.nn, bg.optim, bg.data, bg.io
schedules = bg.optim.lr_scheduler
_folders = itertools.count()


def optimizer() -> Any:
    """An optimizer that has made a step."""
    model = nn.Linear(3, 2)
    model(bg.ones((1, 3))).sum().backward()
    made = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    made.step()
    return made


def _folder() -> str:
    return f"folder{next(_folders)}"


def _context() -> Any:
    kept = []

    class Keeps(bg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Keeps.apply(bg.ones(2, requires_grad=True))
    return kept[0]


@functools.cache
def _checkpoint_folder() -> Any:
    folder = io.CheckpointFolder(_folder())
    folder.save(1, {"run": {"epoch": 1, "x": bg.ones(2)}})
    return folder


def _found_checkpoint() -> Any:
    return _checkpoint_folder().latest()


def _with_parameters(kind: type) -> Callable[[], Any]:
    return lambda: kind(nn.Linear(3, 2).parameters(), lr=0.1)


# By the name of the class after "baregrad.".
MAKE: dict[str, Callable[[], Any]] = {
    "DType": lambda: bg.float32,
    "FloatInfo": lambda: bg.finfo(bg.float32),
    "Generator": lambda: bg.Generator(1),
    "IntInfo": lambda: bg.iinfo(bg.int8),
    "NamespaceInfo": bg.__array_namespace_info__,
    "UniqueAllResult": lambda: bg.unique_all(bg.ones(3)),
    "UniqueCountsResult": lambda: bg.unique_counts(bg.ones(3)),
    "UniqueInverseResult": lambda: bg.unique_inverse(bg.ones(3)),
    "ValuesAndIndices": lambda: bg.ones((2, 3)).max(dim=1),
    "autograd.Function": objects.Function,
    "autograd.FunctionCtx": _context,
    "autograd.label": lambda: bg.autograd.label("here"),
    "data.CsvTable": lambda: data.CsvTable([], bg.ones((1, 1)), None, []),
    "data.DataLoader": lambda: data.DataLoader(data.TensorDataset(bg.arange(7)), 2, True),
    "data.ImageDataset": lambda: data.digits(4),
    "data.ProgressBar": lambda: data.ProgressBar("epoch", 3),
    "data.Subset": lambda: data.Subset([1, 2, 3], [0, 2]),
    "data.TensorDataset": lambda: data.TensorDataset(bg.arange(6).reshape(3, 2), bg.ones(3)),
    "graph.Drawing": lambda: bg.graph.draw(bg.ones(2, requires_grad=True) * 2),
    "io.CheckpointFolder": lambda: io.CheckpointFolder(_folder()),
    "io.EventWriter": lambda: io.EventWriter(_folder()),
    "io.FoundCheckpoint": _found_checkpoint,
    "io.MetricsWriter": lambda: io.MetricsWriter(_folder() + ".jsonl"),
    "io.TensorDict": lambda: io.TensorDict({"a": bg.ones(2)}, {"b": "c"}),
    "linalg.EighResult": lambda: bg.linalg.eigh(bg.eye(2)),
    "linalg.QRResult": lambda: bg.linalg.qr(bg.eye(2)),
    "linalg.SVDResult": lambda: bg.linalg.svd(bg.eye(2)),
    "linalg.SlogdetResult": lambda: bg.linalg.slogdet(bg.eye(2)),
    "memory.scope": lambda: bg.memory.scope("system"),
    "nn.ModuleDict": lambda: nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(2, 2)}),
    "nn.ModuleList": lambda: nn.ModuleList([nn.ReLU(), nn.Linear(2, 2)]),
    "nn.Parameter": lambda: nn.Parameter(bg.ones((2, 3))),
    "nn.ParameterList": lambda: nn.ParameterList([bg.ones(2), bg.ones(3)]),
    "nn.Sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
    "nn.MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "nn.TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "Device": lambda: bg.Device("cpu"),
    "nn.MLP": lambda: nn.MLP([3, 4, 2]),
    "nn.GroupNorm": lambda: nn.GroupNorm(1, 2),
    "optim.EMA": lambda: optim.EMA(nn.Linear(3, 2).parameters()),
    "optim.Optimizer": optimizer,
    "optim.ParamGroup": lambda: optimizer().param_groups[0],
    "optim.lr_scheduler.CosineAnnealingLR": lambda: schedules.CosineAnnealingLR(optimizer(), 5),
    "optim.lr_scheduler.CosineAnnealingWarmRestarts": lambda: schedules.CosineAnnealingWarmRestarts(
        optimizer(), 5
    ),
    "optim.lr_scheduler.ExponentialLR": lambda: schedules.ExponentialLR(optimizer(), 0.9),
    "optim.lr_scheduler.LRScheduler": lambda: schedules.StepLR(optimizer(), 2),
    "optim.lr_scheduler.LambdaLR": lambda: schedules.LambdaLR(optimizer(), lambda step: 0.5),
    "optim.lr_scheduler.LinearLR": lambda: schedules.LinearLR(optimizer()),
    "optim.lr_scheduler.MultiStepLR": lambda: schedules.MultiStepLR(optimizer(), [2, 3]),
    "optim.lr_scheduler.OneCycleLR": lambda: schedules.OneCycleLR(optimizer(), 0.1, 10),
    "optim.lr_scheduler.ReduceLROnPlateau": lambda: schedules.ReduceLROnPlateau(optimizer()),
    "optim.lr_scheduler.StepLR": lambda: schedules.StepLR(optimizer(), 2),
    "set_grad_enabled": lambda: bg.set_grad_enabled(True),
}
for _name in optim.optimizers.__all__:
    MAKE[f"optim.{_name}"] = _with_parameters(getattr(optim, _name))


def _sequential_schedule() -> Any:
    steps = optimizer()
    parts = [schedules.StepLR(steps, 2), schedules.LinearLR(steps)]
    return schedules.SequentialLR(steps, parts, [3])


MAKE["optim.lr_scheduler.SequentialLR"] = _sequential_schedule


def maker(name: str, kind: type) -> Callable[[], Any]:
    """Makes a valid object of a public class; raises TypeError for a class that is missing here."""
    short = name.removeprefix("baregrad.")
    if short in MAKE:
        return MAKE[short]
    for arguments in ((), (2,), (3, 2), (2, 3, 1), (3, 2, 1, 1)):
        try:
            kind(*arguments)
        except TypeError:
            continue
        return lambda: kind(*arguments)
    raise TypeError(f"{name}: hostile/instances.py must say how an object of it is made")
