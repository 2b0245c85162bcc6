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
# mypy: implicit-reexport
# The line above makes what `import *` brings in public to type checkers too.

from baregrad.optim import lr_scheduler as lr_scheduler
from baregrad.optim.averages import EMA as EMA
from baregrad.optim.clipping import clip_grad_norm_ as clip_grad_norm_
from baregrad.optim.clipping import clip_grad_value_ as clip_grad_value_
from baregrad.optim.optimizer import Optimizer as Optimizer
from baregrad.optim.optimizer import ParamGroup as ParamGroup
from baregrad.optim.optimizers import *
