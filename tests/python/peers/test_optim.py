"""Every optimizer and every schedule against PyTorch's own."""

import functools
import itertools

import numpy as np
import pytest
import torch

import baregrad as bg

STEPS = 100
SHAPES = [(7, 5), (3,), ()]


def every(**choices):
    """All combinations of options."""
    names = list(choices)
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*choices.values())]


CASES = [
    *(("SGD", o) for o in every(
        lr=[0.05], momentum=[0.0, 0.9], dampening=[0.0, 0.3], weight_decay=[0.0, 0.1],
        maximize=[False, True])),
    *(("SGD", o) for o in every(
        lr=[0.05], momentum=[0.9], weight_decay=[0.0, 0.1], nesterov=[True],
        maximize=[False, True])),
    *((kind, o) for kind in ("Adam", "AdamW") for o in every(
        lr=[0.01], betas=[(0.9, 0.999), (0.7, 0.9)], eps=[1e-8, 1e-3], weight_decay=[0.0, 0.1],
        maximize=[False, True])),
    *(("RMSprop", o) for o in every(
        lr=[0.01], alpha=[0.99, 0.8], eps=[1e-3], weight_decay=[0.0, 0.1], momentum=[0.0, 0.9],
        centered=[False, True], maximize=[False, True])),
    *(("Adagrad", o) for o in every(
        lr=[0.1], lr_decay=[0.0, 0.01], weight_decay=[0.0, 0.1],
        initial_accumulator_value=[0.0, 0.5], eps=[1e-10, 1e-3], maximize=[False, True])),
    *((kind, {}) for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")),
]  # fmt: skip
# Relative to the greatest element, some 3 here; rounding depends on the order of operations.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}


@functools.cache
def gradients(dtype):
    """The same gradients for all: by step and parameter, ours and theirs."""
    rng = np.random.default_rng(1)
    arrays = [[np.asarray(rng.normal(size=s), dtype) for s in SHAPES] for _ in range(STEPS)]
    return [[(bg.tensor(g), torch.tensor(g)) for g in step] for step in arrays]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_hundred_steps(kind, options, dtype):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype(dtype) for shape in SHAPES]
    ours = [bg.tensor(w, requires_grad=True) for w in start]
    theirs = [torch.tensor(w, requires_grad=True) for w in start]
    optimizers = [
        getattr(module, kind)(params, **options)
        for module, params in ((bg.optim, ours), (torch.optim, theirs))
    ]
    for step in gradients(dtype):
        for mine, other, pair in zip(ours, theirs, step, strict=True):
            mine.grad, other.grad = pair
        for optimizer in optimizers:
            optimizer.step()
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            mine.detach().numpy(), other.detach().numpy(), rtol=0, atol=TOLERANCE[dtype]
        )


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_defaults_are_the_same(kind):
    ours = getattr(bg.optim, kind)([bg.tensor([1.0], requires_grad=True)])
    theirs = getattr(torch.optim, kind)([torch.zeros(1, requires_grad=True)])
    for name, value in ours.defaults.items():
        assert theirs.defaults[name] == value, name


@pytest.mark.parametrize("norm", [0.1, 1.0, 1e3])
def test_clipping(norm):
    rng = np.random.default_rng(1)
    grads = [np.asarray(rng.normal(size=shape), "float32") for shape in SHAPES]
    ours = [bg.zeros(shape, requires_grad=True) for shape in SHAPES]
    theirs = [torch.zeros(shape, requires_grad=True) for shape in SHAPES]
    for mine, other, grad in zip(ours, theirs, grads, strict=True):
        mine.grad, other.grad = bg.tensor(grad), torch.tensor(grad)
    total = bg.optim.clip_grad_norm_(ours, norm)
    expected = torch.nn.utils.clip_grad_norm_(theirs, norm)
    np.testing.assert_allclose(float(total), float(expected), rtol=1e-6)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-5)


# ---- Schedules. Each is made from (optimizer, the module of schedules).

SCHEDULES = {
    "step": lambda o, lr: lr.StepLR(o, 7, gamma=0.5),
    "multi_step": lambda o, lr: lr.MultiStepLR(o, milestones=[5, 20, 20, 33], gamma=0.3),
    "exponential": lambda o, lr: lr.ExponentialLR(o, 0.95),
    "cosine": lambda o, lr: lr.CosineAnnealingLR(o, T_max=50, eta_min=0.001),
    "cosine_and_back": lambda o, lr: lr.CosineAnnealingLR(o, T_max=11),
    "restarts": lambda o, lr: lr.CosineAnnealingWarmRestarts(o, T_0=9),
    "longer_restarts": lambda o, lr: lr.CosineAnnealingWarmRestarts(o, 5, T_mult=2, eta_min=0.01),
    "linear": lambda o, lr: lr.LinearLR(o),
    "linear_down": lambda o, lr: lr.LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=30),
    "lambda": lambda o, lr: lr.LambdaLR(o, lambda step: 1 / (1 + 0.1 * step)),
    "warm_up": lambda o, lr: lr.SequentialLR(
        o,
        [lr.LinearLR(o, start_factor=0.1, total_iters=10), lr.CosineAnnealingLR(o, T_max=40)],
        milestones=[10],
    ),
    "three": lambda o, lr: lr.SequentialLR(
        o,
        [lr.LinearLR(o, 0.5, 1.0, 8), lr.StepLR(o, 4), lr.ExponentialLR(o, 0.9)],
        milestones=[8, 30],
    ),
    "one_cycle": lambda o, lr: lr.OneCycleLR(o, max_lr=0.8, total_steps=60),
    "one_cycle_linear": lambda o, lr: lr.OneCycleLR(
        o, [0.8, 0.2], epochs=6, steps_per_epoch=10, anneal_strategy="linear", pct_start=0.4
    ),
    "one_cycle_three": lambda o, lr: lr.OneCycleLR(
        o,
        0.8,
        total_steps=60,
        three_phase=True,
        base_momentum=0.7,
        max_momentum=0.9,
        div_factor=10.0,
        final_div_factor=50.0,
    ),
    "one_cycle_lr_only": lambda o, lr: lr.OneCycleLR(o, 0.8, 60, cycle_momentum=False),
}


def both(kind, **options):
    """The same optimizer twice: two groups with their own learning rates."""
    mine = [bg.tensor([1.0], requires_grad=True) for _ in range(2)]
    other = [torch.ones(1, requires_grad=True) for _ in range(2)]
    return [
        getattr(module, kind)(
            [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}], lr=0.3, **options
        )
        for module, params in ((bg.optim, mine), (torch.optim, other))
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name, kind):
    optimizers = both(kind, **({"momentum": 0.5} if kind == "SGD" else {}))
    modules = [bg.optim.lr_scheduler, torch.optim.lr_scheduler]
    schedules = [SCHEDULES[name](o, m) for o, m in zip(optimizers, modules, strict=True)]
    inertia = "momentum" if kind == "SGD" else "betas"
    for step in range(60):
        lrs = [[group["lr"] for group in o.param_groups] for o in optimizers]
        np.testing.assert_allclose(lrs[0], lrs[1], rtol=1e-9, atol=1e-15, err_msg=f"step {step}")
        assert schedules[0].get_last_lr() == lrs[0]
        np.testing.assert_allclose(
            *[[group[inertia] for group in o.param_groups] for o in optimizers], rtol=1e-12
        )
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()


@pytest.mark.parametrize("options", [
    *every(mode=["min", "max"], threshold_mode=["rel", "abs"], patience=[0, 3], cooldown=[0, 2],
           factor=[0.5], threshold=[0.05]),
    {"min_lr": 0.01, "factor": 0.3, "patience": 1},
    {"eps": 0.02, "factor": 0.7, "patience": 1},
])  # fmt: skip
def test_plateau(options):
    optimizers = both("SGD")
    modules = [bg.optim.lr_scheduler, torch.optim.lr_scheduler]
    schedules = [
        m.ReduceLROnPlateau(o, **options) for o, m in zip(optimizers, modules, strict=True)
    ]
    rng = np.random.default_rng(3)
    for step in range(80):
        metric = float(1 / (1 + 0.2 * step) + 0.05 * rng.normal())
        for schedule in schedules:
            schedule.step(metric)
        assert schedules[0].get_last_lr() == pytest.approx(schedules[1].get_last_lr(), rel=1e-12)
        assert schedules[0].best == schedules[1].best


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_an_optimizer_made_before_double(kind):
    rng = np.random.default_rng(3)
    weight, bias = rng.normal(size=(2, 3)).astype(np.float32), np.zeros(2, np.float32)
    x = rng.normal(size=(5, 3))
    results = []
    for module, tensor in ((bg, bg.tensor), (torch, torch.tensor)):
        net = module.nn.Linear(3, 2)
        net.load_state_dict({"weight": tensor(weight), "bias": tensor(bias)})
        held = net.weight
        optimizer = getattr(module.optim, kind)(net.parameters(), lr=0.05)
        net.double()
        assert net.weight is held
        for _ in range(10):
            optimizer.zero_grad()
            (net(tensor(x)) ** 2).sum().backward()
            optimizer.step()
        results.append(net.weight.detach().numpy())
    # PyTorch's Adagrad continues in the float32 sums that it made at its construction.
    tolerance = 1e-7 if kind == "Adagrad" else 1e-12
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=tolerance)
