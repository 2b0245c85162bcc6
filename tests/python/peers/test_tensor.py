"""Methods with PyTorch's names behave like PyTorch's: the same expression on both."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import baregrad as bg  # noqa: E402

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(3, 4, 5))
OPERANDS = {
    "x": A,
    "m": RANDOM.normal(size=(3, 4)),
    "n": RANDOM.normal(size=(4, 2)),
    "v": RANDOM.normal(size=4),
    "one": RANDOM.normal(size=(1, 3, 1)),
    "i": np.array([[0, 2], [1, 0], [2, 1]]),
    "k": np.arange(12).reshape(3, 4) % 5,
    "b": A[:, :, 0] > 0,
    "s": np.array(2.5),
}

EXPRESSIONS = """
x.sum() | x.sum(1) | x.sum((0, 2)) | x.sum(dim=-1, keepdim=True) | k.sum() | b.sum() | k.sum(dtype=LIB.float64)
x.prod(1) | x.mean() | x.mean((0, 1), keepdim=True) | x.amax(1) | x.amin((0, 2)) | b.any() | b.all(1)
x.max() | x.max(1) | x.max(dim=2, keepdim=True) | x.min(0) | x.min(-1).indices | k.max(1).values
x.argmax() | x.argmax(1) | x.argmin(dim=2, keepdim=True) | x.logsumexp(1) | x.logsumexp((0, 1))
x.std() | x.var() | x.std(1) | x.var(dim=(0, 2)) | x.std(1, correction=0) | x.var(1, keepdim=True)
x.norm() | x.norm(1) | x.norm(3, dim=1) | x.norm(p=2, dim=(0, 1), keepdim=True) | x.norm(float("inf"))
x.cumsum(1) | k.cumsum(0) | x.cumprod(-1) | x.softmax(1) | x.log_softmax(dim=-1)
x.sort() | x.sort(1, descending=True) | x.argsort(1) | x.topk(2) | x.topk(2, dim=1, largest=False)
m.matmul(n) | m.mm(n) | m @ v | m.mv(v) | v.dot(v) | v.outer(v) | x.bmm(x.transpose(1, 2)) | x.matmul(x.mT)
x.view(12, 5) | x.view(-1) | x.view((3, 20)) | x.reshape(5, -1) | x.mT.reshape(-1) | x.permute(2, 0, 1) | x.transpose(0, -1)
m.t() | v.t() | m.T | x.mT | x.flatten() | x.flatten(1) | x.flatten(0, 1) | x.ravel() | x.unsqueeze(0) | x.unsqueeze(-1)
one.squeeze() | one.squeeze(0) | one.squeeze(1) | one.squeeze(-1) | one.squeeze((0, 2)) | s.squeeze(0)
one.expand(4, -1, 5) | v.expand(3, 4) | v.expand(2, 3, 4) | one.expand_as(x[:, :3]) | x.broadcast_to((2, 3, 4, 5))
x.narrow(1, 1, 2) | x.select(1, -1) | x.movedim(0, 2) | x.movedim((0, 1), (2, 0)) | x.diagonal(0, 1, 2) | x.unfold(2, 3, 2)
x.flip(0) | x.flip((0, 2)) | x.roll(1, 0) | x.roll(2) | x.roll((1, 2), (0, 1)) | v.repeat(2, 3) | v.tile(2, 2)
m.repeat_interleave(2) | m.repeat_interleave(2, 1) | m.tril() | m.triu(1) | x.split(2, 1) | x.split([1, 3], dim=1) | x.chunk(2, 1)
x.chunk(3, 2) | x.unbind() | x.unbind(-1) | m.gather(1, i) | m.index_select(1, i[0]) | m.take(i) | m.masked_select(b)
m.scatter(1, i, 0.5) | m.scatter(1, i, m) | m.scatter_add(1, i, m) | k.nonzero() | b.nonzero() | m.masked_fill(b, 0)
m.where(b, 0.5) | m.clamp(0) | m.clamp(-0.5, 0.5) | m.clamp(max=0.1) | m.clip(min=0) | m.lerp(m + 1, 0.25) | m.addcmul(m, m, value=2)
m.add(v, alpha=3) | m.sub(v, alpha=2) | m.mul(2) | m.div(v) | m.neg() | m.abs() | m.sign() | m.square() | m.exp() | m.sigmoid()
m.relu() | m.tanh() | m.erf() | m.rsqrt() | m.floor() | m.round() | m.trunc() | m.eq(m) | m.ne(0) | m.lt(v) | m.ge(0) | m.pow(2)
m.maximum(v) | m.atan2(v) | m.isnan() | m.logical_not() | k.remainder(3) | k.floor_divide(2) | k.bitwise_and(1) | k.bitwise_not()
m.float() | m.half() | m.int() | m.long() | m.bool() | m.to(LIB.float32) | k.to(m) | m.double().is_floating_point()
m.clone().add_(1) | m.clone().mul_(v) | m.clone().clamp_(0, 1) | m.clone().zero_() | m.clone().fill_(3) | m.clone().masked_fill_(b, 9)
m.clone().copy_(v) | m.clone().sub_(1, alpha=0.5) | m.clone().exp_() | m.clone().neg_() | m.clone().lerp_(m * 2, 0.5)
m.numel() | m.dim() | m.stride() | m.stride(0) | m.mT.stride() | m.mT.is_contiguous() | m.element_size() | m.nbytes | x[1].storage_offset()
m.tolist() | k.tolist() | b.tolist() | s.item() | bool(s) | int(s) | float(s) | len(m) | [row.tolist() for row in m] | f"{s:.1f}"
m[0] | m[-1, 1:] | m[..., None].shape | x[:, [0, 2]] | x[b] | x[i, 0].shape | x[:, None, 1].shape | m[b] | m[None, 0].shape | k[1][k[0] > 1]
""".replace("\n", "|").split("|")


def outcome(library, values, expression):
    names = {name: library.from_numpy(value.copy()) for name, value in values.items()}
    return eval(expression, {"LIB": library}, names)  # noqa: S307


def same(mine, theirs):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(mine, bg.Tensor)
        assert mine.shape == tuple(theirs.shape)
        assert mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(np.array(mine.tolist()), np.array(theirs.tolist()), rtol=1e-12, atol=1e-14)
    elif isinstance(theirs, (tuple, list)) and theirs and isinstance(theirs[0], torch.Tensor):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            same(a, b)
    else:
        assert mine == theirs


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS if e.strip()])
def test_the_same_expression(expression):
    same(outcome(bg, OPERANDS, expression), outcome(torch, OPERANDS, expression))


@pytest.mark.parametrize(
    "expression",
    ["m.view(5)", "m.mT.view(-1)", "m.mm(v)", "v.dot(m)", "m.expand(2, 2, 3)", "m.permute(0)", "m.unsqueeze(5)", "x.t()",
     "m[7]", "m[0, 0, 0]", "m.gather(5, i)", "m.split([1, 1], 1)", "v.repeat()", "len(s)", "iter(s)", "m.backward()",
     "m.item()", "bool(m)", "float(m)", "m.topk(9)", "k.requires_grad_()"],
)
def test_the_same_expressions_fail(expression):
    for library in (bg, torch):
        with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)):
            outcome(library, OPERANDS, expression)


def test_gradients_of_a_small_program():
    def program(library):
        x = library.from_numpy(A.copy()).requires_grad_()
        y = (x[:, 1:, ::2].exp() * x[:, :3, :3].sigmoid()).softmax(-1)
        z = y.max(2).values.std() + y[y > 0.3].log().sum() + x.mT.reshape(-1)[5:17].norm()
        z.backward()
        return z.item(), np.array(x.grad.tolist())

    (mine, my_gradient), (theirs, their_gradient) = program(bg), program(torch)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    np.testing.assert_allclose(my_gradient, their_gradient, rtol=1e-9, atol=1e-12)
