"""A function with its own gradient.

Rounding has the gradient 0 nearly everywhere, so nothing can be learned through it. This function
passes gradients through unchanged instead. With it, gradient descent finds integers.
"""

import baregrad as bg


class Round(bg.autograd.Function):
    """The nearest integer; gradients pass through unchanged."""

    @staticmethod
    def forward(ctx, x):
        return bg.round(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class LogCosh(bg.autograd.Function):
    """log(cosh(x)), a loss: like x^2 / 2 near 0, like |x| far from it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return bg.logaddexp(x, -x) - bg.log(bg.tensor(2.0, dtype=x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * bg.tanh(x)


# Checks the written gradient against finite differences.
points = bg.linspace(-3, 3, 7, dtype=bg.float64, requires_grad=True)
print("LogCosh agrees with finite differences:", bg.autograd.gradcheck(LogCosh.apply, [points]))

# Forty bills for apples, pears and plums: find the price of each, in whole coins.
bg.manual_seed(0)
baskets = bg.randint(0, 6, (40, 3)).float()
paid = baskets @ bg.tensor([3.0, 7.0, 2.0])
prices = bg.zeros(3, requires_grad=True)
optimizer = bg.optim.Adam([prices], lr=0.1)
for step in range(101):
    loss = LogCosh.apply(baskets @ Round.apply(prices) - paid).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3}  loss {loss.item():.4f}  prices {Round.apply(prices).tolist()}")
