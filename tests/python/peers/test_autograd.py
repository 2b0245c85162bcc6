"""The same programs in baregrad and in PyTorch: values and gradients."""

import numpy as np
import pytest
import torch

import baregrad as bg

PROGRAMS = {
    "products": lambda m, x, w, b: m.tanh(x @ w + b),
    "broadcast": lambda m, x, w, b: (x[:, :1] * b + x[:, 1:2]) / (1 + m.exp(-b * b)),
    "reuse": lambda m, x, w, b: x @ w * m.sin(x @ w) + (x @ w) ** 2,
    "reduce": lambda m, x, w, b: m.exp(x - x.max()) / m.sum(m.exp(x - x.max())) @ w,
    "views": lambda m, x, w, b: x.T[1:3, ::2] * w.T[1:3, :2] + b[1:3].reshape(2, 1),
    "where": lambda m, x, w, b: m.where(x > 0, x * x, m.exp(x)) @ w,
    "chain": lambda m, x, w, b: _chain(m, x @ w),
}


def _chain(m, y):
    for _ in range(20):
        y = m.sin(y) + m.sqrt(y * y + 1)
    return y


def inputs():
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape) for shape in ((4, 5), (5, 6), (6,))]


def run(module, leaves, program):
    """Value, first and second order gradients of a program."""
    result = program(module, *leaves)
    seed = module.sum(module.cos(result))
    first = module.autograd.grad(seed, leaves, create_graph=True, allow_unused=True)
    again = sum(module.sum(g * g) for g in first if g is not None)
    second = module.autograd.grad(again, leaves, allow_unused=True)
    return [None if t is None else t.detach().numpy() for t in (result, *first, *second)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_gradients(name):
    ours = run(bg, [bg.tensor(a, requires_grad=True) for a in inputs()], PROGRAMS[name])
    theirs = run(torch, [torch.tensor(a, requires_grad=True) for a in inputs()], PROGRAMS[name])
    for got, wanted in zip(ours, theirs):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def cubes(module):
    class Cube(module.autograd.Function):
        @staticmethod
        def forward(ctx, x, n, y):
            ctx.n = n
            ctx.save_for_backward(x, y)
            positive = x > 0
            ctx.mark_non_differentiable(positive)
            return x**n * y, positive

        @staticmethod
        def backward(ctx, gradient, _):
            x, y = ctx.saved_tensors
            return gradient * ctx.n * x ** (ctx.n - 1) * y, None, gradient * x**ctx.n

    return Cube


def test_same_custom_functions():
    found = []
    for module in (bg, torch):
        values = inputs()[2]
        x, y = (module.tensor(a, requires_grad=True) for a in (values, values[::-1].copy()))
        value, positive = cubes(module).apply(x, 3, y)
        assert not positive.requires_grad
        (g,) = module.autograd.grad(module.sum(value), x, create_graph=True)
        module.sum(g * value).backward()
        found.append([t.detach().numpy() for t in (value, positive, g, x.grad, y.grad)])
    for got, wanted in zip(*found):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_same_hooks_and_accumulation():
    found = []
    for module in (bg, torch):
        x = module.tensor(inputs()[0], requires_grad=True)
        for k in range(3):
            y = x * (k + 1)
            y.register_hook(lambda g: g * 10)
            module.sum(y * y).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-14)


def test_same_modes():
    for module in (bg, torch):
        x = module.tensor([1.0], requires_grad=True)
        with module.no_grad():
            assert not (x * 2).requires_grad
            with module.enable_grad():
                assert (x * 2).requires_grad
        with module.set_grad_enabled(False):
            assert not module.is_grad_enabled()
        assert module.is_grad_enabled()
        assert module.no_grad()(lambda: module.is_grad_enabled())() is False
        assert module.no_grad(lambda: module.is_grad_enabled())() is False
