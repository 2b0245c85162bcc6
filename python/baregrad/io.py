"""Tensors to and from files: safetensors, npy, npz; checkpoints; logs of a run.

Files are written whole or not at all. Reading a file never runs code from it, and never opens other files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from baregrad import _core
from baregrad._core import Device, Tensor
from baregrad._core import io as _io
from baregrad._core.io import (
    CheckpointFolder,
    EventWriter,
    FoundCheckpoint,
    MetricsWriter,
    load_checkpoint,
    load_npy,
    load_npz,
    save_checkpoint,
    save_npy,
    save_npz,
)

__all__ = [
    "CheckpointFolder",
    "EventWriter",
    "FoundCheckpoint",
    "MetricsWriter",
    "TensorDict",
    "load",
    "load_checkpoint",
    "load_npy",
    "load_npz",
    "load_safetensors",
    "parse_safetensors",
    "safetensors_bytes",
    "save",
    "save_checkpoint",
    "save_npy",
    "save_npz",
    "save_safetensors",
]

_Path = str | os.PathLike[str]


class TensorDict(dict[str, Tensor]):
    """The tensors of a file by name, in its order, with its other entries in `metadata`.

    >>> data = bg.io.safetensors_bytes({"x": bg.ones((2,))}, {"epoch": "3"})
    >>> bg.io.parse_safetensors(data).metadata
    {'epoch': '3'}
    """

    metadata: dict[str, str]

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        super().__init__(tensors)
        self.metadata = dict(metadata)


def _tensors(given: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Converts NumPy arrays and similar objects to tensors."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{who}: takes a dict of tensors by name, got an object of type "
            f"{type(given).__name__}; write one tensor as {{'name': tensor}}"
        )
    return {
        name: value if isinstance(value, (Tensor, str)) else _core.asarray(value)
        for name, value in given.items()
    }


def save_safetensors(
    path: _Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors by name. The safetensors package can read the file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bg.io.save_safetensors(folder + "/x.safetensors", {"x": bg.ones((2,))})
    ...     os.listdir(folder)
    ['x.safetensors']
    """
    who = "save_safetensors"
    _io._save_safetensors(path, _tensors(tensors, who), dict(metadata or {}), who)


def load_safetensors(
    path: _Path, *, mmap: bool = False, device: Device | str | None = None
) -> TensorDict:
    """The tensors of a safetensors file, in its order, and its metadata.

    For `mmap` and `device` see `load`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bg.io.save_safetensors(folder + "/x.safetensors", {"x": bg.ones((2,))})
    ...     bg.io.load_safetensors(folder + "/x.safetensors")
    {'x': tensor([1., 1.])}
    """
    return TensorDict(*_io._load_safetensors(path, mmap, device, "load_safetensors"))


def safetensors_bytes(
    tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> bytes:
    """The bytes that save_safetensors would write.

    >>> data = bg.io.safetensors_bytes({"x": bg.ones((2,))})
    >>> bg.io.parse_safetensors(data)
    {'x': tensor([1., 1.])}
    """
    return _io._safetensors_bytes(_tensors(tensors, "safetensors_bytes"), dict(metadata or {}))


def parse_safetensors(data: bytes | bytearray | memoryview) -> TensorDict:
    """The tensors of a safetensors file that lies in memory.

    >>> data = bg.io.safetensors_bytes({"x": bg.ones((2,))})
    >>> bg.io.parse_safetensors(data)["x"]
    tensor([1., 1.])
    """
    # bytes() of an int would make so many zeros.
    if not isinstance(data, bytes):
        try:
            data = memoryview(data).tobytes()
        except (TypeError, ValueError, BufferError) as error:
            raise TypeError(
                f"parse_safetensors: takes bytes, got an object of type {type(data).__name__}"
            ) from error
    return TensorDict(*_io._parse_safetensors(data))


_EXTENSIONS = ".safetensors, .npy and .npz"


def _extension(path: _Path, who: str) -> str:
    name = os.fsdecode(path)
    if "\0" in name:
        raise ValueError(f"{who}: the path {name!r} holds a NUL character")
    extension = os.path.splitext(name)[1].lower()
    if extension not in (".safetensors", ".npy", ".npz"):
        raise ValueError(
            f"{who}: the name {name!r} says nothing of the format; its end is one of {_EXTENSIONS}"
        )
    return extension


def save(obj: Any, path: _Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a tensor (.npy) or tensors by name (.safetensors, .npz); the path's suffix decides.

    A state_dict of a module is a dict of tensors. `metadata` is text by name, for safetensors.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> bg.save({"x": bg.ones((2,))}, path, metadata={"epoch": "3"})
    >>> loaded = bg.load(path)
    >>> loaded["x"], loaded.metadata
    (tensor([1., 1.]), {'epoch': '3'})
    """
    extension = _extension(path, "save")
    if extension == ".safetensors":
        _io._save_safetensors(path, _tensors(obj, "save"), dict(metadata or {}), "save")
        return
    if metadata:
        raise ValueError(f"save: {extension} files have no room for metadata; use .safetensors")
    if extension == ".npz":
        _io._save_npz(path, _tensors(obj, "save"), "save")
        return
    if isinstance(obj, Mapping):
        raise TypeError("save: a .npy file holds one tensor; use .npz or .safetensors for a dict")
    _io._save_npy(path, obj if isinstance(obj, Tensor) else _core.asarray(obj), "save")


def load(path: _Path, *, mmap: bool = False, device: Device | str | None = None) -> Any:
    """The tensor in a .npy file; the tensors by name in a .safetensors or .npz file.

    Never runs code from the file. See `save`.

    The tensors are copies: later changes of the file do not affect them. With `mmap` (.safetensors
    and .npy) they use a private mapping of the file, of which only the used parts are read. Writing
    to them never changes the file. The file must not change while they live: if another program
    writes into it, parts that were not used yet show the new bytes, and using a part that was cut
    off ends the process with SIGBUS. Replacing the file, as `save` does, is safe.

    Files do not store a device: the tensors are made on `device`, or else on the default device.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bg.save(bg.ones((2,)), folder + "/x.npy")
    ...     bg.load(folder + "/x.npy")
    tensor([1., 1.])
    """
    extension = _extension(path, "load")
    if extension == ".safetensors":
        return TensorDict(*_io._load_safetensors(path, mmap, device, "load"))
    if extension == ".npy":
        return _io._load_npy(path, mmap, device, "load")
    if mmap:
        raise ValueError("load: a .npz file is an archive, which cannot be mapped; leave mmap out")
    return _io._load_npz(path, device, "load")
