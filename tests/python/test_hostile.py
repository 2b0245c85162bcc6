"""What no caller should do: errors are Python's, and the interpreter lives on.

A crash ends the process, so that the calls drawn by chance run in one of their own."""

import inspect
import os
import random
import resource
import subprocess
import sys
import threading
import types

import baregrad as bg
import numpy as np
import pytest

BEYOND = 2**64


class Raises:
    """Every conversion of it fails with an error of its own."""

    def __index__(self):
        raise ZeroDivisionError("index")

    __float__ = __int__ = __len__ = __bool__ = __iter__ = __index__

    def __getitem__(self, key):
        raise ZeroDivisionError("item")

    def __call__(self, *args, **kwargs):
        raise ZeroDivisionError("call")


# Optional arguments, which are converted by another way than those that are not.
@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: bg.clip(x, 0, n),
        lambda x, n: bg.clip(x, n),
        lambda x, n: x.clip(min=n),
        lambda x, n: bg.arange(0, n),
        lambda x, n: bg.nn.MaxPool2d(2, n),
        lambda x, n: bg.nn.AvgPool2d(2, (1, n)),
        lambda x, n: bg.nn.functional.max_pool2d(x.reshape((1, 1, 2, 2)), 2, n),
        lambda x, n: bg.tensordot(x, x, axes=((n,), (0,))),
        lambda x, n: bg.tensordot(x, x, axes=n),
        lambda x, n: bg.zeros((2, n)),
        lambda x, n: bg.sum(x, axis=n),
    ],
)
def test_errors_of_numbers_come_out(call):
    x = bg.ones((2, 2))
    with pytest.raises(OverflowError):
        call(x, BEYOND)
    with pytest.raises((ZeroDivisionError, TypeError)):
        call(x, Raises())


def test_more_differences_than_elements():
    assert bg.diff(bg.ones((2, 3)), n=2**62).shape == (2, 0)
    assert bg.diff(bg.ones((2, 3)), n=2).tolist() == [[0.0], [0.0]]


def test_a_dtype_that_is_no_text_at_all():
    with pytest.raises((TypeError, ValueError)):
        bg.zeros(2, dtype="\udc80")


def test_complex_numbers_are_refused():
    for number in (1j, np.complex64(2 + 1j), np.complex128(2), np.clongdouble(1)):
        with pytest.raises(TypeError):
            bg.ones(2) * number
        with pytest.raises(TypeError):
            bg.ones(2)[0] = number


def test_wrong_objects_are_type_errors():
    for call in (
        lambda: bg.meshgrid(3, 4),
        lambda: bg.autograd.label.__enter__(bg.ones(2)),
        lambda: bg.graph.GradientRecorder.__enter__(5),
        lambda: bg.nn.Linear(2, 2).__setstate__({"training": "x"}),
    ):
        with pytest.raises(TypeError):
            call()


def test_hooks_that_are_no_dictionary():
    relu = bg.nn.ReLU()
    relu.register_forward_hook(lambda module, args, output: output)
    relu.__dict__["_forward_hooks"] = 5
    assert relu(bg.ones(2)).tolist() == [1.0, 1.0]


def test_a_writer_is_closed_while_another_thread_writes(tmp_path):
    writer = bg.io.EventWriter(tmp_path)
    started = threading.Event()

    def write():
        with pytest.raises(ValueError, match="closed"):
            while True:
                writer.add_scalar("loss", 1.0, 1)
                writer.flush()
                started.set()

    thread = threading.Thread(target=write)
    thread.start()
    started.wait()
    writer.close()
    thread.join()


def test_sequences_that_hold_themselves_or_change():
    loop = [1.0]
    loop.append(loop)
    nested = []
    nested.append(nested)
    for sequence in (loop, nested):
        with pytest.raises(ValueError):
            bg.asarray(sequence)

    class Clears:
        def __index__(self):
            items.clear()
            return 1

    items = [1, Clears(), 2, 3]
    with pytest.raises(ValueError, match="changed"):
        bg.asarray(items)
    sizes = [1, Clears(), 2, 3]
    items = sizes
    assert bg.zeros(sizes).shape == (1, 1)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_tensors_that_were_never_made():
    empty = bg.Tensor.__new__(bg.Tensor)
    for call in (
        lambda: empty + 1,
        lambda: empty @ bg.ones(2),
        lambda: empty[0],
        lambda: len(empty),
        lambda: hash(empty),
        lambda: repr(empty),
        lambda: empty.shape,
        lambda: bg.sin(empty),
        lambda: bg.concat([empty]),
        lambda: bg.nn.Linear(2, 2)(empty),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(BufferError):
        memoryview(empty)


# ---- Calls drawn by chance -----------------------------------------------------------------------


def callables():
    """Everything public that can be called, by name."""
    found = {}

    def add(name, value):
        found[name] = value
        if inspect.isclass(value):
            for key in dir(value):
                if not key.startswith("_") and callable(getattr(value, key, None)):
                    found[f"{name}.{key}"] = getattr(value, key)

    modules = [bg, bg.linalg, bg.autograd, bg.graph, bg.nn, bg.nn.functional, bg.nn.init]
    for module in modules + [bg.optim, bg.optim.lr_scheduler]:
        for key, value in sorted(vars(module).items()):
            if key.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
                continue
            if getattr(value, "__module__", "baregrad").startswith("baregrad"):
                add(f"{module.__name__}.{key}", value)
    # What changes the whole process, or prints.
    for name in [n for n in found if n.rsplit(".")[-1] in {"detect_anomaly", "summary", "info"}]:
        del found[name]
    return found


class Drawn:
    """Arguments, some of which fit."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def tensor(self):
        choose = self.random.choice
        dtype = choose([bg.float32, bg.float64, bg.int64, bg.int8, bg.uint64, bg.bool, bg.bfloat16])
        return choose(
            [
                lambda: bg.ones((2, 3), dtype=dtype),
                lambda: bg.ones((3, 3), dtype=dtype),
                lambda: bg.ones((7, 5), dtype=dtype)[::2, ::-1],
                lambda: bg.ones((0, 3), dtype=dtype),
                lambda: bg.ones((), dtype=dtype),
                lambda: bg.ones((1,) * 16),
                lambda: bg.ones((1, 2, 4, 4)),
                lambda: bg.zeros((2, 0, 2**40)),
                lambda: bg.full((2, 3), 2**62, dtype=bg.int64),
                lambda: bg.full((3,), float("nan")),
                lambda: bg.ones((2, 3), requires_grad=True) * 2,
                lambda: bg.Tensor.__new__(bg.Tensor),
            ]
        )()

    def number(self):
        numbers = [0, 1, 2, 3, -1, 2**31, 2**62, 2**63 - 1, -(2**63), BEYOND, True]
        numbers += [0.5, -1.0, 1e308, float("nan"), float("inf"), np.int8(3), np.float32(2), 1j]
        return self.random.choice(numbers)

    def thing(self):
        loop = []
        loop.append(loop)
        things = [None, ..., "sum", "mean", "\udc80", b"ab", {}, (), [], loop, Raises(), object()]
        things += [bg.float32, "int64", complex, slice(None, None, 0), np.ones((1,) * 20)]
        things += [np.array([None]), range(3), bg.nn.Linear(3, 2), len, memoryview(b"abc")]
        return self.random.choice(things)

    def argument(self):
        chance = self.random.random()
        if chance < 0.45:
            return self.tensor()
        if chance < 0.7:
            return self.number()
        if chance < 0.85:
            draw = self.random.choice([self.tensor, self.number, lambda: self.random.randrange(3)])
            items = [draw() for _ in range(self.random.randrange(5))]
            return tuple(items) if self.random.random() < 0.5 else items
        return self.thing()


def call_by_chance(seed, calls):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    targets = sorted(callables().items())
    drawn = Drawn(seed)
    for _ in range(calls):
        name, function = drawn.random.choice(targets)
        arguments = [drawn.argument() for _ in range(drawn.random.randrange(1, 5))]
        print(name, [type(a).__name__ for a in arguments], flush=True)
        try:
            function(*arguments)
        except SystemError:
            raise
        except Exception:  # noqa: BLE001, S110: any error is fine, an end of the process is not
            pass


@pytest.mark.parametrize("seed", range(3))
def test_calls_by_chance_end_in_errors_at_worst(seed, tmp_path):
    code = f"import test_hostile; test_hostile.call_by_chance({seed}, 3000)"
    found_at = os.pathsep.join(map(os.path.abspath, [os.path.dirname(__file__), *sys.path]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": found_at},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()[-20:]
