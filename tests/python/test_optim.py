"""Optimizers against their formulas in NumPy's doubles; groups, state, clipping, averages."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import baregrad as bg

STEPS = 100


def values(tensor):
    return np.array(tensor.detach().numpy())


def parameter(array, dtype=None):
    return bg.tensor(np.asarray(array, dtype=dtype), requires_grad=True)


# ---- The formulas, once more. Each is made with options and called with (w, g) for one array.


class SGD:
    def __init__(self, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False):
        self.o = (lr, momentum, dampening, weight_decay, nesterov)
        self.buffer = None

    def __call__(self, w, g):
        lr, momentum, dampening, weight_decay, nesterov = self.o
        g = g + weight_decay * w
        if momentum:
            first = self.buffer is None
            self.buffer = g.copy() if first else momentum * self.buffer + (1 - dampening) * g
            g = g + momentum * self.buffer if nesterov else self.buffer
        return w - lr * g


class Adam:
    decoupled = False

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        self.o = (lr, *betas, eps, weight_decay)
        self.m = self.v = self.t = 0

    def __call__(self, w, g):
        lr, b1, b2, eps, weight_decay = self.o
        if self.decoupled:
            w = w * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * w
        self.t += 1
        self.m = b1 * self.m + (1 - b1) * g
        self.v = b2 * self.v + (1 - b2) * g * g
        m, v = self.m / (1 - b1**self.t), self.v / (1 - b2**self.t)
        return w - lr * m / (np.sqrt(v) + eps)


class AdamW(Adam):
    decoupled = True

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(lr, betas, eps, weight_decay)


class RMSprop:
    def __init__(self, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
        self.o = (lr, alpha, eps, weight_decay, momentum, centered)
        self.square = self.mean = self.buffer = 0

    def __call__(self, w, g):
        lr, alpha, eps, weight_decay, momentum, centered = self.o
        g = g + weight_decay * w
        self.square = alpha * self.square + (1 - alpha) * g * g
        self.mean = alpha * self.mean + (1 - alpha) * g
        variance = self.square - (self.mean**2 if centered else 0)
        self.buffer = momentum * self.buffer + g / (np.sqrt(variance) + eps)
        return w - lr * self.buffer


class Adagrad:
    def __init__(
        self, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10
    ):
        self.o = (lr, lr_decay, weight_decay, eps)
        self.sum, self.t = initial_accumulator_value, 0

    def __call__(self, w, g):
        lr, lr_decay, weight_decay, eps = self.o
        g = g + weight_decay * w
        self.sum = self.sum + g * g
        rate = lr / (1 + self.t * lr_decay)
        self.t += 1
        return w - rate * g / (np.sqrt(self.sum) + eps)


class Lion:
    def __init__(self, lr=1e-4, betas=(0.9, 0.99), weight_decay=0):
        self.o = (lr, *betas, weight_decay)
        self.m = 0

    def __call__(self, w, g):
        lr, b1, b2, weight_decay = self.o
        w = w * (1 - lr * weight_decay) - lr * np.sign(b1 * self.m + (1 - b1) * g)
        self.m = b2 * self.m + (1 - b2) * g
        return w


CASES = [
    (SGD, {}),
    (SGD, {"lr": 0.1, "momentum": 0.9}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    (SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
    (Adam, {}),
    (Adam, {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    (AdamW, {}),
    (AdamW, {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.3}),
    (RMSprop, {}),
    (RMSprop, {"lr": 0.02, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.5}),
    (RMSprop, {"alpha": 0.9, "centered": True, "eps": 1e-2}),
    (RMSprop, {"alpha": 0.9, "centered": True, "eps": 1e-2, "momentum": 0.9}),
    (Adagrad, {}),
    (
        Adagrad,
        {
            "lr": 0.1,
            "lr_decay": 0.01,
            "weight_decay": 0.1,
            "initial_accumulator_value": 0.2,
            "eps": 1e-4,
        },
    ),
    (Lion, {}),
    (Lion, {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.2}),
]
IDS = [f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(CASES)]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}


def gradients(rng, shapes, steps=STEPS):
    return [[rng.normal(size=shape) for shape in shapes] for _ in range(steps)]


def test_arguments_and_defaults_are_pytorchs():
    signatures = {
        "SGD": "lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False",
        "Adam": "lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0",
        "AdamW": "lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01",
        "RMSprop": "lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0.0, momentum=0.0, centered=False",
        "Adagrad": "lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0,"
        " eps=1e-10",
        "Lion": "lr=0.0001, betas=(0.9, 0.99), weight_decay=0.0",
    }
    for name, options in signatures.items():
        arguments = inspect.signature(getattr(bg.optim, name)).parameters.values()
        shown = ", ".join(str(a.replace(annotation=a.empty)) for a in arguments)
        assert shown == f"params, {options}, maximize=False"
        assert [a.name for a in arguments if a.kind is a.KEYWORD_ONLY] == ["maximize"]


def test_wrong_arguments_are_named():
    w = parameter([1.0])
    with pytest.raises(TypeError, match="SGD.__init__\\(\\) got an unexpected keyword argument 'rate'"):
        bg.optim.SGD([w], rate=0.1)
    with pytest.raises(TypeError, match="Lion.__init__\\(\\) missing a required argument: 'params'"):
        bg.optim.Lion()
    with pytest.raises(TypeError, match="AdamW.__init__\\(\\) too many positional arguments"):
        bg.optim.AdamW([w], 0.1, (0.9, 0.99), 1e-8, 0.0, True)


def test_a_class_may_have_an_init_of_its_own():
    class Slow(bg.optim.SGD):
        def __init__(self, params):
            super().__init__(params, 1e-6, momentum=0.5)

    group = Slow([parameter([1.0])]).param_groups[0]
    assert (group["lr"], group["momentum"], group["nesterov"]) == (1e-6, 0.5, False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("rule", "options"), CASES, ids=IDS)
def test_hundred_steps_are_the_formula(rule, options, maximize, dtype):
    rng = np.random.default_rng(0)
    shapes = [(7, 5), (3,), ()]
    expected = [rng.normal(size=shape) for shape in shapes]
    params = [parameter(w, dtype) for w in expected]
    optimizer = getattr(bg.optim, rule.__name__)(params, **options, maximize=maximize)
    rules = [rule(**options) for _ in shapes]
    for step in gradients(rng, shapes):
        for i, g in enumerate(step):
            g = np.asarray(g, dtype)
            params[i].grad = bg.tensor(g)
            wide = g.astype("float64")
            expected[i] = rules[i](expected[i], -wide if maximize else wide)
        assert optimizer.step() is None
    for param, w in zip(params, expected, strict=True):
        np.testing.assert_allclose(values(param), w, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_a_loss_is_minimised():
    target = np.array([1.0, -2.0, 3.0])
    w = parameter(np.zeros(3), "float32")
    optimizer = bg.optim.Adam([w], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        ((w - bg.tensor(target, dtype=bg.float32)) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(values(w), target, atol=1e-2)


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    w = parameter([2.0])
    optimizer = bg.optim.SGD([w], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with bg.no_grad():
        assert float(optimizer.step(closure)) == 4.0
    assert float(w) == 1.0


def test_zero_grad():
    w = parameter([2.0, 3.0])
    (w * w).sum().backward()
    optimizer = bg.optim.SGD([w])
    optimizer.zero_grad(set_to_none=False)
    assert values(w.grad).tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert w.grad is None
    optimizer.step()
    assert values(w).tolist() == [2.0, 3.0]


# ---- Groups


def test_groups_have_their_own_options_and_names():
    a, b = parameter([1.0]), parameter([1.0])
    optimizer = bg.optim.SGD(
        [{"params": [("a", a)], "lr": 0.5}, {"params": b, "maximize": True}], lr=0.25
    )
    first, second = optimizer.param_groups
    assert (first["lr"], second["lr"]) == (0.5, 0.25)
    assert first["maximize"] is False and second["maximize"] is True
    assert first["param_names"] == ["a"] and "param_names" not in second
    assert hash(first["params"][0]) == hash(a)
    for w in (a, b):
        w.grad = bg.tensor(np.array([1.0]))
    second["lr"] = 1.0
    optimizer.step()
    assert (float(a), float(b)) == (0.5, 2.0)


def test_a_group_is_a_mapping():
    group = bg.optim.AdamW([parameter([1.0])], lr=0.5).param_groups[0]
    assert list(group) == ["params", "lr", "betas", "eps", "weight_decay", "maximize"]
    assert len(group) == 6 and dict(group)["betas"] == (0.9, 0.999)
    group["betas"] = (0.5, 0.75)
    assert group["betas"] == (0.5, 0.75)
    assert group.get("momentum") is None
    with pytest.raises(KeyError):
        group["momentum"]
    with pytest.raises(KeyError, match="AdamW: 'momentum' cannot be set"):
        group["momentum"] = 1
    with pytest.raises(TypeError, match="cannot be deleted"):
        del group["lr"]


def test_named_parameters_and_generators():
    tensors = {"w": parameter([1.0]), "b": parameter([2.0])}
    optimizer = bg.optim.Adam(iter(tensors.items()))
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]
    assert len(bg.optim.Adam(t for t in tensors.values()).param_groups[0]["params"]) == 2


def test_repr_is_pytorchs():
    assert repr(bg.optim.SGD([parameter([1.0])], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0.0\n    lr: 0.1\n    maximize: False\n"
        "    momentum: 0.0\n    nesterov: False\n    weight_decay: 0.0\n)"
    )


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda w: bg.optim.SGD([]), ValueError, "SGD: there are no parameters"),
        (lambda w: bg.optim.SGD(w), TypeError, "put it into a list"),
        (lambda w: bg.optim.SGD([1.0]), TypeError, "parameter 0 is a float"),
        (lambda w: bg.optim.SGD([w, w]), ValueError, "given before"),
        (lambda w: bg.optim.SGD([w * 2]), RuntimeError, "only leaves"),
        (lambda w: bg.optim.SGD([bg.tensor([1])]), TypeError, "only floating"),
        (lambda w: bg.optim.SGD([w], lr=-1.0), ValueError, r"lr is -1, not in \[0, inf\]"),
        (lambda w: bg.optim.SGD([w], nesterov=True), ValueError, "nesterov needs a momentum"),
        (lambda w: bg.optim.Adam([w], betas=(1.0, 0.9)), ValueError, "beta1 is 1"),
        (lambda w: bg.optim.Adam([w], betas=0.9), ValueError, "betas: takes two numbers"),
        (lambda w: bg.optim.Adam([{"params": w, "mom": 1}]), ValueError, "no option 'mom'"),
        (lambda w: bg.optim.Adam([{"lr": 1}]), ValueError, "needs 'params'"),
        (lambda w: bg.optim.Optimizer([w], {}), TypeError, "one of its subclasses"),
    ],
)
def test_errors_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make(parameter([1.0]))


# ---- State


@pytest.mark.parametrize(("rule", "options"), CASES, ids=IDS)
def test_state_goes_on_to_the_same_bits(rule, options):
    rng = np.random.default_rng(1)
    kind = getattr(bg.optim, rule.__name__)
    start = rng.normal(size=(4, 3)).astype("float32")
    whole = parameter(start)
    optimizer = kind([whole], **options)
    steps = [rng.normal(size=(4, 3)).astype("float32") for _ in range(20)]
    for i, g in enumerate(steps):
        if i == 10:
            resumed = parameter(values(whole))
            other = kind([resumed])
            other.load_state_dict(optimizer.state_dict())
        whole.grad = bg.tensor(g)
        optimizer.step()
    for g in steps[10:]:
        resumed.grad = bg.tensor(g)
        other.step()
    assert values(resumed).tobytes() == values(whole).tobytes()
    assert repr(other) == repr(optimizer)


def test_all_that_a_run_keeps_goes_through_a_file(tmp_path):
    def make():
        w = parameter(np.arange(6.0).reshape(2, 3), "float32")
        optimizer = bg.optim.Adam([w], lr=0.1, betas=(0.8, 0.95))
        schedule = bg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        return w, optimizer, schedule, bg.optim.EMA([w], 0.9)

    def train(w, optimizer, schedule, ema):
        for _ in range(4):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            schedule.step()
            ema.update()

    w, *parts = make()
    train(w, *parts)
    names = ["optimizer", "schedule", "ema"]
    path = tmp_path / "run.safetensors"
    states = {name: part.state_dict() for name, part in zip(names, parts, strict=True)}
    bg.io.save_checkpoint(path, {"model": {"w": w.detach()}, **states})
    train(w, *parts)

    loaded = bg.io.load_checkpoint(path)
    v, *others = make()
    with bg.no_grad():
        v.copy_(loaded["model"]["w"])
    for name, part in zip(names, others, strict=True):
        part.load_state_dict(loaded[name])
    train(v, *others)
    assert values(v).tobytes() == values(w).tobytes()
    assert values(others[2].averages[0]).tobytes() == values(parts[2].averages[0]).tobytes()
    assert others[1].get_last_lr() == parts[1].get_last_lr()


def test_state_names_and_mismatches():
    w = parameter([1.0, 2.0])
    optimizer = bg.optim.AdamW([w], lr=0.1)
    w.grad = bg.tensor(np.array([1.0, 1.0]))
    optimizer.step()
    state = optimizer.state_dict()
    assert state["0.step"] == "1" and state["group.0.lr"] == "0.1"
    assert state["0.exp_avg"].shape == (2,)
    with pytest.raises(ValueError, match="exp_avg"):
        bg.optim.AdamW([parameter([1.0])]).load_state_dict(state)
    with pytest.raises(ValueError, match="optimizer"):
        bg.optim.SGD([parameter([1.0, 2.0])]).load_state_dict(state)
    with pytest.raises(TypeError, match="takes tensors, text and numbers"):
        optimizer.load_state_dict({**state, "0.step": [1]})
    optimizer.load_state_dict({**state, "group.0.lr": 0.5})
    assert optimizer.param_groups[0]["lr"] == 0.5


# ---- Clipping and averages


def test_clip_grad_norm_scales_all_together():
    a, b = parameter(np.zeros((2, 2)), "float32"), parameter(np.zeros(3), "float32")
    ga, gb = np.full((2, 2), 3.0, "float32"), np.array([1.0, -2.0, 4.0], "float32")
    a.grad, b.grad = bg.tensor(ga), bg.tensor(gb)
    norm = bg.optim.clip_grad_norm_(iter([a, b]), 2.0)
    expected = np.sqrt((ga.astype("f8") ** 2).sum() + (gb.astype("f8") ** 2).sum())
    assert norm.dtype == bg.float32
    np.testing.assert_allclose(float(norm), expected, rtol=1e-6)
    np.testing.assert_allclose(values(a.grad), ga * 2 / expected, rtol=1e-5)
    np.testing.assert_allclose(values(b.grad), gb * 2 / expected, rtol=1e-5)
    with pytest.raises(ValueError, match="norm_type is 1"):
        bg.optim.clip_grad_norm_(a, 2.0, norm_type=1)


def test_clip_grad_norm_refuses_what_is_not_finite():
    w = parameter([1.0])
    w.grad = bg.tensor(np.array([np.inf]))
    with pytest.raises(ValueError, match="clip_grad_norm_"):
        bg.optim.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    w = parameter(np.zeros(4))
    g = np.array([-5.0, -0.5, np.nan, 2.0])
    w.grad = bg.tensor(g)
    bg.optim.clip_grad_value_(w, 1.0)
    np.testing.assert_array_equal(values(w.grad), np.clip(g, -1, 1))


def test_ema_is_the_recurrence_and_goes_on_from_a_state():
    rng = np.random.default_rng(2)
    w = bg.tensor(rng.normal(size=5))
    ema = bg.optim.EMA([w], decay=0.9)
    expected = values(w)
    for _ in range(20):
        w += bg.tensor(rng.normal(size=5))
        ema.update()
        expected = 0.9 * expected + 0.1 * values(w)
    np.testing.assert_allclose(values(ema.averages[0]), expected, rtol=1e-12)
    assert ema.updates == 20 and ema.decay == 0.9
    other = bg.optim.EMA([w])
    other.load_state_dict(ema.state_dict())
    assert other.decay == 0.9
    np.testing.assert_array_equal(values(other.averages[0]), values(ema.averages[0]))
    before = values(w)
    ema.swap()
    np.testing.assert_allclose(values(w), expected, rtol=1e-12)
    ema.swap()
    np.testing.assert_array_equal(values(w), before)
    ema.copy_to()
    np.testing.assert_allclose(values(w), expected, rtol=1e-12)


# ---- Schedules: values are compared with PyTorch's in peers/; here what is ours


def optimizer_with(lr=1.0, **options):
    return bg.optim.SGD([parameter([1.0])], lr=lr, **options)


def test_a_schedule_keeps_its_optimizer_alive():
    w = parameter([1.0])
    schedule = bg.optim.lr_scheduler.ExponentialLR(bg.optim.SGD([w], lr=1.0), 0.5)
    engine = schedule._engine
    group = schedule.optimizer.param_groups[0]
    del schedule
    gc.collect()
    engine.step()
    assert group["lr"] == 0.5


def test_a_schedule_by_a_method_of_its_holder_is_collected():
    class Trainer:
        def __init__(self):
            self.schedule = bg.optim.lr_scheduler.LambdaLR(optimizer_with(), self.rule)

        def rule(self, step):
            return 1 / (step + 1)

    trainer = Trainer()
    trainer.schedule.step()
    assert trainer.schedule.get_last_lr() == [0.5]
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None


def test_schedules_start_from_the_first_lr():
    optimizer = optimizer_with(lr=1.0)
    lr = bg.optim.lr_scheduler
    warm_up = lr.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    assert optimizer.param_groups[0]["lr"] == 0.5
    decay = lr.ExponentialLR(optimizer, 0.5)
    assert decay.base_lrs == [1.0]
    schedule = lr.SequentialLR(optimizer, [warm_up, decay], [3])
    seen = [schedule.get_last_lr()[0]]
    for _ in range(5):
        schedule.step()
        seen.append(schedule.get_last_lr()[0])
    assert seen == [0.5, 0.75, 1.0, 1.0, 0.5, 0.25]
    assert schedule.last_epoch == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda o, lr: lr.StepLR(o, 3),
        lambda o, lr: lr.MultiStepLR(o, [2, 5]),
        lambda o, lr: lr.ExponentialLR(o, 0.9),
        lambda o, lr: lr.CosineAnnealingLR(o, 7, 0.01),
        lambda o, lr: lr.CosineAnnealingWarmRestarts(o, 3, 2),
        lambda o, lr: lr.LinearLR(o),
        lambda o, lr: lr.LambdaLR(o, lambda step: 0.9**step),
        lambda o, lr: lr.OneCycleLR(o, 0.5, epochs=4, steps_per_epoch=5),
        lambda o, lr: lr.SequentialLR(o, [lr.LinearLR(o), lr.StepLR(o, 2)], [4]),
    ],
)
def test_schedules_resume_to_the_same_bits(make):
    schedule = make(optimizer_with(lr=0.3, momentum=0.9), bg.optim.lr_scheduler)
    seen = []
    for i in range(12):
        if i == 6:
            state = schedule.state_dict()
        schedule.step()
        seen.append(schedule.get_last_lr())
    resumed = make(optimizer_with(lr=0.3, momentum=0.9), bg.optim.lr_scheduler)
    resumed.load_state_dict(state)
    for expected in seen[6:]:
        resumed.step()
        assert resumed.get_last_lr() == expected


def test_plateau():
    optimizer = optimizer_with(lr=1.0)
    schedule = bg.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, "max", factor=0.5, patience=0, threshold_mode="abs", threshold=0.0
    )
    for metric in [1.0, 2.0, bg.tensor(2.0), 3.0]:
        schedule.step(metric)
    assert schedule.get_last_lr() == [0.5] and schedule.best == 3.0
    other = bg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max")
    other.load_state_dict(schedule.state_dict())
    assert other.best == 3.0


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda o, lr: lr.StepLR(o, 0), ValueError, "StepLR: step_size is 0"),
        (lambda o, lr: lr.LinearLR(o, 2.0), ValueError, "LinearLR: the first factor is 2"),
        (lambda o, lr: lr.OneCycleLR(o, 1.0), ValueError, "OneCycleLR: needs total_steps"),
        (
            lambda o, lr: lr.OneCycleLR(o, 1.0, 9, anneal_strategy="up"),
            ValueError,
            "takes one of 'cos', 'linear'",
        ),
        (lambda o, lr: lr.ReduceLROnPlateau(o, "best"), ValueError, "takes one of 'min', 'max'"),
        (lambda o, lr: lr.StepLR(None, 3), TypeError, "StepLR: NoneType is no optimizer"),
        (lambda o, lr: lr.SequentialLR(o, [lr.StepLR(o, 3)], [1]), ValueError, "milestone less"),
        (
            lambda o, lr: lr.SequentialLR(o, [lr.StepLR(optimizer_with(), 3)], []),
            ValueError,
            "another optimizer",
        ),
        (lambda o, lr: lr.LambdaLR(o, lambda step: 1 // step), ZeroDivisionError, "zero"),
    ],
)
def test_schedules_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make(optimizer_with(), bg.optim.lr_scheduler)


def test_a_step_beyond_one_cycle_is_an_error():
    schedule = bg.optim.lr_scheduler.OneCycleLR(optimizer_with(momentum=0.9), 1.0, total_steps=2)
    with pytest.raises(ValueError, match="beyond total_steps"):
        for _ in range(3):
            schedule.step()


def test_threads_may_share_an_optimizer():
    w = parameter(np.zeros(10_000))
    optimizer = bg.optim.SGD([w], lr=1.0)
    schedule = bg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    w.grad = bg.tensor(np.ones(10_000))

    def work():
        for _ in range(50):
            optimizer.step()
            schedule.step()
            optimizer.state_dict()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.all(values(w) == -200.0)
