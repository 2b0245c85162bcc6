"""Memory that changes while it is read: by other threads, and by code that conversions call.

Results are undefined and Python errors are fine, but a crash is not. A crash ends a process, so
each group of attacks runs in its own process, also with Python's memory checks.
"""

import os
import random
import resource
import subprocess
import sys
import threading
import time

import baregrad as bg
import numpy as np
import pytest

MEMORY = 16 << 30
LONG = os.environ.get("BAREGRAD_TEST_LONG") == "1"
SECONDS = 2.0 if LONG else 0.08
ERRORS = (ValueError, IndexError, TypeError, RuntimeError, KeyError, AttributeError, MemoryError,
          OverflowError)


def attack(work, change):
    """Calls work() repeatedly, while another thread calls change(k)."""
    done = threading.Event()

    def changing():
        k = 0
        while not done.is_set():
            try:
                change(k)
            except ERRORS:
                pass
            k += 1

    thread = threading.Thread(target=changing)
    thread.start()
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            try:
                work()
            except ERRORS:
                pass
    finally:
        done.set()
        thread.join()


# ---- Indices and masks that another thread writes to --------------------------------------------

N = 20_000


def index_attacks():
    good = np.arange(N, dtype=np.int64) % 50
    memory = good.copy()
    indices = bg.asarray(memory, copy=False)
    bad = [np.full(N, 2**50), np.full(N, -(2**50)), good, np.full(N, -51), good]
    table = bg.rand(50, 3)
    wide = bg.rand(N, 50)
    column = indices.reshape(N, 1)
    embedding = bg.nn.Embedding(50, 3)
    weight = bg.rand(50, requires_grad=True)

    def flip(k):
        memory[:] = bad[k % len(bad)]

    def put():
        x = bg.zeros(50)
        x[indices] = 1.0

    def put_added():
        bg.zeros(50).index_put((indices,), bg.ones(N), accumulate=True)

    def losses():
        logits = wide.clone().requires_grad_()
        bg.nn.functional.cross_entropy(logits, indices).backward()
        bg.nn.functional.cross_entropy(logits, indices, weight=bg.ones(50), reduction="none")
        bg.nn.functional.cross_entropy(logits, indices, label_smoothing=0.1)

    works = {
        "take": lambda: bg.take(table, indices, axis=0),
        "take gradient": lambda: bg.sum(bg.take(weight, indices, axis=0)).backward(),
        "index_select": lambda: table.index_select(0, indices),
        "index": lambda: table[indices],
        "index 2": lambda: table[indices, 0],
        "gather": lambda: wide.gather(1, column),
        "take_along_axis": lambda: bg.take_along_axis(wide, column, axis=1),
        "scatter": lambda: wide.scatter(1, column, 1.0),
        "scatter_add": lambda: wide.scatter_add(1, column, bg.ones((N, 1))),
        "index_put": put,
        "index_put accumulate": put_added,
        "embedding": lambda: bg.sum(embedding(indices)).backward(),
        "cross_entropy": losses,
        "nll_loss": lambda: bg.nn.functional.nll_loss(wide, indices),
        "one_hot": lambda: bg.nn.functional.one_hot(indices, 50),
    }
    for work in works.values():
        attack(work, flip)
        memory[:] = good


def count_attacks():
    memory = np.ones(N, dtype=np.int64)
    counts = bg.asarray(memory, copy=False)
    x = bg.rand(N)
    attack(lambda: bg.repeat(x, counts), lambda k: memory.fill((1, 0, 40, 1)[k % 4]))


def mask_attacks():
    memory = np.zeros(N * 4, dtype=bool)
    mask = bg.asarray(memory, copy=False)
    x = bg.rand(N * 4)
    square = mask.reshape(200, 400)
    grid = x.reshape(200, 400)

    def put():
        y = bg.zeros(N * 4)
        y[mask] = 1.0

    works = [
        lambda: bg.masked_select(x, mask),
        lambda: x[mask],
        lambda: bg.nonzero(square),
        lambda: grid[square],
        lambda: bg.argwhere(square) if hasattr(bg, "argwhere") else None,
        lambda: bg.where(mask, x, 0),
        lambda: bg.sum(x.clone().requires_grad_()[mask]).backward(),
        put,
    ]
    for work in works:
        attack(work, lambda k: memory.fill(k % 2))


def order_attacks():
    memory = np.random.default_rng(0).random(N).astype(np.float32)
    others = [memory.copy(), np.full(N, np.nan, np.float32), memory[::-1].copy(),
              np.full(N, np.inf, np.float32)]
    x = bg.asarray(memory, copy=False)
    rows = x.reshape(100, 200)
    works = [
        lambda: bg.sort(x),
        lambda: bg.argsort(rows, axis=0),
        lambda: x.topk(10),
        lambda: x.topk(5000),
        lambda: bg.unique_all(x),
        lambda: bg.searchsorted(x, x),
        lambda: bg.argmax(rows, axis=1),
        lambda: rows.max(dim=0),
        lambda: bg.nn.functional.max_pool2d(x.reshape(1, 1, 100, 200), 3),
        lambda: bg.linalg.svd(x[:400].reshape(20, 20)),
        lambda: repr(rows),
        lambda: x.tolist(),
        lambda: bg.median(x) if hasattr(bg, "median") else None,
    ]
    for work in works:
        attack(work, lambda k: np.copyto(memory, others[k % len(others)]))
    numbers = np.ones(N, dtype=np.int32)
    divisor = bg.asarray(numbers, copy=False)
    attack(lambda: bg.arange(N, dtype=bg.int32) // divisor, lambda k: numbers.fill(k % 3 - 1))
    attack(lambda: bg.arange(N, dtype=bg.int32) % divisor, lambda k: numbers.fill(k % 3 - 1))
    attack(lambda: divisor**divisor, lambda k: numbers.fill(k % 5 - 2))
    attack(lambda: divisor << divisor, lambda k: numbers.fill(k % 90 - 20))


# ---- Modules that change while they are called ----------------------------------------------------


def module_attacks():
    x = bg.rand(512, 64)
    small = bg.rand(3, 64)

    def linears(count=6):
        return bg.nn.Sequential(*(bg.nn.Linear(64, 64) for _ in range(count)))

    net = linears()
    other = {name: value.clone() for name, value in net.state_dict().items()}

    def replaced(k):
        layer = net[k % 6]
        layer.weight = bg.nn.Parameter(bg.rand(64, 64))
        layer.bias = None if k % 2 else bg.nn.Parameter(bg.rand(64))

    attack(lambda: net(x), replaced)

    net = linears()

    def children(k):
        net.append(bg.nn.Linear(64, 64))
        net.insert(0, bg.nn.Linear(64, 64))
        net[1] = bg.nn.Linear(64, 64)
        del net[-1]
        net.pop(0)

    attack(lambda: net(x), children)
    attack(lambda: (list(net.parameters()), list(net.named_modules()), net.state_dict()), children)
    attack(lambda: (net.load_state_dict(other), net.train(), net.zero_grad(), repr(net)), children)
    attack(lambda: net.apply(lambda m: None), children)

    net = linears()
    attack(lambda: net(x), lambda k: (net.double(), net.float())[0])
    net = linears()
    attack(lambda: net(x), lambda k: net[0].register_forward_hook(lambda *a: None).remove())

    class Python(bg.nn.Module):
        def forward(self, x):
            return x * 2

    net = bg.nn.Sequential(bg.nn.Linear(64, 64), Python(), bg.nn.Linear(64, 64))
    attack(lambda: net(x), lambda k: setattr(net, "1", Python()))
    attack(lambda: net(small), lambda k: setattr(net, "1", Python()))

    for make in (
        lambda: bg.nn.LSTM(64, 64),
        lambda: bg.nn.GRU(64, 64),
        lambda: bg.nn.MultiheadAttention(64, 4),
        lambda: bg.nn.BatchNorm1d(64),
        lambda: bg.nn.LayerNorm(64),
        lambda: bg.nn.MLP([64, 64, 64]),
    ):
        net = make()
        names = [n for n, p in net.named_parameters()]

        def swapped(k, net=net, names=names):
            *path, leaf = names[k % len(names)].split(".")
            owner = net
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, leaf, bg.nn.Parameter(getattr(owner, leaf).detach().clone()))

        if isinstance(net, bg.nn.MultiheadAttention):
            attack(lambda net=net: net(x, x, x), swapped)
        else:
            attack(lambda net=net: net(x), swapped)


def reentrant_attacks():
    """A hook, or a forward, changes what is being called."""
    x = bg.rand(8, 4)

    def hooked(change):
        net = bg.nn.Sequential(*(bg.nn.Linear(4, 4) for _ in range(5)))
        net[1].register_forward_hook(lambda *a: change(net))
        for _ in range(5):
            try:
                net(x)
            except ERRORS:
                return

    def clear(net):
        while len(net) > 0:
            del net[0]

    def grow(net):
        if len(net) < 60:
            for _ in range(10):
                net.append(bg.nn.Linear(4, 4))

    hooked(clear)
    hooked(grow)
    hooked(lambda net: net.pop(-1) and None)
    hooked(lambda net: setattr(net[0], "weight", bg.nn.Parameter(bg.rand(4, 4))))
    hooked(lambda net: net.double() and None)
    hooked(lambda net: net.load_state_dict(net.state_dict()) and None)

    net = bg.nn.Sequential(*(bg.nn.Linear(4, 4) for _ in range(5)))
    net.apply(lambda m: clear(net) if isinstance(m, bg.nn.Linear) else None)
    net = bg.nn.Sequential(*(bg.nn.Linear(4, 4) for _ in range(5)))
    for _ in net.parameters():
        clear(net)
    net = bg.nn.Sequential(*(bg.nn.Linear(4, 4) for _ in range(5)))
    for _ in net:
        clear(net)

    class Clears(bg.nn.Module):
        def __init__(self, owner):
            super().__init__()
            self.owner = [owner]

        def forward(self, x):
            clear(self.owner[0])
            return x

        def train(self, mode=True):
            clear(self.owner[0])
            return self

        def extra_repr(self):
            clear(self.owner[0])
            return ""

    for use in (lambda n: n(x), lambda n: n.eval(), repr):
        net = bg.nn.Sequential(bg.nn.Linear(4, 4))
        net.append(Clears(net)).append(bg.nn.Linear(4, 4))
        use(net)

    weights = [bg.nn.Parameter(bg.ones(4)) for _ in range(4)]
    optimizer = bg.optim.SGD(weights, lr=0.1)

    def closure():
        optimizer.param_groups.clear()
        weights.clear()
        return bg.ones(())

    try:
        optimizer.step(closure)
        optimizer.step()
    except ERRORS:
        pass


def tensor_attacks():
    """Gradients and flags of tensors that other threads compute with."""
    w = bg.rand(64, 64, requires_grad=True)
    x = bg.rand(256, 64)

    def train():
        bg.sum((x @ w) ** 2).backward()

    def grads(k):
        w.grad = None if k % 2 else bg.rand(64, 64)

    optimizer = bg.optim.AdamW([w], lr=1e-3)
    attack(train, grads)
    attack(lambda: (train(), optimizer.step()), grads)
    attack(lambda: (train(), optimizer.step()), lambda k: optimizer.zero_grad(k % 2 == 0))
    attack(lambda: bg.nn.utils.clip_grad_norm_([w], 1.0), grads)
    attack(train, lambda k: w.register_hook(lambda g: None).remove())

    def retained():
        y = x @ w
        y.retain_grad()
        z = bg.sum(y * y)
        z.backward(retain_graph=True)
        return y, z

    y, z = retained()
    attack(lambda: z.backward(retain_graph=True), lambda k: (y.retain_grad(), repr(y.grad)))
    attack(train, lambda k: w.requires_grad_(k % 3 != 0))
    w.requires_grad_()
    attack(train, lambda k: (w.grad, w.is_leaf, w.grad_fn, repr(w.grad)))

    def in_place(k):
        with bg.no_grad():
            w.mul_(0.5)
            w.add_(1.0)
            w.fill_(k % 3)

    attack(train, in_place)
    view = w.detach().reshape(-1)
    attack(lambda: (view + 1, w[0] * 2, w.T @ w), in_place)
    generator = bg.Generator()
    attack(lambda: bg.rand(5000, generator=generator), lambda k: generator.manual_seed(k))
    attack(lambda: bg.rand(5000), lambda k: bg.manual_seed(k))
    y = bg.sum((x @ w) ** 2)
    attack(lambda: y.backward(retain_graph=True), lambda k: y.backward(retain_graph=True))
    attack(train, lambda k: bg.set_num_threads(1 + k % 4))
    ema = bg.optim.EMA([w], 0.9) if hasattr(bg.optim, "EMA") else None
    if ema is not None:
        attack(lambda: ema.update(), lambda k: ema.swap() if k % 2 else ema.copy_to())

    def anomalies(k):
        with bg.autograd.detect_anomaly(), bg.autograd.label("x"):
            bg.exp(bg.ones(3))

    attack(train, anomalies)

    def recorders(k):
        with bg.graph.GradientRecorder() as recorder:
            recorder.norm(w)

    attack(train, recorders)


# ---- Conversions that clear their container ------------------------------------------------------


class Clearing:
    """A number whose conversion empties the list or dict that contains it."""

    def __init__(self, container, value=2):
        self.container = container
        self.value = value

    def __index__(self):
        self.container.clear()
        return self.value

    def __float__(self):
        self.container.clear()
        return float(self.value)

    def __str__(self):
        self.container.clear()
        return "text"

    def __bool__(self):
        self.container.clear()
        return True


class ClearingInt(int):
    container = None

    def __str__(self):
        self.container.clear()
        return "1"

    __repr__ = __index__ = __str__


class ClearingArray:
    def __init__(self, container):
        self.container = container

    def __array__(self, dtype=None, copy=None):
        self.container.clear()
        return np.ones(3)


class ClearingDlpack(ClearingArray):
    __array__ = None

    def __dlpack__(self, **kwargs):
        self.container.clear()
        return np.ones(3).__dlpack__()

    def __dlpack_device__(self):
        self.container.clear()
        return (1, 0)


def lists():
    """Lists with every kind of element that clears them, and other elements around it."""
    for make in (Clearing, ClearingArray, ClearingDlpack):
        items = []
        items.extend([make(items)] + [float(i) + 0.5 for i in range(5)] + [object()])
        yield items
        items = []
        items.extend([10**6 + i for i in range(3)] + [make(items)] + [10**6 + 7, 10**6 + 8])
        yield items
    items = []
    big = ClearingInt(2**100)
    ClearingInt.container = items
    items.extend([big] + [10**6 + i for i in range(5)])
    yield items


def list_attacks():
    x = bg.rand(4, 4, 4)
    calls = [
        lambda v: bg.nn.MLP(v),
        lambda v: bg.pad(x, v),
        lambda v: bg.nn.functional.pad(x, v),
        lambda v: bg.split(x, v),
        lambda v: x.split(v),
        lambda v: bg.tensor(v),
        lambda v: bg.asarray(v),
        lambda v: bg.tensor([v, v]),
        lambda v: x[v],
        lambda v: x.__setitem__(0, v),
        lambda v: x.__setitem__(v, 1.0),
        lambda v: bg.zeros(v),
        lambda v: x.reshape(v),
        lambda v: x.sum(v),
        lambda v: x.permute(v),
        lambda v: bg.tile(x, v),
        lambda v: bg.roll(x, v, v),
        lambda v: bg.flip(x, v),
        lambda v: bg.concat(v),
        lambda v: bg.stack(v),
        lambda v: bg.meshgrid(*v),
        lambda v: bg.tensordot(x, x, (v, v)),
        lambda v: bg.nn.Conv2d(2, 2, v),
        lambda v: bg.nn.functional.layer_norm(x, v),
        lambda v: bg.optim.SGD(v, lr=0.1),
        lambda v: bg.autograd.grad(v, v),
        lambda v: bg.autograd.backward(v),
        lambda v: bg.graph.to_dot(v, v),
        lambda v: bg.einsum("ij,jk", *v),
        lambda v: bg.data.TensorDataset(*v),
        lambda v: list(bg.data.DataLoader([v, v], batch_size=2)),
        lambda v: bg.nn.Sequential(*v),
        lambda v: bg.nn.ModuleList(v),
        lambda v: bg.nn.ParameterList(v),
        lambda v: bg.nn.utils.clip_grad_norm_(v, 1.0),
        lambda v: bg.optim.lr_scheduler.MultiStepLR(
            bg.optim.SGD([bg.ones(2, requires_grad=True)], lr=0.1), v),
        lambda v: bg.result_type(*v),
        lambda v: bg.broadcast_shapes(v, v),
        lambda v: bg.isdtype(bg.float32, tuple(v)),
    ]
    for call in calls:
        for items in lists():
            try:
                call(items)
            except (*ERRORS, BufferError, NotImplementedError):
                pass


def dict_attacks(folder):
    writer = bg.io.MetricsWriter(folder + "/m.jsonl")
    net = bg.nn.Linear(2, 2)
    calls = [
        lambda d: writer.write(1, d),
        lambda d: bg.io.save_checkpoint(folder + "/c", d),
        lambda d: bg.io.save_checkpoint(folder + "/c", {"m": d}),
        lambda d: bg.io.safetensors_bytes(d),
        lambda d: bg.io.safetensors_bytes({"w": bg.ones(1)}, d),
        lambda d: bg.io.save_npz(folder + "/x.npz", d),
        lambda d: net.load_state_dict(d),
        lambda d: bg.graph.to_dot(bg.ones(1, requires_grad=True) * 2, d),
        lambda d: bg.nn.Sequential(d),
        lambda d: bg.nn.ModuleDict(d),
        lambda d: bg.optim.SGD([bg.ones(2, requires_grad=True)], lr=0.1).load_state_dict(d),
        lambda d: net.__setstate__(d),
        lambda d: net.__setstate__({"training": True, "parameters": d, "buffers": d,
                                    "children": d, "members": d, "attributes": d}),
    ]
    for call in calls:
        for kind in (Clearing, ClearingArray, ClearingDlpack):
            entries = {}
            entries["first" + "x" * 50] = kind(entries)
            for i in range(5):
                entries["name" + str(i) * 50] = float(i) + 0.25
            try:
                call(entries)
            except (*ERRORS, OSError):
                pass
        entries = {}
        value = ClearingInt(7)
        ClearingInt.container = entries
        entries["a" * 60] = value
        entries["b" * 60] = 10**6 + 3
        try:
            call(entries)
        except (*ERRORS, OSError):
            pass


GROUPS = {
    "indices": index_attacks,
    "counts": count_attacks,
    "masks": mask_attacks,
    "order": order_attacks,
    "modules": module_attacks,
    "reentrant": reentrant_attacks,
    "tensors": tensor_attacks,
    "lists": list_attacks,
}


def main(group):
    random.seed(0)
    # Absurd sizes fail even if the system overcommits memory.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if group == "dicts":
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            dict_attacks(folder)
    else:
        GROUPS[group]()


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("group", [*GROUPS, "dicts"])
def test_no_crash(group, checked):
    options = ["-X", "dev"] if checked else []
    run = subprocess.run(
        [sys.executable, "-B", *options, "-X", "faulthandler", __file__, group],
        env={**os.environ, **({"PYTHONMALLOC": "debug"} if checked else {})},
        capture_output=True, text=True, timeout=600, check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]


if __name__ == "__main__":
    main(sys.argv[1])
