"""baregrad.nn: modules, their mechanics, copies; layers against NumPy and closed forms."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import baregrad as bg
from baregrad import nn
from baregrad.nn import functional as F


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def near(tensor, expected, tolerance=1e-5):
    np.testing.assert_allclose(
        tensor.detach().numpy(), expected, rtol=tolerance, atol=tolerance
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 4)
        self.scale = nn.Parameter(bg.ones(4))
        self.register_buffer("steps", bg.zeros(1))
        self.register_buffer("cache", bg.zeros(2), persistent=False)
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.note = "plain"

    def forward(self, x, *, twice=False):
        y = self.tail(self.hidden(x) * self.scale)
        return y * 2 if twice else y


# ---- Names and lists ----------------------------------------------------------------------------


def test_names_are_dotted_and_in_order():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale",
        "hidden.weight",
        "hidden.bias",
        "tail.1.weight",
    ]
    assert [n for n, _ in net.named_buffers()] == ["steps", "cache"]
    assert list(net.state_dict()) == [
        "scale",
        "steps",
        "hidden.weight",
        "hidden.bias",
        "tail.1.weight",
    ]
    assert [n for n, _ in net.named_modules()] == ["", "hidden", "tail", "tail.0", "tail.1"]
    assert [n for n, _ in net.named_children()] == ["hidden", "tail"]
    assert net.parameter_count() == 4 + 12 + 4 + 8
    assert [n for n, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]
    assert next(net.parameters()) is net.scale


def test_objects_keep_their_identity():
    net = Net()
    assert net.hidden is net.hidden
    assert net.hidden.weight is net.hidden.weight
    assert list(net.children())[0] is net.hidden
    assert dict(net.named_parameters())["hidden.weight"] is net.hidden.weight
    assert isinstance(net.hidden.weight, nn.Parameter)
    assert isinstance(net.hidden.weight, bg.Tensor)
    assert net.hidden.weight.requires_grad
    assert not isinstance(net.hidden.weight * 1, nn.Parameter)


def test_parameter_shares_memory_and_prints():
    data = bg.ones(2)
    p = nn.Parameter(data)
    data[0] = 5.0
    near(p, [5, 1])
    assert not data.requires_grad
    assert repr(nn.Parameter(bg.ones(2))).startswith("Parameter containing:\ntensor([1., 1.]")
    assert not nn.Parameter(bg.ones(2), requires_grad=False).requires_grad


def test_reassignment_and_deletion():
    net = Net()
    first = net.hidden
    net.hidden = nn.Identity()
    assert [n for n, _ in net.named_children()] == ["hidden", "tail"]
    assert net.hidden is not first
    net.scale = nn.Parameter(bg.zeros(7))
    assert dict(net.named_parameters())["scale"].shape == (7,)
    del net.scale
    assert "scale" not in dict(net.named_parameters())
    with pytest.raises(AttributeError):
        net.scale
    del net.hidden
    assert [n for n, _ in net.named_children()] == ["tail"]
    net.hidden = nn.Parameter(bg.ones(1))
    assert "hidden" in dict(net.named_parameters())
    net.hidden = nn.ReLU()
    assert "hidden" not in dict(net.named_parameters())
    net.steps = bg.ones(3)
    near(dict(net.named_buffers())["steps"], [1, 1, 1])
    net.steps += 1
    near(net.state_dict()["steps"], [2, 2, 2])


def test_wrong_assignments_are_refused():
    net = Net()
    with pytest.raises(TypeError, match="nn.Parameter"):
        net.scale = bg.ones(4)
    with pytest.raises(TypeError, match="Tensor"):
        net.steps = 3
    with pytest.raises(TypeError, match="Module"):
        net.hidden = 3
    with pytest.raises(TypeError, match="nn.Parameter"):
        net.hidden.weight = bg.ones((4, 3))
    with pytest.raises(ValueError, match="already"):
        net.register_buffer("note", bg.ones(1))
    with pytest.raises(ValueError, match="below itself"):
        net.tail.append(net)
    with pytest.raises(AttributeError):
        net.hidden.in_features = 5
    net.scale = None
    assert net.scale is None and "scale" not in dict(net.named_parameters())


def test_super_init_is_needed():
    class Forgets(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Forgets()

    class Never(nn.Module):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match=r"super\(\).__init__\(\)"):
        Never()(bg.ones(1))


def test_layer_attributes():
    layer = nn.Linear(3, 2, bias=False)
    assert (layer.in_features, layer.out_features, layer.bias) == (3, 2, None)
    conv = nn.Conv2d(3, 8, 3, stride=2, padding=(1, 2))
    assert (conv.kernel_size, conv.stride, conv.padding) == ((3, 3), (2, 2), (1, 2))
    assert nn.MaxPool2d(2).kernel_size == 2
    assert nn.Dropout(0.25).p == 0.25
    assert nn.MLP([2, 3, 1]).sizes == (2, 3, 1)
    assert getattr(nn.MLP([2, 3, 1]), "0").in_features == 2
    encoder = nn.TransformerEncoderLayer(8, 2, 16)
    assert encoder.self_attn.num_heads == 2
    assert encoder.self_attn.out_proj.in_features == 8
    assert encoder.norm1.eps == 1e-5
    with pytest.raises(ValueError, match="part of"):
        encoder.linear1 = nn.Linear(8, 16)
    layer.weight = nn.Parameter(bg.ones((2, 3)))
    near(layer(bg.ones(3)), [3, 3])
    assert nn.Linear(2, 2, dtype=bg.float64).weight.dtype == bg.float64


# ---- Calls --------------------------------------------------------------------------------------


def test_call_of_any_signature():
    net = Net()
    x = bg.asarray(array(5, 3))
    near(net(x, twice=True), 2 * net(x).detach().numpy())

    class Pair(nn.Module):
        def forward(self, a, b=2, *rest, **named):
            return a, b, rest, named

    assert Pair()(1, 3, 4, c=5) == (1, 3, (4,), {"c": 5})
    with pytest.raises(NotImplementedError, match="Module"):
        nn.Module()(1)


def test_python_modules_inside_cpp_ones():
    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    class Sum(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 100

    chain = nn.Sequential(Double(), nn.Sequential(Double(), nn.ReLU()), Sum(2, 1))
    x = array(4, 2)
    last = chain[2]
    weight, bias = last.weight.detach().numpy(), last.bias.detach().numpy()
    near(chain(bg.asarray(x)), np.maximum(4 * x, 0) @ weight.T + bias + 100, 1e-4)
    chain(bg.asarray(x)).sum().backward()
    assert last.weight.grad is not None
    assert repr(chain[2]).startswith("Sum(in_features=2")


def test_errors_in_python_forward_come_through():
    class Bad(nn.Module):
        def forward(self, x):
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        nn.Sequential(nn.ReLU(), Bad())(bg.ones(2))

    class Tuple(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(TypeError, match="Tuple: forward gave a 'tuple'"):
        nn.Sequential(Tuple(), nn.ReLU())(bg.ones(2))


@pytest.mark.parametrize("inside", [False, True])
def test_hooks(inside):
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer) if inside else layer
    calls = []
    x = bg.asarray(array(3, 2))
    plain = net(x).detach().numpy()

    def see(module, args, output):
        calls.append((module, len(args), output.shape))

    handle = layer.register_forward_hook(see)
    near(net(x), plain)
    assert calls == [(layer, 1, (3, 2))]
    with layer.register_forward_hook(lambda m, a, y: y + 1):
        near(net(x), plain + 1)
    pre = layer.register_forward_pre_hook(lambda m, a: (a[0] * 0,))
    near(net(x), np.broadcast_to(layer.bias.detach().numpy(), (3, 2)))
    pre.remove()
    handle.remove()
    handle.remove()
    near(net(x), plain)
    assert len(calls) == 3


def test_hooks_reach_the_parts_of_cpp_layers():
    mlp = nn.MLP([2, 3, 1])
    seen = []
    first = next(mlp.children())
    first.register_forward_hook(lambda m, a, y: seen.append(y.shape))
    del first
    gc.collect()
    mlp(bg.ones((4, 2)))
    assert seen == [(4, 3)]


def test_own_forward_of_one_object():
    layer = nn.ReLU()
    layer.forward = lambda x: x + 7
    near(layer(bg.ones(1)), [8])
    near(nn.Sequential(layer)(bg.ones(1)), [8])


def test_ops_carry_the_names_of_their_modules():
    net = Net()
    outer = nn.Sequential(OrderedDict(body=net))
    dot = bg.graph.to_dot(outer(bg.ones((2, 3))))
    for label in ("body", "hidden", "tail", "1"):
        assert dot.count(f'label="{label}"') == 1


def test_reset_parameters_draws_again():
    layer = nn.Conv2d(1, 2, 3)
    weight, before = layer.weight, layer.weight.detach().numpy().copy()
    layer.reset_parameters()
    assert layer.weight is weight and not np.array_equal(weight.detach().numpy(), before)


def test_parameters_take_attributes_along():
    p = nn.Parameter(bg.ones(2))
    p.decay = False
    assert copy.deepcopy(p).decay is False
    assert isinstance(pickle.loads(pickle.dumps(p)), nn.Parameter)


# ---- Modes, dtypes, gradients -------------------------------------------------------------------


def test_train_and_eval():
    net = Net()
    assert net.training and net.tail[0].training
    assert net.eval() is net
    assert not net.training and not net.tail[0].training
    net.training = True
    assert net.training and not net.tail.training

    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout()

        def train(self, mode=True):
            super().train(mode)
            self.drop.eval()
            return self

    holder = nn.Sequential(Frozen())
    holder.train()
    assert holder[0].training and not holder[0].drop.training


def test_dtypes():
    net = Net()
    weight, steps = net.hidden.weight, net.steps
    assert net.double() is net
    assert weight.dtype == bg.float64 and net.hidden.weight is weight
    assert steps.dtype == bg.float64
    assert net(bg.asarray(array(2, 3).astype(np.float64))).dtype == bg.float64
    net.to(bg.float32)
    assert {p.dtype for p in net.parameters()} == {bg.float32}
    with pytest.raises(TypeError, match="to"):
        net.to(bg.int32)


def test_tied_weights_stay_tied():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    a.weight = b.weight
    net = nn.Sequential(a, b)
    assert len(list(net.parameters())) == 3
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), net.double()):
        assert other[0].weight is other[1].weight
        other[0].weight.detach().fill_(2.0)
        near(other[1].weight, np.full((3, 3), 2.0))


def test_gradients_and_their_switches():
    net = Net()
    net(bg.ones((2, 3))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_apply_goes_from_the_bottom_up():
    order = []
    net = Net()
    net.apply(lambda m: order.append(type(m).__name__))
    assert order == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


# ---- State --------------------------------------------------------------------------------------


def test_state_dict_shares_memory_and_loads():
    net, other = Net(), Net()
    state = net.state_dict()
    assert not any(t.requires_grad for t in state.values())
    state["scale"][0] = 9.0
    near(net.scale, [9, 1, 1, 1])
    kept = other.hidden.weight
    result = other.load_state_dict(state)
    assert result == ([], []) and result.missing_keys == []
    near(kept, net.hidden.weight.detach().numpy())
    near(other.scale, [9, 1, 1, 1])


def test_load_names_everything_that_does_not_fit():
    net = Net()
    state = net.state_dict()
    del state["scale"]
    state["extra"] = bg.ones(1)
    state["hidden.weight"] = bg.ones((2, 2))
    with pytest.raises(ValueError) as error:
        net.load_state_dict(state)
    for word in ("Net", "scale", "extra", "hidden.weight", "[2,2]"):
        assert word in str(error.value)
    state["hidden.weight"] = bg.ones((4, 3))
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale"] and result.unexpected_keys == ["extra"]
    near(net.hidden.weight, np.ones((4, 3)))


# ---- Copies and garbage -------------------------------------------------------------------------


class Custom(nn.Linear):
    def __init__(self, size):
        super().__init__(size, size)
        self.gain = nn.Parameter(bg.ones(size))
        self.label = ["x"]

    def forward(self, x):
        return super().forward(x) * self.gain


def layers():
    return [
        nn.Linear(3, 2, bias=False, activation="relu"),
        nn.Conv2d(3, 4, (3, 1), padding=1, groups=1),
        nn.ConvTranspose2d(3, 4, 2, stride=2),
        nn.MaxPool2d(2, stride=1),
        nn.AdaptiveAvgPool2d((2, 1)),
        nn.BatchNorm1d(3, momentum=None),
        nn.LayerNorm((3, 2), bias=False),
        nn.GroupNorm(2, 4),
        nn.RMSNorm(3, eps=1e-3),
        nn.Dropout(0.3),
        nn.Embedding(4, 2, padding_idx=1),
        nn.Flatten(0, 1),
        nn.Softmax(0),
        nn.GELU("tanh"),
        nn.LSTM(2, 3, num_layers=2, bidirectional=True),
        nn.MultiheadAttention(4, 2, kdim=3, batch_first=True),
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation="gelu"),
        nn.MLP([2, 3, 1], activation="silu", dropout=0.5),
        nn.CrossEntropyLoss(weight=bg.asarray([1.0, 2.0]), label_smoothing=0.1),
        nn.KLDivLoss(reduction="batchmean"),
        nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Linear(2, 2))),
        nn.ModuleList([nn.ReLU(), nn.Linear(2, 2)]),
        nn.ModuleDict({"one": nn.Linear(2, 2)}),
        nn.ParameterList([bg.ones(2)]),
        Custom(3),
        Net(),
    ]


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies(layer, how):
    layer.eval()
    bg.manual_seed(3)
    other = copy.deepcopy(layer) if how == "deepcopy" else pickle.loads(pickle.dumps(layer))
    drawn = bg.rand((4,)).numpy()
    bg.manual_seed(3)
    np.testing.assert_array_equal(drawn, bg.rand((4,)).numpy())
    assert type(other) is type(layer) and repr(other) == repr(layer)
    assert not any(m.training for m in other.modules())
    before, after = layer.state_dict(), other.state_dict()
    assert list(before) == list(after)
    for name, tensor in before.items():
        np.testing.assert_array_equal(tensor.numpy(), after[name].numpy())
        tensor.fill_(0)
    assert [n for n, _ in other.named_parameters()] == [n for n, _ in layer.named_parameters()]
    assert all(p.requires_grad for p in other.parameters())


def test_a_copy_stands_alone():
    net = Net()
    other = copy.deepcopy(net)
    assert other.note == "plain" and other.hidden is not net.hidden
    net.hidden.weight.detach().fill_(0.0)
    assert abs(other.hidden.weight.detach().numpy()).max() > 0
    x = bg.asarray(array(2, 3))
    assert other(x).shape == (2, 2)
    custom = copy.deepcopy(Custom(2))
    assert custom.label == ["x"] and custom(bg.ones(2)).shape == (2,)
    shared = copy.copy(net)
    assert shared.hidden is net.hidden and shared.scale is net.scale


def test_nothing_is_left_behind():
    net = Net()
    parts = [weakref.ref(m) for m in net.modules()]
    net(bg.ones((2, 3))).sum().backward()
    net.hidden.register_forward_hook(lambda m, a, y: None)
    net.state_dict()
    list(net.named_parameters())
    net.double()
    del net
    assert all(ref() is None for ref in parts)


def test_cycles_are_collected():
    gc.collect()
    net = Net()
    net.hidden.owner = [net]
    net.hidden.handle = net.hidden.register_forward_hook(net.forward)
    ref, child = weakref.ref(net), weakref.ref(net.hidden)
    del net
    gc.collect()
    assert ref() is None and child() is None


def test_children_outlive_their_parent_and_live_through_collection():
    net = Net()
    tail = net.tail
    del net
    gc.collect()
    near(tail(bg.ones(4)), np.ones(4) @ tail[1].weight.detach().numpy().T)
    holder = nn.Sequential(Custom(2))
    gc.collect()
    assert holder[0].label == ["x"]


# ---- Containers and printing --------------------------------------------------------------------


def test_sequential():
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    chain = nn.Sequential(a, b)
    assert chain.append(c) is chain
    assert len(chain) == 3 and list(chain) == [a, b, c]
    assert chain[-1] is c and chain[1:][0] is b and len(chain[:2]) == 2
    named = nn.Sequential(OrderedDict([("in", a), ("act", b)]))
    assert named.act is b and getattr(named, "in") is a
    named[1] = nn.Tanh()
    assert isinstance(named.act, nn.Tanh)
    with pytest.raises(IndexError, match="position 5 of 3"):
        chain[5]
    with pytest.raises(TypeError, match="no Module"):
        nn.Sequential(a, 3)

    class Sub(nn.Sequential):
        def __init__(self):
            super().__init__(nn.ReLU(), nn.ReLU())

    assert repr(Sub()) == "Sub(\n  (0): ReLU()\n  (1): ReLU()\n)"


def test_lists_and_dicts():
    modules = nn.ModuleList([nn.ReLU(), nn.Linear(2, 2)])
    modules.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in modules] == ["ReLU", "Tanh", "Linear"]
    del modules[0]
    assert len(modules) == 2 and isinstance(modules[-1], nn.Linear)
    assert [n for n, _ in modules.named_parameters()] == ["1.weight", "1.bias"]
    assert len(modules[:1]) == 1
    parts = nn.ModuleDict({"a": nn.ReLU()})
    parts["b"] = nn.Linear(1, 1)
    assert list(parts.keys()) == ["a", "b"] and "a" in parts
    assert parts.pop("a").training and len(parts) == 1
    with pytest.raises(KeyError):
        parts["none"]
    values = nn.ParameterList([bg.ones(2)])
    values.append(nn.Parameter(bg.zeros(3)))
    assert [p.shape for p in values.parameters()] == [(2,), (3,)]


def test_print():
    assert repr(Net()) == (
        "Net(\n"
        "  (hidden): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (tail): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Linear(in_features=4, out_features=2, bias=False)\n"
        "  )\n"
        ")"
    )

    class Extra(nn.Module):
        def extra_repr(self):
            return "size=3"

    assert repr(Extra()) == "Extra(size=3)"
    assert repr(nn.Sequential(Extra())) == "Sequential(\n  (0): Extra(size=3)\n)"


# ---- Layers and functions by NumPy --------------------------------------------------------------


def test_linear_and_its_gradients():
    layer = nn.Linear(3, 2)
    x = bg.asarray(array(5, 3)).requires_grad_()
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    y = layer(x)
    near(y, array(5, 3) @ w.T + b)
    y.sum().backward()
    near(layer.weight.grad, np.tile(array(5, 3).sum(0), (2, 1)))
    near(layer.bias.grad, [5, 5])
    near(x.grad, np.tile(w.sum(0), (5, 1)))
    fused = nn.Linear(3, 2, activation="relu")
    w, b = fused.weight.detach().numpy(), fused.bias.detach().numpy()
    near(fused(x), np.maximum(array(5, 3) @ w.T + b, 0))
    with pytest.raises(ValueError, match="'relu', 'gelu'"):
        nn.Linear(3, 2, activation="rlu")


def test_functions():
    x = array(4, 3)
    t = bg.asarray(x)
    near(F.softmax(t, dim=0), np.exp(x) / np.exp(x).sum(0))
    near(F.pad(t, (1, 0, 0, 2), value=7), np.pad(x, ((0, 2), (1, 0)), constant_values=7))
    near(F.normalize(t), x / np.linalg.norm(x, axis=1, keepdims=True))
    np.testing.assert_array_equal(
        F.one_hot(bg.asarray([2, 0]), 4).numpy(), np.eye(4, dtype=int)[[2, 0]]
    )
    np.testing.assert_array_equal(F.one_hot(bg.asarray([1])).numpy(), [[0, 1]])
    near(F.linear(t, bg.ones((2, 3))), x @ np.ones((3, 2)))
    for bad in (
        lambda: F.one_hot(bg.asarray([3]), 3),
        lambda: F.one_hot(bg.asarray([-1]), 3),
        lambda: F.pad(t, (1,)),
        lambda: F.pad(t, (1, 1), mode="mirror"),
        lambda: F.mse_loss(t, t, reduction="average"),
        lambda: F.gelu(t, approximate="erf"),
    ):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError):
        F.one_hot(t)


def test_dropout_keeps_the_mean():
    bg.manual_seed(0)
    x = bg.ones((100_000,))
    y = nn.Dropout(0.25)(x).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 100_000)
    near(F.dropout(x, training=False), np.ones(100_000))


def test_init():
    bg.manual_seed(0)
    w = nn.Parameter(bg.zeros((200, 300)))
    assert nn.init.xavier_uniform_(w) is w
    bound = np.sqrt(6 / 500)
    values = w.detach().numpy()
    assert abs(values).max() <= bound and abs(values).max() > 0.99 * bound
    nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu")
    assert abs(w.detach().numpy().std() - np.sqrt(2 / 200)) < 1e-3
    nn.init.orthogonal_(w, gain=2)
    near(w.detach() @ w.detach().mT, 4 * np.eye(200), 1e-3)
    nn.init.trunc_normal_(w, std=3.0, a=-1, b=1)
    assert abs(w.detach().numpy()).max() <= 1
    near(nn.init.constant_(bg.zeros(2), 4), [4, 4])
    assert nn.init.calculate_gain("leaky_relu", 0.2) == pytest.approx(np.sqrt(2 / 1.04))
    with pytest.raises(ValueError, match="fan_in"):
        nn.init.kaiming_uniform_(w, mode="fan")
    with pytest.raises(ValueError, match="xavier"):
        nn.init.xavier_normal_(bg.zeros(3))


def test_generator_makes_layers_repeatable():
    bg.manual_seed(11)
    first = nn.Linear(3, 3).weight.detach().numpy()
    bg.manual_seed(11)
    np.testing.assert_array_equal(nn.Linear(3, 3).weight.detach().numpy(), first)


def test_threads_run_layers_at_once():
    from concurrent.futures import ThreadPoolExecutor

    net = nn.Sequential(nn.Linear(64, 64), Custom(64), nn.ReLU()).eval()
    x = bg.asarray(array(32, 64))
    expected = net(x).detach().numpy()
    with ThreadPoolExecutor(4) as pool:
        for y in pool.map(lambda _: net(x).detach().numpy(), range(64)):
            np.testing.assert_array_equal(y, expected)
