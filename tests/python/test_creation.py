"""Creation functions against NumPy: values, dtypes, spellings and errors; random tensors."""

import inspect
import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import baregrad as bg

FLOATS = ["float16", "bfloat16", "float32", "float64"]
NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split() + FLOATS
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def check(x, want):
    """The same dtype, shape and elements."""
    got = x.numpy()
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if got.dtype == ml_dtypes.bfloat16:  # whose NaNs NumPy does not compare as equal
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)


# ---- Filled


@given(SHAPES, st.sampled_from(NAMES))
def test_zeros_and_ones(shape, name):
    dtype = numpy_dtype(name)
    for function, value in ((bg.zeros, 0), (bg.ones, 1)):
        check(function(shape, dtype=name), np.full(shape, value, dtype))
        check(function(list(shape), dtype=getattr(bg, name)), np.full(shape, value, dtype))
        if shape:
            check(function(*shape, dtype=name), np.full(shape, value, dtype))
    x = bg.empty(shape, dtype=name)
    assert (x.shape, x.dtype.name) == (shape, name)
    like = bg.ones(shape, dtype=name)
    check(bg.zeros_like(like), np.zeros(shape, dtype))
    check(bg.ones_like(x), np.ones(shape, dtype))
    assert bg.empty_like(x).shape == shape
    assert bg.zeros_like(x, dtype=bg.int8).dtype is bg.int8


def test_one_size_is_an_integer_too():
    check(bg.ones(3), np.ones(3, np.float32))
    check(bg.ones(np.int64(3)), np.ones(3, np.float32))
    check(bg.ones(shape=3), np.ones(3, np.float32))
    check(bg.ones(()), np.ones((), np.float32))


@given(SHAPES, st.one_of(st.booleans(), st.integers(-128, 127), st.floats()))
def test_full_takes_the_dtype_of_its_value(shape, value):
    want = {bool: np.bool_, int: np.int64, float: np.float32}[type(value)]
    with np.errstate(over="ignore"):
        check(bg.full(shape, value), np.full(shape, value, want))
        check(bg.full_like(bg.empty(shape, dtype="float64"), value), np.full(shape, value, "f8"))
        check(bg.full(shape, value, dtype="float16"), np.full(shape, value, "f2"))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 1e300, 1e-300])
@pytest.mark.parametrize("name", FLOATS)
def test_special_values(value, name):
    with np.errstate(over="ignore"):
        want = np.full((2,), value).astype(numpy_dtype(name))
    for x in (bg.full(2, value, dtype=name), bg.asarray([value] * 2, dtype=name)):
        check(x, want)
        assert np.signbit(x.numpy().astype(float)).tolist() == [math.copysign(1, value) < 0] * 2


def test_full_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="300 does not fit int8"):
        bg.full((2,), 300, dtype=bg.int8)
    with pytest.raises(TypeError):
        bg.full((2,), "a")


@pytest.mark.parametrize("name", "zeros ones empty rand randn".split())
def test_shapes_that_are_none(name):
    function = getattr(bg, name)
    for call in (
        lambda: function(),
        lambda: function("a"),
        lambda: function(2.5),
        lambda: function((2, 3), 4),
        lambda: function((2.5,)),
        lambda: function(2, device=3.5, dtype="float31"),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    for call in (lambda: function(-1), lambda: function((2, -3)), lambda: function(2, -3)):
        with pytest.raises(ValueError, match="-"):
            call()
    with pytest.raises(ValueError):
        function((1,) * 17)
    with pytest.raises((ValueError, MemoryError)):
        function((2**40, 2**40))
    with pytest.raises(ValueError, match="^[a-z]+: .*cuda:63"):
        function(2, device="cuda:63")
    assert function(2, device="cpu").shape == (2,)


# ---- Ranges


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7))
def test_arange_of_integers(start, stop, step):
    assume(step != 0)
    check(bg.arange(start, stop, step), np.arange(start, stop, step))
    check(bg.arange(start), np.arange(start))
    check(bg.arange(start, None, step), np.arange(0, start, step))
    check(bg.arange(start, stop=stop), np.arange(start, stop))


@given(st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([0.5, -0.25, 1.5, 3.0]))
def test_arange_of_floats(start, stop, step):
    want = np.arange(start / 2, stop / 2, step)
    check(bg.arange(start / 2, stop / 2, step), want.astype(np.float32))
    check(bg.arange(start / 2, stop / 2, step, dtype="float64"), want)


def test_arange_dtypes_and_errors():
    assert bg.arange(3).dtype is bg.int64
    assert bg.arange(3.0).dtype is bg.float32
    assert bg.arange(0, 3, 1.0).dtype is bg.float32
    check(bg.arange(5, dtype="uint8"), np.arange(5, dtype="u1"))
    with pytest.raises(ValueError, match="arange"):
        bg.arange(0, 3, 0)
    with pytest.raises(ValueError, match="arange"):
        bg.arange(0, math.inf)
    with pytest.raises(TypeError):
        bg.arange("3")


@given(st.floats(-100, 100), st.floats(-100, 100), st.integers(0, 20), st.booleans())
def test_linspace(start, stop, num, endpoint):
    x = bg.linspace(start, stop, num, dtype="float64", endpoint=endpoint).numpy()
    want = np.linspace(start, stop, num, endpoint=endpoint)
    assert x.shape == want.shape
    scale = max(abs(start), abs(stop))
    np.testing.assert_allclose(x, want, rtol=0, atol=4e-16 * scale)
    if num > 1:
        assert x[0] == start
    if num > 1 and endpoint:
        assert x[-1] == stop
    assert bg.linspace(start, stop, num=num).dtype is bg.float32


def test_linspace_refuses_a_negative_count():
    with pytest.raises(ValueError, match="linspace"):
        bg.linspace(0, 1, -1)


@given(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 6)), st.integers(-8, 8))
def test_eye(rows, columns, k):
    check(bg.eye(rows, columns, k=k), np.eye(rows, columns, k=k, dtype=np.float32))
    check(bg.eye(rows, columns, k=k, dtype="int8"), np.eye(rows, columns, k=k, dtype=np.int8))


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=4),
    st.integers(-5, 5),
    st.sampled_from(NAMES),
)
def test_triangles(shape, k, name):
    a = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(numpy_dtype(name))
    x = bg.asarray(a)
    check(bg.tril(x, k=k), np.tril(a, k))
    check(bg.triu(x, k=k), np.triu(a, k))
    check(bg.tril(x, k), np.tril(a, k))
    check(bg.triu(x, diagonal=k), np.triu(a, k))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.sampled_from(["xy", "ij"]))
def test_meshgrid(sizes, indexing):
    axes = [np.arange(size) + 10 * i for i, size in enumerate(sizes)]
    want = np.meshgrid(*axes, indexing=indexing)
    got = bg.meshgrid(*[bg.asarray(axis) for axis in axes], indexing=indexing)
    assert isinstance(got, list)
    assert len(got) == len(want)
    for x, y in zip(got, want):
        check(x, y)


def test_meshgrid_by_default_and_wrong():
    x, y = bg.meshgrid(bg.arange(2), bg.arange(3))
    assert x.shape == y.shape == (3, 2)
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        bg.meshgrid(bg.arange(2), indexing="yx")
    assert bg.meshgrid() == []


# ---- From values


@pytest.mark.parametrize(
    "value, name",
    [
        (True, "bool"),
        (3, "int64"),
        (3.5, "float32"),
        ([], "float32"),
        ([[], []], "float32"),
        ([True], "bool"),
        ([True, 2], "int64"),
        ([2, 2.5], "float32"),
        ([True, 0.5], "float32"),
        ((), "float32"),
    ],
    ids=str,
)
def test_dtypes_are_inferred(value, name):
    for function in (bg.asarray, bg.tensor, bg.as_tensor):
        x = function(value)
        assert x.dtype.name == name
        assert x.numpy().tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize("given_as", ["int16", bg.int16, np.int16, np.dtype("int16")], ids=str)
def test_dtypes_by_any_name(given_as):
    assert bg.asarray([1], dtype=given_as).dtype is bg.int16
    assert bg.zeros(1, dtype=given_as).dtype is bg.int16


def test_python_types_as_dtypes():
    assert bg.zeros(1, dtype=int).dtype is bg.int64
    assert bg.zeros(1, dtype=float).dtype is bg.float32
    assert bg.zeros(1, dtype=bool).dtype is bg.bool


def test_tensor_is_a_leaf_of_its_own():
    x = bg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="gradient"):
        x.numpy()
    with pytest.raises(TypeError, match="int64"):
        bg.tensor([1, 2], requires_grad=True)
    assert bg.tensor(x).numpy().tolist() == [1, 2]  # no history


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: bg.zeros(2, **k),
        lambda **k: bg.zeros((2,), **k),
        lambda **k: bg.ones_like(bg.zeros(2), **k),
        lambda **k: bg.full((2,), 1.5, **k),
        lambda **k: bg.full_like(bg.zeros(2), 1.5, **k),
        lambda **k: bg.arange(2.0, **k),
        lambda **k: bg.linspace(0, 1, 2, **k),
        lambda **k: bg.eye(2, **k),
        lambda **k: bg.rand(2, **k),
        lambda **k: bg.randn((2,), **k),
        lambda **k: bg.rand_like(bg.zeros(2), **k),
        lambda **k: bg.uniform(0, 1, (2,), **k),
        lambda **k: bg.normal(0, 1, (2,), **k),
    ],
)
def test_requires_grad(make):
    make().numpy()
    with pytest.raises(RuntimeError, match="requires a gradient"):
        make(requires_grad=True).numpy()


def test_constants():
    assert bg.pi == math.pi
    assert bg.e == math.e
    assert bg.inf == math.inf
    assert math.isnan(bg.nan)
    assert bg.newaxis is None


SIGNATURES = {
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "empty": "(shape, *, dtype=None, device=None)",
    "empty_like": "(x, /, *, dtype=None, device=None)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "ones": "(shape, *, dtype=None, device=None)",
    "ones_like": "(x, /, *, dtype=None, device=None)",
    "tril": "(x, /, *, k=0)",
    "triu": "(x, /, *, k=0)",
    "zeros": "(shape, *, dtype=None, device=None)",
    "zeros_like": "(x, /, *, dtype=None, device=None)",
}
ARGUMENTS = dict(
    obj=1.5, x=bg.ones((2, 2)), start=0, stop=4, step=2, shape=(2,), fill_value=1, num=3, n_rows=2,
    n_cols=3, k=1, dtype=bg.float32, device="cpu", copy=None, endpoint=False,
)  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_standard_signatures_can_be_called(name):
    """Each parameter in every way its kind allows, and not in those it forbids."""
    scope = {}
    exec(f"def f{SIGNATURES[name]}: pass", scope)
    parameters = inspect.signature(scope["f"]).parameters.values()
    function = getattr(bg, name)
    positional = [ARGUMENTS[p.name] for p in parameters if p.kind is not p.KEYWORD_ONLY]
    named = {p.name: ARGUMENTS[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}
    function(*positional)
    function(*positional, **named)
    first = [ARGUMENTS[p.name] for p in parameters if p.kind is p.POSITIONAL_ONLY]
    by_name = {p.name: ARGUMENTS[p.name] for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    function(*first, **by_name)
    for p in parameters:
        if p.kind is p.POSITIONAL_ONLY:
            with pytest.raises(TypeError):
                function(**{p.name: ARGUMENTS[p.name]})


# ---- Random


def test_seeds_and_generators_repeat():
    assert bg.manual_seed(5) is not None
    first = [bg.rand(3).numpy().tolist(), bg.randn(2, 2).numpy().tolist()]
    bg.manual_seed(5)
    assert [bg.rand(3).numpy().tolist(), bg.randn(2, 2).numpy().tolist()] == first
    g = bg.Generator().manual_seed(5)
    assert bg.rand(3, generator=g).numpy().tolist() == first[0]
    assert bg.rand((3,), generator=bg.Generator(5)).numpy().tolist() == first[0]
    assert g.initial_seed() == 5
    state = g.get_state()
    a = bg.randn(4, generator=g).numpy()
    g.set_state(state)
    assert bg.randn(4, generator=g).numpy().tolist() == a.tolist()
    g.set_state(state)
    copy = pickle.loads(pickle.dumps(g))
    assert copy.get_state().numpy().tolist() == state.numpy().tolist()
    assert g.seed() != g.seed()
    bg.default_generator.manual_seed(5)
    assert bg.rand(3).numpy().tolist() == first[0]
    for wrong in (bg.zeros(2), bg.zeros(3, dtype=bg.uint64)):
        with pytest.raises(ValueError, match="set_state"):
            g.set_state(wrong)


@pytest.mark.parametrize("name", FLOATS)
def test_uniform_and_normal_moments(name):
    bg.manual_seed(1)
    n = 100_000
    u = bg.rand(n, dtype=name).numpy().astype(float)
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n)
    w = bg.uniform(-2, 3, (n,), dtype=name).numpy().astype(float)
    assert w.min() >= -2 and w.max() <= 3
    assert abs(w.mean() - 0.5) < 5 * 5 * math.sqrt(1 / 12 / n) + 1e-3
    z = bg.randn(n, dtype=name).numpy().astype(float)
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs(z.var() - 1) < 5 * math.sqrt(2 / n)
    v = bg.normal(3, 0.5, (n,), dtype=name).numpy().astype(float)
    assert abs(v.mean() - 3) < 5 * 0.5 / math.sqrt(n)


@given(SHAPES, st.integers(-5, 5), st.integers(1, 9))
def test_randint(shape, low, width):
    x = bg.randint(low, low + width, shape)
    assert (x.shape, x.dtype) == (shape, bg.int64)
    assert ((x.numpy() >= low) & (x.numpy() < low + width)).all()
    y = bg.randint(width, shape, dtype="uint8").numpy()
    assert y.dtype == np.uint8 and (y < width).all()


def test_randint_reaches_all_and_refuses_nothing():
    x = bg.randint(0, 5, (1000,), generator=bg.Generator(3)).numpy()
    assert set(x.tolist()) == {0, 1, 2, 3, 4}
    with pytest.raises(ValueError, match="randint"):
        bg.randint(3, 3, (2,))


@given(st.integers(0, 200))
def test_randperm(n):
    x = bg.randperm(n).numpy()
    assert sorted(x.tolist()) == list(range(n))


def test_bernoulli():
    g = bg.Generator(4)
    n = 50_000
    x = bg.bernoulli(0.3, (n,), generator=g).numpy()
    assert set(x.tolist()) == {0, 1}
    assert abs(x.mean() - 0.3) < 5 * math.sqrt(0.21 / n)
    p = bg.asarray([0.0, 1.0], dtype="float64")
    assert bg.bernoulli(p, generator=g).numpy().tolist() == [0, 1]
    assert bg.bernoulli(p).dtype is bg.float64


def test_random_like():
    x = bg.zeros((2, 3), dtype="float64")
    for function in (bg.rand_like, bg.randn_like):
        y = function(x, generator=bg.Generator(1))
        assert (y.shape, y.dtype) == ((2, 3), bg.float64)
        assert y.numpy().std() > 0
        assert function(x, dtype="float16").dtype is bg.float16
    with pytest.raises(TypeError):
        bg.rand(2, dtype="int32")
