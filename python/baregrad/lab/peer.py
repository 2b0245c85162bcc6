"""NumPy and PyTorch as peers of `baregrad lab`: one request per line on standard input, one answer
per line on standard output, both JSON objects. Times are taken in this process, so that the
communication is not counted."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from baregrad.lab import peer_training

Question = dict[str, Any]
Answer = dict[str, Any]

_libraries: dict[str, Any] = {}


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def hello(question: Question) -> Answer:
    """The available libraries. All use the requested number of threads."""
    missing = {}
    try:
        import numpy

        _libraries["numpy"] = numpy
    except Exception as error:  # a broken installation may raise anything
        missing["numpy"] = _in_one_line(error)
    try:
        import torch

        torch.set_num_threads(question["threads"])
        _libraries["torch"] = torch
    except Exception as error:
        missing["torch"] = _in_one_line(error)
    return {"versions": {name: module.__version__ for name, module in _libraries.items()}, "missing": missing}


def time_calls(call: Callable[[], object], least_seconds: float) -> float:
    """Nanoseconds per call of one sample, with as many calls as fill the time."""
    count = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        spent = time.perf_counter_ns() - start
        if spent >= least_seconds * 1e9:
            return spent / count
        count = max(count + 1, int(count * min(16.0, 1.2 * least_seconds * 1e9 / max(spent, 1))))


def _hashed(seed: int, count: int) -> Any:
    """Numbers in [-1, 1) of 24 bits, as float64."""
    numpy = _libraries["numpy"]
    golden = numpy.uint32(0x9E3779B9)
    start = numpy.uint32((seed * 0x01000193 + 1) % 2**32)
    bits = (numpy.arange(count, dtype=numpy.uint32) + start) * golden
    bits = (bits ^ (bits >> numpy.uint32(16))) * golden
    bits = (bits ^ (bits >> numpy.uint32(15))) * golden
    return (bits >> numpy.uint32(8)) / 2**23 - 1


def operand(seed: int, rows: int, cols: int, dtype: str) -> Any:
    """The same matrix as in lab/products.cpp, bit for bit."""
    numbers = _hashed(seed, rows * cols)
    if dtype == "float64":
        numbers += 2.0**-24 * _hashed(seed + 1000, rows * cols)
    return numbers.astype(dtype).reshape(rows, cols)


_matrices: dict[tuple[Any, ...], Any] = {}
_outputs: dict[tuple[Any, ...], Any] = {}


def _product_operands(question: Question) -> tuple[Any, Any]:
    """Operands as NumPy arrays. Those of the last product are cached: they are used many times, and
    the next product may share one."""
    m, n, k, dtype, seed = (question[name] for name in ("m", "n", "k", "dtype", "seed"))
    keys = [(seed, m, k, dtype), (seed + 1, k, n, dtype)]
    for stale in _matrices.keys() - set(keys):
        del _matrices[stale]
    for key in keys:
        if key not in _matrices:
            _matrices[key] = operand(*key)
    return _matrices[keys[0]], _matrices[keys[1]]


def _product_call(question: Question) -> Callable[[], Any]:
    """A @ B, into a new array if the request says so, else into an existing one."""
    a, b = _product_operands(question)
    if question["library"] == "numpy":
        multiply = _libraries["numpy"].matmul
    else:
        multiply = _libraries["torch"].mm
        a, b = _libraries["torch"].from_numpy(a), _libraries["torch"].from_numpy(b)
    if question["allocate"]:
        return lambda: multiply(a, b)
    key = (question["library"], tuple(a.shape), tuple(b.shape), question["dtype"])
    if key not in _outputs:
        for stale in [each for each in _outputs if each[1:] != key[1:]]:
            del _outputs[stale]
        _outputs[key] = multiply(a, b)
    out = _outputs[key]
    return lambda: multiply(a, b, out=out)


def product(question: Question) -> Answer:
    """{"do": "product", "library", "m", "n", "k", "dtype", "seed", "allocate"}: how far the result is from the sum in
    a wider type, over |A| |B|, at up to 48 rows and columns."""
    numpy = _libraries["numpy"]
    a, b = _product_operands(question)
    result = numpy.asarray(_product_call(question)())
    wide = numpy.longdouble if question["dtype"] == "float64" else numpy.float64
    rows = numpy.unique(numpy.linspace(0, len(a) - 1, 48).astype(int))
    cols = numpy.unique(numpy.linspace(0, b.shape[1] - 1, 48).astype(int))
    x, y = a[rows].astype(wide), b[:, cols].astype(wide)
    error = numpy.abs(result[numpy.ix_(rows, cols)] - x @ y) / (numpy.abs(x) @ numpy.abs(y))
    worst = float(error.max())
    return {"max_error": worst if worst < math.inf else sys.float_info.max}  # JSON has no NaN


def time_product(question: Question) -> Answer:
    """The same request: one sample of its time."""
    return {"ns": time_calls(_product_call(question), 5e-5)}


HANDLERS: dict[str, Callable[[Question], Answer]] = {
    "hello": hello,
    "product": product,
    "time_product": time_product,
    "train_make": peer_training.make,
    "train_steps": peer_training.steps,
    "train_loss": peer_training.loss,
    "train_forget": peer_training.forget,
}


def main() -> None:
    for line in sys.stdin:
        try:
            question = json.loads(line)
            answer = HANDLERS[question["do"]](question)
        except Exception as error:  # any error is reported to the other side
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # Ctrl-C is for the command, and this process ends with it
        sys.exit(130)
