"""Files of ours read by NumPy and the safetensors package, and theirs by ours.

BAREGRAD_IO_SAMPLES names the program that writes and copies them (tests/io/samples).
"""

import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = os.environ.get(
    "BAREGRAD_IO_SAMPLES", str(ROOT / "build" / "release" / "tests" / "io_samples")
)
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64"]
# The dtypes that NumPy has itself.
NUMPY_DTYPES = [name for name in DTYPES if name != "bfloat16"]


def run(*arguments: str | os.PathLike) -> subprocess.CompletedProcess:
    return subprocess.run(
        [SAMPLES, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    done = run("copy", source, target)
    assert done.returncode == 0, done.stderr


def expected(names: list[str]) -> dict[str, np.ndarray]:
    """The tensors that io_samples writes."""
    out = {}
    for name in names:
        dtype = np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)
        cube = np.arange(24).astype(dtype).reshape(2, 3, 4)
        out[f"{name}.cube"] = cube
        out[f"{name}.turned"] = cube.transpose(2, 0, 1)
        out[f"{name}.scalar"] = cube[1, 2, 3]
        out[f"{name}.empty"] = np.empty((0, 5), dtype)
    return out


def assert_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("samples")
    done = run("write", folder)
    assert done.returncode == 0, done.stderr
    return folder


def varied(names: list[str]) -> dict[str, np.ndarray]:
    """Arrays as other programs save them: random bits, all orders."""
    random = np.random.default_rng(5)
    out = {}
    for name in names:
        dtype = np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)
        bits = random.integers(0, 2 if name == "bool" else 256, 60 * dtype.itemsize, np.uint8)
        array = np.frombuffer(bits.tobytes(), dtype).reshape(3, 4, 5)
        out[f"{name} plain"] = array
        out[f"{name}/scalar"] = np.array(array[0, 0, 0])
        out[f"{name}.empty"] = array[:, :0]
        out[f"{name}.row"] = array[0, 0]
    return out


def test_numpy_reads_our_npy(folder):
    for name, array in expected(NUMPY_DTYPES).items():
        assert_same({name: np.load(folder / f"{name}.npy")}, {name: array})


@pytest.mark.parametrize("file", ["tensors.npz", "packed.npz"])
def test_numpy_reads_our_npz(folder, file):
    with np.load(folder / file) as archive:
        assert_same(dict(archive), expected(NUMPY_DTYPES))


def test_our_npy_is_numpys_byte_for_byte(folder, tmp_path):
    for name, array in expected(NUMPY_DTYPES).items():
        np.save(tmp_path / "theirs.npy", np.ascontiguousarray(array).reshape(array.shape))
        assert (folder / f"{name}.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


def test_the_package_reads_our_safetensors(folder):
    path = folder / "tensors.safetensors"
    assert_same(safetensors.numpy.load_file(path), expected(DTYPES))
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"who": 'baregrad "é"'}


def test_we_read_the_packages_safetensors(tmp_path):
    arrays = varied(DTYPES) | {"ünïcode \"quoted\"\n": np.zeros(3, np.float32)}
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", {"k": "v\x01\"\\"})
    copy(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert_same(safetensors.numpy.load_file(tmp_path / "b.safetensors"), arrays)
    with safetensors.safe_open(tmp_path / "b.safetensors", "np") as file:
        assert file.metadata() == {"k": "v\x01\"\\"}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_we_read_numpys_npy(tmp_path, order, endian):
    for name, array in varied(NUMPY_DTYPES).items():
        theirs = np.asarray(array.astype(array.dtype.newbyteorder(endian)), order=order)
        np.save(tmp_path / "a.npy", theirs)
        copy(tmp_path / "a.npy", tmp_path / "b.npy")
        assert_same({name: np.load(tmp_path / "b.npy")}, {name: array})


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_we_read_every_version(tmp_path, version):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    copy(tmp_path / "a.npy", tmp_path / "b.npy")
    assert_same({"a": np.load(tmp_path / "b.npy")}, {"a": array})


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_we_read_numpys_npz(tmp_path, save):
    arrays = varied(NUMPY_DTYPES) | {"zeros": np.zeros((500, 500)), "ünïcode": np.ones(3)}
    save(tmp_path / "a.npz", **arrays)
    copy(tmp_path / "a.npz", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as archive:
        assert_same(dict(archive), arrays)


@pytest.mark.parametrize("array, error", [
    (np.array([{}], object), "object arrays are refused"),
    (np.array(["text"]), "dtype '<U4' is none of ours"),
    (np.zeros(2, np.complex64), "dtype '<c8' is none of ours"),
    (np.zeros(2, [("x", "<f4")]), "arrays of structures are not supported"),
    (np.zeros(2, ml_dtypes.bfloat16), "save it as safetensors"),
])
def test_what_we_refuse(tmp_path, array, error):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    done = run("copy", tmp_path / "a.npy", tmp_path / "b.npy")
    assert done.returncode == 1
    assert error in done.stderr
    assert not (tmp_path / "b.npy").exists()
