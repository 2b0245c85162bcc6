"""Results at the limits of a dtype's range, gradients at corners, and arguments at the limits of
integers."""

import math

import numpy as np
import pytest

import baregrad as bg

F = bg.nn.functional


def numbers(t):
    return np.array(t.tolist(), dtype=np.float64)


# ---- Half precision: several steps, one rounding -------------------------------------------------


@pytest.mark.parametrize("dtype", [bg.float16, bg.bfloat16])
def test_norms_of_half_precision_do_not_overflow(dtype):
    x = bg.full((2, 2), 300, dtype=dtype)
    for norm in [x.norm(), bg.linalg.vector_norm(x), bg.linalg.matrix_norm(x), bg.norm(x)]:
        assert norm.dtype == dtype and norm.item() == 600
    assert numbers(F.normalize(x)).tolist() == numbers(bg.full((2, 2), 0.5**0.5, dtype=dtype)).tolist()
    assert x.norm(3).item() == pytest.approx(300 * 4 ** (1 / 3), rel=2**-8)
    assert x.norm(-2).item() == 150
    assert numbers(F.normalize(bg.zeros((1, 2), dtype=dtype))).tolist() == [[0, 0]]


def test_norms_of_float32_do_not_overflow():
    x = bg.asarray([3e30, 4e30])
    assert x.norm().item() == pytest.approx(5e30, rel=1e-7)
    assert x.norm(3).item() == pytest.approx(91 ** (1 / 3) * 1e30, rel=1e-7)
    assert (x * 1e-38).norm(3).item() == pytest.approx(91 ** (1 / 3) * 1e-8, rel=1e-6)


def test_losses_of_half_precision_do_not_overflow():
    x, zero = bg.asarray([300.0, 0, 0, 0], dtype=bg.float16), bg.zeros(4, dtype=bg.float16)
    assert F.mse_loss(x, zero).item() == 22496  # 22500, rounded to float16
    assert F.mse_loss(x, zero, reduction="none").dtype == bg.float16
    assert F.huber_loss(x, zero, delta=400.0).item() == 11248
    one = bg.ones(2, dtype=bg.float16)
    a = bg.full((2, 3), 300, dtype=bg.float16)
    assert F.cosine_embedding_loss(a, a, one).item() == pytest.approx(0, abs=1e-3)
    # Other dtypes combined with half precision promote as usual.
    assert F.mse_loss(x, zero.astype(bg.float64)).dtype == bg.float64
    assert F.mse_loss(x, zero.astype(bg.bfloat16)).dtype == bg.float32


@pytest.mark.parametrize("dtype", [bg.float16, bg.bfloat16])
def test_gradients_of_half_precision_are_rounded_once(dtype):
    """x^2 in the slope of asinh leaves the range of float16 at 256; 1 / n of a mean may not be
    representable."""
    wide = np.concatenate([np.linspace(-8, 8, 33), [300.0, -2000.0, 30000.0]])
    x = bg.asarray(wide, dtype=bg.float64).astype(dtype)
    ulp = 2.0 ** (-10 if dtype == bg.float16 else -7)
    calls = [
        bg.asinh, bg.atan, bg.sinh, bg.erf, bg.log1p, F.silu, F.mish, F.gelu, lambda t: F.gelu(t, approximate="tanh"),
        lambda t: bg.hypot(t, t + 1), lambda t: bg.atan2(t, t + 9), lambda t: t.softmax(0), lambda t: t.logsumexp(0),
        lambda t: t.var(), lambda t: t.norm(), lambda t: t.norm(3), lambda t: t.norm(1.5), lambda t: t.mean(),
        lambda t: bg.logaddexp(t, -t), lambda t: t.pow(2.5), lambda t: F.layer_norm(t, t.shape), lambda t: t / (t + 9.5),
    ]  # fmt: skip
    for k, call in enumerate(calls):
        narrow, exact = x.detach().requires_grad_(), x.astype(bg.float64).requires_grad_()
        y, z = call(narrow), call(exact)
        seed = bg.full(y.shape, 0.75, dtype=bg.float64)
        bg.autograd.backward([y], [seed.astype(dtype)])
        bg.autograd.backward([z], [seed])
        mine, want = numbers(narrow.grad), numbers(exact.grad.astype(dtype))
        same_nan = np.isnan(mine) == np.isnan(numbers(exact.grad))
        assert same_nan.all(), k
        fine = np.isfinite(mine)
        # Rules that use the saved result start from a rounded value.
        np.testing.assert_allclose(mine[fine], want[fine], rtol=12 * ulp, atol=12 * ulp, err_msg=str(k))


def test_sums_of_products_in_half_precision_are_rounded_once():
    x, y = bg.asarray([1.0, -60000.0], dtype=bg.float16), bg.asarray([2.0, 30000.0], dtype=bg.float16)
    assert numbers(x.add(y, alpha=3)).tolist() == [7, 30000]  # 90000 is not a float16
    assert numbers(bg.subtract(x, y, alpha=-3)).tolist() == [7, 30000]
    assert numbers(x.clone().add_(y, alpha=3)).tolist() == [7, 30000]
    assert x.add(2.0, alpha=3).dtype == bg.float16
    big = bg.full((2, 2), 200, dtype=bg.float16)
    third = bg.full((2, 2), 2**-5, dtype=bg.float16)
    assert bg.einsum("ij,jk,kl->il", big, big, third)[0, 0].item() == 80000 * 2**-4
    assert bg.addmm(big, big, big, beta=1, alpha=2**-3)[0, 0].item() == 10200
    assert bg.diff(bg.asarray([60000.0, -60000.0, 0.0], dtype=bg.float16), n=2).tolist() == [math.inf]
    assert bg.diff(bg.asarray([0.0, 60000, -5000, -60000, 0], dtype=bg.float16), n=4).dtype == bg.float16


def test_numbers_are_scaled_as_numbers():
    x = bg.asarray([1.0], dtype=bg.float64)
    assert x.add(0.1, alpha=3).item() == 1 + 0.1 * 3
    assert bg.subtract(x, 0.1, alpha=3).item() == 1 - 0.1 * 3
    assert x.clone().add_(0.1, alpha=3).item() == 1 + 0.1 * 3
    assert bg.asarray([5]).add(2, alpha=3).tolist() == [11]
    with pytest.raises(ValueError, match="^add: "):
        bg.asarray([5], dtype=bg.uint8).add(-2, alpha=3)


# ---- Variances of float64 ------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1e30, -0.1, 3e-300, 1e150])
@pytest.mark.parametrize("shape", [(100,), (77, 130), (300_000,), (3, 50_000), (50_000, 3)])
def test_the_variance_of_a_constant_is_zero(level, shape):
    x = bg.full(shape, level, dtype=bg.float64)
    for axis in [None, 0, -1]:
        assert not bg.any(bg.var(x, axis=axis)).item()
        assert not bg.any(bg.std(x, axis=axis)).item()
    # Strided, and with the lanes in reverse order.
    assert not bg.any(bg.var(x[::2], axis=0)).item()
    assert not bg.any(bg.var(x.T if x.ndim == 2 else x, axis=0)).item()


def test_normalised_constants_of_float64_are_zero():
    x = bg.full((6, 4, 5), 1e30, dtype=bg.float64)
    assert not bg.any(F.layer_norm(x, (5,))).item()
    assert not bg.any(F.group_norm(x, 2)).item()
    assert not bg.any(F.batch_norm(x, None, None, training=True)).item()
    assert not bg.any(F.batch_norm(x[:, :, 0].clone(), None, None, training=True)).item()
    # Their mean is one of the elements.
    mean, var = bg.zeros(4, dtype=bg.float64), bg.zeros(4, dtype=bg.float64)
    F.batch_norm(x, mean, var, training=True, momentum=1.0)
    assert numbers(mean).tolist() == [1e30] * 4 and numbers(var).tolist() == [0] * 4


def test_variances_of_infinities_are_nan():
    x = bg.asarray([math.inf, 1.0], dtype=bg.float64)
    assert math.isnan(bg.var(x).item()) and math.isnan(bg.var(bg.flip(x)).item())
    assert bg.var(bg.asarray([1e308, -1.7e308], dtype=bg.float64)).item() == math.inf


# ---- Zero gradients, checks of gradients ---------------------------------------------------------


def test_the_sign_of_slogdet_of_a_singular_matrix_has_a_zero_gradient():
    x = bg.zeros((2, 2), dtype=bg.float64, requires_grad=True)
    bg.linalg.slogdet(x)[0].backward()
    assert not bg.any(x.grad).item()
    with pytest.raises(ValueError, match="^slogdet: .* is singular"):
        bg.linalg.slogdet(x)[1].backward()
    mixed = bg.asarray([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 3.0]]], dtype=bg.float64).requires_grad_()
    sign, log = bg.linalg.slogdet(mixed)
    (sign[0] + log[1]).backward()
    np.testing.assert_allclose(numbers(mixed.grad), [[[0, 0], [0, 0]], [[0.5, 0], [0, 1 / 3]]])


def test_floor_divide_has_a_zero_gradient():
    x = bg.asarray([5.5, -2.5], dtype=bg.float64).requires_grad_()
    y = bg.asarray([2.0, 0.7], dtype=bg.float64).requires_grad_()
    quotient = x // y
    assert quotient.requires_grad
    (quotient * x).sum().backward()
    assert numbers(x.grad).tolist() == numbers(quotient).tolist() and not numbers(y.grad).any()


def test_gradcheck_of_nothing_is_an_error():
    x = bg.ones(2, dtype=bg.float64, requires_grad=True)
    for check in [bg.autograd.gradcheck, bg.autograd.gradgradcheck]:
        for fn in [lambda x: None, lambda x: (), lambda x: bg.argmax(x), lambda x: x > 0]:
            with pytest.raises(ValueError, match=f"^{check.__name__}: the function gave"):
                check(fn, x)
        with pytest.raises(TypeError):
            check(lambda x: 1.0, x)
        with pytest.raises(RuntimeError, match="no input requires a gradient"):
            check(bg.sin, x.detach())
    # A result without a history is compared with its differences.
    assert bg.autograd.gradcheck(lambda x: bg.ones(3, dtype=bg.float64), x)
    with pytest.raises(RuntimeError):
        bg.autograd.gradcheck(lambda x: x.detach() * 2, x)


def test_an_embedding_refuses_a_padding_index_out_of_range():
    weight = bg.ones((5, 3))
    for padding in [5, -6]:
        with pytest.raises(IndexError, match="^embedding: padding_idx"):
            F.embedding(bg.asarray([0]), weight, padding_idx=padding)
    with pytest.raises(IndexError, match="^embedding: index 7"):
        F.embedding(bg.asarray([7]), weight)


# ---- Integers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [2**62, 2**63 - 1, 2**63, 2**64, 2**100])
def test_offsets_beyond_64_bits(far):
    x = bg.arange(6).reshape(2, 3)
    assert not bg.any(bg.eye(3, k=far)).item() and not bg.any(bg.eye(3, k=-far)).item()
    for over, under in [(bg.tril, bg.triu), (bg.Tensor.tril, bg.Tensor.triu)]:
        keywords = {"k": far} if over is bg.tril else {"diagonal": far}
        less = {key: -value for key, value in keywords.items()}
        assert over(x, **keywords).tolist() == x.tolist() and not bg.any(over(x, **less)).item()
        assert under(x, **less).tolist() == x.tolist() and not bg.any(under(x, **keywords)).item()
    for sign in [1, -1]:
        assert bg.linalg.diagonal(x, offset=sign * far).shape == (0,)
        assert bg.diagonal(x, sign * far).shape == (0,) and x.diagonal(sign * far).shape == (0,)
        assert bg.linalg.trace(x, offset=sign * far).item() == 0


@pytest.mark.parametrize("shift", [2**70 + 1, -(2**70), 10**30, 2**63, -(2**63) - 1, 7, -1])
def test_shifts_of_any_size(shift):
    x = np.arange(12).reshape(3, 4)
    y = bg.asarray(x)
    assert bg.roll(y, shift).tolist() == np.roll(x, shift % 12).tolist()
    assert y.roll(shift).tolist() == np.roll(x, shift % 12).tolist()
    assert bg.roll(y, shift, axis=1).tolist() == np.roll(x, shift % 4, axis=1).tolist()
    assert bg.roll(y, (shift, 1), axis=(0, 1)).tolist() == np.roll(x, (shift % 3, 1), axis=(0, 1)).tolist()
    assert bg.roll(y, shift, axis=(0, 1)).tolist() == np.roll(x, (shift % 3, shift % 4), axis=(0, 1)).tolist()
    assert bg.roll(bg.zeros((0, 2)), shift).shape == (0, 2)
    with pytest.raises(TypeError):
        bg.roll(y, 1.5)
    with pytest.raises(IndexError, match="^roll: "):
        bg.roll(y, shift, axis=5)


@pytest.mark.parametrize(
    "expression",
    ["bg.sum(x, axis=True)", "bg.zeros(True)", "bg.reshape(x, (True, 4))", "bg.eye(True)", "bg.roll(x, True)",
     "bg.tril(x, k=True)", "bg.expand_dims(x, axis=False)", "bg.concat([x], axis=False)", "bg.argsort(x, axis=True)",
     "bg.nn.functional.softmax(x, True)", "bg.linalg.matrix_power(x, True)", "bg.arange(4).chunk(True)"],
)  # fmt: skip
def test_a_bool_is_no_integer(expression):
    with pytest.raises(TypeError):
        eval(expression, {"bg": bg, "x": bg.ones((2, 2))})  # noqa: S307


# ---- The array API -------------------------------------------------------------------------------


def test_masks_with_an_axis_of_size_zero():
    x = bg.arange(24).reshape(2, 3, 4)
    for shape, result in [((0,), (0, 3, 4)), ((0, 3), (0, 4)), ((2, 0), (0, 4)), ((0, 3, 4), (0,)), ((2, 3, 0), (0,))]:
        mask = bg.zeros(shape, dtype=bg.bool)
        assert x[mask].shape == result
        y = bg.asarray(x, copy=True)
        y[mask] = 7
        assert y.tolist() == x.tolist()
    with pytest.raises(IndexError):
        x[bg.zeros((1, 3), dtype=bg.bool)]
    with pytest.raises(IndexError):
        x[bg.zeros((0, 2), dtype=bg.bool)]


def test_what_the_standard_returns():
    arrays = bg.broadcast_arrays(bg.ones((3, 1)), bg.ones(4))
    assert isinstance(arrays, list) and [a.shape for a in arrays] == [(3, 4)] * 2
    assert isinstance(bg.broadcast_tensors(bg.ones(2)), tuple)  # PyTorch's
    defaults = bg.__array_namespace_info__().default_dtypes()
    assert set(defaults) == {"real floating", "complex floating", "integral", "indexing"}
    assert defaults["complex floating"] is None
