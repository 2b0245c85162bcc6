"""Cycles that lead through the engine: hooks, functions, modules, optimizers. All are collected."""

import gc
import weakref

import pytest

import baregrad as bg


class Marker:
    """An object whose destruction can be observed."""


def collected(make):
    """Whether all objects behind the markers of make() are gone after a collection."""
    gc.collect()
    markers = make()
    # Twice: a graph that was kept by one cycle may keep the tensors of another.
    gc.collect()
    gc.collect()
    return [ref() is None for ref in markers]


def hook_of_a_leaf():
    x, marker = bg.ones(3, requires_grad=True), Marker()
    x.register_hook(lambda g: (x, marker) and None)
    return [weakref.ref(marker)]


def hook_of_a_leaf_after_backward():
    x, marker, seen = bg.ones(3, requires_grad=True), Marker(), []
    handle = x.register_hook(lambda g: seen.append((x, marker, handle)))
    (x * 2).sum().backward()
    assert len(seen) == 1
    return [weakref.ref(marker)]


def hook_of_a_result():
    x, marker = bg.ones(3, requires_grad=True), Marker()
    y = x * 2
    y.register_hook(lambda g: (y, marker) and None)
    z = y.sum()
    z.register_hook(lambda g: (z, marker) and None)
    return [weakref.ref(marker)]


def hooks_that_meet():
    markers = [Marker(), Marker()]
    x, y = bg.ones(3, requires_grad=True), bg.ones(3, requires_grad=True)
    x.register_hook(lambda g: (y, markers[0]) and None)
    y.register_hook(lambda g: (x, markers[1]) and None)
    return list(map(weakref.ref, markers))


def hook_kept_by_an_object():
    class Watch:
        def __init__(self):
            self.x = bg.ones(2, requires_grad=True)
            self.handle = self.x.register_hook(self.see)

        def see(self, gradient):
            return None

    return [weakref.ref(Watch())]


def hook_of_a_parameter_that_knows_its_network():
    net = bg.nn.Sequential(bg.nn.Linear(3, 3), bg.nn.Linear(3, 2))
    for p in net.parameters():
        p.register_hook(lambda g, p=p: (net, p) and None)
    net(bg.ones((1, 3))).sum().backward()
    return [weakref.ref(net), weakref.ref(p)]


def trainer():
    class Trainer:
        def __init__(self):
            self.net = bg.nn.Linear(3, 2)
            self.weight = bg.ones(3, requires_grad=True)
            self.optimizer = bg.optim.AdamW([*self.net.parameters(), self.weight])
            self.schedule = bg.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)
            for p in (*self.net.parameters(), self.weight):
                p.register_hook(self.see)
            self.net.register_forward_hook(self.forward)

        def factor(self, step):
            return 0.5

        def see(self, gradient):
            self.last = gradient

        def forward(self, module, args, output):
            return output * 2

    it = Trainer()
    (it.net(bg.ones((1, 3)) * it.weight)).sum().backward()
    it.optimizer.step()
    it.schedule.step()
    return [weakref.ref(it)]


def function_that_keeps_its_output():
    class Keeps(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.marker = markers[0]
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    markers = [Marker()]
    x = bg.ones(2, requires_grad=True)
    y = Keeps.apply(x)
    found = weakref.ref(markers.pop())
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    del y
    return [found]


def checkpoint_that_keeps_its_output():
    marker, kept = Marker(), []
    x = bg.ones(2, requires_grad=True)

    def run(x):
        return x * 2 if kept is not marker else None

    kept.append(bg.autograd.checkpoint(run, x))
    return [weakref.ref(marker)]


def module_hooks():
    net, marker = bg.nn.Sequential(bg.nn.ReLU()), Marker()
    net.register_forward_hook(lambda m, a, o: (net, marker) and None)
    net[0].register_forward_pre_hook(lambda m, a: (net, marker) and None)
    net(bg.ones(2))
    return [weakref.ref(marker), weakref.ref(net)]


def module_that_holds_its_parent():
    class Child(bg.nn.Module):
        def __init__(self):
            super().__init__()
            self.above = []

    class Parent(bg.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child()
            self.child.above.append(self)

    return [weakref.ref(Parent())]


CASES = [
    hook_of_a_leaf,
    hook_of_a_leaf_after_backward,
    hook_of_a_result,
    hooks_that_meet,
    hook_kept_by_an_object,
    hook_of_a_parameter_that_knows_its_network,
    trainer,
    function_that_keeps_its_output,
    checkpoint_that_keeps_its_output,
    module_hooks,
    module_that_holds_its_parent,
]


@pytest.mark.parametrize("make", CASES, ids=[case.__name__ for case in CASES])
def test_cycles_are_collected(make):
    nodes, memory = bg.autograd.live_nodes(), bg.memory.stats()["live_bytes"]
    assert all(collected(make))
    assert bg.autograd.live_nodes() == nodes
    assert bg.memory.stats()["live_bytes"] == memory


def test_hooks_of_tensors_in_use_stay():
    seen = []

    def graph():
        x = bg.ones(3, requires_grad=True)
        x.register_hook(lambda g: seen.append(x.shape))
        return (x * 2).sum(), (x + 1).sum()

    y, z = graph()
    net = bg.nn.Linear(3, 2)
    net.weight.register_hook(lambda g: seen.append(net.weight.shape))
    optimizer = bg.optim.SGD(net.parameters(), 0.1)
    gc.collect()
    y.backward()
    gc.collect()
    z.backward()
    net(bg.ones((1, 3))).sum().backward()
    optimizer.step()
    gc.collect()
    net(bg.ones((1, 3))).sum().backward()
    assert seen == [(3,), (3,), (2, 3), (2, 3)]


def test_hooks_of_parameters_live_as_long_as_module_or_optimizer():
    seen = []

    def parameters():
        net = bg.nn.Linear(3, 2, bias=False)
        weight = net.weight
        weight.register_hook(lambda g: seen.append(weight.shape))
        return net, bg.optim.SGD([weight], 0.1)

    net, optimizer = parameters()
    del optimizer
    gc.collect()
    net(bg.ones((1, 3))).sum().backward()
    net, optimizer = parameters()
    del net
    gc.collect()
    (optimizer.param_groups[0]["params"][0] * 2).sum().backward()
    assert seen == [(2, 3), (2, 3)]


def test_hook_handles_remove_once_and_for_all():
    x, seen = bg.ones(2, requires_grad=True), []
    handle = x.register_hook(seen.append)
    other = x.register_hook(lambda g: g * 2)
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert seen == [] and x.grad.tolist() == [2.0, 2.0]
    del x
    gc.collect()
    other.remove()
