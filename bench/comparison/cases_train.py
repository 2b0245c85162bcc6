"""Rows 14 and 18 to 22 of the targets: norms, optimizers, training steps, convolutions, an epoch."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import baregrad as bg

from comparison.case import Case
from comparison.check import agreeing, array
from comparison.timing import Work

Array = np.ndarray


def _normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _same_weights(ours: Any, theirs: Any) -> None:
    """Both networks start with PyTorch's initial weights."""
    ours.load_state_dict({name: bg.asarray(value.detach().numpy().copy())
                          for name, value in theirs.state_dict().items()})


# ---- Layer norm and convolutions, forward and backward


def _forward_backward(call: Callable[..., Any], inputs: list[Any], gradient: Any) -> Work:
    def work() -> Any:
        for x in inputs:
            x.grad = None
        call(*inputs).backward(gradient)
        return inputs[0].grad

    return work


def _differentiated(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: list[Array],
                    out: tuple[int, ...]) -> Mapping[str, Work]:
    gradient = _normal(*out)
    return agreeing({
        "ours": _forward_backward(ours, [bg.tensor(a, requires_grad=True) for a in arrays],
                                  bg.asarray(gradient)),
        "torch": _forward_backward(theirs, [torch.tensor(a, requires_grad=True) for a in arrays],
                                   torch.from_numpy(gradient)),
    }, rtol=1e-2, atol=1e-3)


def layers() -> Iterator[Case]:
    width = 768
    yield Case(14, "layer norm 4096x768, forward + backward", lambda: _differentiated(
        lambda x, w, b: bg.nn.functional.layer_norm(x, (width,), w, b),
        lambda x, w, b: torch.nn.functional.layer_norm(x, (width,), w, b),
        [_normal(4096, width), _normal(width), _normal(width)], (4096, width)), {"torch": 1.3})
    for batch, channels, pixels in ((32, 16, 56), (32, 32, 28), (32, 64, 28), (32, 128, 14)):
        yield Case(22, f"conv2d 3x3, {channels} channels, {pixels}x{pixels}, batch {batch}, forward + backward",
                   lambda b=batch, c=channels, p=pixels: _differentiated(
                       lambda x, w, v: bg.nn.functional.conv2d(x, w, v, padding=1),
                       lambda x, w, v: torch.nn.functional.conv2d(x, w, v, padding=1),
                       [_normal(b, c, p, p), _normal(c, c, 3, 3) / (3 * c**0.5), _normal(c)], (b, c, p, p)),
                   {"torch": 1.0})


# ---- Optimizers


def _adamw(fused: bool) -> Mapping[str, Work]:
    shapes = [(1000, 1000)] * 9 + [(1_000_000,)]
    values = [_normal(*shape) for shape in shapes]
    gradients = [_normal(*shape) for shape in shapes]
    ours = [bg.tensor(v, requires_grad=True) for v in values]
    theirs = [torch.tensor(v, requires_grad=True) for v in values]
    for p, q, g in zip(ours, theirs, gradients, strict=True):
        p.grad = bg.asarray(g)
        q.grad = torch.from_numpy(g)
    our_steps = bg.optim.AdamW(ours, lr=1e-3)
    their_steps = torch.optim.AdamW(theirs, lr=1e-3, **({"fused": True} if fused else {}))
    our_steps.step()
    their_steps.step()
    np.testing.assert_allclose(array(ours[0]), array(theirs[0]), rtol=1e-4, atol=1e-6)
    return {"ours": our_steps.step, "torch": their_steps.step}


def optimizers() -> Iterator[Case]:
    yield Case(18, "AdamW over 10M parameters, torch fused=True", lambda: _adamw(True), {"torch": 1.1})
    yield Case(18, "AdamW over 10M parameters, torch default", lambda: _adamw(False), {"torch": 3.0})


# ---- Training steps


def _step(network: Any, optimizer: Any, loss_of: Callable[[Any, Any], Any], x: Any, y: Any) -> Work:
    def work() -> Any:
        optimizer.zero_grad()
        loss = loss_of(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return work


def _classifier(batch: int) -> Mapping[str, Work]:
    theirs = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    ours = bg.nn.Sequential(bg.nn.Linear(784, 512), bg.nn.ReLU(), bg.nn.Linear(512, 10))
    _same_weights(ours, theirs)
    x = _normal(batch, 784)
    y = np.random.default_rng(1).integers(0, 10, batch)
    return agreeing({
        "ours": _step(ours, bg.optim.AdamW(ours.parameters(), lr=1e-4), bg.nn.CrossEntropyLoss(),
                      bg.asarray(x), bg.asarray(y)),
        "torch": _step(theirs, torch.optim.AdamW(theirs.parameters(), lr=1e-4),
                       torch.nn.CrossEntropyLoss(), torch.from_numpy(x), torch.from_numpy(y)),
    }, rtol=1e-3)


def _small() -> Mapping[str, Work]:
    def network(nn: Any) -> Any:
        return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))

    theirs, ours = network(torch.nn), network(bg.nn)
    _same_weights(ours, theirs)
    x, y = _normal(32, 2), _normal(32, 1)
    return agreeing({
        "ours": _step(ours, bg.optim.SGD(ours.parameters(), lr=1e-3), bg.nn.MSELoss(),
                      bg.asarray(x), bg.asarray(y)),
        "torch": _step(theirs, torch.optim.SGD(theirs.parameters(), lr=1e-3), torch.nn.MSELoss(),
                       torch.from_numpy(x), torch.from_numpy(y)),
    }, rtol=1e-3)


def steps() -> Iterator[Case]:
    for batch, target in ((64, 2.0), (128, 1.6), (1024, 1.2)):
        yield Case(19, f"training step 784-512-10, AdamW, batch {batch}",
                   lambda b=batch: _classifier(b), {"torch": target})
    yield Case(20, "training step 2-16-16-1, SGD, batch 32", _small, {"torch": 10.0})


# ---- An epoch over MNIST


def _idx(path: Path) -> Array:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    dims = data[3]
    shape = struct.unpack(f">{dims}I", data[4:4 + 4 * dims])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dims).reshape(shape)


def _find(folder: Path, stem: str) -> Path:
    for name in (f"{stem}-ubyte", f"{stem}-ubyte.gz", f"{stem.replace('-idx', '.idx')}-ubyte"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"{folder} has no {stem}-ubyte")


class _Digits(torch.utils.data.Dataset):
    """Item by item, as PyTorch's users write it: scaled to [0, 1]."""

    def __init__(self, folder: Path) -> None:
        self.images = torch.from_numpy(_idx(_find(folder, "train-images-idx3")).copy())
        self.labels = torch.from_numpy(_idx(_find(folder, "train-labels-idx1")).astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[i].to(torch.float32).div(255), self.labels[i]


def _epoch_networks() -> tuple[Any, Any]:
    def network(nn: Any) -> Any:
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    ours, theirs = network(bg.nn), network(torch.nn)
    _same_weights(ours, theirs)
    return ours, theirs


def _epoch(batches: Callable[[], Any], network: Any, optimizer: Any, loss_of: Callable[[Any, Any], Any]) -> Work:
    def work() -> None:
        for x, y in batches():
            optimizer.zero_grad()
            loss_of(network(x), y).backward()
            optimizer.step()

    return work


def _epoch_from_files(folder: Path) -> Mapping[str, Work]:
    ours, theirs = _epoch_networks()

    def our_batches() -> Any:
        return bg.data.DataLoader(bg.data.mnist(folder), batch_size=64, shuffle=True)

    return {
        "ours": _epoch(our_batches, ours, bg.optim.AdamW(ours.parameters()), bg.nn.CrossEntropyLoss()),
        "torch": _epoch(lambda: torch.utils.data.DataLoader(_Digits(folder), batch_size=64, shuffle=True),
                        theirs, torch.optim.AdamW(theirs.parameters()), torch.nn.CrossEntropyLoss()),
    }


def _epoch_in_memory(folder: Path) -> Mapping[str, Work]:
    ours, theirs = _epoch_networks()
    images = (_idx(_find(folder, "train-images-idx3")).reshape(-1, 784) / np.float32(255)).astype(np.float32)
    labels = _idx(_find(folder, "train-labels-idx1")).astype(np.int64)
    loader = bg.data.DataLoader(bg.data.TensorDataset(bg.asarray(images), bg.asarray(labels)),
                                batch_size=64, shuffle=True)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)

    def their_batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for index in torch.randperm(len(y)).split(64):
            yield x[index], y[index]

    return {
        "ours": _epoch(lambda: loader, ours, bg.optim.AdamW(ours.parameters()), bg.nn.CrossEntropyLoss()),
        "torch": _epoch(their_batches, theirs, torch.optim.AdamW(theirs.parameters()),
                        torch.nn.CrossEntropyLoss()),
    }


def epochs(folder: Path | None) -> Iterator[Case]:
    if folder is None:
        return
    yield Case(21, "MNIST epoch 784-128-10, batch 64, from files", lambda: _epoch_from_files(folder),
               {"torch": 8.0}, long=True)
    yield Case(21, "MNIST epoch 784-128-10, batch 64, from memory", lambda: _epoch_in_memory(folder),
               {"torch": 2.0}, long=True)


def cases(mnist: Path | None) -> Iterator[Case]:
    yield from layers()
    yield from optimizers()
    yield from steps()
    yield from epochs(mnist)
