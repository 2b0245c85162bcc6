"""Rows 1 to 17 of the targets: products, elementwise work, reductions, call overhead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

import baregrad as bg

from comparison.case import Case
from comparison.check import agreeing
from comparison.timing import Work

Shape = tuple[int, ...]


def _random(*shape: int, dtype: type = np.float32, low: float = 0.1, high: float = 1.0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(dtype)


def _three(function: Callable[..., object], numpy_function: Callable[..., object] | None,
           torch_function: Callable[..., object], *arrays: np.ndarray, **tolerance: float
           ) -> Mapping[str, Work]:
    """The same function of the same arrays in all libraries."""
    ours = [bg.asarray(a) for a in arrays]
    theirs = [torch.from_numpy(a) for a in arrays]
    works: dict[str, Work] = {
        "ours": lambda: function(*ours),
        "torch": lambda: torch_function(*theirs),
    }
    if numpy_function is not None:
        works["numpy"] = lambda: numpy_function(*arrays)
    return agreeing(works, **tolerance)


# ---- Products


def _matmul(a: Shape, b: Shape, dtype: type = np.float32, with_numpy: bool = True) -> Mapping[str, Work]:
    return _three(bg.matmul, np.matmul if with_numpy else None, torch.matmul,
                  _random(*a, dtype=dtype), _random(*b, dtype=dtype), rtol=1e-3)


def _matmul_half(n: int, ours: object, theirs: torch.dtype) -> Mapping[str, Work]:
    a, b = _random(n, n), _random(n, n)
    x, y = bg.asarray(a).to(ours), bg.asarray(b).to(ours)
    p, q = torch.from_numpy(a).to(theirs), torch.from_numpy(b).to(theirs)
    return agreeing({"ours": lambda: x @ y, "torch": lambda: p @ q}, rtol=2e-2)


def products() -> Iterator[Case]:
    for n, peer, numpy_peer in ((10, 3.0, 2.0), (32, 3.0, 2.0), (64, 3.0, 2.0)):
        yield Case(9, f"matmul {n}x{n}", lambda n=n: _matmul((n, n), (n, n)),
                   {"torch": peer, "numpy": numpy_peer})
    for n, target in ((128, 1.15), (256, 1.05), (512, 1.05), (1024, 1.0), (2048, 1.0)):
        yield Case(2 if n == 128 else 3 if n <= 512 else 4, f"matmul {n}x{n}",
                   lambda n=n: _matmul((n, n), (n, n)), {"torch": target, "numpy": target})
    for n in (64, 512, 1024):
        yield Case(5, f"matmul float64 {n}x{n}", lambda n=n: _matmul((n, n), (n, n), np.float64),
                   {"torch": 1.0, "numpy": 1.0})
    for m, n in ((1, 1024), (4, 1024), (16, 2048), (64, 1024)):
        target = 1.2 if m <= 16 else 1.1
        yield Case(6, f"matmul {m}x{n} by {n}x{n}", lambda m=m, n=n: _matmul((m, n), (n, n)),
                   {"torch": target, "numpy": target})
    yield Case(6, "matmul 1024x1024 by 1024x8", lambda: _matmul((1024, 1024), (1024, 8)),
               {"torch": 1.2, "numpy": 1.2})
    for n in (8, 16, 32):
        yield Case(7, f"10,000 products {n}x{n}", lambda n=n: _matmul((10000, n, n), (10000, n, n)),
                   {"torch": 4.0, "numpy": 4.0})
    for n in (512, 1024):
        yield Case(8, f"matmul bfloat16 {n}x{n}",
                   lambda n=n: _matmul_half(n, bg.bfloat16, torch.bfloat16), {"torch": 1.2})
        yield Case(8, f"matmul float16 {n}x{n}",
                   lambda n=n: _matmul_half(n, bg.float16, torch.float16), {"torch": 1.2})


# ---- Elementwise


def elementwise() -> Iterator[Case]:
    million, huge = (1_000_000,), (100_000_000,)
    both = {"torch": 1.3, "numpy": 1.3}
    for size, targets, long in ((million, both, False), (huge, {"torch": 1.5, "numpy": 1.5}, True)):
        text = "1M" if size == million else "100M into fresh memory"
        yield Case(10, f"add {text}", lambda s=size: _three(
            bg.add, np.add, torch.add, _random(*s), _random(*s)), targets, long)
        yield Case(10, f"multiply {text}", lambda s=size: _three(
            bg.multiply, np.multiply, torch.multiply, _random(*s), _random(*s)), targets, long)
        yield Case(10, f"relu {text}", lambda s=size: _three(
            bg.relu, lambda a: np.maximum(a, 0), torch.relu, _random(*s, low=-1.0)), targets, long)
    yield Case(11, "[1000,1] + [1,1000]", lambda: _three(
        bg.add, np.add, torch.add, _random(1000, 1), _random(1, 1000)), {"torch": 1.3})
    yield Case(11, "x + y.T, 1000x1000", lambda: _three(
        lambda x, y: x + y.mT, lambda x, y: x + y.T, lambda x, y: x + y.mT,
        _random(1000, 1000), _random(1000, 1000)), {"torch": 1.3})
    yield Case(11, "x[:, ::2] + y[:, ::2], 1000x2000", lambda: _three(
        lambda x, y: x[:, ::2] + y[:, ::2], lambda x, y: x[:, ::2] + y[:, ::2],
        lambda x, y: x[:, ::2] + y[:, ::2], _random(1000, 2000), _random(1000, 2000)), {"torch": 1.3})
    functions: list[tuple[str, Callable[..., object], Callable[..., object] | None, Callable[..., object]]] = [
        ("exp", bg.exp, np.exp, torch.exp), ("log", bg.log, np.log, torch.log),
        ("tanh", bg.tanh, np.tanh, torch.tanh),
        ("sigmoid", bg.sigmoid, None, torch.sigmoid),
        ("gelu", bg.gelu, None, torch.nn.functional.gelu), ("erf", bg.erf, None, torch.erf),
    ]
    for name, ours, numpys, torchs in functions:
        yield Case(12, f"{name} 1M", lambda o=ours, n=numpys, t=torchs: _three(o, n, t, _random(1_000_000)),
                   {"torch": 1.2})


# ---- Reductions


def reductions() -> Iterator[Case]:
    targets = {"torch": 1.0, "numpy": 1.5}
    shape = (4096, 4096)
    for name in ("sum", "max", "mean", "var"):
        for axis in (None, 0, 1):
            def make(name: str = name, axis: int | None = axis) -> Mapping[str, Work]:
                torch_name = {"max": "amax"}.get(name, name)
                extra = {"correction": 0} if name == "var" else {}
                where = {} if axis is None else {"dim": axis}
                if name == "var" and axis is None:
                    where = {"dim": None}
                return _three(lambda x: getattr(bg, name)(x, axis=axis),
                              lambda x: getattr(np, name)(x, axis=axis),
                              lambda x: getattr(torch, torch_name)(x, **where, **extra),
                              _random(*shape), rtol=1e-3)
            place = "all" if axis is None else f"axis {axis}"
            yield Case(13, f"{name} of 4096x4096, {place}", make, targets)
    for name in ("softmax", "log_softmax"):
        yield Case(14, f"{name} 4096x1024", lambda name=name: _three(
            lambda x: getattr(bg, name)(x, axis=-1), None, lambda x: getattr(torch, name)(x, dim=-1),
            _random(4096, 1024)), {"torch": 1.3})


# ---- Call overhead


def _scalar_graph(library: object, leaf: Callable[[float], object]) -> Work:
    """Ten ops on scalars, forward and backward."""
    a, b = leaf(0.7), leaf(1.3)
    exp, tanh, log = library.exp, library.tanh, library.log  # type: ignore[attr-defined]

    def step() -> object:
        a.grad = b.grad = None  # type: ignore[attr-defined]
        c = a * b
        d = tanh(c + a)
        e = exp(d * b)
        f = log(e + c)
        g = f * d - a
        (g * g).backward()
        return a.grad  # type: ignore[attr-defined]

    return step


def _allocate(library: object, elements: int, fill: bool) -> Work:
    empty = library.empty  # type: ignore[attr-defined]
    if fill:
        return lambda: empty(elements).fill_(1.0)

    def work() -> None:
        empty(elements)

    return work


def calls() -> Iterator[Case]:
    yield Case(15, "add of 4 elements", lambda: _three(
        lambda x, y: x + y, np.add, lambda x, y: x + y, _random(4), _random(4)), {"torch": 4.0})
    yield Case(16, "ten ops on scalars, forward + backward", lambda: agreeing({
        "ours": _scalar_graph(bg, lambda v: bg.tensor(v, requires_grad=True)),
        "torch": _scalar_graph(torch, lambda v: torch.tensor(v, requires_grad=True)),
    }), {"torch": 20.0})
    yield Case(17, "allocate and free 4 KB", lambda: {
        "ours": _allocate(bg, 1024, False), "torch": _allocate(torch, 1024, False)}, {"torch": 5.0})
    yield Case(17, "allocate, fill and free 64 MB", lambda: {
        "ours": _allocate(bg, 1 << 24, True), "torch": _allocate(torch, 1 << 24, True)}, {"torch": 5.0})


def cases() -> Iterator[Case]:
    yield from products()
    yield from elementwise()
    yield from reductions()
    yield from calls()
