"""baregrad.Tensor: attributes, operators, methods, copies, pickles, subclasses, hostile uses."""

import copy
import gc
import operator
import pickle
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baregrad as bg

DTYPES = [
    bg.bool, bg.int8, bg.int16, bg.int32, bg.int64, bg.uint8, bg.uint16, bg.uint32, bg.uint64,
    bg.float16, bg.bfloat16, bg.float32, bg.float64,
]


def tensor(values, dtype="float32"):
    return bg.asarray(np.array(values, dtype), copy=True)


def grid(*shape, dtype="float64"):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape) - 3.25


# ---- Attributes ---------------------------------------------------------------------------------


def test_attributes():
    x = tensor(np.zeros((2, 3, 4)))
    assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((2, 3, 4), 3, 24, bg.float32, "cpu")
    assert (x.numel(), x.dim(), x.nbytes, x.element_size()) == (24, 3, 96, 4)
    assert isinstance(x.size, int) and isinstance(x.shape, tuple)
    assert x.stride() == (12, 4, 1) and x.stride(-1) == 1 and x.stride(0) == 12
    assert x.mT.shape == (2, 4, 3) and x.mT.stride() == (12, 1, 4)
    assert x.is_floating_point() and not x.long().is_floating_point()
    assert x[1].data_ptr() == x.data_ptr() + 48 and x[1].storage_offset() == 12
    assert x.to_device("cpu").data_ptr() == x.data_ptr()


def test_T_is_for_matrices():
    assert tensor([[1, 2, 3]]).T.tolist() == [[1], [2], [3]]
    for shape in ((), (3,), (1, 2, 3)):
        with pytest.raises(ValueError, match="T: "):
            tensor(np.zeros(shape)).T
    with pytest.raises(ValueError):
        tensor([1.0]).mT


def test_array_namespace():
    x = tensor([1.0])
    assert x.__array_namespace__() is bg
    assert x.__array_namespace__(api_version="2024.12") is bg
    assert x.__array_namespace__(api_version=None) is bg
    with pytest.raises(ValueError, match="1999.12"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(TypeError):
        x.__array_namespace__("2024.12")


def test_other_devices_are_refused():
    for use in (lambda x: x.to_device("cuda:63"), lambda x: x.to("gpu"), lambda x: x.to(device="cuda:63")):
        with pytest.raises(ValueError, match="not available|there is no device|names no device"):
            use(tensor([1.0]))


def test_attributes_cannot_be_set():
    x = tensor([1.0])
    for name in ("shape", "dtype", "size", "T", "is_leaf", "grad_fn"):
        with pytest.raises(AttributeError):
            setattr(x, name, 1)
    with pytest.raises(AttributeError):
        x.anything = 1


# ---- Numbers ------------------------------------------------------------------------------------


def test_single_elements_are_numbers():
    assert bool(tensor(2.0)) and not bool(tensor(0.0))
    assert int(tensor(-2.75)) == -2 and float(tensor(2.5)) == 2.5
    assert complex(tensor(2.5)) == 2.5 + 0j
    assert operator.index(tensor(7, "int16")) == 7
    assert int(tensor(2**64 - 1, "uint64")) == 2**64 - 1
    assert [10, 20, 30][tensor(1, "int64")] == 20
    assert tensor([[4.0]]).item() == 4.0
    assert type(tensor(True, "bool").item()) is bool and type(tensor(1, "uint8").item()) is int


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_many_elements_are_no_number(convert):
    for many in (tensor([1.0, 2.0]), tensor([])):
        with pytest.raises((ValueError, TypeError)):
            convert(many)


def test_only_integers_are_indices():
    for wrong in (tensor(1.0), tensor(True, "bool"), tensor([1, 2], "int64")):
        with pytest.raises((TypeError, ValueError)):
            operator.index(wrong)
    for infinite in (float("inf"), float("nan")):
        with pytest.raises((OverflowError, ValueError)):
            int(tensor(infinite))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_tolist_is_every_element(dtype):
    x = tensor([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    expected = [[0, 1, 1], [1, 1, 0]] if dtype is bg.bool else [[0, 1, 2], [3, 1, 0]]
    assert x.tolist() == expected
    assert x.mT.tolist() == [list(column) for column in zip(*expected)]
    kind = bool if dtype is bg.bool else float if x.is_floating_point() else int
    assert type(x.tolist()[0][0]) is kind
    assert tensor(np.zeros((2, 0))).tolist() == [[], []]


# ---- Operators ----------------------------------------------------------------------------------

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_operators_on_both_sides(op):
    a = np.array([[1.5, 2.0], [3.0, 0.5]])
    b = np.array([2.0, 4.0])
    x, y = bg.asarray(a), bg.asarray(b)
    for got, expected in ((op(x, y), op(a, b)), (op(x, 3), op(a, 3)), (op(3, x), op(3, a)), (op(0.5, x), op(0.5, a))):
        np.testing.assert_allclose(got.tolist(), expected.tolist(), rtol=1e-14)


@pytest.mark.parametrize("op", INTEGER, ids=lambda f: f.__name__)
def test_integer_operators_on_both_sides(op):
    a = np.array([1, 2, 7])
    for got, expected in ((op(bg.asarray(a), 2), op(a, 2)), (op(5, bg.asarray(a)), op(5, a))):
        assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_in_place_operators_keep_the_object(op):
    a = np.array([1.5, 2.0, 3.0])
    x = bg.asarray(a, copy=True)
    before, view = x, x[1:]
    x = getattr(operator, op)(x, 2.0)
    assert x is before
    expected = getattr(operator, op)(a, 2.0)
    assert x.tolist() == expected.tolist() and view.tolist() == expected.tolist()[1:]


def test_unary_operators():
    x = tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2.0] and (+x).tolist() == x.tolist() and abs(x).tolist() == [1.5, 2.0]
    assert (~tensor([0, 5], "int64")).tolist() == [-1, -6]


def test_alien_operands_are_left_to_the_other_side():
    class Alien:
        def __radd__(self, other):
            return "radd"

        def __eq__(self, other):
            return "eq"

        def __rmatmul__(self, other):
            return "rmatmul"

    x = tensor([1.0])
    assert x + Alien() == "radd" and x @ Alien() == "rmatmul" and (x == Alien()) == "eq"
    assert (x == "a") is False and (x != None) is True  # noqa: E711
    assert x.__eq__(object()) is NotImplemented and x.__lt__([1]) is NotImplemented
    for wrong in ("a", None, [1.0], (1,), 1j, object()):
        with pytest.raises(TypeError):
            x + wrong
        with pytest.raises(TypeError):
            wrong + x
        with pytest.raises(TypeError):
            x < wrong
        with pytest.raises(TypeError):
            x @ wrong
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_numpy_arrays_are_not_taken_apart():
    x, a = tensor([1.0, 2.0]), np.array([1.0, 2.0], "float32")
    for use in (lambda: a + x, lambda: x + a, lambda: a @ x, lambda: a < x):
        with pytest.raises(TypeError, match="ndarray"):
            use()
    with pytest.raises(TypeError):
        a += x
    # NumPy's numbers are numbers.
    for number in (np.float32(2), np.float64(2), np.int8(2), np.uint64(2)):
        assert (x * number).tolist() == [2.0, 4.0] and (number * x).tolist() == [2.0, 4.0]
        assert (x * number).dtype is bg.float32
    assert (tensor([1, 2], "int64") + np.bool_(True)).dtype is bg.int64


def test_integers_beyond_64_bits_are_refused():
    x = tensor([1, 2], "int64")
    for use in (lambda: x + 2**70, lambda: x == -(2**70), lambda: x.fill_(2**70), lambda: x.add(2**64)):
        with pytest.raises((OverflowError, TypeError)):
            use()
    with pytest.raises(ValueError):
        tensor([1], "int8") + 1000


# ---- Identity -----------------------------------------------------------------------------------


def test_hash_is_the_tensors():
    x = tensor([1.0, 2.0])
    same = bg.Tensor(x)
    assert same is not x and hash(same) == hash(x)
    assert hash(x.detach()) != hash(x) or x.detach().data_ptr() == x.data_ptr()
    assert hash(tensor([1.0, 2.0])) != hash(x)
    assert {x: "a"}[x] == "a"


def test_constructor_shares_a_tensor_and_reads_all_else():
    x = tensor([1.0, 2.0])
    same = bg.Tensor(x)
    same[0] = 5
    assert x.tolist() == [5.0, 2.0]
    assert bg.Tensor([[1, 2]]).dtype is bg.int64
    assert bg.Tensor(3.5).shape == ()
    for wrong in ((), (1, 2)):
        with pytest.raises(TypeError):
            bg.Tensor(*wrong)
    with pytest.warns(RuntimeWarning), pytest.raises(TypeError):
        x.__init__(tensor([3.0]))
    assert x.tolist() == [5.0, 2.0]


def test_weak_references():
    x = tensor([1.0])
    gone = []
    reference = weakref.ref(x, gone.append)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None and gone


# ---- Methods ------------------------------------------------------------------------------------

UNARY = [
    "abs", "negative", "sign", "square", "floor", "ceil", "trunc", "exp", "expm1", "sin", "cos", "tan",
    "sinh", "cosh", "tanh", "exp2", "reciprocal", "positive", "isnan", "isfinite", "signbit", "logical_not",
]


@pytest.mark.parametrize("name", UNARY)
def test_unary_methods(name):
    a = grid(2, 4)
    np.testing.assert_allclose(getattr(bg.asarray(a), name)().tolist(), getattr(np, name)(a).tolist(), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in UNARY if not n.startswith(("is", "signbit", "logical"))])
def test_unary_methods_in_place(name):
    a = grid(2, 4)
    x = bg.asarray(a, copy=True)
    assert getattr(x, name + "_")() is x
    np.testing.assert_allclose(x.tolist(), getattr(np, name)(a).tolist(), rtol=1e-14)


@pytest.mark.parametrize(
    "name, numpy_name",
    [(n, n) for n in ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum", "hypot", "copysign")]
    + [("sub", "subtract"), ("mul", "multiply"), ("div", "divide")],
)
def test_binary_methods(name, numpy_name):
    a, b = grid(2, 4), np.array([1.5, -2.0, 0.5, 3.0])
    x, y = bg.asarray(a, copy=True), bg.asarray(b)
    expected = getattr(np, numpy_name)(a, b).tolist()
    np.testing.assert_allclose(getattr(x, name)(y).tolist(), expected, rtol=1e-14)
    assert getattr(x, name + "_")(y) is x
    np.testing.assert_allclose(x.tolist(), expected, rtol=1e-14)


def test_scaled_addition():
    x, y = tensor([1.0, 2.0]), tensor([10.0, 20.0])
    assert x.add(y, alpha=0.5).tolist() == [6.0, 12.0]
    assert x.add_(y, alpha=-1).tolist() == [-9.0, -18.0]
    assert x.sub(y, alpha=2).tolist() == [-29.0, -58.0]


def test_comparison_methods():
    x = tensor([1.0, 2.0, 3.0])
    assert x.eq(2).tolist() == [False, True, False] and x.ge(2).tolist() == [False, True, True]
    assert x.lt(tensor([2.0, 2.0, 2.0])).tolist() == [True, False, False]


def test_writing_methods():
    x = tensor([1.0, 5.0, -3.0])
    assert x.clamp(-1, 2).tolist() == [1.0, 2.0, -1.0] and x.clip(min=0).tolist() == [1.0, 5.0, 0.0]
    assert x.clamp(max=tensor([0.0, 9.0, 9.0])).tolist() == [0.0, 5.0, -3.0]
    assert x.masked_fill(x > 0, 0).tolist() == [0.0, 0.0, -3.0]
    assert x.where(x > 0, -1.0).tolist() == [1.0, 5.0, -1.0]
    assert x.lerp(tensor([3.0, 5.0, 1.0]), 0.5).tolist() == [2.0, 5.0, -1.0]
    assert x.addcmul(x, x, value=2).tolist() == [3.0, 55.0, 15.0]
    assert x.clamp_(0, 2) is x and x.tolist() == [1.0, 2.0, 0.0]
    assert x.copy_(tensor([7], "int64")).tolist() == [7.0] * 3
    assert x.fill_(2.5).tolist() == [2.5] * 3 and x.zero_().tolist() == [0.0] * 3
    assert x.masked_fill_(tensor([1, 0, 1], "bool"), 4) is x and x.tolist() == [4.0, 0.0, 4.0]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions_in_both_spellings(name, axis):
    a = grid(2, 3, 4)
    x = bg.asarray(a)
    expected = getattr(a, {"amax": "max", "amin": "min"}.get(name, name))(axis=axis)
    for got in (
        getattr(x, name)(axis),
        getattr(x, name)(dim=axis),
        getattr(x, name)(axis=axis),
    ):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.tolist(), expected.tolist(), rtol=1e-13)
    kept = getattr(a, {"amax": "max", "amin": "min"}.get(name, name))(axis=axis, keepdims=True).shape
    assert getattr(x, name)(dim=axis, keepdim=True).shape == kept
    assert getattr(x, name)(axis=axis, keepdims=True).shape == kept


def test_sum_takes_a_dtype():
    assert tensor([1, 2], "int8").sum().dtype is bg.int64
    assert tensor([1, 2], "int8").sum(dtype=bg.float64).dtype is bg.float64


def test_max_and_min():
    a = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 4.0]])
    x = bg.asarray(a)
    assert x.max().item() == 5.0 and x.min().item() == 1.0
    values, indices = x.max(1)
    assert values.tolist() == [5.0, 4.0] and indices.tolist() == [1, 0]
    found = x.min(dim=0, keepdim=True)
    assert found.values.tolist() == [[1.0, 2.0, 3.0]] and found.indices.tolist() == [[0, 1, 0]]
    assert x.max(axis=1).tolist() == [5.0, 4.0] and x.max(axis=(0, 1)).item() == 5.0
    assert x.max(axis=0, keepdims=True).shape == (1, 3)
    y = tensor([[1.0, 5.0]]).requires_grad_()
    y.max(1).values.sum().backward()
    assert y.grad.tolist() == [[0.0, 1.0]]
    assert x.argmax().item() == 1 and x.argmin(1).tolist() == [0, 1] and x.argmax(axis=0).tolist() == [1, 0, 1]


def test_std_and_var_divide_as_said():
    a = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 1.0]])
    x = bg.asarray(a)
    for name in ("std", "var"):
        mine, theirs = getattr(x, name), getattr(a, name)
        np.testing.assert_allclose(mine().item(), theirs(ddof=1), rtol=1e-14)
        np.testing.assert_allclose(mine(1).tolist(), theirs(axis=1, ddof=1), rtol=1e-14)
        np.testing.assert_allclose(mine(axis=1).tolist(), theirs(axis=1), rtol=1e-14)
        np.testing.assert_allclose(mine(dim=1, correction=0).tolist(), theirs(axis=1), rtol=1e-14)
        assert mine(dim=1, keepdim=True).shape == (2, 1) == mine(axis=1, keepdims=True).shape


def test_scans_order_and_norms():
    a = grid(3, 4)
    x = bg.asarray(a)
    np.testing.assert_allclose(x.cumsum(1).tolist(), a.cumsum(1), rtol=1e-14)
    np.testing.assert_allclose(x.cumprod(axis=0).tolist(), a.cumprod(0), rtol=1e-13)
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(x.softmax(1).tolist(), e / e.sum(1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(x.log_softmax(dim=-1).tolist(), np.log(e / e.sum(1, keepdims=True)), rtol=1e-12)
    np.testing.assert_allclose(x.norm().item(), np.linalg.norm(a), rtol=1e-14)
    np.testing.assert_allclose(x.norm(1, dim=0).tolist(), abs(a).sum(0), rtol=1e-14)
    values, indices = tensor([3.0, 1.0, 2.0]).sort(descending=True)
    assert values.tolist() == [3.0, 2.0, 1.0] and indices.tolist() == [0, 2, 1]
    assert tensor([3.0, 1.0, 2.0]).argsort().tolist() == [1, 2, 0]
    assert tensor([3.0, 1.0, 2.0]).topk(2).indices.tolist() == [0, 2]


def test_products():
    a, b = grid(3, 4), grid(4, 2)
    x, y = bg.asarray(a), bg.asarray(b)
    for got in (x @ y, x.matmul(y), x.mm(y)):
        np.testing.assert_allclose(got.tolist(), a @ b, rtol=1e-13)
    assert x.unsqueeze(0).bmm(y.unsqueeze(0)).shape == (1, 3, 2)
    np.testing.assert_allclose(x[0].dot(y[:, 0]).item(), a[0] @ b[:, 0], rtol=1e-13)
    np.testing.assert_allclose(x.mv(y[:, 0]).tolist(), a @ b[:, 0], rtol=1e-13)
    assert x[0].outer(y[0]).shape == (4, 2)
    for wrong in (lambda: x.mm(y[0]), lambda: x.dot(y), lambda: x.bmm(y), lambda: x.mv(y), lambda: x @ x):
        with pytest.raises(ValueError):
            wrong()


def test_shapes():
    a = grid(2, 3, 4)
    x = bg.asarray(a, copy=True)

    def same(got, expected):
        assert got.shape == expected.shape and got.tolist() == expected.tolist()

    for use in (lambda t: t.view(6, 4), lambda t: t.view((6, -1)), lambda t: t.reshape([6, 4]), lambda t: t.reshape(6, -1)):
        same(use(x), a.reshape(6, 4))
    same(x.permute(2, 0, 1), a.transpose(2, 0, 1))
    same(x.permute((-1, 0, 1)), a.transpose(2, 0, 1))
    same(x.transpose(0, 2), a.swapaxes(0, 2))
    same(x[0].t(), a[0].T)
    same(x.flatten(1), a.reshape(2, 12))
    same(x.flatten(), a.ravel())
    same(x.unsqueeze(1), a[:, None])
    same(x.unsqueeze(-1), a[..., None])
    same(x[:1].squeeze(0), a[0])
    same(x[:1].squeeze(), a[0])
    same(x.squeeze(1), a)
    same(x[:, :1].expand(-1, 3, -1), np.broadcast_to(a[:, :1], a.shape))
    same(x[0, 0].expand(5, 4), np.broadcast_to(a[0, 0], (5, 4)))
    same(x.flip(0, 2), np.flip(a, (0, 2)))
    same(x.repeat(2, 1, 1), np.tile(a, (2, 1, 1)))
    same(x.narrow(2, 1, 2), a[:, :, 1:3])
    same(x.movedim(0, -1), np.moveaxis(a, 0, -1))
    same(x.roll(1, 0), np.roll(a, 1, 0))
    same(x.diagonal(0, 1, 2), np.diagonal(a, 0, 1, 2))
    same(x[0].tril(), np.tril(a[0]))
    for parts, expected in (
        (x.split(2, 2), np.split(a, 2, 2)),
        (x.split([1, 3], dim=2), np.split(a, [1], 2)),
        (x.chunk(2), np.split(a, 2)),
        (x.unbind(1), [a[:, i] for i in range(3)]),
    ):
        assert isinstance(parts, tuple) and len(parts) == len(expected)
        for got, wanted in zip(parts, expected):
            same(got, wanted)
    assert x.view(-1).data_ptr() == x.data_ptr()
    assert not x.mT.is_contiguous() and x.mT.contiguous().is_contiguous()
    with pytest.raises(ValueError, match="view"):
        x.mT.view(-1)
    for wrong in (lambda: x.view(5), lambda: x.permute(0, 0, 1), lambda: x.expand(3, 3, 4), lambda: x.view(-1, -1)):
        with pytest.raises((ValueError, IndexError)):
            wrong()
    for wrong in (lambda: x.view("a"), lambda: x.view(1.5), lambda: x.reshape(None), lambda: x.view((2, "a"))):
        with pytest.raises(TypeError):
            wrong()


def test_picking():
    a = grid(3, 4)
    x = bg.asarray(a)
    index = np.array([[0, 2], [1, 1], [3, 0]])
    assert x.gather(1, bg.asarray(index)).tolist() == np.take_along_axis(a, index, 1).tolist()
    assert x.index_select(0, bg.asarray([2, 0])).tolist() == a[[2, 0]].tolist()
    assert x.take(bg.asarray([5, 0])).tolist() == a.ravel()[[5, 0]].tolist()
    assert x.masked_select(x > 0).tolist() == a[a > 0].tolist()
    assert (x > 0).nonzero().tolist() == np.argwhere(a > 0).tolist()
    base = bg.asarray(np.zeros(3))
    assert base.scatter(0, bg.asarray([1]), 5.0).tolist() == [0.0, 5.0, 0.0]
    assert base.scatter_add(0, bg.asarray([1, 1]), bg.asarray([1.0, 2.0])).tolist() == [0.0, 3.0, 0.0]


@pytest.mark.parametrize(
    "name, dtype",
    [("float", bg.float32), ("double", bg.float64), ("half", bg.float16), ("bfloat16", bg.bfloat16), ("int", bg.int32),
     ("long", bg.int64), ("short", bg.int16), ("char", bg.int8), ("byte", bg.uint8), ("bool", bg.bool)],
)
def test_conversions(name, dtype):
    x = tensor([0.0, 1.0, 3.0])
    got = getattr(x, name)()
    assert got.dtype is dtype
    assert got.tolist() == ([False, True, True] if dtype is bg.bool else [0, 1, 3])
    for other in (x.to(dtype), x.to(dtype=dtype), x.to(got), x.to(dtype.name), x.astype(dtype)):
        assert other.dtype is dtype
    assert hash(got.to(dtype)) == hash(got)
    with pytest.raises(TypeError, match="to: "):
        x.to(5)
    assert got.to("cpu").dtype is dtype and got.to(dtype, copy=True).data_ptr() != got.data_ptr()


# ---- Gradients ----------------------------------------------------------------------------------


def test_backward_accumulates():
    x = tensor([1.0, 2.0]).requires_grad_()
    assert x.requires_grad and x.is_leaf and x.grad is None and x.grad_fn is None
    y = x * x
    assert not y.is_leaf and y.grad_fn == "multiply"
    y.backward(tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 43.0]
    x.grad = None
    assert x.grad is None
    x.grad = tensor([1.0, 1.0])
    assert x.grad.tolist() == [1.0, 1.0]
    for wrong in (tensor([1.0]), 3.0, "a"):
        with pytest.raises((ValueError, TypeError)):
            x.grad = wrong


def test_second_derivative_and_freed_graph():
    x = tensor(3.0).requires_grad_()
    y = x * x * x
    y.backward(create_graph=True)
    gradient = x.grad
    x.grad = None
    gradient.backward()
    assert x.grad.item() == 18.0
    z = (x * x).sum()
    z.backward()
    with pytest.raises(RuntimeError):
        z.backward()
    with pytest.raises((RuntimeError, ValueError)):
        (x * tensor([1.0, 2.0])).backward()
    with pytest.raises(RuntimeError):
        tensor([1.0]).backward()


def test_requires_grad_is_settable_on_leaves():
    x = tensor([1.0])
    x.requires_grad = True
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(TypeError):
        tensor([1], "int64").requires_grad_()
    y = tensor([1.0]).requires_grad_() * 2
    with pytest.raises(RuntimeError):
        y.requires_grad = False
    assert not y.detach().requires_grad and y.detach().data_ptr() == y.data_ptr()


def test_hooks():
    x = tensor([1.0, 2.0]).requires_grad_()
    seen = []
    watcher = x.register_hook(lambda g: seen.append(g.tolist()))
    doubler = x.register_hook(lambda g: g * 2)
    x.sum().backward()
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [2.0, 2.0]
    doubler.remove()
    watcher.remove()
    watcher.remove()
    x.grad = None
    x.sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError):
        x.register_hook("not callable")


def test_hooks_that_fail():
    class Broken(Exception):
        pass

    def fail(gradient):
        raise Broken("from the hook")

    x = tensor([1.0]).requires_grad_()
    handle = x.register_hook(fail)
    with pytest.raises(Broken, match="from the hook"):
        (x * 2).sum().backward()
    handle.remove()
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="register_hook"):
        (x * 2).sum().backward()


def test_hooks_are_freed_with_their_tensor():
    class Marker:
        def __call__(self, gradient):
            return None

    marker = Marker()
    gone = weakref.ref(marker)
    x = tensor([1.0]).requires_grad_()
    x.register_hook(marker)
    del marker
    assert gone() is not None
    del x
    gc.collect()
    assert gone() is None


def test_retain_grad():
    x = tensor([1.0, 2.0]).requires_grad_()
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0, 8.0]


def test_backward_from_threads():
    x = tensor(np.ones(1000)).requires_grad_()
    errors = []

    def work():
        try:
            for _ in range(20):
                y = tensor(np.ones(1000)).requires_grad_()
                y.register_hook(lambda g: g * 2)
                (y * x.detach()).sum().backward()
                assert y.grad[0].item() == 2.0
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


# ---- Copies, pickles, subclasses ----------------------------------------------------------------


class Named(bg.Tensor):
    def __init__(self, data, name="none"):
        super().__init__(data)
        self.name = name


class Slotted(bg.Tensor):
    __slots__ = ()


def test_subclasses():
    x = Named(tensor([1.0, 2.0]), "w")
    assert isinstance(x, bg.Tensor) and x.name == "w" and x.shape == (2,)
    assert type(x + 1) is bg.Tensor and (x + 1).tolist() == [2.0, 3.0]
    before = x
    x += 1
    assert x is before and type(x) is Named
    assert x.mul_(2) is x
    assert Slotted([1, 2]).tolist() == [1, 2]
    assert bg.Tensor(x).tolist() == x.tolist()

    class Forgets(bg.Tensor):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match="never initialised"):
        repr(Forgets())


def test_copy_shares_and_deepcopy_does_not():
    x = tensor([1.0, 2.0]).requires_grad_()
    shallow = copy.copy(x)
    assert hash(shallow) == hash(x) and shallow is not x
    x.sum().backward()
    deep = copy.deepcopy(x)
    assert deep.requires_grad and deep.is_leaf and deep.dtype is x.dtype
    assert deep.tolist() == [1.0, 2.0] and deep.grad.tolist() == [1.0, 1.0]
    assert deep.data_ptr() != x.data_ptr() and deep.grad.data_ptr() != x.grad.data_ptr()
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1]
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(x * 2)
    view = copy.deepcopy(tensor(np.zeros((4, 4)))[:, 1:3].mT)
    assert view.shape == (2, 4) and view.is_contiguous()


def test_copies_of_subclasses_keep_their_attributes():
    x = Named(tensor([1.0]), ["list"])
    x.me = x
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert type(shallow) is Named and shallow.name is x.name
    assert type(deep) is Named and deep.name == ["list"] and deep.name is not x.name
    assert deep.me is deep
    back = pickle.loads(pickle.dumps(Named(tensor([1.0]), "w")))
    assert type(back) is Named and back.name == "w" and back.tolist() == [1.0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_pickle(protocol, dtype):
    x = tensor([[0, 1, 2], [3, 4, 5]]).astype(dtype).mT
    back = pickle.loads(pickle.dumps(x, protocol))
    assert back.dtype is dtype and back.shape == (3, 2) and back.tolist() == x.tolist()
    assert not back.requires_grad


def test_pickle_keeps_requires_grad_and_odd_shapes():
    x = tensor([1.0]).requires_grad_()
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert pickle.loads(pickle.dumps(x * 2)).is_leaf
    for shape in ((), (0,), (2, 0, 3)):
        assert pickle.loads(pickle.dumps(tensor(np.zeros(shape)))).shape == shape
    nan = tensor([float("nan"), -0.0])
    assert str(pickle.loads(pickle.dumps(nan))) == str(nan)


def test_rebuild_believes_nothing():
    rebuild = bg._core._rebuild_tensor
    for wrong in (
        (bg.Tensor, b"1234", bg.float32, (2,), False),
        (bg.Tensor, b"1234", bg.float32, (-1,), False),
        (bg.Tensor, b"", bg.float32, (2**62, 2**62), False),
        (bg.Tensor, b"", bg.float64, (2**61, 8), False),
        (bg.Tensor, b"\x02", bg.bool, (1,), False),
        (bg.Tensor, b"1234", bg.float32, (1,) * 17, False),
        (int, b"1234", bg.float32, (1,), False),
        ("Tensor", b"1234", bg.float32, (1,), False),
        (bg.Tensor, b"12345678", bg.int64, (1,), True),
        (bg.Tensor, "1234", bg.float32, (1,), False),
    ):
        with pytest.raises((ValueError, TypeError)):
            rebuild(*wrong)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=64), st.sampled_from(DTYPES), st.lists(st.integers(-2, 5), max_size=4))
def test_rebuild_takes_exactly_what_fits(data, dtype, shape):
    fits = all(n >= 0 for n in shape) and int(np.prod(shape)) * dtype.itemsize == len(data)
    if dtype is bg.bool and any(byte > 1 for byte in data):
        fits = False
    try:
        made = bg._core._rebuild_tensor(bg.Tensor, data, dtype, tuple(shape), False)
    except ValueError:
        assert not fits
    else:
        assert fits and made.shape == tuple(shape)
