"""The Python side of the training experiment: PyTorch and our package, with the same weights, step
by step."""

from __future__ import annotations

import itertools
import resource
import time
from typing import Any

Question = dict[str, Any]
Answer = dict[str, Any]
Arrays = dict[str, Any]  # "x", "y", and a weight and a bias per layer as "0", "1", ...


class Trainee:
    """A perceptron with ReLU between its layers, one batch, AdamW with common defaults."""

    def __init__(self, model: Any, loss_of: Any, optimizer: Any, x: Any, y: Any) -> None:
        self.model = model
        self.loss_of = loss_of
        self.optimizer = optimizer
        self.x = x
        self.y = y

    def step(self) -> None:
        self.loss_of(self.model(self.x), self.y).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def _torch_trainee(arrays: Arrays, rate: float, fused: bool) -> Trainee:
    import torch

    layers: list[torch.nn.Module] = []
    for number in range(0, len(arrays) - 2, 2):
        weight, bias = (torch.from_numpy(arrays[str(at)]) for at in (number, number + 1))
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight = torch.nn.Parameter(weight)
        linear.bias = torch.nn.Parameter(bias)
        layers += [torch.nn.ReLU(), linear] if layers else [linear]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True if fused else None)
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    return Trainee(model, torch.nn.CrossEntropyLoss(), optimizer, x, y)


def _our_trainee(arrays: Arrays, rate: float) -> Trainee:
    import baregrad as bg

    weights = [arrays[str(number)] for number in range(0, len(arrays) - 2, 2)]
    model = bg.nn.MLP([weights[0].shape[1], *(weight.shape[0] for weight in weights)])
    names = [name for name, _ in model.named_parameters()]
    model.load_state_dict({name: bg.asarray(arrays[str(number)]) for number, name in enumerate(names)})
    optimizer = bg.optim.AdamW(model.parameters(), lr=rate)
    return Trainee(model, bg.nn.CrossEntropyLoss(), optimizer, bg.asarray(arrays["x"]), bg.asarray(arrays["y"]))


_trainees: dict[int, Trainee] = {}
_numbers = itertools.count()


def make(question: Question) -> Answer:
    """{"do": "train_make", "file": an npz, "rate", "library": "torch", "torch, fused" or "baregrad"}: a number."""
    import numpy

    with numpy.load(question["file"]) as stored:
        arrays = {name: stored[name] for name in stored.files}
    library = question["library"]
    number = next(_numbers)
    if library == "baregrad":
        _trainees[number] = _our_trainee(arrays, question["rate"])
    else:
        _trainees[number] = _torch_trainee(arrays, question["rate"], fused=library == "torch, fused")
    return {"trainee": number}


def steps(question: Question) -> Answer:
    """{"do": "train_steps", "trainee", "steps"}: the time of each, and the page faults of all."""
    trainee = _trainees[question["trainee"]]
    samples = [0] * question["steps"]
    before = resource.getrusage(resource.RUSAGE_SELF)
    for i in range(len(samples)):
        start = time.perf_counter_ns()
        trainee.step()
        samples[i] = time.perf_counter_ns() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "step_ns": samples,
        "minor_faults": after.ru_minflt - before.ru_minflt,
        "major_faults": after.ru_majflt - before.ru_majflt,
    }


def loss(question: Question) -> Answer:
    """{"do": "train_loss", "trainee"}: the loss on the batch with the current weights."""
    trainee = _trainees[question["trainee"]]
    return {"loss": float(trainee.loss_of(trainee.model(trainee.x), trainee.y).item())}


def forget(question: Question) -> Answer:
    """{"do": "train_forget", "trainee"}."""
    del _trainees[question["trainee"]]
    return {}
