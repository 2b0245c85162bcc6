"""Text from Python: names without a UTF-8 form raise, paths of any bytes work."""

import os
import subprocess
import sys

import baregrad as bg
import pytest

LONE = "\udc80"  # the str that os.listdir returns for the byte 0x80
NUL = "w\0evil"


def metrics(folder):
    return bg.io.MetricsWriter(folder / "m.jsonl")


def events(folder):
    return bg.io.EventWriter(folder / "events")


# Each takes a name, and a folder to write to.
NAMES = {
    "save_checkpoint part": lambda n, d: bg.io.save_checkpoint(d / "c", {n: {"w": bg.ones(1)}}),
    "save_checkpoint name": lambda n, d: bg.io.save_checkpoint(d / "c", {"m": {n: bg.ones(1)}}),
    "save_checkpoint text": lambda n, d: bg.io.save_checkpoint(d / "c", {"m": {"w": n}}),
    "CheckpointFolder": lambda n, d: bg.io.CheckpointFolder(d / "f").save(1, {"m": {n: "x"}}),
    "safetensors_bytes": lambda n, d: bg.io.safetensors_bytes({n: bg.ones(1)}),
    "safetensors metadata": lambda n, d: bg.io.safetensors_bytes({"w": bg.ones(1)}, {n: "x"}),
    "safetensors text": lambda n, d: bg.io.safetensors_bytes({"w": bg.ones(1)}, {"x": n}),
    "save_npz": lambda n, d: bg.io.save_npz(d / "x.npz", {n: bg.ones(1)}),
    "load_state_dict": lambda n, d: bg.nn.Linear(1, 1).load_state_dict({n: bg.ones(1)}),
    "register_buffer": lambda n, d: bg.nn.Module().register_buffer(n, bg.ones(1)),
    "register_parameter": lambda n, d: bg.nn.Module().register_parameter(n, None),
    "add_module": lambda n, d: bg.nn.Module().add_module(n, bg.nn.ReLU()),
    "setattr child": lambda n, d: setattr(bg.nn.Module(), n, bg.nn.ReLU()),
    "setattr parameter": lambda n, d: setattr(bg.nn.Module(), n, bg.nn.Parameter(bg.ones(1))),
    "Sequential": lambda n, d: bg.nn.Sequential({n: bg.nn.ReLU()}),
    "named_parameters": lambda n, d: bg.nn.Linear(1, 1).named_parameters(n),
    "named_modules": lambda n, d: bg.nn.Linear(1, 1).named_modules(n),
    "MetricsWriter": lambda n, d: metrics(d).write(1, {n: 1.0}),
    "MetricsWriter text": lambda n, d: metrics(d).write(1, {"x": n}),
    "add_scalar": lambda n, d: events(d).add_scalar(n, 1.0, 1),
    "add_text": lambda n, d: events(d).add_text("x", n, 1),
    "einsum": lambda n, d: bg.einsum(n, bg.ones(2), bg.ones(2)),
    "dtype": lambda n, d: bg.zeros(2, dtype=n),
    "to": lambda n, d: bg.ones(2).to(n),
    "device": lambda n, d: bg.zeros(2, device=n),
    "reduction": lambda n, d: bg.nn.functional.mse_loss(bg.ones(2), bg.ones(2), reduction=n),
    "MSELoss": lambda n, d: bg.nn.MSELoss(reduction=n)(bg.ones(2), bg.ones(2)),
    "activation": lambda n, d: bg.nn.Linear(1, 1, activation=n),
    "pad mode": lambda n, d: bg.pad(bg.ones(3), (1, 1), mode=n),
    "meshgrid": lambda n, d: bg.meshgrid(bg.ones(2), bg.ones(2), indexing=n),
    "searchsorted": lambda n, d: bg.searchsorted(bg.ones(2), bg.ones(2), side=n),
    "matrix_norm": lambda n, d: bg.linalg.matrix_norm(bg.ones((2, 2)), ord=n),
    "memory stats": lambda n, d: bg.memory.stats(n),
    "read_csv delimiter": lambda n, d: bg.data.read_csv(d / "none.csv", delimiter=n),
    "read_csv label": lambda n, d: bg.data.read_csv(d / "none.csv", label=n),
    "api_version": lambda n, d: bg.ones(1).__array_namespace__(api_version=n),
}
# A label may be any text with a UTF-8 form.
WITH_ANY_TEXT = {
    "to_dot": lambda n: bg.graph.to_dot(bg.ones(1, requires_grad=True) * 2, {n: bg.ones(1)}),
    "summary": lambda n: bg.graph.summary(bg.ones(1, requires_grad=True) * 2, [(n, bg.ones(1))]),
    "label": lambda n: bg.autograd.label(n).__enter__(),
}


@pytest.mark.parametrize("call", NAMES.values(), ids=NAMES.keys())
def test_names_without_utf8_raise(call, tmp_path):
    with pytest.raises((ValueError, TypeError, OSError, AttributeError)):
        call(LONE, tmp_path)


@pytest.mark.parametrize("call", WITH_ANY_TEXT.values(), ids=WITH_ANY_TEXT.keys())
def test_labels_without_utf8_raise(call):
    with pytest.raises(UnicodeEncodeError):
        call(LONE)


@pytest.mark.parametrize(
    "which",
    ["save_checkpoint part", "save_checkpoint name", "safetensors_bytes", "load_state_dict",
     "register_buffer", "add_module", "setattr child", "Sequential", "MetricsWriter", "einsum",
     "add_scalar", "reduction"],
)
def test_the_error_says_that_it_is_the_text(which, tmp_path):
    with pytest.raises(ValueError):
        NAMES[which](LONE, tmp_path)


@pytest.mark.parametrize(
    "which",
    ["register_buffer", "register_parameter", "add_module", "setattr child", "setattr parameter",
     "Sequential"],
)
def test_modules_refuse_names_with_nul(which, tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        NAMES[which](NUL, tmp_path)


def test_a_name_with_nul_is_another_name():
    with pytest.raises(ValueError, match="unexpected"):
        bg.nn.Linear(1, 1, bias=False).load_state_dict({"weight\0x": bg.ones((1, 1))})
    net = bg.nn.Module()
    setattr(net, "w", bg.nn.Parameter(bg.ones(1)))
    setattr(net, "w\0x", 3)
    assert list(net.state_dict()) == ["w"]
    delattr(net, "w\0x")
    assert list(net.state_dict()) == ["w"]


def test_type_names_without_utf8_are_escaped_in_messages():
    class Odd:
        pass

    Odd.__qualname__ = LONE
    with pytest.raises(TypeError, match="udc80"):
        bg.io.safetensors_bytes({"w": Odd()})
    with pytest.raises((TypeError, ValueError)):
        bg.asarray([Odd()])
    with pytest.raises(TypeError):
        bg.result_type(Odd())


def test_paths_are_bytes(tmp_path):
    """A folder and a file whose names are not UTF-8."""
    folder = os.path.join(tmp_path, "run" + LONE)
    os.mkdir(folder)
    assert os.listdir(tmp_path) == ["run" + LONE]
    path = os.path.join(folder, "x" + LONE)
    bg.io.save_npy(path, bg.arange(3))
    assert bg.io.load_npy(path).tolist() == [0, 1, 2]
    bg.io.save_checkpoint(path, {"m": {"w": bg.ones(1)}})
    assert bg.io.load_checkpoint(path)["m"]["w"].tolist() == [1.0]
    checkpoints = bg.io.CheckpointFolder(os.path.join(folder, "c" + LONE))
    made = checkpoints.save(3, {"m": {"w": bg.ones(1)}})
    assert made == checkpoints.path_of(3) == checkpoints.latest().path
    assert os.path.exists(made)
    assert checkpoints.folder == os.path.join(folder, "c" + LONE)
    with bg.io.EventWriter(os.path.join(folder, "e" + LONE)) as writer:
        assert os.path.exists(writer.path)
    with bg.io.MetricsWriter(path + ".jsonl") as writer:
        writer.write(1, {"loss": 0.5})
    with open(path + ".csv", "w") as file:
        file.write("a,b\n1,2\n")
    assert bg.data.read_csv(path + ".csv").values.tolist() == [[1.0, 2.0]]


def test_errors_about_paths_that_are_no_utf8(tmp_path):
    missing = os.path.join(tmp_path, "none" + LONE)
    for read in (bg.io.load_npy, bg.io.load_npz, bg.io.load_checkpoint, bg.data.read_image,
                 bg.data.read_idx):
        with pytest.raises(OSError) as caught:
            read(missing)
        # A message can be printed: the byte is escaped.
        assert r"none\x80" in str(caught.value)


def test_it_holds_with_debug_allocators(tmp_path):
    """Repeats the tests of names with Python's memory checks."""
    if "BAREGRAD_TEST_CHILD" in os.environ:
        return
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "BAREGRAD_TEST_CHILD": "1", "PYTHONMALLOC": "debug"},
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
