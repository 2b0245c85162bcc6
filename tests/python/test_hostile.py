"""Invalid uses: errors are Python's, and the interpreter survives.

test_hostile_calls.py draws random calls; these are calls that failed once.
"""

import threading

import baregrad as bg
import numpy as np
import pytest

BEYOND = 2**64


class Raises:
    """All of its conversions fail with its own error."""

    def __index__(self):
        raise ZeroDivisionError("index")

    __float__ = __int__ = __len__ = __bool__ = __iter__ = __index__

    def __getitem__(self, key):
        raise ZeroDivisionError("item")

    def __call__(self, *args, **kwargs):
        raise ZeroDivisionError("call")


# Optional arguments are converted by other code than required ones.
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

    class NoLength(list):
        def __len__(self):
            raise ZeroDivisionError("length")

    for call in (lambda: bg.flip(bg.ones((2, 2)), dims=NoLength([0])), lambda: bg.ones(NoLength([2]))):
        with pytest.raises(ZeroDivisionError):
            call()


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
