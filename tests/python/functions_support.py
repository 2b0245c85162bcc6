"""Tensors for tests of functions: every dtype, shape and layout, with the same NumPy array."""

import hypothesis
import ml_dtypes
import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

import baregrad as bg

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
ALL = ("bool", *INTEGERS, *FLOATS)

FEW = hypothesis.settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def given(*arguments, **keywords):
    """hypothesis.given, with a number of cases that suits hundreds of tests."""
    return lambda test: FEW(hypothesis.given(*arguments, **keywords)(test))


# Spacing of the numbers around 1.
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def shapes(min_dims=0, max_dims=3):
    """Small sizes, and one that fills a vector and has a remainder."""
    sizes = st.sampled_from((0, 1, 2, 3, 4, 19))
    return st.lists(sizes, min_size=min_dims, max_size=max_dims).map(tuple)


def values(rng, shape, name, low, high):
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        return rng.integers(max(low, 0) if name in UNSIGNED else low, high, shape).astype(name)
    return np.asarray(rng.uniform(low, high, shape)).astype(numpy_dtype(name))


def laid_out(array, layout):
    """The pair of an array and the tensor of the same elements, both in that layout."""
    tensor = bg.asarray(np.ascontiguousarray(array).reshape(array.shape), copy=True)
    if layout == "transposed":
        axes = tuple(reversed(range(array.ndim)))
        return np.transpose(array, axes), bg.permute_dims(tensor, axes)
    if layout == "reversed":
        return np.flip(array), bg.flip(tensor)
    if layout == "stepped" and array.ndim:
        return array[..., ::2], tensor[..., ::2]
    if layout == "broadcast" and array.ndim:
        row = array[..., :1]
        shape = (*array.shape[:-1], 3 if array.shape[-1] else 0)
        return np.broadcast_to(row, shape), bg.broadcast_to(tensor[..., :1], shape)
    return array, tensor


@st.composite
def tensors(draw, dtypes=ALL, min_dims=0, max_dims=3, low=-5, high=6, shape=None):
    """(NumPy array, tensor) of the same elements, shape and layout."""
    name = draw(st.sampled_from(dtypes))
    size = draw(shapes(min_dims, max_dims)) if shape is None else shape
    layouts = ("plain", "transposed", "reversed", "stepped", "broadcast")
    layout = draw(st.sampled_from(layouts if shape is None else ("plain", "reversed")))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return laid_out(values(rng, size, name, low, high), layout)


@st.composite
def with_axis(draw, **keywords):
    """(NumPy array, tensor, one of its axes)."""
    array, tensor = draw(tensors(min_dims=1, **keywords))
    return array, tensor, draw(st.integers(-array.ndim, array.ndim - 1))


def wide(array):
    """For reference values: half precision as float32, its compute type; other dtypes unchanged."""
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array


def precise(array):
    """For reference values of float functions: more bits than the result has."""
    if array.dtype == np.float64:
        return array.astype(np.longdouble)
    if array.dtype.kind in "biu":
        array = array.astype(np.float32)
    return array.astype(np.float64)


def check_same(tensor, wanted, dtype=None):
    """Equal dtype, shape and elements."""
    found = tensor.numpy()
    assert tensor.dtype.name == (dtype or wanted.dtype.name)
    assert found.shape == wanted.shape == tuple(tensor.shape)
    np.testing.assert_array_equal(found.astype(wanted.dtype), wanted)


def check_close(tensor, wanted, dtype, ulps, absolute=0.0):
    """Within so many units in the last place of the dtype."""
    found = tensor.numpy()
    assert tensor.dtype.name == dtype
    assert found.shape == wanted.shape == tuple(tensor.shape)
    eps = EPS[dtype]
    tiny = float(bg.finfo(getattr(bg, dtype)).smallest_normal) * eps
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            found.astype(np.longdouble),
            wanted.astype(np.longdouble),
            rtol=ulps * eps,
            atol=max(absolute, ulps * tiny),
        )


def check_near(found, wanted, tolerance):
    """Within an error relative to 1 or to the value, whichever is greater; of equal shape."""
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)
