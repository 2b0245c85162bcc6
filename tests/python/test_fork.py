"""Forks while other threads use the library for the first time: the child works.

Each trial is a separate process, since a first use happens once. It starts threads, waits for a
random moment and forks; the child uses everything a little and must end within 5 s.
"""

import os
import random
import subprocess
import sys

import pytest

LONG = os.environ.get("BAREGRAD_TEST_LONG") == "1"
TRIALS = 1000 if LONG else 24

PROGRAM = r"""
import os, random, sys, threading, time

seed, forks, early_import = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"
rng = random.Random(seed)

if early_import:
    import baregrad as bg


def some_of_everything():
    import tempfile
    x = bg.rand(200, 200)
    assert (x @ x).shape == (200, 200)
    assert float(bg.sum(bg.ones(100_000)).item()) == 100_000.0
    bg.manual_seed(3)
    assert bg.randn(5).shape == (5,)
    w = bg.ones((3, 3), requires_grad=True)
    v = w[0]
    (v * v).sum().backward()
    bg.zeros(1 << 20)
    with bg.autograd.detect_anomaly(), bg.autograd.label("x"):
        bg.exp(bg.ones(3))
    with bg.graph.GradientRecorder():
        bg.sum(w * w).backward()
    net = bg.nn.Sequential(bg.nn.Linear(4, 8), bg.nn.ReLU())
    loss = net(bg.ones((64, 4))).sum()
    loss.backward()
    bg.optim.AdamW(net.parameters(), lr=1e-3).step()
    with tempfile.TemporaryDirectory() as folder:
        bg.io.save_checkpoint(folder + "/c", {"m": net.state_dict()})
        assert len(bg.io.load_checkpoint(folder + "/c")["m"]) == 2
    bg.nn.functional.conv2d(bg.ones((1, 1, 9, 9)), bg.ones((1, 1, 3, 3)))
    bg.nn.functional.layer_norm(bg.ones((4, 4)), 4)
    bg.sort(bg.rand(1000))
    bg.config()


def first_uses(order):
    global bg
    import baregrad as bg
    uses = [
        lambda: bg.rand(100, 100),
        lambda: bg.ones((300, 300)) @ bg.ones((300, 300)),
        lambda: bg.sum(bg.ones(200_000)),
        lambda: bg.sum(bg.ones(3, requires_grad=True) * 2).backward(),
        lambda: bg.memory.stats("system"),
        lambda: bg.memory.stats("arena:4"),
        lambda: bg.graph.GradientRecorder().__enter__(),
        lambda: bg.config(),
        lambda: bg.randn(1000),
        lambda: bg.manual_seed(1),
    ]
    for k in order:
        uses[k]()
    while True:
        uses[0]()
        uses[2]()
        uses[3]()


for _ in range(rng.randint(1, 3)):
    order = list(range(10))
    rng.shuffle(order)
    threading.Thread(target=first_uses, args=(order,), daemon=True).start()
time.sleep(rng.choice([0, 1e-4, 1e-3, 5e-3, 1e-2]) * rng.random())
if not early_import:
    time.sleep(0.3 * rng.random())

for _ in range(forks):
    ready = "bg" in globals()
    child = os.fork()
    if child == 0:
        # Python's own lock of a module that another thread was importing stays closed.
        if ready:
            some_of_everything()
        os._exit(0)
    deadline = time.monotonic() + 5
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            break
        if time.monotonic() > deadline:
            import signal
            os.kill(child, signal.SIGABRT)
            os.waitpid(child, 0)
            print("the child hung", seed, flush=True)
            os._exit(3)
        time.sleep(0.001)
    if status != 0:
        print("the child failed", status, seed, flush=True)
        os._exit(4)
    time.sleep(rng.random() * 2e-3)
os._exit(0)
"""


def trial(seed, early_import):
    return subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(seed), "3", "1" if early_import else "0"],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "BAREGRAD_NUM_THREADS": str(random.Random(seed).choice([1, 2, 4]))},
    )


@pytest.mark.parametrize("early_import", [True, False], ids=["first op", "import"])
def test_children_of_forks_at_start_up_work(early_import):
    trials = TRIALS // 2 // 3 + 1
    for seed in range(trials):
        run = trial(seed, early_import)
        assert run.returncode == 0, (seed, run.stdout, run.stderr[-2000:])
