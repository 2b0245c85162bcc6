"""Tensors in ten lines: make them, combine them, share them with NumPy, differentiate."""

import numpy as np

import baregrad as bg

x = bg.arange(6, dtype=bg.float32).reshape(2, 3)
print("x =", x)
print("the mean of each column:", x.mean(axis=0))
print("rows whose first element is above 1:", x[x[:, 0] > 1])
array = np.asarray(x)  # the same memory, not a copy
array[0, 0] = 10
print("NumPy wrote a 10 into x:", x[0])
w = bg.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = ((x @ w) ** 2).sum()
loss.backward()
print(f"loss = {loss.item():.0f}, and its gradient by w is", w.grad)
