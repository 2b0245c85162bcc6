"""A parameter stays the same object: through changes of dtype, .data, copies, and beside other
threads."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import baregrad as bg
from baregrad import nn, optim

X = bg.asarray(np.linspace(-1, 1, 24).reshape(8, 3))
Y = (X * X).sum(dim=1, keepdim=True)

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Lion": lambda p: optim.Lion(p, lr=0.1),
}


def net_of(seed):
    bg.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def train(net, optimizer, dtype, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(X.to(dtype)), Y.to(dtype))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_an_optimizer_made_before_double_trains(make):
    early, late = net_of(1), net_of(1)
    before = make(early.parameters())
    early.double()
    late.double()
    after = make(late.parameters())
    assert train(early, before, bg.float64, 5) == train(late, after, bg.float64, 5)
    for p, q in zip(early.parameters(), late.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("dtype", [bg.float64, bg.bfloat16], ids=str)
def test_training_goes_on_after_a_change_in_the_middle(make, dtype):
    net = net_of(2)
    optimizer = make(net.parameters())
    train(net, optimizer, bg.float32, 3)
    net.to(dtype)
    before = [p.detach().clone() for p in net.parameters()]
    train(net, optimizer, dtype, 1)
    for p, q in zip(net.parameters(), before, strict=True):
        assert p.dtype == dtype and not bool((p.detach() == q).all())
    # From here on like one that always had this dtype, with the same state.
    other = copy.deepcopy(net)
    resumed = make(other.parameters())
    resumed.load_state_dict(optimizer.state_dict())
    assert train(net, optimizer, dtype, 3) == train(other, resumed, dtype, 3)


def test_schedules_averages_and_groups_follow():
    net = net_of(3)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    averages = optim.EMA(net.parameters(), 0.5)
    net.double()
    assert all(p.dtype == bg.float64 for p in optimizer.param_groups[0]["params"])
    train(net, optimizer, bg.float64, 2)
    schedule.step()
    averages.update()
    assert optimizer.param_groups[0]["lr"] == 0.05
    trained = [p.detach().clone() for p in net.parameters()]
    averages.swap()
    averages.swap()
    for p, q in zip(net.parameters(), trained, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.numpy())


def test_state_of_another_dtype_is_converted_as_pytorch_does():
    narrow, wide = net_of(4), net_of(4).double()
    first = optim.Adam(narrow.parameters())
    train(narrow, first, bg.float32, 2)
    second = optim.Adam(wide.parameters())
    second.load_state_dict(first.state_dict())
    wide.load_state_dict(narrow.state_dict())
    assert {p.dtype for p in wide.parameters()} == {bg.float64}
    train(wide, second, bg.float64, 1)


def test_objects_handles_and_hooks_stay():
    net = net_of(5)
    weight = net[0].weight
    seen = []
    weight.register_hook(lambda g: seen.append(g.dtype))
    aliases = [weight, next(net.parameters()), copy.copy(weight)]
    net.double()
    assert all(a.dtype == bg.float64 for a in aliases)
    assert net[0].weight is weight and weight.requires_grad and weight.is_leaf
    net(X).sum().backward()
    assert seen == [bg.float64] and weight.grad.dtype == bg.float64
    net.float()
    assert weight.dtype == bg.float32 and weight.grad.dtype == bg.float32
    net.requires_grad_(False).half()
    assert weight.dtype == bg.float16 and not weight.requires_grad


def test_a_graph_from_before_sends_its_gradients_on():
    net = net_of(6)
    loss = net(X.to(bg.float32)).sum()
    net.double()
    loss.backward()
    again = net_of(6)
    again(X.to(bg.float32)).sum().backward()
    for p, q in zip(net.parameters(), again.parameters(), strict=True):
        assert p.grad.dtype == bg.float64
        np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy().astype(np.float64))


def test_copies_of_a_module_with_its_optimizer():
    net = net_of(7)
    pair = {"net": net, "optimizer": optim.Adam(net.parameters(), lr=0.1)}
    train(net, pair["optimizer"], bg.float32, 1)
    net.double()
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert {p.dtype for p in other.parameters()} == {bg.float64}
        assert all(p is not q for p, q in zip(other.parameters(), net.parameters(), strict=True))
        train(other, optim.SGD(other.parameters(), lr=0.1), bg.float64, 1)


def test_data_gives_and_takes_elements():
    w = nn.Parameter(bg.ones(3))
    optimizer = optim.SGD([w], lr=1.0)
    assert not w.data.requires_grad and w.data.is_leaf
    w.data.fill_(2.0)
    assert w.tolist() == [2.0, 2.0, 2.0]
    w.data = bg.asarray([1.0, 2.0, 3.0], dtype=bg.float64)
    assert w.dtype == bg.float64 and w.requires_grad
    w.sum().backward()
    optimizer.step()
    assert w.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="set_data: .*the shape stays"):
        w.data = bg.ones(4)
    with pytest.raises(TypeError, match="requires a gradient"):
        w.data = bg.ones(3, dtype=bg.int64)
    with pytest.raises(TypeError):
        w.data = [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="only leaves"):
        (w * 2).data = bg.ones(3)


def test_what_numpy_holds_outlives_the_change():
    for share in (
        lambda p: p.numpy(),
        np.asarray,
        np.from_dlpack,
        lambda p: np.frombuffer(memoryview(p), np.float32),
    ):
        net = nn.Linear(64, 64).requires_grad_(False)
        wanted = net.weight.clone().numpy().copy()
        held = share(net.weight)
        net.double()
        net.weight.data = bg.zeros((64, 64))
        gc.collect()
        rubbish = [bg.full((64, 64), 7.0) for _ in range(20)]
        np.testing.assert_array_equal(held.reshape(64, 64), wanted)
        del rubbish


def test_a_change_beside_threads_that_compute():
    net = nn.Linear(256, 256)
    stop = threading.Event()
    failures = []

    def work():
        x = {d: bg.ones((64, 256), dtype=d) for d in (bg.float32, bg.float64)}
        while not stop.is_set():
            try:
                with bg.no_grad():
                    y = net.weight @ x[net.weight.dtype].T
                assert y.shape == (256, 64)
            except TypeError:
                pass  # the dtype changed between the two reads
            except Exception as e:  # noqa: BLE001
                failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(60):
        net.to(bg.float64 if i % 2 == 0 else bg.float32)
    stop.set()
    for t in threads:
        t.join()
    assert failures == []


def test_a_hook_may_change_the_dtype():
    # In the middle of a backward in this thread: it does not wait for itself.
    net = nn.Linear(100, 100)
    y = net(bg.ones((100, 100)))
    y.register_hook(lambda g: net.double() and None)
    y.sum().backward()
    assert net.weight.grad.dtype == bg.float64
