"""Files, compared with the packages that own their formats: NumPy and safetensors."""

import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import baregrad as bg

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64"]


def arrays():
    rng = np.random.default_rng(7)
    return {
        f"layer.{name}": rng.integers(0, 2 if name == "bool" else 100, (3, 4)).astype(name)
        for name in DTYPES
    } | {"empty": np.zeros((0, 5), np.float32), "number": np.array(2.5)}


def assert_same(tensors, expected):
    assert list(tensors) == list(expected)
    for name, array in expected.items():
        got = np.asarray(tensors[name])
        assert got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_array_equal(got, array)


@pytest.fixture(params=[str, pathlib.Path, lambda p: Fspath(p)], ids=["str", "Path", "PathLike"])
def as_path(request):
    return request.param


class Fspath:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


def test_safetensors_reads_ours(tmp_path, as_path):
    path = tmp_path / "x.safetensors"
    expected = arrays()
    bg.save({k: bg.asarray(v) for k, v in expected.items()}, as_path(path), metadata={"epoch": "3"})
    found = safetensors.numpy.load_file(path)
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"epoch": "3"}


def test_we_read_safetensors(tmp_path, as_path):
    path = tmp_path / "x.safetensors"
    expected = arrays()
    safetensors.numpy.save_file(expected, path, metadata={"by": "the package"})
    loaded = bg.load(as_path(path))
    assert isinstance(loaded, dict) and loaded.metadata == {"by": "the package"}
    assert set(loaded) == set(expected)
    assert_same({k: loaded[k] for k in expected}, expected)


def test_safetensors_keeps_the_order(tmp_path):
    path = tmp_path / "x.safetensors"
    names = ["z", "a", "m", "layer.10", "layer.9"]
    bg.save({name: bg.ones((i,)) for i, name in enumerate(names)}, path)
    assert list(bg.load(path)) == names


def test_safetensors_in_memory():
    expected = arrays()
    data = bg.io.safetensors_bytes(expected, {"k": "v"})
    assert isinstance(data, bytes)
    assert set(safetensors.numpy.load(data)) == set(expected)
    loaded = bg.io.parse_safetensors(data)
    assert loaded.metadata == {"k": "v"}
    assert_same(loaded, expected)
    assert bg.io.parse_safetensors(safetensors.numpy.save({"x": np.arange(3)}))["x"].shape == (3,)


def test_bfloat16_round_trip(tmp_path):
    path = tmp_path / "x.safetensors"
    x = bg.asarray([1.0, 2.5, -3.25]).to(bg.bfloat16)
    bg.save({"x": x}, path)
    back = bg.load(path)["x"]
    assert back.dtype is bg.bfloat16
    np.testing.assert_array_equal(back.to(bg.float32).numpy(), [1.0, 2.5, -3.25])
    with pytest.raises(TypeError, match="bfloat16"):
        bg.save(x, tmp_path / "x.npy")


def test_views_and_tensors_with_history(tmp_path):
    path = tmp_path / "x.safetensors"
    base = np.arange(24.0).reshape(4, 6)
    x = bg.asarray(base)
    w = bg.tensor([1.0, 2.0], requires_grad=True)
    bg.save({"t": x.T, "part": x[1:3, ::2], "w": w * 2}, path)
    found = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(found["t"], base.T)
    np.testing.assert_array_equal(found["part"], base[1:3, ::2])
    np.testing.assert_array_equal(found["w"], [2, 4])
    assert not bg.load(path)["w"].requires_grad


def test_npy_both_ways(tmp_path, as_path):
    path = tmp_path / "x.npy"
    for name, array in arrays().items():
        bg.save(bg.asarray(array), as_path(path))
        assert_same({name: np.load(path)}, {name: array})
        np.save(path, array)
        assert_same({name: bg.load(as_path(path))}, {name: array})
    np.save(path, np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    np.testing.assert_array_equal(np.asarray(bg.load(path)), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_both_ways(tmp_path, compressed):
    path = tmp_path / "x.npz"
    expected = arrays()
    bg.io.save_npz(path, {k: bg.asarray(v) for k, v in expected.items()}, compressed=compressed)
    with np.load(path) as found:
        assert_same(dict(found), expected)
    (np.savez_compressed if compressed else np.savez)(path, **expected)
    assert_same(bg.load(path), expected)
    bg.save(expected, path)
    assert_same(bg.load(path), expected)


def test_load_runs_no_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "made"),))

    path = tmp_path / "evil.npy"
    np.save(path, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(OSError):
        bg.load(path)
    (tmp_path / "evil.npz").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(OSError):
        bg.load(tmp_path / "evil.npz")
    assert not (tmp_path / "made").exists()


def test_damaged_files(tmp_path):
    path = tmp_path / "x.safetensors"
    bg.save({"x": bg.ones((100,))}, path)
    data = path.read_bytes()
    for cut in (0, 4, 20, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(OSError, match="x.safetensors"):
            bg.load(path)
    path.write_bytes(struct.pack("<Q", 1 << 60) + data[8:])
    with pytest.raises(OSError):
        bg.load(path)
    with pytest.raises(OSError):
        bg.load(tmp_path / "none.npy")


def test_wrong_arguments(tmp_path):
    x = bg.ones((2,))
    with pytest.raises(ValueError, match="save: .*x.pt.*.safetensors, .npy and .npz"):
        bg.save(x, tmp_path / "x.pt")
    with pytest.raises(ValueError, match="load"):
        bg.load(tmp_path / "x")
    with pytest.raises(TypeError, match="dict of tensors by name"):
        bg.save(x, tmp_path / "x.safetensors")
    with pytest.raises(TypeError, match="one tensor"):
        bg.save({"x": x}, tmp_path / "x.npy")
    with pytest.raises(ValueError, match="metadata"):
        bg.save({"x": x}, tmp_path / "x.npz", metadata={"a": "b"})
    with pytest.raises(TypeError, match="'note' is not a tensor"):
        bg.save({"x": x, "note": "hello"}, tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_file_leaves_loaded_tensors_alone(tmp_path):
    path = tmp_path / "x.safetensors"
    bg.save({"x": bg.asarray(np.arange(1000.0))}, path)
    loaded = bg.load(path)["x"]
    bg.save({"x": bg.asarray(np.zeros(1000))}, path)
    np.testing.assert_array_equal(np.asarray(loaded), np.arange(1000.0))
    loaded *= 2
    np.testing.assert_array_equal(np.asarray(bg.load(path)["x"]), np.zeros(1000))


def parts(step):
    return {
        "model": {"w": bg.asarray(np.full(3, float(step)))},
        "optimizer": {"0.m": bg.ones((2,)), "lr": 0.1, "step": step, "name": "sgd"},
    }


def test_checkpoint(tmp_path):
    path = tmp_path / "c.safetensors"
    bg.io.save_checkpoint(path, parts(7))
    back = bg.io.load_checkpoint(path)
    assert set(back) == {"model", "optimizer"}
    np.testing.assert_array_equal(np.asarray(back["model"]["w"]), [7, 7, 7])
    assert float(back["optimizer"]["lr"]) == 0.1 and int(back["optimizer"]["step"]) == 7
    assert back["optimizer"]["name"] == "sgd"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError):
        bg.io.load_checkpoint(path)
    with pytest.raises(TypeError, match="dict of parts"):
        bg.io.save_checkpoint(path, {"model": 3})


def test_checkpoint_folder(tmp_path):
    folder = bg.io.CheckpointFolder(tmp_path / "run" / "checkpoints", keep=2)
    assert folder.latest() is None and folder.steps() == []
    for step in (1, 2, 3):
        assert folder.save(step, parts(step)) == folder.path_of(step)
    assert folder.steps() == [2, 3]
    pathlib.Path(folder.path_of(3)).write_bytes(b"torn")
    found = folder.latest()
    assert found.step == 2 and found.path == folder.path_of(2) and len(found.damaged) == 1
    np.testing.assert_array_equal(np.asarray(found.checkpoint["model"]["w"]), [2, 2, 2])


def test_metrics_writer(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with bg.io.MetricsWriter(path) as metrics:
        metrics.write(1, {"loss": bg.asarray(0.5), "epoch": 2, "best": True, "note": "é\n"})
        metrics.write(2, {"loss": np.float32(0.25), "bad": float("nan")})
    with pytest.raises(ValueError, match="closed"):
        metrics.write(3, {})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [
        {"step": 1, "loss": 0.5, "epoch": 2, "best": True, "note": "é\n"},
        {"step": 2, "loss": 0.25, "bad": None},
    ]
    with bg.io.MetricsWriter(path, resume_step=2) as metrics:
        with pytest.raises(TypeError, match="numbers and text"):
            metrics.write(2, {"x": object()})
        metrics.write(2, {"loss": 0.125})
    assert [json.loads(line)["loss"] for line in path.read_text().splitlines()] == [0.5, 0.125]


def events_in(path):
    """Records of an event file: length, its checksum, data, its checksum."""
    data = pathlib.Path(path).read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + length]
        data = data[16 + length :]


def test_event_writer(tmp_path):
    with bg.io.EventWriter(tmp_path / "events") as events:
        events.add_scalar("loss", 0.5, 1)
        events.add_scalar("accuracy", bg.asarray(0.75), 1, wall_time=1.5)
        events.add_text("note", "hello", 2)
        events.flush()
        path = events.path
    records = list(events_in(path))
    assert b"brain.Event:2" in records[0]
    assert b"loss" in records[1] and struct.pack("<f", 0.5) in records[1]
    assert b"accuracy" in records[2] and struct.pack("<d", 1.5) in records[2]
    assert b"note" in records[3] and b"hello" in records[3]
    with pytest.raises(TypeError, match="add_scalar: takes a number"):
        bg.io.EventWriter(tmp_path / "events").add_scalar("x", "text", 1)


def test_loaded_tensors_are_copies(tmp_path):
    """Rewriting the file in place, or truncating it, does not affect them."""
    truth = np.arange(100000.0)
    for name in ("x.safetensors", "x.npy", "x.npz"):
        path = tmp_path / name
        bg.save(truth if name.endswith("npy") else {"x": truth}, path)
        loaded = bg.load(path)
        loaded = loaded if name.endswith("npy") else loaded["x"]
        path.write_bytes(b"\xff" * path.stat().st_size)
        os.truncate(path, 0)
        np.testing.assert_array_equal(np.asarray(loaded), truth)
    path = tmp_path / "c.safetensors"
    bg.io.save_checkpoint(path, {"p": {"x": bg.asarray(truth)}})
    loaded = bg.io.load_checkpoint(path)["p"]["x"]
    os.truncate(path, 0)
    np.testing.assert_array_equal(np.asarray(loaded), truth)


def test_mmap_is_asked_for(tmp_path):
    path = tmp_path / "x.npy"
    bg.save(np.arange(100000.0), path)
    before = path.read_bytes()
    loads = [lambda: bg.load(path, mmap=True), lambda: bg.io.load_npy(path, mmap=True)]
    for load in loads:
        x = load()
        with path.open("r+b") as file:
            file.seek(len(before) - 8)
            file.write(struct.pack("<d", -1.0))
        assert x[-1].item() == -1.0  # it is the file
        x[0] = 5.0
        assert path.read_bytes() == before[:-8] + struct.pack("<d", -1.0)  # private
        path.write_bytes(before)
    bg.save({"x": bg.ones((3,))}, tmp_path / "x.safetensors")
    assert bg.io.load_safetensors(tmp_path / "x.safetensors", mmap=True)["x"].shape == (3,)
    assert bg.load(tmp_path / "x.safetensors", mmap=True).metadata == {}
    bg.save({"x": bg.ones((3,))}, tmp_path / "x.npz")
    with pytest.raises(ValueError, match="load: a .npz file is an archive"):
        bg.load(tmp_path / "x.npz", mmap=True)


NUL = "w\0evil"


def test_names_with_nul(tmp_path):
    x, y = bg.ones((1,)), bg.zeros((1,))
    path = tmp_path / "x.safetensors"
    linear = bg.nn.Linear(2, 2)
    for act in [
        lambda: bg.save({"w": x, NUL: y}, path),
        lambda: bg.save({"w": x, NUL: y}, tmp_path / "x.npz"),
        lambda: bg.save({"w": x}, path, metadata={NUL: "v"}),
        lambda: bg.io.safetensors_bytes({"w": x, NUL: y}),
        lambda: bg.io.save_npz(tmp_path / "x.npz", {NUL: y}),
        lambda: bg.io.save_checkpoint(path, {"m": {"w": x}, "m\0x": {"w": y}}),
        lambda: bg.io.save_checkpoint(path, {"m": {"w": x, NUL: y}}),
        lambda: bg.io.save_checkpoint(path, {"m": {NUL: 1}}),
        lambda: bg.io.CheckpointFolder(tmp_path / "c").save(1, {"m\0x": {}}),
        lambda: linear.load_state_dict({**linear.state_dict(), "weight\0x": x}),
        lambda: bg.io.MetricsWriter(tmp_path / "m").write(1, {NUL: 1}),
        lambda: bg.io.EventWriter(tmp_path / "e").add_scalar(NUL, 1.0, 1),
        lambda: bg.io.EventWriter(tmp_path / "e").add_text(NUL, "text", 1),
        lambda: bg.save(x, str(tmp_path / "x\0.npy")),
        lambda: bg.load(str(tmp_path / "x\0.npy")),
    ]:
        with pytest.raises(ValueError):
            act()
    for act in [
        lambda: bg.io.CheckpointFolder(str(tmp_path / "a\0b")),
        lambda: bg.io.MetricsWriter(str(tmp_path / "a\0b")),
        lambda: bg.io.load_npy(str(tmp_path / "a\0b.npy")),
    ]:
        with pytest.raises((ValueError, TypeError)):
            act()
    assert not path.exists() and not (tmp_path / "x.npz").exists() and not (tmp_path / "a").exists()
    # A file of another program.
    header = json.dumps({n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
                         for i, n in enumerate(["w", NUL])}).encode()
    data = struct.pack("<Q", len(header)) + header + b"ab"
    with pytest.raises(OSError, match="NUL"):
        bg.io.parse_safetensors(data)
    path.write_bytes(data)
    with pytest.raises(OSError, match="NUL"):
        bg.load(path)
    # Text that is not a name survives a round trip.
    bg.io.save_checkpoint(path, {"m": {"text": "a\0b"}})
    assert bg.io.load_checkpoint(path) == {"m": {"text": "a\0b"}}


@pytest.mark.parametrize("name", ["\udc80", "a\udfffb"])
def test_names_with_lone_surrogates(tmp_path, name):
    x = bg.ones((1,))
    for act in [
        lambda: bg.io.save_checkpoint(tmp_path / "c", {"m": {name: x}}),
        lambda: bg.io.save_checkpoint(tmp_path / "c", {name: {"w": x}}),
        lambda: bg.io.save_checkpoint(tmp_path / "c", {"m": {"w": name}}),
        lambda: bg.io.safetensors_bytes({name: x}),
    ]:
        with pytest.raises(ValueError):
            act()


def test_errors_name_the_function_that_was_called(tmp_path):
    none = str(tmp_path / "no" / "x")
    x = bg.ones((1,))
    for who, act in [
        ("load", lambda: bg.load(none + ".safetensors")),
        ("load", lambda: bg.load(none + ".npy")),
        ("load", lambda: bg.load(none + ".npz")),
        ("save", lambda: bg.save({"x": x}, none + ".safetensors")),
        ("save", lambda: bg.save(x, none + ".npy")),
        ("save", lambda: bg.save({"x": x}, none + ".npz")),
        ("load_safetensors", lambda: bg.io.load_safetensors(none)),
        ("save_safetensors", lambda: bg.io.save_safetensors(none, {"x": x})),
        ("load_npy", lambda: bg.io.load_npy(none)),
        ("save_npy", lambda: bg.io.save_npy(none, x)),
        ("load_npz", lambda: bg.io.load_npz(none)),
        ("save_npz", lambda: bg.io.save_npz(none, {"x": x})),
        ("load_checkpoint", lambda: bg.io.load_checkpoint(none)),
        ("save_checkpoint", lambda: bg.io.save_checkpoint(none, {})),
        ("MetricsWriter", lambda: bg.io.MetricsWriter(none)),
    ]:
        with pytest.raises(OSError, match=rf"^{who}: cannot"):
            act()
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"no")
    with pytest.raises(OSError, match=r"^load: '.*x.safetensors': 2 bytes"):
        bg.load(path)
    with pytest.raises(OSError, match=r"^load_checkpoint: '.*x.safetensors': 2 bytes"):
        bg.io.load_checkpoint(path)


def test_checkpoint_folder_of_a_run_that_went_back(tmp_path):
    folder = bg.io.CheckpointFolder(tmp_path, keep=3)
    for step in (100, 200, 300):
        folder.save(step, parts(step))
    folder = bg.io.CheckpointFolder(tmp_path, keep=3)
    for step in (1, 2, 3, 4):
        folder.save(step, parts(step))
        assert bg.io.CheckpointFolder(tmp_path).latest().step == step
    assert folder.steps() == [2, 3, 4]


def test_checkpoint_folder_reads_without_a_trace(tmp_path):
    left = tmp_path / "step-000000001.safetensors.1.2.tmp"
    left.write_bytes(b"half")
    assert bg.io.CheckpointFolder(tmp_path).latest() is None
    assert left.exists()
    assert bg.io.CheckpointFolder(tmp_path / "none").steps() == []
    assert not (tmp_path / "none").exists()
    bg.io.CheckpointFolder(tmp_path).save(1, parts(1))
    assert not left.exists()


def test_metrics_writer_refuses(tmp_path):
    path = tmp_path / "thesis.txt"
    for text in ("my thesis", "line\nline\n", '{"note": 1}\n'):
        path.write_text(text)
        with pytest.raises(OSError, match="not a line of metrics"):
            bg.io.MetricsWriter(path)
        assert path.read_text() == text
    with bg.io.MetricsWriter(tmp_path / "m") as metrics:
        with pytest.raises(ValueError, match="'step' occurs twice"):
            metrics.write(1, {"step": 2})
        metrics.write(1, {"loss": 2})
    assert (tmp_path / "m").read_text() == '{"step":1,"loss":2}\n'


def test_checkpoint_folder_is_read_while_it_is_written(tmp_path):
    """By another process that keeps one file: a listed file may be gone a moment later."""
    script = """
import sys, baregrad as bg
folder = bg.io.CheckpointFolder(sys.argv[1], keep=1)
for step in range(200):
    folder.save(step, {"model": {"w": bg.full((1000,), float(step))}, "run": {"step": step}})
"""
    writer = subprocess.Popen([sys.executable, "-B", "-c", script, str(tmp_path)])
    try:
        last = -1
        while writer.poll() is None:
            found = bg.io.CheckpointFolder(tmp_path).latest()
            if found is None:
                assert last < 0
                continue
            assert found.damaged == [] and found.step >= last
            last = found.step
            assert found.checkpoint["run"] == {"step": str(last)}
            assert found.checkpoint["model"]["w"][999].item() == last
    finally:
        writer.kill()
        writer.wait()
    assert writer.returncode == 0
    assert bg.io.CheckpointFolder(tmp_path).steps() == [199]


def test_limit_on_the_size_of_files(tmp_path):
    """An error of the write, without ending the process; the existing file stays."""
    script = """
import resource, sys, baregrad as bg
path = sys.argv[1] + "/x.npy"
bg.save(bg.ones((2,)), path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log = bg.io.MetricsWriter(sys.argv[1] + "/m")
for act in [lambda: bg.save(bg.ones((1000,)), path), lambda: [log.write(i, {"a": 1}) for i in range(100)]]:
    try:
        act()
    except OSError as error:
        print(error)
print(bg.load(path).shape, len(open(sys.argv[1] + "/m").read()) < 1000)
"""
    done = subprocess.run([sys.executable, "-B", "-c", script, str(tmp_path)], capture_output=True,
                          text=True, check=True)
    assert done.stdout.count("File too large") == 2
    assert done.stdout.endswith("(2,) True\n")
    assert len(list(tmp_path.iterdir())) == 2
    assert all(json.loads(line)["a"] == 1 for line in (tmp_path / "m").read_text().splitlines())
