"""Products over matrices and linalg, against NumPy: integers exactly, floats within errors."""

import math

import numpy as np
import pytest
from functions_support import (
    INTEGERS,
    check_close,
    check_near,
    check_same,
    given,
    shapes,
    tensors,
)
from hypothesis import strategies as st

import baregrad as bg

# ---- Products ------------------------------------------------------------------------------------


@st.composite
def factors(draw, dtypes=(*INTEGERS, "float32", "float64")):
    name = draw(st.sampled_from(dtypes))
    batch = draw(shapes(0, 2))
    n, k, m = (draw(st.integers(0, 4)) for _ in range(3))
    a, x = draw(tensors((name,), shape=(*batch, n, k)))
    b, y = draw(tensors((name,), shape=(k, m)))
    return a, x, b, y


def check_product(found, truth, *arrays):
    if arrays[0].dtype.kind in "iu":
        check_same(found, np.asarray(truth(*arrays)))
    else:
        wanted = np.asarray(truth(*(a.astype(np.longdouble) for a in arrays)))
        error = 400 * bg.finfo(found.dtype).eps
        check_close(found, wanted, arrays[0].dtype.name, 8, absolute=error)


@given(factors())
def test_products(case):
    a, x, b, y = case
    check_product(bg.matmul(x, y), np.matmul, a, b)
    check_product(bg.tensordot(x, y, axes=1), lambda p, q: np.tensordot(p, q, 1), a, b)
    check_product(bg.einsum("...ij,jk->...ik", x, y), np.matmul, a, b)
    flat_a, flat_x = a.reshape(-1), bg.flatten(x)
    check_product(bg.outer(flat_x, bg.flatten(y)), np.outer, flat_a, b.reshape(-1))
    check_product(bg.dot(flat_x, flat_x), np.dot, flat_a, flat_a)
    check_product(bg.vecdot(x, x), lambda p: (p * p).sum(-1, dtype=p.dtype), a)
    pairs = ((a.ndim - 1,), (0,))
    check_product(bg.tensordot(x, y, axes=pairs), lambda p, q: np.tensordot(p, q, pairs), a, b)
    check_product(bg.tensordot(x, y, dims=0), lambda p, q: np.tensordot(p, q, 0), a, b)
    if a.ndim == 2:
        check_product(bg.mm(x, y), np.matmul, a, b)
        found = bg.addmm(bg.matmul(x, y), x, y, beta=2, alpha=3)
        check_product(found, lambda p, q: 5 * (p @ q), a, b)
    if b.shape[1]:
        column = y[:, 0]
        check_product(bg.mv(bg.matrix_transpose(y), column), lambda q: q.T @ q[:, 0], b)
    if a.ndim == 3:
        stacked = bg.broadcast_to(y, (a.shape[0], *b.shape))
        check_product(bg.bmm(x, stacked), np.matmul, a, b)


def test_matrix_shapes_are_checked():
    with pytest.raises(ValueError, match="mm"):
        bg.mm(bg.ones(2), bg.ones((2, 2)))
    with pytest.raises(TypeError, match="einsum"):
        bg.einsum("i,i", bg.ones(2), [1.0, 2.0])


# ---- linalg --------------------------------------------------------------------------------------


@st.composite
def matrices(draw, square=True):
    """Stacks of well-conditioned matrices."""
    name = draw(st.sampled_from(("float32", "float64")))
    batch = draw(shapes(0, 2))
    n = draw(st.integers(0, 4))
    m = n if square else draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = rng.uniform(-1, 1, (*batch, n, m)) + 4 * np.eye(n, m)
    array = array.astype(name)
    return array, bg.asarray(array), 200 * bg.finfo(getattr(bg, name)).eps


@given(matrices())
def test_square_matrices(case):
    array, x, tolerance = case
    high = array.astype(np.float64)
    check_near(bg.linalg.det(x), np.linalg.det(high), tolerance)
    sign, logabsdet = bg.linalg.slogdet(x)
    check_near(sign, np.linalg.slogdet(high)[0], 0)
    check_near(logabsdet, np.linalg.slogdet(high)[1], tolerance)
    check_near(bg.linalg.inv(x), np.linalg.inv(high), tolerance)
    identity = np.broadcast_to(np.eye(array.shape[-1]), array.shape)
    check_near(bg.linalg.solve(x, x), identity, tolerance)
    check_near(bg.linalg.matrix_power(x, 3), np.linalg.matrix_power(high, 3), 100 * tolerance)
    check_near(bg.linalg.trace(x), np.trace(high, axis1=-2, axis2=-1), tolerance)
    if array.shape[-1]:
        check_same(bg.linalg.diagonal(x, offset=1), np.diagonal(array, 1, -2, -1))
    symmetric = high + np.swapaxes(high, -1, -2)
    s = bg.asarray(symmetric)
    lower = np.linalg.cholesky(symmetric)
    check_near(bg.linalg.cholesky(s), lower, tolerance)
    check_near(bg.linalg.cholesky(s, upper=True), np.swapaxes(lower, -1, -2), tolerance)
    w, v = bg.linalg.eigh(s)
    check_near(w, np.linalg.eigvalsh(symmetric), tolerance)
    check_near(bg.linalg.eigvalsh(s), np.linalg.eigvalsh(symmetric), tolerance)
    check_near(bg.matmul(s, v), (v * bg.expand_dims(w, axis=-2)).numpy(), tolerance)


@given(matrices(square=False), st.booleans())
def test_any_matrices(case, full):
    array, x, tolerance = case
    high = array.astype(np.float64)
    q, r = bg.linalg.qr(x, mode="complete" if full else "reduced")
    check_near(bg.matmul(q, r), high, tolerance)
    u, s, vh = bg.linalg.svd(x, full_matrices=full)
    for ours, theirs in zip((u, s, vh), np.linalg.svd(high, full_matrices=full), strict=True):
        assert ours.shape == theirs.shape
    k = s.shape[-1]
    check_near(bg.matmul(u[..., :k] * bg.expand_dims(s, axis=-2), vh[..., :k, :]), high, tolerance)
    check_near(bg.linalg.svdvals(x), s.numpy(), tolerance)
    if array.size:
        check_near(bg.linalg.pinv(x), np.linalg.pinv(high), tolerance)
        check_near(bg.linalg.matrix_rank(x), np.linalg.matrix_rank(high), 0)
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
            wanted = np.linalg.norm(high, order, axis=(-2, -1))
            check_near(bg.linalg.matrix_norm(x, ord=order), wanted, tolerance)


@given(tensors(INTEGERS, shape=(2, 3)), st.data())
def test_cross(pair, data):
    array, x = pair
    other, y = data.draw(tensors((array.dtype.name,), shape=(2, 3)))
    check_same(bg.linalg.cross(x, y), np.cross(array, other))


def test_unknown_mode_of_qr():
    with pytest.raises(ValueError, match="reduced"):
        bg.linalg.qr(bg.eye(2), mode="full")
