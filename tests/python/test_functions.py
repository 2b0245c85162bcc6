"""Every function against NumPy: values, dtype and shape, over dtypes, shapes, layouts and axes.

Integers and movement are exact. Floats are compared with NumPy at higher precision, within units in
the last place (ULP) of the result's dtype; half precision is computed in float32 and rounded once.
"""

import math
import warnings

import numpy as np
import pytest
from functions_support import (
    ALL,
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    check_close,
    check_same,
    given,
    numpy_dtype,
    precise,
    shapes,
    tensors,
    wide,
    with_axis,
)
from hypothesis import strategies as st

import baregrad as bg

def float_of(array):
    return array.dtype.name if array.dtype.name in FLOATS else "float32"


# ---- Elementwise, one input ----------------------------------------------------------------------

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name: (truth, least, greatest, ULP). The range excludes zeros of the function, where no fixed ULP
# bound holds; the engine's own tests cover those.
FLOATING = {
    "acos": (np.arccos, -0.9, 0.9, 4), "acosh": (np.arccosh, 1.5, 9, 4),
    "asin": (np.arcsin, -0.9, 0.9, 4), "asinh": (np.arcsinh, -9, 9, 4),
    "atan": (np.arctan, -9, 9, 4), "atanh": (np.arctanh, -0.9, 0.9, 4),
    "cos": (np.cos, -1.5, 1.5, 4), "cosh": (np.cosh, -9, 9, 4),
    "exp": (np.exp, -9, 9, 4), "exp2": (np.exp2, -9, 9, 4), "expm1": (np.expm1, -9, 9, 4),
    "log": (np.log, 1.5, 9, 4), "log10": (np.log10, 1.5, 9, 4), "log1p": (np.log1p, 0.1, 9, 4),
    "log2": (np.log2, 1.5, 9, 4), "reciprocal": (lambda x: 1 / x, 0.5, 9, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.5, 9, 4), "sin": (np.sin, -3, 3, 4),
    "sinh": (np.sinh, -9, 9, 4), "sqrt": (np.sqrt, 0, 9, 1), "tan": (np.tan, -1.5, 1.5, 4),
    "tanh": (np.tanh, -9, 9, 4), "sigmoid": (sigmoid, -9, 9, 6),
    "silu": (lambda x: x * sigmoid(x), -9, 9, 8),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, -2.5, 9, 8),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), -9, 9, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATING)
@given(data=st.data())
def test_floating(name, data):
    truth, low, high, ulps = FLOATING[name]
    dtypes = ALL if low <= 0 and high > 1 else FLOATS
    array, x = data.draw(tensors(dtypes, low=low, high=high))
    with np.errstate(all="ignore"):
        wanted = truth(precise(array))
    check_close(getattr(bg, name)(x), wanted, float_of(array), ulps)


@given(tensors(("float16", "bfloat16", "float32"), low=-3, high=3))
def test_erf_and_gelu(pair):
    array, x = pair
    wide64 = array.astype(np.float64)
    check_close(bg.erf(x), erf(wide64) if array.size else wide64, array.dtype.name, 6)
    phi = 0.5 * (1 + erf(wide64 / math.sqrt(2))) if array.size else wide64
    error = 4 * bg.finfo(bg.float32).eps  # of 1 + erf(x), which cancels on the left
    check_close(bg.gelu(x), wide64 * phi, array.dtype.name, 4, absolute=error)
    inner = math.sqrt(2 / math.pi) * (wide64 + 0.044715 * wide64**3)
    wanted = 0.5 * wide64 * (1 + np.tanh(inner))
    check_close(bg.gelu(x, approximate="tanh"), wanted, array.dtype.name, 4, absolute=error)


def test_unknown_form_of_gelu():
    with pytest.raises(ValueError, match="tanh"):
        bg.gelu(bg.ones(1), approximate="erf")


@given(tensors(FLOATS, low=-3, high=3), st.floats(0.1, 2))
def test_parametric_activations(pair, number):
    array, x = pair
    wide64 = array.astype(np.float64)
    name = array.dtype.name
    check_close(bg.leaky_relu(x, number), np.where(wide64 > 0, wide64, number * wide64), name, 2)
    check_close(bg.elu(x, number), np.where(wide64 > 0, wide64, number * np.expm1(wide64)), name, 6)
    check_close(bg.softplus(x, number), np.log1p(np.exp(number * wide64)) / number, name, 12)


NUMERIC = {
    "abs": np.abs, "negative": np.negative, "positive": np.positive, "sign": np.sign,
    "square": np.square, "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "trunc": np.trunc, "conj": np.conj, "real": lambda x: x, "imag": np.zeros_like,
    "relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMERIC)
@given(pair=tensors(INTEGERS + FLOATS))
def test_numeric(name, pair):
    array, x = pair
    wanted = np.asarray(NUMERIC[name](wide(array))).astype(array.dtype)
    check_same(getattr(bg, name)(x), wanted)


PREDICATES = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": np.logical_not,
    "signbit": lambda x: np.signbit(x.astype(np.float64)),
}  # fmt: skip


@pytest.mark.parametrize("name", PREDICATES)
@given(pair=tensors(ALL))
def test_predicates(name, pair):
    array, x = pair
    check_same(getattr(bg, name)(x), np.asarray(PREDICATES[name](wide(array))), "bool")


@given(tensors(("bool", *INTEGERS)))
def test_bitwise_invert(pair):
    array, x = pair
    check_same(bg.bitwise_invert(x), np.bitwise_not(array))


# ---- Elementwise, two inputs ---------------------------------------------------------------------


@st.composite
def two_tensors(draw, dtypes, **keywords):
    """Of one dtype, and of shapes that broadcast."""
    name = draw(st.sampled_from(dtypes))
    a, x = draw(tensors((name,), **keywords))
    shape = tuple(1 if draw(st.booleans()) else n for n in a.shape)
    b, y = draw(tensors((name,), shape=shape[draw(st.integers(0, len(shape))) :], **keywords))
    return a, x, b, y


BINARY = {
    "add": (np.add, INTEGERS + FLOATS), "subtract": (np.subtract, INTEGERS + FLOATS),
    "multiply": (np.multiply, INTEGERS + FLOATS), "maximum": (np.maximum, ALL),
    "minimum": (np.minimum, ALL), "copysign": (np.copysign, FLOATS),
    "bitwise_and": (np.bitwise_and, ("bool", *INTEGERS)),
    "bitwise_or": (np.bitwise_or, ("bool", *INTEGERS)),
    "bitwise_xor": (np.bitwise_xor, ("bool", *INTEGERS)),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
def test_binary(name, data):
    truth, dtypes = BINARY[name]
    a, x, b, y = data.draw(two_tensors(dtypes))
    wanted = np.asarray(truth(wide(a), wide(b))).astype(a.dtype)
    check_same(getattr(bg, name)(x, y), wanted)
    check_same(getattr(bg, name)(y, x), np.asarray(truth(wide(b), wide(a))).astype(a.dtype))


COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
@given(both=two_tensors(ALL, low=0, high=3))
def test_comparisons(name, both):
    a, x, b, y = both
    check_same(getattr(bg, name)(x, y), np.asarray(COMPARISONS[name](wide(a), wide(b))), "bool")


BINARY_FLOATING = {
    "divide": (np.divide, 1), "atan2": (np.arctan2, 4), "hypot": (np.hypot, 4),
    "logaddexp": (np.logaddexp, 4), "pow": (np.power, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY_FLOATING)
@given(both=two_tensors(FLOATS, low=0.5, high=4))
def test_binary_floating(name, both):
    a, x, b, y = both
    truth, ulps = BINARY_FLOATING[name]
    wanted = np.asarray(truth(precise(a), precise(b)))
    check_close(getattr(bg, name)(x, y), wanted, a.dtype.name, ulps)


@given(two_tensors(INTEGERS, low=1, high=9), st.booleans())
def test_integer_division(both, negative):
    a, x, b, y = both
    if negative and a.dtype.name in SIGNED:
        a, x = np.negative(a), bg.negative(x)
    check_same(bg.floor_divide(x, y), np.asarray(np.floor_divide(a, b)))
    check_same(bg.remainder(x, y), np.asarray(np.remainder(a, b)))
    check_close(bg.divide(x, y), np.asarray(a.astype(np.float64) / b), "float32", 1)


@given(two_tensors(("float32", "float64"), low=-9, high=9))
def test_float_division(both):
    a, x, b, y = both
    with np.errstate(all="ignore"):
        check_same(bg.floor_divide(x, y), np.asarray(np.floor_divide(a, b)))
        check_same(bg.remainder(x, y), np.asarray(np.remainder(a, b)))
        check_same(bg.nextafter(x, y), np.asarray(np.nextafter(a, b)))


# NumPy returns the first of two equal zeros; the C standard, and so the other dtypes, the second.
@pytest.mark.parametrize("target", [0.0, -0.0, 1.0, -1.0, 0.1, 65504.0, -6e-8, math.inf, -math.inf, math.nan])
def test_nextafter_of_every_float16(target):
    a = np.arange(65536, dtype=np.uint16).view(np.float16)
    b = np.float16(target)
    with np.errstate(all="ignore"):
        wanted = np.where(a == b, b, np.nextafter(a, b))
    for y in (target, bg.asarray(b), bg.full(65536, target, dtype=bg.float16)):
        found = np.asarray(bg.nextafter(bg.asarray(a), y))
        assert found.dtype == np.float16
        nan = np.isnan(wanted)
        assert np.array_equal(np.isnan(found), nan)
        assert np.array_equal(found.view(np.uint16)[~nan], wanted.view(np.uint16)[~nan])
    x = bg.asarray(a.copy())
    x.nextafter_(target)
    assert np.array_equal(np.asarray(x), wanted, equal_nan=True)


@given(two_tensors(INTEGERS, low=0, high=7))
def test_shifts_and_integer_powers(both):
    a, x, b, y = both
    check_same(bg.bitwise_left_shift(x, y), np.asarray(np.left_shift(a, b)))
    check_same(bg.bitwise_right_shift(x, y), np.asarray(np.right_shift(a, b)))
    check_same(bg.pow(x, y), np.asarray(np.power(a, b)))


@given(tensors(SIGNED + FLOATS), st.integers(-3, 3))
def test_numbers_as_either_argument(pair, number):
    array, x = pair
    kept = array.dtype
    check_same(bg.subtract(x, number), np.asarray(wide(array) - number).astype(kept))
    check_same(bg.subtract(number, x), np.asarray(number - wide(array)).astype(kept))
    check_same(bg.less(number, x), np.asarray(number < wide(array)), "bool")
    check_same(bg.add(x, x, alpha=2), np.asarray(wide(array) + 2 * wide(array)).astype(kept))


# ---- Elementwise, three inputs -------------------------------------------------------------------


@given(two_tensors(ALL), st.data())
def test_where(both, data):
    a, x, b, y = both
    condition, c = data.draw(tensors(("bool",), shape=b.shape))
    check_same(bg.where(c, x, y), np.where(condition, a, b))


@given(two_tensors(INTEGERS + FLOATS, low=0, high=6))
def test_clip(both):
    a, x, b, y = both
    kept = a.dtype
    check_same(bg.clip(x, 1, 3), np.clip(wide(a), 1, 3).astype(kept))
    check_same(bg.clip(x, min=2), np.clip(wide(a), 2, None).astype(kept))
    check_same(bg.clip(x, max=y), np.asarray(np.minimum(wide(a), wide(b))).astype(kept))
    check_same(bg.clip(x), a)


@given(two_tensors(("float32", "float64")), st.floats(0, 1, width=16))
def test_lerp_and_addcmul(both, weight):
    a, x, b, y = both
    name = a.dtype.name
    p, q = precise(a), precise(b)
    error = 12 * bg.finfo(x.dtype).eps  # of terms up to 6 that may cancel
    check_close(bg.lerp(x, y, weight), p + weight * (q - p), name, 1, absolute=error)
    check_close(bg.addcmul(x, y, 2.0, value=0.5), p + q, name, 1, absolute=error)


# ---- Reductions ----------------------------------------------------------------------------------


@st.composite
def reduced(draw, dtypes=ALL, nonempty=False, **keywords):
    array, x = draw(tensors(dtypes, **keywords))
    if nonempty and array.size == 0:
        array, x = np.ones((2, 1), array.dtype), bg.ones((2, 1), dtype=x.dtype)
    axes = st.sets(st.integers(0, max(array.ndim - 1, 0)), max_size=array.ndim)
    axis = draw(st.one_of(st.none(), axes.map(tuple)))
    if axis is not None and len(axis) == 1 and draw(st.booleans()):
        axis = axis[0] - array.ndim
    return array, x, axis, draw(st.booleans())


def accumulated(name):
    if name in FLOATS:
        return name
    return "uint64" if name in UNSIGNED else "int64"


@pytest.mark.parametrize("name", ["sum", "prod"])
@given(case=reduced(("bool", *INTEGERS)))
def test_integer_sum_and_prod(name, case):
    array, x, axis, keep = case
    ours, theirs = getattr(bg, name), getattr(np, name)
    wanted = theirs(array, axis=axis, keepdims=keep, dtype=accumulated(array.dtype.name))
    check_same(ours(x, axis=axis, keepdims=keep), np.asarray(wanted))
    check_same(ours(x, axis, keep), np.asarray(wanted))
    short = theirs(array, axis=axis, keepdims=keep, dtype="int16")
    check_same(ours(x, axis=axis, keepdims=keep, dtype=bg.int16), np.asarray(short))


@given(reduced(FLOATS))
def test_float_sum(case):
    array, x, axis, keep = case
    wanted = np.asarray(np.sum(precise(array), axis=axis, keepdims=keep))
    magnitude = float(np.sum(np.abs(precise(array))))
    error = 2 * bg.finfo(x.dtype).eps * magnitude
    check_close(bg.sum(x, axis=axis, keepdims=keep), wanted, array.dtype.name, 2, absolute=error)


@given(reduced(FLOATS, low=-1, high=2))  # small enough for float16
def test_float_prod(case):
    array, x, axis, keep = case
    wanted = np.asarray(np.prod(precise(array), axis=axis, keepdims=keep))
    check_close(bg.prod(x, axis=axis, keepdims=keep), wanted, array.dtype.name, array.size + 1)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
@given(case=reduced(nonempty=True))
def test_extremes(name, case):
    array, x, axis, keep = case
    wanted = getattr(np, name)(wide(array), axis=axis, keepdims=keep)
    function = getattr(bg, name)
    check_same(function(x, axis=axis, keepdims=keep), np.asarray(wanted).astype(array.dtype))


@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
@given(case=reduced(low=0, high=2))
def test_truth_reductions(name, case):
    array, x, axis, keep = case
    wanted = np.asarray(getattr(np, name)(array != 0, axis=axis, keepdims=keep))
    function = getattr(bg, name)
    kind = "int64" if name == "count_nonzero" else "bool"
    check_same(function(x, axis=axis, keepdims=keep), wanted, kind)
    check_same(function(x, dim=axis, keepdim=keep), wanted, kind)


@given(reduced(FLOATS, nonempty=True), st.integers(0, 1))
def test_moments(case, correction):
    array, x, axis, keep = case
    name = array.dtype.name
    high = precise(array)
    wanted = np.asarray(np.mean(high, axis=axis, keepdims=keep))
    error = 16 * bg.finfo(x.dtype).eps
    check_close(bg.mean(x, axis=axis, keepdims=keep), wanted, name, 16, absolute=error)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of too few elements
        for moment in ("var", "std"):
            wanted = getattr(np, moment)(high, axis=axis, keepdims=keep, ddof=correction)
            found = getattr(bg, moment)(x, axis=axis, keepdims=keep, correction=correction)
            finite = np.isfinite(wanted)
            found_there = np.where(finite, found.numpy().astype(np.float64), 0)
            assert found.dtype.name == name
            assert found.shape == np.shape(wanted)
            np.testing.assert_allclose(
                found_there, np.where(finite, wanted, 0).astype(np.float64),
                rtol=64 * bg.finfo(x.dtype).eps, atol=math.sqrt(bg.finfo(x.dtype).smallest_normal),
            )  # fmt: skip


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(case=with_axis(dtypes=ALL), keep=st.booleans())
def test_positions_of_extremes(name, case, keep):
    array, x, axis = case
    function, truth = getattr(bg, name), getattr(np, name)
    if array.size == 0:
        return
    check_same(function(x, axis=axis, keepdims=keep), truth(wide(array), axis=axis, keepdims=keep))
    check_same(function(x, dim=axis, keepdim=keep), truth(wide(array), axis=axis, keepdims=keep))
    check_same(function(x), np.asarray(truth(wide(array))))


@given(with_axis(dtypes=ALL), st.booleans())
def test_extremes_with_positions(case, keep):
    array, x, axis = case
    if array.size == 0:
        return
    values, indices = bg.max(x, axis, keep)
    check_same(values, np.max(wide(array), axis=axis, keepdims=keep).astype(array.dtype))
    check_same(indices, np.argmax(wide(array), axis=axis, keepdims=keep))


@given(with_axis(dtypes=FLOATS), st.booleans())
def test_softmax_family(case, keep):
    array, x, axis = case
    if array.size == 0:
        return
    high = precise(array)
    shifted = high - high.max(axis=axis, keepdims=True)
    total = np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    name = array.dtype.name
    check_close(bg.softmax(x, axis), np.exp(shifted - total), name, 16)
    check_close(bg.softmax(x, axis=axis), np.exp(shifted - total), name, 16)
    error = 16 * bg.finfo(x.dtype).eps
    check_close(bg.log_softmax(x, dim=axis), shifted - total, name, 16, absolute=error)
    wanted = total + high.max(axis=axis, keepdims=True)
    wanted = wanted if keep else np.squeeze(wanted, axis)
    check_close(bg.logsumexp(x, axis=axis, keepdims=keep), wanted, name, 16, absolute=error)


@given(with_axis(dtypes=("float32", "float64")), st.sampled_from([0, 1, 2, 3, math.inf, -math.inf]))
def test_norm(case, order):
    array, x, axis = case
    if array.size == 0:
        return
    wanted = np.linalg.norm(array.astype(np.float64), order, axis=axis)
    check_close(bg.norm(x, order, axis), np.asarray(wanted), array.dtype.name, 32)
    found = bg.linalg.vector_norm(x, axis=axis, ord=order)
    check_close(found, np.asarray(wanted), array.dtype.name, 32)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@given(case=with_axis(dtypes=("bool", *INTEGERS)), initial=st.booleans())
def test_integer_scans(name, case, initial):
    array, x, axis = case
    truth, result = getattr(np, name), accumulated(array.dtype.name)
    found = getattr(bg, name)(x, axis=axis, include_initial=initial)
    check_same(found, truth(array, axis=axis, dtype=result, include_initial=initial))
    narrow = getattr(bg, name)(x, axis=axis, dtype=bg.int16)
    check_same(narrow, truth(array, axis=axis, dtype="int16"))
    short = bg.cumsum if name == "cumulative_sum" else bg.cumprod
    check_same(short(x, axis), truth(array, axis=axis, dtype=result))
    check_same(short(x, axis=axis), truth(array, axis=axis, dtype=result))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@given(case=with_axis(dtypes=FLOATS, low=-1, high=2), initial=st.booleans())
def test_float_scans(name, case, initial):
    array, x, axis = case
    found = getattr(bg, name)(x, axis=axis, include_initial=initial)
    wanted = getattr(np, name)(precise(array), axis=axis, include_initial=initial)
    error = 2 * array.shape[axis] * bg.finfo(x.dtype).eps
    check_close(found, wanted, array.dtype.name, 2, absolute=error)


@given(with_axis(dtypes=ALL))
def test_cumulative_max(case):
    array, x, axis = case
    wanted = np.maximum.accumulate(wide(array), axis).astype(array.dtype)
    check_same(bg.cumulative_max(x, axis), wanted)
    check_same(bg.cumulative_max(x, axis=axis), wanted)


def test_scans_need_an_axis_beyond_one_dimension():
    for scan in (bg.cumulative_sum, bg.cumulative_prod):
        with pytest.raises(ValueError, match="axis"):
            scan(bg.ones((2, 2)))


@given(with_axis(dtypes=INTEGERS), st.integers(0, 3), st.booleans(), st.booleans())
def test_diff(case, n, before, after):
    array, x, axis = case
    parts = {}
    ours = {}
    for word, wanted in (("prepend", before), ("append", after)):
        if wanted and array.shape[axis]:
            part = np.take(array, [0], axis)
            parts[word], ours[word] = part, bg.asarray(part)
    check_same(bg.diff(x, axis=axis, n=n, **ours), np.diff(array, n=n, axis=axis, **parts))
    check_same(bg.diff(x, n, axis), np.diff(array, n=n, axis=axis))


# ---- Movement ------------------------------------------------------------------------------------


@given(tensors(ALL), st.data())
def test_reshape(pair, data):
    array, x = pair
    check_same(bg.reshape(x, (-1,) if array.size else (0,)), array.reshape(-1))
    check_same(bg.reshape(x, array.shape[::-1]), array.reshape(array.shape[::-1]))
    copied = bg.reshape(x, array.shape, copy=True)
    check_same(copied, array)
    assert array.size == 0 or copied.data_ptr() != x.data_ptr()
    assert bg.reshape(x, array.shape, copy=False).data_ptr() == x.data_ptr()
    check_same(bg.flatten(x), array.reshape(-1))


def test_reshape_that_may_not_copy():
    with pytest.raises(ValueError, match="^reshape: .* without a copy"):
        bg.reshape(bg.ones((2, 3)).T, (6,), copy=False)


@given(tensors(ALL), st.data())
def test_axes(pair, data):
    array, x = pair
    order = tuple(data.draw(st.permutations(range(array.ndim))))
    check_same(bg.permute_dims(x, order), np.transpose(array, order))
    check_same(bg.permute(x, order), np.transpose(array, order))
    check_same(bg.flip(x), np.flip(array))
    at = data.draw(st.integers(-array.ndim - 1, array.ndim))
    check_same(bg.expand_dims(x, axis=at), np.expand_dims(array, at))
    check_same(bg.unsqueeze(x, at), np.expand_dims(array, at))
    check_same(bg.squeeze(bg.expand_dims(x, axis=at), at), array)
    check_same(bg.squeeze(x), np.squeeze(array))
    if array.ndim >= 2:
        check_same(bg.matrix_transpose(x), np.swapaxes(array, -1, -2))
        check_same(bg.transpose(x, 0, 1), np.swapaxes(array, 0, 1))
        check_same(bg.swapaxes(x, -1, 0), np.swapaxes(array, -1, 0))
        check_same(bg.moveaxis(x, 0, -1), np.moveaxis(array, 0, -1))
        check_same(bg.movedim(x, (0, 1), (1, 0)), np.moveaxis(array, (0, 1), (1, 0)))
        check_same(bg.diagonal(x), np.diagonal(array))


def test_squeeze_of_a_greater_axis():
    x = bg.ones((1, 3))
    with pytest.raises(ValueError, match="squeeze"):
        bg.squeeze(x, 1)
    assert bg.squeeze(x, dim=1).shape == (1, 3)
    assert bg.squeeze(x, dim=(0, 1)).shape == (3,)


@given(with_axis(dtypes=ALL), st.integers(-5, 5))
def test_roll_flip_repeat_tile(case, shift):
    array, x, axis = case
    check_same(bg.flip(x, axis=axis), np.flip(array, axis))
    check_same(bg.flip(x, (axis,)), np.flip(array, axis))
    check_same(bg.roll(x, shift, axis=axis), np.roll(array, shift, axis))
    check_same(bg.roll(x, shift), np.roll(array, shift))
    count = abs(shift) % 3
    check_same(bg.repeat(x, count, axis=axis), np.repeat(array, count, axis))
    check_same(bg.repeat_interleave(x, count), np.repeat(array, count))
    counts = np.arange(array.shape[axis])
    check_same(bg.repeat(x, bg.asarray(counts), axis=axis), np.repeat(array, counts, axis))
    check_same(bg.tile(x, (count, 2)), np.tile(array, (count, 2)))


@given(with_axis(dtypes=ALL), st.integers(1, 3))
def test_joining_and_splitting(case, count):
    array, x, axis = case
    check_same(bg.concat([x] * count, axis=axis), np.concatenate([array] * count, axis))
    check_same(bg.cat([x, x], axis), np.concatenate([array, array], axis))
    check_same(bg.concat([x, x], axis=None), np.concatenate([array, array], None))
    check_same(bg.stack([x] * count, axis=axis), np.stack([array] * count, axis))
    check_same(bg.stack([x, x], dim=axis), np.stack([array, array], axis))
    for parts in (bg.unstack(x, axis=axis), bg.unbind(x, axis)):
        assert isinstance(parts, tuple)
        assert len(parts) == array.shape[axis]
        for i, part in enumerate(parts):
            check_same(part, np.take(array, i, axis))
    if array.shape[axis]:
        edges = range(count, array.shape[axis], count)
        wanted = np.split(array, edges, axis)
        for ours, theirs in zip(bg.split(x, count, axis), wanted, strict=True):
            check_same(ours, theirs)
        first = array.shape[axis] - 1
        ours = bg.split(x, [first, 1], dim=axis)
        for part, wanted in zip(ours, np.split(array, [first], axis), strict=True):
            check_same(part, wanted)
        check_same(bg.cat(bg.chunk(x, count, axis), axis), array)


@given(tensors(ALL), shapes(0, 2))
def test_broadcasting(pair, lead):
    array, x = pair
    shape = lead + array.shape
    check_same(bg.broadcast_to(x, shape), np.broadcast_to(array, shape))
    other = np.zeros(shape, np.int8)
    found = bg.broadcast_arrays(x, bg.asarray(other))
    assert isinstance(found, list)
    check_same(found[0], np.broadcast_to(array, shape))
    check_same(found[1], other)


PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", PAD_MODES)
def test_pad(mode):
    array = np.arange(12).reshape(3, 4)
    wanted = np.pad(array, [(2, 1), (1, 2)], PAD_MODES[mode])
    check_same(bg.pad(bg.asarray(array), [1, 2, 2, 1], mode), wanted)
    last = np.pad(array, [(0, 0), (1, 2)], PAD_MODES[mode])
    check_same(bg.pad(bg.asarray(array), (1, 2), mode=mode), last)
    with pytest.raises(ValueError, match="pad"):
        bg.pad(bg.asarray(array), [1])


def test_unfold_narrow_select():
    array = np.arange(24).reshape(4, 6)
    x = bg.asarray(array)
    windows = np.lib.stride_tricks.sliding_window_view(array, 3, 1)[:, ::2]
    check_same(bg.unfold(x, 1, 3, 2), windows)
    check_same(bg.narrow(x, 1, 2, 3), array[:, 2:5])
    check_same(bg.select(x, 0, -1), array[-1])


# ---- Picking, order, search, sets ----------------------------------------------------------------


@given(with_axis(dtypes=ALL), st.data())
def test_take(case, data):
    array, x, axis = case
    size = array.shape[axis]
    picks = data.draw(st.lists(st.integers(-size, size - 1), max_size=5)) if size else []
    indices = np.asarray(picks, np.int64)
    positions = bg.asarray(indices)
    check_same(bg.take(x, positions, axis=axis), np.take(array, indices, axis))
    check_same(bg.index_select(x, axis, positions), np.take(array, indices, axis))
    order = np.argsort(wide(array), axis=axis, kind="stable")
    there = bg.asarray(order)
    picked = np.take_along_axis(array, order, axis)
    check_same(bg.take_along_axis(x, there, axis=axis), picked)
    check_same(bg.take_along_dim(x, there, axis), picked)
    check_same(bg.gather(x, axis, there), picked)
    moved = np.zeros_like(array)
    np.put_along_axis(moved, order, array, axis)
    check_same(bg.scatter(bg.zeros_like(x), axis, there, x), moved)


@given(with_axis(dtypes=INTEGERS))
def test_scatter_add(case):
    array, x, axis = case
    if array.size == 0:
        return
    where = bg.zeros(array.shape, dtype=bg.int64)
    wanted = np.zeros_like(array)
    first = [slice(None)] * array.ndim
    first[axis] = slice(0, 1)
    wanted[tuple(first)] = array.sum(axis=axis, keepdims=True, dtype=array.dtype)
    check_same(bg.scatter_add(bg.zeros_like(x), axis, where, x), wanted)


@given(tensors(ALL, low=0, high=3), st.data())
def test_masks_and_nonzero(pair, data):
    array, x = pair
    mask, m = data.draw(tensors(("bool",), shape=array.shape))
    check_same(bg.masked_select(x, m), array[mask].reshape(-1))
    check_same(bg.masked_fill(x, m, 1), np.where(mask, np.ones((), array.dtype), array))
    if array.ndim:
        found = bg.nonzero(x)
        assert isinstance(found, tuple)
        for ours, theirs in zip(found, np.nonzero(array), strict=True):
            check_same(ours, theirs)


@given(with_axis(dtypes=ALL), st.booleans())
def test_sort(case, descending):
    array, x, axis = case
    # NumPy sorts only in ascending order; in descending order equal elements keep their order too.
    flipped = np.flip(wide(array), axis) if descending else wide(array)
    order = np.argsort(flipped, axis=axis, kind="stable")
    if descending:
        order = array.shape[axis] - 1 - np.flip(order, axis)
    wanted = np.take_along_axis(array, order, axis)
    check_same(bg.sort(x, axis=axis, descending=descending), wanted)
    check_same(bg.argsort(x, axis=axis, descending=descending), order, "int64")
    values, indices = bg.sort(x, axis, descending)
    check_same(values, wanted)
    check_same(indices, order, "int64")
    k = array.shape[axis] // 2
    top = bg.topk(x, k, axis, largest=descending)
    check_same(top.values, np.take(wanted, range(k), axis))


@given(tensors(INTEGERS, min_dims=1, max_dims=1), st.data())
def test_searchsorted(pair, data):
    array, x = pair
    values, y = data.draw(tensors((array.dtype.name,), max_dims=2))
    order = np.argsort(array, kind="stable")
    for side in ("left", "right"):
        wanted = np.asarray(np.searchsorted(np.sort(array), values, side))
        check_same(bg.searchsorted(bg.sort(x), y, side=side), wanted, "int64")
        check_same(bg.searchsorted(x, y, side=side, sorter=bg.asarray(order)), wanted, "int64")
        check_same(bg.searchsorted(bg.sort(x), y, right=side == "right"), wanted, "int64")
    assert bg.searchsorted(bg.sort(x), 100).item() == array.size
    with pytest.raises(ValueError, match="left"):
        bg.searchsorted(x, y, side="middle")


@given(tensors(ALL, low=0, high=4))
def test_unique(pair):
    array, x = pair
    array = wide(array) if array.dtype.name == "bfloat16" else array
    values, indices, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True
    )
    values = values.astype(numpy_dtype(x.dtype.name))
    found = bg.unique_all(x)
    check_same(found.values, values)
    check_same(found.indices, indices, "int64")
    check_same(found.inverse_indices, inverse.reshape(array.shape), "int64")
    check_same(found.counts, counts, "int64")
    check_same(bg.unique_values(x), values)
    check_same(bg.unique_counts(x).counts, counts, "int64")
    check_same(bg.unique_inverse(x).inverse_indices, inverse.reshape(array.shape), "int64")


CLOSE = [1.0, 1.0 + 1e-6, 1.1, 0.0, 1e-9, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness(equal_nan):
    a = np.repeat(np.asarray(CLOSE), len(CLOSE))
    b = np.tile(np.asarray(CLOSE), len(CLOSE))
    found = bg.isclose(bg.asarray(a), bg.asarray(b), equal_nan=equal_nan)
    check_same(found, np.isclose(a, b, equal_nan=equal_nan))
    x = bg.asarray(np.asarray(CLOSE))
    assert bg.allclose(x, x, equal_nan=equal_nan) is equal_nan
    assert bg.array_equal(x, x, equal_nan=equal_nan) is equal_nan
    assert not bg.array_equal(bg.ones(2), bg.ones((1, 2)))


# ---- Names and documentation ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "name"),
    [("cat", "concat"), ("clamp", "clip"), ("mul", "multiply"), ("sub", "subtract"),
     ("div", "divide"), ("true_divide", "divide"), ("neg", "negative"), ("eq", "equal"),
     ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
     ("ge", "greater_equal"), ("bitwise_not", "bitwise_invert")],
)  # fmt: skip
def test_aliases(other, name):
    assert getattr(bg, other) is getattr(bg, name)


@pytest.mark.parametrize("namespace", [bg, bg.linalg], ids=["baregrad", "linalg"])
def test_every_function_has_an_example(namespace):
    bare = [
        name
        for name in dir(namespace)
        if hasattr(getattr(namespace, name), "__nb_signature__")
        and not name.startswith("_")
        and ">>> " not in getattr(namespace, name).__doc__
    ]
    assert not bare
