"""Random hostile calls of everything public (hostile/): the result is valid or a good error.

Each call must end within 5 seconds, in which the time it waits for a processor does not count.
BAREGRAD_TEST_LONG=1 makes 2,000 calls of each of the 2,004 callables, with and without
PYTHONMALLOC=debug: 8 million calls, 3 minutes of one core on 2026-11-18. At the lowest
priority beside several builds each half took 20 minutes."""

import os

import pytest

from hostile import instances
from hostile.surface import public_classes, targets
from hostile.watch import watch

LONG = bool(os.environ.get("BAREGRAD_TEST_LONG"))
CALLS = 2000 if LONG else 50
PARTS = 40 if LONG else 3


def test_every_public_class_has_an_object_to_call_methods_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in public_classes().items():
        made = instances.maker(name, kind)()
        assert isinstance(made, kind), name


def test_the_surface_is_not_lost():
    found = targets()
    names = {target.name for target in found}
    for name in (
        "baregrad.sin",
        "baregrad.Tensor.__add__",
        "baregrad.Tensor.grad:set",
        "baregrad.nn.Linear",
        "baregrad.nn.functional.cross_entropy",
        "baregrad.optim.lr_scheduler.LRScheduler.step",
        "baregrad.io.save_checkpoint",
        "baregrad.data.DataLoader.__iter__",
        "baregrad.memory.set_limit",
    ):
        assert name in names
    assert len(found) > 1900
    known = [target for target in found if target.kind == "function" and target.signatures]
    assert len(known) == sum(target.kind == "function" for target in found)


def test_a_call_that_takes_too_long_is_found():
    findings, made = watch(["baregrad.sin"], 0, 3, limit=0.0)
    assert [finding.number for finding in findings] == [0, 1, 2]
    assert all(finding.what.startswith("it took ") for finding in findings)
    assert made == {"baregrad.sin": 3}


@pytest.mark.parametrize("debug", [False, True] if LONG else [True])
@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_calls_end_in_good_errors_at_worst(part, debug):
    names = [target.name for target in targets()][part::PARTS]
    findings, made = watch(names, 0, CALLS, debug)
    assert not findings, "\n".join(map(str, findings))
    assert made == dict.fromkeys(names, CALLS)
