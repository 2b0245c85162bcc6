#!/usr/bin/env python3
"""Writes golden.inc: PyTorch 2.13's results for the same parameters and gradients, and its
schedules.

Usage: make_golden.py > golden.inc    (needs torch 2.13.0; the tests themselves do not)
"""

import math

import torch

N = 7
STEPS = 100


def value(i, k):
    """Element i of the gradient of step k (k = -1: of the parameter); support.h has the same
    formula."""
    return math.sin(0.7 * i + 1.3 * k + 0.25) * (1 + 0.1 * i)


def tensor(k, dtype):
    return torch.tensor([value(i, k) for i in range(N)], dtype=torch.float64).to(dtype)


class Lion(torch.optim.Optimizer):
    """PyTorch has no Lion: this is the authors' pseudocode."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(
            params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        )

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                g = -p.grad if group["maximize"] else p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = m.clone().mul_(beta1).add(g, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                m.mul_(beta2).add_(g, alpha=1 - beta2)


o = torch.optim
# Name, the C++ expression that makes ours from `params`, the PyTorch expression.
OPTIMIZERS = [
    ("sgd", "SGD(p, {.lr = 0.05})", lambda p: o.SGD(p, lr=0.05)),
    ("sgd_decay", "SGD(p, {.lr = 0.05, .weight_decay = 0.1})",
     lambda p: o.SGD(p, lr=0.05, weight_decay=0.1)),
    ("sgd_momentum", "SGD(p, {.lr = 0.02, .momentum = 0.9})",
     lambda p: o.SGD(p, lr=0.02, momentum=0.9)),
    ("sgd_dampening",
     "SGD(p, {.lr = 0.02, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01})",
     lambda p: o.SGD(p, lr=0.02, momentum=0.8, dampening=0.3, weight_decay=0.01)),
    ("sgd_nesterov",
     "SGD(p, {.lr = 0.02, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true})",
     lambda p: o.SGD(p, lr=0.02, momentum=0.9, weight_decay=0.01, nesterov=True)),
    ("sgd_maximize", "SGD(p, {.lr = 0.02, .momentum = 0.5, .maximize = true})",
     lambda p: o.SGD(p, lr=0.02, momentum=0.5, maximize=True)),
    ("adam", "Adam(p, {.lr = 0.01})", lambda p: o.Adam(p, lr=0.01)),
    ("adam_decay",
     "Adam(p, {.lr = 0.01, .beta1 = 0.4, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1})",
     lambda p: o.Adam(p, lr=0.01, betas=(0.4, 0.95), eps=1e-3, weight_decay=0.1)),
    ("adamw", "AdamW(p, {.lr = 0.01})", lambda p: o.AdamW(p, lr=0.01)),
    ("adamw_maximize",
     "AdamW(p, {.lr = 0.02, .beta1 = 0.8, .weight_decay = 0.3, .maximize = true})",
     lambda p: o.AdamW(p, lr=0.02, betas=(0.8, 0.999), weight_decay=0.3, maximize=True)),
    ("rmsprop", "RMSprop(p, {})", lambda p: o.RMSprop(p)),
    ("rmsprop_momentum", "RMSprop(p, {.lr = 0.003, .alpha = 0.9, .momentum = 0.7})",
     lambda p: o.RMSprop(p, lr=0.003, alpha=0.9, momentum=0.7)),
    ("rmsprop_centered", "RMSprop(p, {.weight_decay = 0.05, .centered = true})",
     lambda p: o.RMSprop(p, weight_decay=0.05, centered=True)),
    ("rmsprop_all",
     "RMSprop(p, {.lr = 0.003, .weight_decay = 0.05, .momentum = 0.7, .centered = true})",
     lambda p: o.RMSprop(p, lr=0.003, weight_decay=0.05, momentum=0.7, centered=True)),
    ("adagrad", "Adagrad(p, {})", lambda p: o.Adagrad(p)),
    ("adagrad_all",
     "Adagrad(p, {.lr = 0.1, .lr_decay = 0.01, .weight_decay = 0.02, .initial_accumulator_value = 0.5})",
     lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.01, weight_decay=0.02,
                         initial_accumulator_value=0.5)),
    ("lion", "Lion(p, {.lr = 0.01})", lambda p: Lion(p, lr=0.01)),
    ("lion_decay", "Lion(p, {.lr = 0.01, .beta1 = 0.8, .weight_decay = 0.2})",
     lambda p: Lion(p, lr=0.01, betas=(0.8, 0.99), weight_decay=0.2)),
]

s = torch.optim.lr_scheduler
SCHEDULES = [
    ("StepLR", "StepLR(o, 7, 0.5)", lambda o: s.StepLR(o, 7, 0.5)),
    ("MultiStepLR", "MultiStepLR(o, {3, 11, 11, 20}, 0.3)",
     lambda o: s.MultiStepLR(o, [3, 11, 11, 20], 0.3)),
    ("ExponentialLR", "ExponentialLR(o, 0.93)", lambda o: s.ExponentialLR(o, 0.93)),
    ("CosineAnnealingLR", "CosineAnnealingLR(o, 12, 0.002)",
     lambda o: s.CosineAnnealingLR(o, 12, 0.002)),
    ("WarmRestarts", "CosineAnnealingWarmRestarts(o, 5, 2, 0.001)",
     lambda o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001)),
    ("WarmRestartsAlike", "CosineAnnealingWarmRestarts(o, 6)",
     lambda o: s.CosineAnnealingWarmRestarts(o, 6)),
    ("LinearLR", "LinearLR(o, 0.25, 0.9, 8)", lambda o: s.LinearLR(o, 0.25, 0.9, 8)),
    ("OneCycleLR", "OneCycleLR(o, {.max_lr = {0.4}, .total_steps = 30})",
     lambda o: s.OneCycleLR(o, 0.4, 30)),
    ("OneCycleLinear",
     "OneCycleLR(o, {.max_lr = {0.4}, .total_steps = 30, .pct_start = 0.25, .linear = true,"
     " .three_phase = true})",
     lambda o: s.OneCycleLR(o, 0.4, 30, pct_start=0.25, anneal_strategy="linear",
                            three_phase=True)),
    ("SequentialLR", "SequentialLR(o, {linear_curve(0.1, 1, 5), cosine_curve(20, 0.003)}, {5})",
     lambda o: s.SequentialLR(
         o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 20, 0.003)], [5])),
]
SCHEDULE_STEPS = 30

METRICS = [1.0, 0.9, 0.9, 0.9, 0.89999, 0.9, 0.95, 0.7, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.1]
PLATEAUS = [
    ("PlateauDefault", "{.factor = 0.5, .patience = 2}",
     lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2)),
    ("PlateauCooldown", "{.factor = 0.5, .patience = 1, .cooldown = 3, .min_lr = 0.04}",
     lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=3, min_lr=0.04)),
    ("PlateauMax",
     "{.maximize = true, .factor = 0.5, .patience = 3, .threshold = 0.01, .relative = false}",
     lambda o: s.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=3, threshold=0.01,
                                   threshold_mode="abs")),
]


def numbers(values):
    return "{" + ", ".join(repr(v) for v in values) + "}"


def run(make, dtype):
    p = tensor(-1, dtype).requires_grad_()
    optimizer = make([p])
    for k in range(STEPS):
        p.grad = tensor(k, dtype)
        optimizer.step()
    return p.detach().double().tolist()


def entry(*lines):
    print("    {" + ",\n     ".join(lines) + "},")


def main():
    print("// Made by make_golden.py with PyTorch", torch.__version__.split("+")[0])
    print("// clang-format off")
    print("const std::vector<GoldenOptimizer> kOptimizers = {")
    for name, ours, theirs in OPTIMIZERS:
        entry(f'"{name}"', f"[](const Tensors& p) -> Made {{ return std::make_unique<{ours.split('(')[0]}>"
              f"(p, {ours.split('(')[0]}Options{ours.split('(p, ', 1)[1][:-1]}); }}",
              numbers(run(theirs, torch.float64)), numbers(run(theirs, torch.float32)))
    print("};\n")
    print("const std::vector<GoldenSchedule> kSchedules = {")
    for name, ours, theirs in SCHEDULES:
        optimizer = o.SGD([torch.zeros(1)], lr=0.1, momentum=0.9)
        schedule = theirs(optimizer)
        lrs, momenta = [], []
        for _ in range(SCHEDULE_STEPS + 1):
            lrs.append(optimizer.param_groups[0]["lr"])
            momenta.append(optimizer.param_groups[0]["momentum"])
            optimizer.step()
            if len(lrs) <= SCHEDULE_STEPS:
                schedule.step() if not name.startswith("OneCycle") or len(lrs) < 30 else None
        if name.startswith("OneCycle"):
            lrs, momenta = lrs[:30], momenta[:30]
        kind = ours.split("(", 1)[0]
        entry(f'"{name}"',
              f"[](Optimizer& o) -> Scheduled {{ return std::make_unique<{kind}>"
              f"({fix(ours.split('(', 1)[1][:-1])}); }}", numbers(lrs), numbers(momenta))
    print("};\n")
    print(f"const std::vector<double> kMetrics = {numbers(METRICS)};")
    print("const std::vector<GoldenPlateau> kPlateaus = {")
    for name, ours, theirs in PLATEAUS:
        optimizer = o.SGD([torch.zeros(1)], lr=0.1)
        schedule = theirs(optimizer)
        lrs = []
        for metric in METRICS:
            schedule.step(metric)
            lrs.append(optimizer.param_groups[0]["lr"])
        entry(f'"{name}"', ours, numbers(lrs))
    print("};")


def fix(arguments):
    """std::make_unique cannot deduce the types of braced arguments."""
    if "max_lr" in arguments:
        return arguments.replace("o, {", "o, OneCycleOptions{")
    if "linear_curve" in arguments:
        head, tail = arguments.rsplit(", ", 1)
        return (head.replace("o, {", "o, std::vector<Curve>{")
                + ", std::vector<std::int64_t>" + tail)
    if arguments.startswith("o, {"):
        return arguments.replace("o, {", "o, std::vector<std::int64_t>{")
    return arguments


if __name__ == "__main__":
    main()
