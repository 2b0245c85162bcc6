"""Optimizers, schedules of their learning rates, clipping of gradients, averages of weights.

Names, arguments, defaults and formulas are PyTorch's.

    optimizer = bg.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    schedule = bg.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for x, y in loader:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        bg.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
"""

from baregrad.optim import lr_scheduler
from baregrad.optim.averages import EMA
from baregrad.optim.clipping import clip_grad_norm_, clip_grad_value_
from baregrad.optim.optimizer import Optimizer, ParamGroup
from baregrad.optim.optimizers import SGD, Adagrad, Adam, AdamW, Lion, RMSprop

__all__ = [
    "EMA",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "ParamGroup",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]
