"""Networks nested thousands deep: no stack overflow, no quadratic time."""

import os
import resource
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import copy, gc, pickle, sys, time
import baregrad as bg

depth = int(sys.argv[1])
kind = sys.argv[2]


class Python(bg.nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return self.inside(x)


def build():
    net = bg.nn.Linear(2, 2)
    for _ in range(depth):
        net = bg.nn.Sequential(net) if kind == "Sequential" else Python(net)
    return net


def outside_in():
    net = last = bg.nn.ModuleList()
    for _ in range(depth):
        inner = bg.nn.ModuleList()
        last.append(inner)
        last = inner
    return net


def attempt(name, function):
    began = time.process_time()
    try:
        result = function()
    except (ValueError, RecursionError, MemoryError) as error:
        assert str(error), name
        result = type(error).__name__
    print(name, result if isinstance(result, (str, int, bool)) else "worked", flush=True)


net = build()
x = bg.ones((1, 2))
attempt("forward", lambda: net(x).shape == (1, 2))
attempt("backward", lambda: net(x).sum().backward())
attempt("parameters", lambda: len(list(net.parameters())))
attempt("buffers", lambda: len(list(net.buffers())))
attempt("train", lambda: net.train(False).training)
attempt("eval below", lambda: any(m.training for m in net.modules()))
attempt("modules", lambda: len(list(net.modules())))
attempt("named_modules", lambda: len(list(net.named_modules())))
attempt("state_dict", lambda: len(net.state_dict()))
attempt("load_state_dict", lambda: net.load_state_dict(net.state_dict()))
attempt("to", lambda: net.to(bg.float64))
attempt("apply", lambda: net.apply(lambda m: None))
attempt("zero_grad", net.zero_grad)
attempt("requires_grad_", lambda: net.requires_grad_(True))
attempt("repr", lambda: len(repr(net)) > depth)
attempt("deepcopy", lambda: copy.deepcopy(net))
attempt("pickle", lambda: len(pickle.dumps(net)) > depth)
attempt("optimizer", lambda: bg.optim.SGD(net.parameters(), 0.1))
attempt("cycle", lambda: list(net.modules())[-2].add_module("again", net))
del net
gc.collect()
print("gone")
net = outside_in()
attempt("parameters", lambda: len(list(net.parameters())))
del net
gc.collect()
print("gone")
"""


def run(depth, kind, limit, stack=8 << 20):
    code = textwrap.dedent(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(depth), kind],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stack, stack)),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines.count("gone") == 2
    return dict(line.rsplit(" ", 1) for line in lines if line != "gone")


def test_what_works_at_a_depth_that_networks_have():
    found = run(80, "Sequential", 100)
    failed = {name: result for name, result in found.items() if result.endswith("Error")}
    assert failed == {"cycle": "ValueError"}
    assert (found["parameters"], found["modules"], found["train"]) == ("0", "81", "False")
    assert found["eval below"] == "False"
    found = run(80, "Python", 100)
    assert {name for name, result in found.items() if result.endswith("Error")} == {"cycle"}


@pytest.mark.parametrize("kind", ["Sequential", "Python"])
def test_five_thousand_deep(kind):
    found = run(5000, kind, 100)
    # Python's own limit of recursion holds for copies and pickles, and for forward in Python.
    failed = {name for name, result in found.items() if result.endswith("Error")}
    allowed = {"cycle", "deepcopy", "pickle"}
    if kind == "Python":
        allowed |= {"forward", "backward"}
    assert failed == allowed
    assert found["modules"] == "5001"


def test_a_small_stack():
    found = run(10_000, "Sequential", 100, stack=1 << 20)
    assert found["forward"] == "ValueError" and found["train"] == "False"


@pytest.mark.skipif(not os.environ.get("BAREGRAD_TEST_LONG"), reason="takes a minute")
@pytest.mark.parametrize("kind", ["Sequential", "Python"])
@pytest.mark.parametrize("depth", [30_000, 100_000])
def test_deeper(depth, kind):
    run(depth, kind, 500)
