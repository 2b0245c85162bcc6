"""What error messages show of values: short, and never another error instead."""

import sys

import baregrad as bg
import pytest


def nested(depth):
    out = []
    for _ in range(depth):
        out = [out]
    return out


class Raises:
    def __repr__(self):
        raise ZeroDivisionError("repr")

    __str__ = __repr__


class Endless:
    def __repr__(self):
        return "x" * 100_000


def weights():
    return [bg.zeros(2, requires_grad=True)]


def group():
    return bg.optim.Adam(weights()).param_groups[0]


CALLS = {
    "betas": lambda value: bg.optim.Adam(weights(), betas=value),
    "ParamGroup": lambda value: group().__delitem__(value),
    "norm_type": lambda value: bg.optim.clip_grad_norm_(weights(), 1.0, value),
    "mode": lambda value: bg.optim.lr_scheduler.ReduceLROnPlateau(bg.optim.SGD(weights(), 1.0), value),
    "DataLoader": lambda value: bg.data.DataLoader([1, 2], progress=value),
    "order": lambda value: bg.data.DataLoader([1, 2]).load_state_dict({"order": value}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "value", [nested(5 * sys.getrecursionlimit()), Raises(), Endless(), 10**5000, [0] * 20_000],
    ids=["nested", "raises", "endless", "digits", "long"],
)  # fmt: skip
def test_values_that_have_no_short_repr(name, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        CALLS[name](value)
    text = str(caught.value)
    assert name in text and len(text) < 300
    assert "recursion" not in text and "digits" not in text


@pytest.mark.parametrize("name", [(), 3, None, "momentums", bg.float32])
def test_options_of_any_kind(name):
    optimizer = bg.optim.SGD(weights(), 0.1)
    for options in ({name: 1}, {name: 1, "x": 2}):
        with pytest.raises(ValueError, match="^SGD: a group needs 'params', this one has"):
            optimizer.add_param_group(options)
        with pytest.raises(ValueError, match="^SGD: no option "):
            optimizer.add_param_group({"params": weights()} | options)
    with pytest.raises(KeyError, match="SGD: .* cannot be set"):
        optimizer.param_groups[0][name] = 1


def test_a_dtype_that_numpy_cannot_show():
    with pytest.raises(TypeError, match="^__array__: .*list.* is no dtype"):
        bg.ones(2).__array__(nested(5 * sys.getrecursionlimit()))


def test_numbers_that_are_too_long_to_print():
    with pytest.raises(ValueError, match="^DataLoader.set_epoch: epoch "):
        bg.data.DataLoader([1, 2]).set_epoch(10**5000)
