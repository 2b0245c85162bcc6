"""repr of random tensors against PyTorch's own."""

import random
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import baregrad as bg  # noqa: E402

DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]


def some_values(random_, shape, dtype):
    n = int(np.prod(shape))
    if dtype == "bool":
        return np.array([random_.random() < 0.5 for _ in range(n)], bool).reshape(shape)
    if not dtype.startswith("float"):
        top = 10 ** random_.randint(0, 9)
        low = 0 if dtype == "uint8" else -top
        return np.array([random_.randint(low, top) % 251 if dtype == "uint8" else random_.randint(low, top)
                         for _ in range(n)], dtype).reshape(shape)
    kind = random_.choice(["unit", "whole", "wide", "special", "tiny", "huge"])
    draw = {
        "unit": lambda: random_.uniform(-1, 1),
        "whole": lambda: float(random_.randint(-2000, 2000)),
        "wide": lambda: random_.uniform(-1, 1) * 10 ** random_.randint(-7, 9),
        "special": lambda: random_.choice([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, 0.5]),
        "tiny": lambda: random_.uniform(-1, 1) * 1e-4,
        "huge": lambda: random_.uniform(-1, 1) * 1e12,
    }[kind]
    with np.errstate(over="ignore"):
        return np.array([draw() for _ in range(n)], np.float64).astype(dtype).reshape(shape)


def some_shape(random_):
    if random_.random() < 0.05:
        return random_.choice([(1001,), (40, 40), (12, 10, 11), (2, 600), (600, 2), (7, 1, 200)])
    return tuple(random_.randint(0 if random_.random() < 0.1 else 1, random_.choice([3, 6, 15]))
                 for _ in range(random_.randint(0, 4)))


def contents(text):
    """Without the suffixes: their line break depends on the module's name."""
    return re.sub(r",\s+(dtype|size|requires_grad)=.*\)$", ")", text, flags=re.S)


@pytest.mark.parametrize("seed", range(12))
def test_random_tensors_print_alike(seed):
    random_ = random.Random(seed)
    for _ in range(200):
        dtype = random_.choice(DTYPES)
        shape = some_shape(random_)
        if np.prod(shape) > 5000:
            continue
        values = some_values(random_, shape, dtype)
        theirs, mine = torch.tensor(values), bg.asarray(values)
        if dtype in ("float32", "float64") and random_.random() < 0.2:
            theirs.requires_grad_()
            mine.requires_grad_()
        if dtype in ("float32", "int64", "bool") and (values.size or dtype == "float32"):
            assert repr(mine) == repr(theirs)
        else:
            assert contents(repr(mine)) == contents(repr(theirs))
            assert f"dtype=baregrad.{dtype}" in repr(mine)


@pytest.mark.parametrize("seed", range(6))
def test_options_mean_the_same(seed):
    random_ = random.Random(100 + seed)
    try:
        for _ in range(30):
            options = {
                "precision": random_.randint(0, 8),
                "threshold": random_.choice([0, 5, 100, 1000]),
                "edgeitems": random_.randint(1, 4),
                "linewidth": random_.choice([10, 40, 80, 120]),
                "sci_mode": random_.choice([None, True, False]),
            }
            torch.set_printoptions(**options)
            bg.set_printoptions(**options)
            for _ in range(5):
                values = some_values(random_, some_shape(random_), "float32")
                assert repr(bg.asarray(values)) == repr(torch.tensor(values)), options
    finally:
        torch.set_printoptions(profile="default")
        bg.set_printoptions(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)
