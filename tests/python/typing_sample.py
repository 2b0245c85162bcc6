"""A user's program, checked only by mypy --strict: the types of the package.

Never run: each line is a claim about a type.
"""

from typing import assert_type

import baregrad as bg
from baregrad import nn, optim

x = bg.ones((2, 3))
assert_type(x, bg.Tensor)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.dtype, bg.DType)
assert_type(bg.float32, bg.DType)
assert_type(x + 1, bg.Tensor)
assert_type(2.0 * x, bg.Tensor)
assert_type(x @ x, bg.Tensor)
assert_type(x == x, bg.Tensor)
assert_type(-x, bg.Tensor)
assert_type(bool(x[0, 0] > 0), bool)
assert_type(bg.exp(x), bg.Tensor)
assert_type(bg.sum(x, axis=1), bg.Tensor)
assert_type(bg.zeros(3, dtype=bg.int64), bg.Tensor)
assert_type(x.relu_(), bg.Tensor)
assert_type(x.max(1).values, bg.Tensor)
assert_type(bg.linalg.qr(x).Q, bg.Tensor)
assert_type(nn.init.zeros_(x), bg.Tensor)
assert_type(bg.io.load_npz("x.npz"), dict[str, bg.Tensor])
assert_type(x.grad, bg.Tensor | None)
assert_type(x.device, bg.Device)
assert_type(bg.zeros(3, device=x.device), bg.Tensor)
assert_type(bg.rand((2,), device="cpu"), bg.Tensor)
assert_type(x.to("cpu", bg.float64), bg.Tensor)
assert_type(x.to(x.device), bg.Tensor)
assert_type(nn.Linear(3, 1).to("cpu", bg.float64), nn.Linear)
assert_type(nn.Linear(3, 1).cpu(), nn.Linear)
assert_type(bg.device_count("sim"), int)
assert_type(bg.device("cuda", 1).index, int | None)
with bg.Device("cpu") as there:
    assert_type(there, bg.Device)
assert_type(bg.__version__, str)


class Net(nn.Module):
    """A user's module."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: bg.Tensor) -> bg.Tensor:
        return bg.tanh(self.layer(x))


net = Net()
optimizer = optim.AdamW(net.parameters(), lr=1e-3)
loss = nn.functional.mse_loss(net.forward(x), bg.zeros((2, 1)))
assert_type(loss, bg.Tensor)
optimizer.zero_grad()
loss.backward()
optimizer.step()
with bg.no_grad():
    x += 1
