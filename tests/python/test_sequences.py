"""Tensors of numbers and nested sequences: values and dtypes as in NumPy, and the differences."""

import collections
import enum
import fractions

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baregrad as bg

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
NAMES = ["bool", *INTEGERS, "float16", "bfloat16", "float32", "float64"]


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@st.composite
def nested(draw, leaves):
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    count = int(np.prod(shape))
    flat = draw(st.lists(leaves, min_size=count, max_size=count))

    def build(depth, at):
        if depth == len(shape):
            return flat[at], at + 1
        out = []
        for _ in range(shape[depth]):
            item, at = build(depth + 1, at)
            out.append(item)
        return (tuple(out) if draw(st.booleans()) else out), at

    return build(0, 0)[0]


INT64 = st.integers(-(2**63), 2**63 - 1)


@given(nested(st.one_of(INT64, st.booleans(), st.floats())))
def test_nested_sequences_of_numbers(data):
    with np.errstate(over="ignore"):
        want = np.array(data)
        if want.size == 0 or want.dtype.kind == "f":
            want = np.array(data, np.float32)
    x = bg.asarray(data)
    assert x.shape[: len(want.shape)] == want.shape[: len(x.shape)]
    assert x.dtype.name == want.dtype.name
    np.testing.assert_array_equal(x.numpy(), want)


@given(nested(st.one_of(st.booleans(), st.integers(0, 1))), st.sampled_from(NAMES))
def test_a_dtype_for_sequences(data, name):
    dtype = BFLOAT16 if name == "bfloat16" else np.dtype(name)
    x = bg.asarray(data, dtype=name)
    want = np.array(data, dtype)
    assert same_bits(x.numpy(), want)


@given(st.lists(st.floats(width=64), max_size=5), st.sampled_from(["float16", "float32"]))
def test_floats_are_rounded_as_numpy_does(data, name):
    with np.errstate(over="ignore"):
        want = np.array(data, name)
    np.testing.assert_array_equal(bg.asarray(data, dtype=name).numpy(), want)


@given(st.floats(-1e30, 1e30))
def test_bfloat16_is_the_nearest(value):
    """A tie. ml_dtypes rounds twice, through float32, and is not a reference here."""
    found = bg.asarray([value], dtype="bfloat16").numpy()
    bits = found.view(np.uint16)
    exact = fractions.Fraction(value)
    error = abs(fractions.Fraction(float(found[0])) - exact)
    for step in (-1, 1):
        neighbour = (bits.astype(np.int32) + step).astype(np.uint16).view(BFLOAT16)[0]
        if np.isfinite(float(neighbour)):
            assert error <= abs(fractions.Fraction(float(neighbour)) - exact)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_do_not_fit(name):
    info = np.iinfo(name)
    both = [int(info.min), int(info.max)]
    assert bg.asarray(both, dtype=name).numpy().tolist() == both
    for value in (info.min - 1, info.max + 1, 2**64, -(2**63) - 1, 2**200):
        for data in (int(value), [0, int(value)]):
            with pytest.raises(OverflowError, match="asarray: .* does not fit " + name):
                bg.asarray(data, dtype=name)


def test_integers_beyond_int64():
    for data in (2**63, [2**63], [1, -(2**63) - 1]):
        with pytest.raises(OverflowError, match="does not fit int64"):
            bg.asarray(data)
    assert bg.asarray([2**63], dtype=bg.uint64).numpy().tolist() == [2**63]
    assert bg.asarray([2**70, 0.5]).numpy().tolist() == [2.0**70, 0.5]
    with pytest.raises(OverflowError):
        bg.asarray([10**400, 0.5])


@pytest.mark.parametrize(
    "data, where",
    [
        ([[1, 2], [3]], r"\[1\] has 1 elements.* have 2"),
        ([[1, 2], [3, 4], [5, 6, 7]], r"\[2\] has 3 elements"),
        ([[[1], [2]], [[3], []]], r"\[1\]\[1\] has 0 elements"),
        ([1, [2]], r"a sequence at \[1\]"),
        ([[1], 2], r"a number or an array at \[1\]"),
        ([[], 2], r"at \[1\]"),
        ([[], [1]], r"\[1\] has 1 elements"),
        ([np.zeros(2), np.zeros(3)], r"at \[1\] has shape \[3\]"),
        ([np.zeros(2), 3.0], r"at \[1\] has shape \[\]"),
        ([[0.0], [np.zeros(2)]], r"at \[1\]\[0\] has shape \[2\]"),
    ],
    ids=str,
)
def test_ragged_sequences_say_where(data, where):
    with pytest.raises(ValueError, match="asarray: ragged: .*" + where):
        bg.asarray(data)


def test_what_is_no_number():
    for data in (None, "1", {1: 2}, {1}, object(), 1j, iter([1]), int, bg):
        with pytest.raises(TypeError, match="asarray: "):
            bg.asarray(data)
        with pytest.raises(TypeError, match=r"asarray: .* at \[1\]\[0\]"):
            bg.asarray([[1], [data]])
    with pytest.raises(TypeError, match=r"bytes.* at \[0\]"):
        bg.asarray([b"a"])


def test_sequences_that_hold_themselves_or_change():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper than 16"):
        bg.asarray(loop)
    deep = 1.0
    for _ in range(16):
        deep = [deep]
    assert bg.asarray(deep).ndim == 16
    with pytest.raises(ValueError, match="nested deeper"):
        bg.asarray([deep])

    class Shrinks:
        def __float__(self):
            data.clear()
            return 1.0

    data = [Shrinks(), 2.0, 3.0]
    with pytest.raises(ValueError, match="changed"):
        bg.asarray(data)

    class Raises:
        def __getitem__(self, i):
            raise KeyError("mine")

        def __len__(self):
            return 2

    with pytest.raises(KeyError, match="mine"):
        bg.asarray(Raises())


def test_other_sequences_and_numbers():
    assert bg.asarray(range(3)).numpy().tolist() == [0, 1, 2]
    assert bg.asarray(collections.deque([1.5, 2])).numpy().tolist() == [1.5, 2]
    assert bg.asarray([range(2), (3, 4)]).numpy().tolist() == [[0, 1], [3, 4]]
    assert bg.asarray(fractions.Fraction(1, 2)).dtype is bg.float32
    Colour = enum.IntEnum("Colour", "RED GREEN")
    assert bg.asarray([Colour.RED, Colour.GREEN]).numpy().tolist() == [1, 2]
    assert bg.asarray(collections.UserList([1, 2])).shape == (2,)


def test_sequences_of_tensors_and_arrays_stack():
    a = np.arange(6.0).reshape(2, 3)
    x = bg.asarray(a)
    assert same_bits(bg.asarray([x, a, x]).numpy(), np.stack([a, a, a]))
    assert same_bits(bg.asarray([[x], (a,)]).numpy(), np.stack([[a], [a]]))
    assert bg.asarray([bg.asarray(1), 2, np.int64(3)]).numpy().tolist() == [1, 2, 3]
    assert bg.asarray([bg.asarray(1, dtype=bg.int8), 2]).dtype is bg.int8
    assert bg.asarray([bg.asarray(1, dtype=bg.int8), 2.5]).numpy().tolist() == [1, 2.5]
    assert bg.asarray([np.zeros(2, np.float32), np.zeros(2, np.int64)]).dtype is bg.float32
    assert bg.asarray([a.astype("i4"), a.astype(">i2")], dtype=bg.float64).dtype is bg.float64


def test_stacks_keep_gradients_and_tensor_does_not():
    x = bg.asarray(2.0)
    x = bg.tensor(x, requires_grad=True)
    y = bg.asarray([x, 1.0])
    with pytest.raises(RuntimeError, match="gradient"):
        y.numpy()
    assert bg.tensor([x, 1.0]).numpy().tolist() == [2, 1]
    assert bg.tensor(x).numpy() == 2


@pytest.mark.parametrize("copy", [None, True])
def test_tensors_as_they_are(copy):
    x = bg.asarray([1.0, 2.0])
    y = bg.asarray(x, copy=copy)
    assert (y.numpy().ctypes.data == x.numpy().ctypes.data) == (copy is None)
    assert bg.asarray(x, dtype=bg.float64).dtype is bg.float64
    with pytest.raises(ValueError, match="copy=False"):
        bg.asarray(x, dtype=bg.float64, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        bg.asarray([1.0], copy=False)
