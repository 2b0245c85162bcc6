"""Functions on the gradients of parameters."""

from baregrad.optim import clip_grad_norm_, clip_grad_value_

__all__ = ["clip_grad_norm_", "clip_grad_value_"]
