"""XOR from scratch: two matrices, gradients by autograd, and an explicit update.

Without layers and optimizers: this example shows what they do.
"""

import baregrad as bg

bg.manual_seed(0)
inputs = bg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
answers = bg.tensor([[0.0], [1.0], [1.0], [0.0]])

hidden = bg.randn((2, 8), requires_grad=True)
hidden_bias = bg.zeros(8, requires_grad=True)
output = bg.randn((8, 1), requires_grad=True)
output_bias = bg.zeros(1, requires_grad=True)
parameters = [hidden, hidden_bias, output, output_bias]


def network(x):
    return bg.sigmoid(bg.tanh(x @ hidden + hidden_bias) @ output + output_bias)


for step in range(1001):
    loss = ((network(inputs) - answers) ** 2).mean()
    loss.backward()
    with bg.no_grad():
        for parameter in parameters:
            parameter -= 2.0 * parameter.grad
            parameter.grad = None
    if step % 200 == 0:
        print(f"step {step:4}  loss {loss.item():.4f}")

for (a, b), answer in zip(inputs.tolist(), network(inputs).tolist(), strict=True):
    print(f"{a:.0f} xor {b:.0f} = {answer[0]:.2f}")
