"""Sequential, ModuleList, ModuleDict and ParameterList as lists and dictionaries, as in PyTorch."""

import baregrad as bg
import pytest

nn = bg.nn


def layers(*sizes):
    return [nn.Linear(1, size) for size in sizes]


def sizes(modules):
    return [module.out_features for module in modules]


def names(module):
    return [name for name, _ in module.named_children()]


@pytest.fixture(params=[lambda items: nn.Sequential(*items), nn.ModuleList],
                ids=["Sequential", "ModuleList"])
def make(request):
    return request.param


@pytest.mark.parametrize(
    "key, kept",
    [(1, [1, 3, 4]), (-1, [1, 2, 3]), (0, [2, 3, 4]), (slice(1, 3), [1, 4]),
     (slice(None, None, 2), [2, 4]), (slice(None, None, -1), []), (slice(5, 9), [1, 2, 3, 4])],
)
def test_delete_and_pop(make, key, kept):
    net = make(layers(1, 2, 3, 4))
    del net[key]
    assert sizes(net) == kept
    assert names(net) == [str(i) for i in range(len(kept))]
    assert list(net.state_dict()) == [f"{i}.{p}" for i in range(len(kept))
                                      for p in ("weight", "bias")]
    other = make(layers(1, 2, 3, 4))
    wanted = [1, 2, 3, 4][key]
    gone = other.pop(key)
    assert (sizes(gone) if isinstance(wanted, list) else gone.out_features) == wanted
    assert sizes(other) == kept


@pytest.mark.parametrize("key", [4, -5, 2**40, 2**70, -(2**70), 10**4000])
def test_positions_that_are_not_there(make, key):
    net = make(layers(1, 2, 3, 4))
    with pytest.raises(IndexError):
        del net[key]
    with pytest.raises(IndexError):
        net.pop(key)
    with pytest.raises(IndexError):
        net[key]
    assert sizes(net) == [1, 2, 3, 4]


@pytest.mark.parametrize("key", ["0", None, 1.0, (1, 2), object()])
def test_positions_that_are_no_numbers(make, key):
    net = make(layers(1, 2, 3, 4))
    for wrong in (lambda: net[key], lambda: net.pop(key), lambda: net.__delitem__(key)):
        with pytest.raises(TypeError, match="integer"):
            wrong()
    assert sizes(net) == [1, 2, 3, 4]


@pytest.mark.parametrize("at, wanted", [(0, [9, 1, 2]), (1, [1, 9, 2]), (2, [1, 2, 9]),
                                        (-1, [1, 9, 2])])
def test_insert(make, at, wanted):
    net = make(layers(1, 2))
    net.insert(at, nn.Linear(1, 9))
    assert sizes(net) == wanted and names(net) == ["0", "1", "2"]


def test_extend_and_add(make):
    net = make(layers(1))
    assert net.extend(layers(2, 3)) is net
    both = net + make(layers(4))
    assert type(both) is type(net) and sizes(both) == [1, 2, 3, 4] and sizes(net) == [1, 2, 3]
    assert both[0] is net[0]
    same = net
    net += make(layers(5))
    assert net is same and sizes(net) == [1, 2, 3, 5]


def test_what_is_no_module_changes_nothing(make):
    net = make(layers(1, 2))
    for wrong in (lambda: net.append(3), lambda: net.extend([nn.ReLU(), 3]),
                  lambda: net.insert(0, None), lambda: net.__setitem__(0, 3)):
        with pytest.raises(TypeError):
            wrong()
        assert sizes(net) == [1, 2] and names(net) == ["0", "1"]


def test_repeated_sequential():
    net = nn.Sequential(*layers(1, 2))
    assert sizes(net * 3) == sizes(3 * net) == [1, 2] * 3
    assert (net * 2)[0] is (net * 2)[2]
    same = net
    net *= 2
    assert net is same and sizes(net) == [1, 2, 1, 2]
    for times in (0, -1, 2**62):
        with pytest.raises(ValueError):
            net * times
    with pytest.raises(TypeError):
        net * 1.5
    with pytest.raises(TypeError):
        net + [nn.ReLU()]


COUNT = 100_000  # of parts: comparing each name with all others would take half a minute


def test_many_modules(make):
    one, other = nn.ReLU(), nn.Tanh()
    net = make([one]) if make is nn.ModuleList else nn.Sequential(one) * COUNT
    net.extend([one] * (COUNT - len(net)))
    assert len(net) == COUNT and names(net)[-1] == str(COUNT - 1) and net[-1] is one
    net[COUNT // 2] = other
    del net[0]
    assert len(net) == COUNT - 1 and net[COUNT // 2 - 1] is other
    assert names(net) == [str(i) for i in range(COUNT - 1)]
    net.insert(3, other)
    assert net[3] is other and len(net) == COUNT
    del net[1:]
    assert names(net) == ["0"]


def test_many_names():
    one = nn.ReLU()
    modules = nn.ModuleDict({f"m{i}": one for i in range(COUNT)})
    modules["m7"] = nn.Tanh()
    assert len(modules) == COUNT and list(modules)[7] == "m7" and modules["m7"] is not one
    with pytest.raises(ValueError, match='"m8" already'):
        modules.register_buffer("m8", bg.ones(1))
    modules.clear()
    assert len(modules) == 0
    modules["m8"] = one
    assert list(modules) == ["m8"]
    weights = nn.ParameterList([bg.ones(1)] * (COUNT // 10))
    del weights[0]
    assert len(weights) == COUNT // 10 - 1 == len(list(weights.parameters()))


def test_a_changed_sequential_computes():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3))
    x = bg.ones((1, 2))
    wanted = net[2](net[0](x))
    del net[1]
    assert net(x).tolist() == wanted.tolist()
    net.insert(1, nn.Tanh())
    assert net(x).shape == (1, 3)
    assert net.pop(-1).out_features == 3
    assert net(x).shape == (1, 2)


def test_sequential_does_not_hold_itself():
    net = nn.Sequential(nn.ReLU())
    outer = nn.Sequential(net)
    with pytest.raises(ValueError):
        net.insert(0, outer)
    assert names(net) == ["0"] and net(bg.ones(1)).tolist() == [1.0]


def test_lists_of_themselves_grow_once():
    net = nn.ModuleList(layers(1, 2))
    net.extend(net)
    assert sizes(net) == [1, 2, 1, 2]
    net[1:3] = layers(7)
    assert sizes(net) == [1, 7, 2]


def test_parameter_list():
    values = nn.ParameterList([bg.ones(1), bg.ones(2)])
    values += [bg.ones(3)]
    assert [len(p) for p in values] == [1, 2, 3]
    assert values.pop(1).shape == (2,)
    del values[0]
    assert [len(p) for p in values] == [3]
    assert [n for n, _ in values.named_parameters()] == ["0"]


def test_module_dict():
    parts = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    parts.clear()
    assert len(parts) == 0 and list(parts) == []
