"""Devices: their names, where tensors are made and moved to, and everything that reads from a device.

The tests run on the CPU and on `sim`, the pretend accelerator, whose memory the host cannot read.
"""

import contextlib
import copy
import io
import os
import pathlib
import pickle
import threading

import numpy as np
import pytest

import baregrad as bg

os.environ.setdefault("BAREGRAD_SIM", "1")  # read when the device is first asked for
FAR = ["sim"]
DEVICES = ["cpu", *FAR]


@pytest.fixture(params=DEVICES)
def device(request):
    return bg.Device(request.param)


@pytest.fixture(params=FAR)
def far(request):
    return bg.Device(request.param)


def on(device, values, dtype=None):
    x = bg.tensor(values, dtype=dtype, device=device)
    assert x.device == device
    return x


# ---- Device


def test_names():
    cpu, cuda = bg.Device("cpu"), bg.Device("cuda:1")
    assert bg.device is bg.Device
    assert (str(cpu), cpu.type, cpu.index) == ("cpu", "cpu", None)
    assert (str(cuda), cuda.type, cuda.index) == ("cuda:1", "cuda", 1)
    assert repr(cpu) == "device(type='cpu')" and repr(cuda) == "device(type='cuda', index=1)"
    assert str(bg.Device("cuda")) == "cuda:0" == str(bg.Device("cuda", 0))
    assert bg.Device(cuda) == cuda == bg.Device(type="cuda", index=1)


def test_repr_reads_back():
    for text in ("cpu", "cuda:0", "cuda:3", "sim:0"):
        assert eval(repr(bg.Device(text)), {"device": bg.device}) == text


def test_equality_and_hash():
    cuda = bg.Device("cuda")
    assert cuda == bg.Device("cuda:0") and cuda == "cuda" and "cuda:0" == cuda
    assert cuda != bg.Device("cuda:1") and cuda != "cpu" and cuda != "nonsense" and cuda != "\udc80"
    assert cuda != 0 and cuda != None and not cuda == object()  # noqa: E711
    assert hash(cuda) == hash("cuda:0") and hash(bg.Device("cpu")) == hash("cpu")
    assert {cuda: 1}["cuda:0"] == 1 and {"cpu": 2}[bg.Device("cpu")] == 2


def test_devices_are_copied_and_pickled():
    for text in ("cpu", "cuda:2", "sim:0"):
        there = bg.Device(text)
        for again in (copy.copy(there), copy.deepcopy(there), pickle.loads(pickle.dumps(there))):
            assert type(again) is bg.Device and again == there


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999", "cpu:1", "CPU", " cpu"])
def test_names_of_no_device(name):
    with pytest.raises(ValueError, match="^Device: .* names no device"):
        bg.Device(name)
    with pytest.raises(ValueError, match="^zeros: .* names no device"):
        bg.zeros(2, device=name)


def test_wrong_arguments_of_device():
    with pytest.raises(TypeError, match="^Device: a device is a Device or its name"):
        bg.Device(3)
    with pytest.raises(ValueError, match="^Device: the index is given twice"):
        bg.Device("cuda:0", 1)
    with pytest.raises(ValueError, match="^Device: "):
        bg.Device("cuda", -1)


def test_availability():
    assert bg.is_available("cpu") and bg.device_count("cpu") == 1
    assert bg.is_available("cuda") is (bg.device_count("cuda") > 0)
    assert not bg.is_available("cuda:63")
    for function in (bg.is_available, bg.device_count):
        with pytest.raises(ValueError, match=f"^{function.__name__}: "):
            function("gpu")
        with pytest.raises(TypeError, match=f"^{function.__name__}: "):
            function(None)
    assert [str(d) for d in bg.__array_namespace_info__().devices()][: len(DEVICES)] == [
        str(bg.Device(d)) for d in DEVICES
    ]


def test_synchronize(device):
    bg.synchronize()
    bg.synchronize(device)
    with pytest.raises(ValueError, match="^synchronize: "):
        bg.synchronize("cuda:63")


# ---- The default device


def test_default_device_scope(device):
    assert bg.default_device() == "cpu" == bg.__array_namespace_info__().default_device()
    with device as entered:
        assert entered is device and bg.default_device() == device
        assert bg.ones(2).device == device and bg.asarray([1, 2]).device == device
        assert bg.tensor(1.5).device == device and bg.Tensor([1.0]).device == device
        assert bg.asarray(np.ones(2)).device == device and bg.rand(3).device == device
        assert bg.ones(2, device="cpu").device == "cpu"
        with bg.Device("cpu"):
            assert bg.ones(2).device == "cpu"
        with device:
            assert bg.ones(2).device == device
        assert bg.arange(3).device == device
        assert bg.__array_namespace_info__().default_device() == device
    assert bg.ones(2).device == "cpu"


def test_a_tensor_stays_where_it_is(far):
    x, y = bg.ones(2), on(far, [1.0])
    with far:
        assert bg.asarray(x).device == "cpu" and bg.zeros_like(x).device == "cpu"
    assert bg.asarray(y).device == far and bg.zeros_like(y).device == far
    assert bg.rand_like(y).device == far and bg.tensor(y).device == far


def test_the_scope_ends_with_an_error(device):
    with pytest.raises(RuntimeError, match="stop"), device:
        raise RuntimeError("stop")
    assert bg.default_device() == "cpu"


def test_set_default_device(device):
    try:
        bg.set_default_device(device)
        assert bg.default_device() == device and bg.zeros(1).device == device
        seen = []
        thread = threading.Thread(target=lambda: seen.append(bg.default_device()))
        thread.start()
        thread.join()
        assert seen == ["cpu"]
        with bg.Device("cpu"):
            bg.set_default_device(device)
        assert bg.default_device() == device
        bg.set_default_device(None)
        assert bg.default_device() == "cpu"
    finally:
        bg.set_default_device("cpu")


def test_devices_that_are_not_available():
    with pytest.raises(ValueError, match="^__enter__: .*cuda:63"), bg.Device("cuda:63"):
        pass
    with pytest.raises(ValueError, match="^set_default_device: .*cuda:63"):
        bg.set_default_device("cuda:63")
    with pytest.raises(ValueError, match="^__exit__: "):
        bg.Device("cpu").__exit__(None, None, None)
    assert bg.default_device() == "cpu"


CREATED = {
    "empty": lambda d: bg.empty(2, device=d),
    "zeros": lambda d: bg.zeros(2, device=d),
    "ones": lambda d: bg.ones((2,), device=d),
    "full": lambda d: bg.full((2,), 3, device=d),
    "empty_like": lambda d: bg.empty_like(bg.ones(2), device=d),
    "zeros_like": lambda d: bg.zeros_like(bg.ones(2), device=d),
    "ones_like": lambda d: bg.ones_like(bg.ones(2), device=d),
    "full_like": lambda d: bg.full_like(bg.ones(2), 3, device=d),
    "arange": lambda d: bg.arange(2, device=d),
    "linspace": lambda d: bg.linspace(0, 1, 2, device=d),
    "eye": lambda d: bg.eye(2, device=d),
    "rand": lambda d: bg.rand(2, device=d),
    "randn": lambda d: bg.randn((2,), device=d),
    "rand_like": lambda d: bg.rand_like(bg.ones(2), device=d),
    "randn_like": lambda d: bg.randn_like(bg.ones(2), device=d),
    "uniform": lambda d: bg.uniform(0, 1, (2,), device=d),
    "normal": lambda d: bg.normal(0, 1, (2,), device=d),
    "randint": lambda d: bg.randint(0, 9, (2,), device=d),
    "randperm": lambda d: bg.randperm(2, device=d),
    "bernoulli": lambda d: bg.bernoulli(0.5, (2,), device=d),
    "asarray": lambda d: bg.asarray([1, 2], device=d),
    "as_tensor": lambda d: bg.as_tensor(np.ones(2), device=d),
    "tensor": lambda d: bg.tensor([1.0, 2.0], device=d),
    "from_dlpack": lambda d: bg.from_dlpack(np.ones(2), device=d),
    "astype": lambda d: bg.astype(bg.ones(2), bg.int32, device=d),
    "to": lambda d: bg.ones(2).to(d) if d is not None else bg.ones(2).to(device=d),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation(name, device):
    make = CREATED[name]
    assert make(device).device == device and make(str(device)).device == device
    assert make(None).device == "cpu"
    for wrong, error in (("gpu", ValueError), ("cuda:63", ValueError), (3.5, TypeError)):
        with pytest.raises(error, match=f"^{name}: "):
            make(wrong)


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "randperm", "bernoulli", "uniform", "normal"])
def test_random_numbers_do_not_depend_on_the_device(name, device):
    bg.manual_seed(3)
    here = CREATED[name]("cpu")
    bg.manual_seed(3)
    assert CREATED[name](device).tolist() == here.tolist()


# ---- Moving


def test_to(device):
    x = bg.asarray([1.5, -2.0])
    for y in (x.to(device), x.to(str(device)), x.to(device=device), x.to_device(device), x.to(on(device, [1.0]))):
        assert y.device == device and y.dtype == bg.float32 and y.tolist() == [1.5, -2.0]
    for y in (x.to(device, bg.int64), x.to(bg.int64, device=device), x.to(on(device, [1])), x.to(device, dtype="int64")):
        assert y.device == device and y.dtype == bg.int64 and y.tolist() == [1, -2]
    y = x.to(device)
    assert y.to(device).data_ptr() == y.data_ptr() and y.to(device, copy=True).data_ptr() != y.data_ptr()
    assert y.cpu().device == "cpu" and y.cpu().tolist() == [1.5, -2.0]
    assert (y.is_cpu, y.is_cuda) == (device == "cpu", False)


def test_wrong_arguments_of_to():
    x = bg.ones(2)
    for call in (
        lambda: x.to(bg.int32, bg.int32),
        lambda: x.to("cpu", device="cpu"),
        lambda: x.to(x, bg.int32),
        lambda: x.to(3),
    ):
        with pytest.raises(TypeError, match="^to: "):
            call()
    with pytest.raises(ValueError, match="^to: .*names no device"):
        x.to("gpu")
    with pytest.raises(ValueError, match="^cuda: .*cuda:63"):
        x.cuda(63)
    with pytest.raises(ValueError, match="^cuda: "):
        x.cuda(-1)
    with pytest.raises(ValueError, match="^to_device: .*stream"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match="^to_device: "):
        x.to_device(None)


def test_gradients_flow_across_devices(device):
    x = bg.asarray([1.0, 2.0]).requires_grad_()
    y = x.to(device) * on(device, [3.0, 4.0])
    assert y.device == device
    y.cpu().sum().backward()
    assert x.grad.device == "cpu" and x.grad.tolist() == [3.0, 4.0]


def test_copy_semantics(device):
    a = np.ones(2)
    moves = device != "cpu"
    for make in (bg.asarray, bg.as_tensor, bg.from_dlpack):
        if moves:
            with pytest.raises(ValueError, match=f"^{make.__name__}: copy=False"):
                make(a, device=device, copy=False)
        else:
            make(a, device=device, copy=False)
        x = make(a, device=device, copy=True)
        a += 1
        assert x.tolist() == [a[0] - 1] * 2
    x = bg.asarray(a, device=device)
    a += 1
    assert (x.tolist() == a.tolist()) is not moves
    y = on(device, [1.0])
    assert bg.asarray(y, device=device, copy=False).data_ptr() == y.data_ptr()
    assert bg.asarray(y, copy=True).data_ptr() != y.data_ptr()


def test_lists_of_tensors(device):
    x = bg.asarray([on(device, [1.0, 2.0]), on(device, [3.0, 4.0])])
    assert x.device == device and x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert bg.asarray([on(device, 1.0), 2.0]).tolist() == [1.0, 2.0]
    w = on(device, [1.0, 2.0]).requires_grad_()
    bg.asarray([w, w]).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_lists_of_tensors_of_two_devices(far):
    with pytest.raises(ValueError, match="^asarray: .*cpu.*sim:0"):
        bg.asarray([bg.ones(2), on(far, [1.0, 2.0])])


def test_ops_on_two_devices_are_refused(far):
    with pytest.raises(ValueError, match="^add: .*cpu.*sim:0"):
        bg.ones(2) + on(far, [1.0, 2.0])
    assert (bg.tensor(2.0) * on(far, [1.0, 2.0])).tolist() == [2.0, 4.0]


# ---- Reading from a device


def test_reading(device):
    x = on(device, [[1.5, -2.0], [3.0, 4.0]])
    assert x.tolist() == [[1.5, -2.0], [3.0, 4.0]] and x.T.tolist() == [[1.5, 3.0], [-2.0, 4.0]]
    assert x[1].tolist() == [3.0, 4.0] and x[:, 1].tolist() == [-2.0, 4.0]
    assert x.flip(0).tolist() == [[3.0, 4.0], [1.5, -2.0]]
    assert x[0, 0].item() == 1.5 and float(x[0, 1]) == -2.0 and int(x[1, 0]) == 3
    assert bool(x[0, 0]) and not bool(x[0, 0] > 2) and complex(x[0, 0]) == 1.5
    assert len(x) == 2 and [row.tolist() for row in x] == x.tolist()
    assert f"{x[0, 0]:.2f}" == "1.50" and [7, 8, 9][on(device, 1)] == 8
    assert on(device, []).tolist() == [] and 3.0 in x and 7.0 not in x
    assert x.expand((3, 2, 2)).tolist() == [x.tolist()] * 3


def test_writing(device):
    x = on(device, [1.0, 2.0, 3.0])
    x[0] = 5
    x[1:] = [6.0, 7.0]
    assert x.tolist() == [5.0, 6.0, 7.0]
    x[[0, 2]] = np.asarray([1.0, 2.0], dtype=np.float32)
    assert x.tolist() == [1.0, 6.0, 2.0] and x[[2, 0]].tolist() == [2.0, 1.0]


def test_repr(device):
    place = "" if device == "cpu" else f", device='{device}'"
    assert repr(on(device, [1.0, 2.5])) == f"tensor([1.0000, 2.5000]{place})"
    assert repr(on(device, [1, 2], bg.int8)) == f"tensor([1, 2]{place}, dtype=baregrad.int8)"
    assert repr(on(device, 3)) == f"tensor(3{place})" and str(on(device, [True])) == f"tensor([True]{place})"
    assert repr(bg.ones(2000, device=device)) == f"tensor([1., 1., 1.,  ..., 1., 1., 1.]{place})"
    w = on(device, [1.0]).requires_grad_()
    assert repr(w) == f"tensor([1.]{place}, requires_grad=True)"
    assert f"{on(device, 2.5)}" == "2.5"
    html = on(device, [[1.0, 2.0]])._repr_html_()
    assert "<td>1.</td>" in html and (str(device) in html) is (device != "cpu")


def test_numpy_takes_the_cpus_memory_only(far):
    x = on(far, [1.0, 2.0])
    for take in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.array(x), lambda: np.add(x, 1)):
        with pytest.raises(TypeError, match="sim:0|operand"):
            take()
    with pytest.raises(BufferError, match="^buffer: .*sim:0.*cpu"):
        memoryview(x)
    assert not hasattr(x, "__array_interface__")
    assert x.cpu().numpy().tolist() == [1.0, 2.0]
    assert np.array(x.tolist()).tolist() == [1.0, 2.0]


def test_dlpack(far):
    x = on(far, [1.0, 2.0])
    assert x.__dlpack_device__() == (12, 0) and bg.ones(1).__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="^__dlpack__: .*sim:0.*cpu"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="^__dlpack__: copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="^__dlpack__: "):
        x.__dlpack__(dl_device=(12, 0))
    copied = bg.from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
    assert copied.device == "cpu" and copied.tolist() == [1.0, 2.0]
    assert bg.from_dlpack(x, device="cpu").tolist() == [1.0, 2.0]
    assert bg.from_dlpack(x).device == far and bg.from_dlpack(x).data_ptr() == x.data_ptr()
    assert bg.from_dlpack(np.ones(2), device=far).device == far

    class Foreign:  # a tensor of another library on a device
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, **how):
            return x.__dlpack__(**how)

    with pytest.raises(BufferError, match="^from_dlpack: .*device of type 12"):
        bg.from_dlpack(Foreign())
    assert bg.from_dlpack(Foreign(), device="cpu").tolist() == [1.0, 2.0]


# ---- Copies, pickles, files


class Weight(bg.Tensor):
    pass


def test_copies_and_pickles(device):
    x = Weight(on(device, [[1.0, 2.0], [3.0, 4.0]]).T)
    x.note = "kept"
    x.requires_grad_()
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(again) is Weight and again.note == "kept" and again.requires_grad
        assert again.device == device and again.tolist() == x.tolist()
        assert again.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_pickle_of_a_device_that_is_gone():
    with pytest.raises(ValueError, match="^_rebuild_tensor: .*cuda:63.*not available.*cpu"):
        bg._core._rebuild_tensor(bg.Tensor, b"\0" * 4, bg.float32, (1,), False, "cuda:63")


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "npy"])
def test_files(device, suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    x = on(device, [[1.0, 2.0], [3.0, 4.0]])
    first = (lambda found: found) if suffix == "npy" else (lambda found: found["x"])
    for written in (x, x.T):
        bg.save(written if suffix == "npy" else {"x": written}, path)
        for kwargs, there in (({}, "cpu"), ({"device": device}, device), ({"device": str(device)}, device)):
            found = first(bg.load(path, **kwargs))
            assert found.device == there and found.tolist() == written.tolist()
    with device:
        assert first(bg.load(path)).device == device
    if suffix != "npz":
        assert first(bg.load(path, mmap=True, device=device)).device == device
    with pytest.raises(ValueError, match="^load: .*cuda:63"):
        bg.load(path, device="cuda:63")
    with pytest.raises(TypeError, match="^load: a device is"):
        bg.load(path, device=3)


def test_safetensors_npy_npz_functions(device, tmp_path):
    x = on(device, [1.0, 2.0])
    bg.io.save_npy(tmp_path / "x.npy", x)
    bg.io.save_npz(tmp_path / "x.npz", {"x": x})
    bg.io.save_safetensors(tmp_path / "x.safetensors", {"x": x})
    assert bg.io.load_npy(tmp_path / "x.npy", device=device).device == device
    assert bg.io.load_npz(tmp_path / "x.npz", device=device)["x"].device == device
    assert bg.io.load_safetensors(tmp_path / "x.safetensors", device=device)["x"].device == device
    assert bg.io.parse_safetensors(bg.io.safetensors_bytes({"x": x}))["x"].tolist() == [1.0, 2.0]
    assert np.load(tmp_path / "x.npy").tolist() == [1.0, 2.0]


def test_checkpoints(device, tmp_path):
    path = tmp_path / "c.safetensors"
    parts = {"model": {"w": on(device, [1.0, 2.0])}, "run": {"epoch": 3}}
    bg.io.save_checkpoint(path, parts)
    for kwargs, there in (({}, "cpu"), ({"device": device}, device)):
        found = bg.io.load_checkpoint(path, **kwargs)
        assert found["model"]["w"].device == there and found["model"]["w"].tolist() == [1.0, 2.0]
        assert found["run"] == {"epoch": "3"}
    folder = bg.io.CheckpointFolder(tmp_path / "run")
    folder.save(1, parts)
    assert folder.latest().checkpoint["model"]["w"].tolist() == [1.0, 2.0]


def test_logs(device, tmp_path):
    with bg.io.MetricsWriter(tmp_path / "run.jsonl") as writer:
        writer.write(1, {"loss": on(device, 0.5)})
    assert pathlib.Path(tmp_path, "run.jsonl").read_text() == '{"step":1,"loss":0.5}\n'


# ---- Modules, optimizers, loaders


def network():
    bg.manual_seed(0)
    return bg.nn.Sequential(bg.nn.Linear(3, 4), bg.nn.BatchNorm1d(4), bg.nn.ReLU(), bg.nn.Linear(4, 2))


def train(net, optimizer, x, y, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = bg.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def test_modules_move(device):
    net = network()
    parameters = list(net.parameters())
    before = [p.tolist() for p in parameters]
    for p in parameters:
        p.grad = bg.ones_like(p)
    assert net.to(device) is net
    for p, q, values in zip(parameters, net.parameters(), before, strict=True):
        assert q is p and p.device == device and p.tolist() == values and p.is_leaf
        assert p.requires_grad and p.grad.device == device and p.grad.tolist() == bg.ones(p.shape).tolist()
    assert all(b.device == device for b in net.buffers())
    assert net(bg.ones((5, 3), device=device)).device == device
    assert all(t.device == device for t in net.state_dict().values())
    assert net.cpu() is net and all(t.device == "cpu" for t in net.state_dict().values())
    net.to(device, bg.float64)
    assert parameters[0].dtype == bg.float64 and parameters[0].device == device
    net.to(bg.float32, "cpu").to(dtype=bg.float64, device=device)
    assert parameters[0].dtype == bg.float64 and parameters[0].device == device
    assert next(b for n, b in net.named_buffers() if "num_batches" in n).dtype == bg.int64


def test_wrong_arguments_of_module_to():
    net = bg.nn.Linear(2, 1)
    for call in (lambda: net.to(), lambda: net.to("cpu", "cpu"), lambda: net.to(bg.float32, dtype=bg.float32)):
        with pytest.raises(TypeError, match="^to: "):
            call()
    with pytest.raises(TypeError, match="^to: a device is"):
        net.to(3)
    for call in (lambda: net.to("cuda:63"), lambda: bg.nn.ReLU().to("cuda:63")):
        with pytest.raises(ValueError, match="^to: .*cuda:63"):
            call()
    with pytest.raises(ValueError, match="^cuda: .*cuda:63"):
        net.cuda(63)
    with pytest.raises(TypeError, match="^to: parameters are floating"):
        net.to(bg.int32)


def test_tied_parameters_stay_tied(device):
    net = bg.nn.Sequential(bg.nn.Linear(2, 2), bg.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.to(device)
    assert net[1].weight is net[0].weight and net[0].weight.device == device


def test_layers_are_made_on_the_default_device(device):
    bg.manual_seed(0)
    with device:
        net = bg.nn.Sequential(bg.nn.Linear(3, 4), bg.nn.BatchNorm1d(4), bg.nn.ReLU(), bg.nn.Linear(4, 2))
    assert all(t.device == device for t in net.state_dict().values())
    for name, value in network().state_dict().items():
        assert net.state_dict()[name].tolist() == value.tolist()


def test_state_dicts_are_copied_to_the_parameters_device(device):
    net, other = network(), network().to(device)
    with bg.no_grad():
        net[0].weight.fill_(2.0)
    parameter = other[0].weight
    other.load_state_dict(net.state_dict())
    assert parameter is other[0].weight and parameter.device == device
    assert parameter.tolist() == net[0].weight.tolist()
    net.load_state_dict(other.state_dict())
    assert net[0].weight.device == "cpu"


def test_modules_are_copied_and_pickled(device):
    net = network().to(device)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        for name, value in again.state_dict().items():
            assert value.device == device and value.tolist() == net.state_dict()[name].tolist()


OPTIMIZERS = {
    "SGD": lambda p: bg.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: bg.optim.AdamW(p, lr=0.1),
    "Adagrad": lambda p: bg.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_follow_their_parameters(name, device):
    x, y = bg.linspace(-1, 1, 15).reshape(5, 3), bg.ones((5, 2))
    losses = {}
    for place in ("cpu", device):
        net = network()
        optimizer = OPTIMIZERS[name](net.parameters())
        losses[place] = [train(net, optimizer, x, y)]
        net.to(place)
        losses[place].append(train(net, optimizer, x.to(place), y.to(place)))
        state = optimizer.state_dict()
        assert all(t.device == place for t in state.values() if isinstance(t, bg.Tensor))
        again = OPTIMIZERS[name](net.cpu().parameters())
        again.load_state_dict(state)
        losses[place].append(train(net, again, x, y))
        state = again.state_dict()
        assert all(t.device == "cpu" for t in state.values() if isinstance(t, bg.Tensor))
    assert losses["cpu"] == pytest.approx(losses[device], rel=1e-5)


def test_clipping_and_averages(device):
    found = {}
    for place in ("cpu", device):
        net = network().to(place)
        average = bg.optim.EMA(net.parameters(), decay=0.5)
        optimizer = bg.optim.SGD(net.parameters(), lr=0.5)
        bg.nn.functional.mse_loss(net(bg.ones((5, 3), device=place)), bg.ones((5, 2), device=place)).backward()
        norm = bg.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        after = [p.grad.tolist() for p in net.parameters()]
        bg.nn.utils.clip_grad_value_(net.parameters(), 0.01)
        optimizer.step()
        average.update()
        assert all(a.device == place for a in average.averages)
        found[place] = [float(norm), *(np.ravel(values).tolist() for values in after)]
        found[place] += [np.ravel(a.tolist()).tolist() for a in average.averages]
    for a, b in zip(found["cpu"], found[device], strict=True):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-7)


def test_data_and_grad(device):
    w = bg.ones(2).requires_grad_()
    w.sum().backward()
    w.data = on(device, [3.0, 4.0])
    assert w.device == device and w.grad.device == device and w.grad.tolist() == [1.0, 1.0]


def test_gradients_of_another_device_are_refused(far):
    w = bg.ones(2).requires_grad_()
    with pytest.raises(ValueError, match="^set_grad: .*sim:0.*cpu"):
        w.grad = on(far, [1.0, 2.0])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("transform", [None, lambda batch, generator: (batch[0] * 2, batch[1])])
def test_loaders_send_batches(device, workers, transform):
    dataset = bg.data.TensorDataset(bg.arange(5) * 1.0, bg.arange(5))
    how = dict(batch_size=2, shuffle=True, seed=1, num_workers=workers, transform=transform)
    here = [[f.tolist() for f in batch] for batch in bg.data.DataLoader(dataset, **how)]
    loader = bg.data.DataLoader(dataset, device=device, **how)
    batches = list(loader)
    assert all(field.device == device for batch in batches for field in batch)
    assert [[f.tolist() for f in batch] for batch in batches] == here
    with device:  # changes nothing in how batches are made
        batches = list(bg.data.DataLoader(dataset, **how))
    assert [[f.tolist() for f in batch] for batch in batches] == here
    assert all(field.device == "cpu" for batch in batches for field in batch)


def test_datasets_on_a_device(device):
    x = on(device, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    batches = list(bg.data.DataLoader(bg.data.TensorDataset(x), batch_size=2))
    assert [b.tolist() for (b,) in batches] == [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
    assert all(b.device == device for (b,) in batches)


def test_python_datasets_are_sent(device):
    class Squares:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return float(i), np.float32(i * i)

    batches = list(bg.data.DataLoader(Squares(), batch_size=3, device=device))
    assert [f.tolist() for f in batches[0]] == [[0.0, 1.0, 2.0], [0.0, 1.0, 4.0]]
    assert all(f.device == device for f in batches[0])


def test_loaders_refuse_devices_that_are_not_there():
    dataset = bg.data.TensorDataset(bg.arange(5))
    with pytest.raises(ValueError, match="^DataLoader: .*cuda:63"):
        bg.data.DataLoader(dataset, device="cuda:63")
    with pytest.raises(TypeError, match="^DataLoader: a device is"):
        bg.data.DataLoader(dataset, device=3)


def test_printing_waits_for_late_results(far):
    x = bg.ones((200, 200), device=far)
    for _ in range(5):
        x = x @ x / 200
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print(x[0, 0], x.sum())
    assert "tensor(1., device='sim:0')" in out.getvalue()
