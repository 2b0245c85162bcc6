"""Data for training: datasets, the loader, readers of files, and the standard data sets.

    train = bg.data.mnist()
    for x, y in bg.data.DataLoader(train, batch_size=64, shuffle=True):
        ...
"""

from __future__ import annotations

import atexit
import itertools
import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from baregrad import _core
from baregrad._core import Device, DType, Generator, Tensor
from baregrad._core import data as _engine
from baregrad._core.data import read_idx, read_image
from baregrad._progress import ProgressBar
from baregrad._text import shown

__all__ = [
    "CsvTable",
    "DataLoader",
    "Dataset",
    "ImageDataset",
    "Subset",
    "TensorDataset",
    "digits",
    "fashion",
    "load_dataset",
    "mnist",
    "random_split",
    "read_csv",
    "read_idx",
    "read_image",
]

# ---- Datasets


class Dataset:
    """A numbered collection, to be subclassed with ``__len__`` and ``__getitem__``.

    An item is a tensor, an array or a number, or a tuple of them; a loader stacks the items of a
    batch, field by field. Any other object with a length and items, such as a list, is a dataset
    too.

    >>> class Squares(bg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return float(i), i * i
    >>> for x, y in bg.data.DataLoader(Squares(), batch_size=2):
    ...     print(x, y)
    tensor([0., 1.]) tensor([0, 1])
    tensor([2., 3.]) tensor([4, 9])
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: a dataset needs __len__")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a dataset needs __getitem__")


class TensorDataset(Dataset):
    """Tensors in memory: item i is ``(tensors[0][i], tensors[1][i], ...)``.

    >>> dataset = bg.data.TensorDataset(bg.arange(6).reshape(3, 2), bg.tensor([0, 1, 0]))
    >>> len(dataset)
    3
    >>> dataset[1]
    (tensor([2, 3]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors
        self._source = _engine.tensor_source(list(tensors))

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)


class ImageDataset(Dataset):
    """Images and their labels; made by ``mnist``, ``fashion`` and ``digits``.

    Pixels stay bytes in memory. An item's image is float32 ``[1, height, width]`` with
    ``x = (pixel - mean) / std``, where ``(mean, std)`` is the scaling.

    >>> digits = bg.data.digits(100)
    >>> image, label = digits[0]
    >>> image.shape, digits.classes[int(label)] in "0123456789"
    ((1, 28, 28), True)
    """

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        *,
        classes: Sequence[str] = (),
        scaling: tuple[float, float] | str = (0.0, 255.0),
        name: str = "",
        folder: str = "",
    ) -> None:
        #: uint8 [N, height, width]
        self.images = images
        #: int64 [N]
        self.labels = labels
        #: The name of each label.
        self.classes = tuple(classes)
        self.name = name
        #: The folder of its files; empty if it was generated.
        self.folder = folder
        if isinstance(scaling, str):
            if scaling != "auto":
                raise ValueError(f"ImageDataset: scaling is {shown(scaling)}, takes a pair or 'auto'")
            scaling = _engine.pixel_scaling(images)
        #: (mean, std) that normalises pixels to mean 0 and deviation 1.
        self.scaling: tuple[float, float] = scaling
        self._source = _engine.image_source(images, labels, *scaling)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        item = self._source.item(index + len(self) if index < 0 else index)
        return cast(tuple[Tensor, Tensor], item)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.images.shape[1:]))
        return f"ImageDataset({self.name or 'images'}, {len(self)} of {shape})"


class Subset(Dataset):
    """A selection of the items of another dataset.

    >>> dataset = bg.data.TensorDataset(bg.tensor([10, 11, 12, 13]))
    >>> bg.data.Subset(dataset, [3, 0])[0]
    (tensor(13),)
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = list(indices)
        self._held = _Held(dataset)
        self._source = _engine.subset_source(self._held.source, self.indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]


def random_split(
    dataset: Any,
    lengths: Sequence[int] | Sequence[float],
    seed: int | None = None,
    *,
    generator: Generator | None = None,
) -> list[Subset]:
    """Parts of the given sizes, or of the given fractions when these add up to 1.

    The split depends only on the seed. Without one, a seed is drawn from the generator, or from the
    default generator, which ``manual_seed`` sets.

    >>> train, test = bg.data.random_split(range(10), [0.8, 0.2], seed=0)
    >>> len(train), len(test), sorted([*train, *test])
    (8, 2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    counts = _counts(lengths, len(dataset))
    held = _Held(dataset)
    chosen = _drawn_seed(generator) if seed is None or generator is not None else seed
    parts = _engine.random_split(held.source, counts, chosen)
    return [Subset(dataset, indices) for indices in parts]


def _drawn_seed(generator: Generator | None) -> int:
    """Draws a seed from a generator, by default from the default one."""
    return int(_core.randint(0, 2**62, (), generator=generator, device="cpu"))


def _counts(lengths: Sequence[int] | Sequence[float], total: int) -> list[int]:
    if all(isinstance(length, int) for length in lengths):
        return [int(length) for length in lengths]
    if abs(sum(lengths) - 1) > 1e-6 or min(lengths) < 0:
        raise ValueError(f"random_split: the fractions {shown(list(lengths))} do not add up to 1")
    counts = [int(total * fraction) for fraction in lengths]
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    return counts


class _Held:
    """A dataset, and the object from which the engine reads its batches.

    Python's garbage collector does not see references of the engine. So the engine gets a weak
    reference, and the user of the engine's object must keep this object alive.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        own = isinstance(dataset, TensorDataset | ImageDataset | Subset)
        # A subclass that overrides __getitem__ is an ordinary Python dataset.
        if own and type(dataset).__getitem__ in _OWN_GETITEM:
            self.source: _engine.Source = dataset._source
            return
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise TypeError(
                "DataLoader: a dataset has __len__ and __getitem__; "
                f"{type(dataset).__name__} has not"
            )
        self.source = _engine.python_source(_Items(self))


class _Items:
    """The items of a dataset that another object holds."""

    def __init__(self, held: _Held) -> None:
        self._held = weakref.ref(held)

    def _dataset(self) -> Any:
        held = self._held()
        if held is None:
            raise RuntimeError("DataLoader: the dataset of this source is gone")
        return held.dataset

    def __len__(self) -> int:
        return len(self._dataset())

    def __getitem__(self, index: int) -> Any:
        return self._dataset()[index]


_OWN_GETITEM = {kind.__getitem__ for kind in (TensorDataset, ImageDataset, Subset)}

# ---- The loader


class DataLoader:
    """A dataset in batches.

    Each ``iter(loader)``, hence each ``for`` loop, is one epoch with its own order. Loops may run
    at the same time, nested or in several threads, and are independent of each other.

    Each epoch draws its order from the generator, or from the default one, which ``manual_seed``
    sets. With a ``seed`` the order depends only on the seed and the number of the epoch.

    The batches are the same, bit for bit, for any number of workers. Workers are threads of the
    engine; a dataset or transform in Python holds the interpreter's lock while it runs. An
    exception is raised by the loop at its batch; ``next`` then continues with the batch after it.

    ``transform(batch, generator)`` is called by the thread that makes a batch, and returns a new
    one; its generator depends only on the seed of the epoch and the batch. With a ``device`` each
    batch is then copied there. ``progress`` shows a bar on stderr when that is a terminal,
    ``progress="always"`` also elsewhere.

    >>> dataset = bg.data.TensorDataset(bg.arange(5), bg.arange(5) * 10)
    >>> loader = bg.data.DataLoader(dataset, batch_size=2)
    >>> for x, y in loader:
    ...     print(x, y)
    tensor([0, 1]) tensor([ 0, 10])
    tensor([2, 3]) tensor([20, 30])
    tensor([4]) tensor([40])
    >>> len(loader), len(bg.data.DataLoader(dataset, batch_size=2, drop_last=True))
    (3, 2)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int | None = None,
        generator: Generator | None = None,
        drop_last: bool = False,
        num_workers: int = 0,
        prefetch: int = 0,
        transform: Callable[[Any, Generator], Any] | None = None,
        progress: bool | str = False,
        device: Device | str | None = None,
    ) -> None:
        if not (isinstance(progress, bool) or progress == "always"):
            raise ValueError(f"DataLoader: progress is {shown(progress)}, takes a bool or 'always'")
        if seed is not None and generator is not None:
            raise ValueError("DataLoader: takes a seed or a generator, not both")
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(
                f"DataLoader: generator is a {type(generator).__name__}, takes a Generator or None"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.generator = generator
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.progress = progress
        self.transform = transform
        self.device = device
        self._held = _Held(dataset)
        # The number of the next epoch, and the position in the latest one. Without a lock: a fork
        # may happen while another thread starts a loop.
        self._numbers = itertools.count()
        self._next_epoch = 0
        self._place: _Place | None = None
        # Set by load_state_dict for the next loop; at most one item.
        self._resumed: list[tuple[_engine.Loader, _Place]] = []
        self._make_engine(0 if seed is None else seed)  # raises for invalid options

    def _make_engine(self, seed: int = 0) -> _engine.Loader:
        # A weak reference: the garbage collector does not see references of the engine, and
        # transforms are often methods of the loader's owner.
        this: Callable[[], Any] = weakref.ref(self)
        return _engine.Loader(
            self._held.source,
            self.batch_size,
            self.shuffle,
            seed,
            self.drop_last,
            self.num_workers,
            self.prefetch,
            None if self.transform is None else lambda *args: this().transform(*args),
            self.device,
        )

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(self._make_engine())

    def __iter__(self) -> Iterator[Any]:
        """Starts a new epoch; after load_state_dict, the rest of the saved one."""
        try:
            engine, place = self._resumed.pop()
        except IndexError:
            engine, place = self._begin()
        self._place = place
        batches = _Batches(self, engine, place)
        if not self.progress or not (self.progress == "always" or sys.stderr.isatty()):
            return batches
        bar = ProgressBar(f"epoch {place.epoch}", len(self), place.position)
        return bar.follow(batches)

    def _begin(self) -> tuple[_engine.Loader, _Place]:
        seed = self.seed
        if seed is None:
            random = self.shuffle or self.transform is not None
            seed = _drawn_seed(self.generator) if random else 0
        engine = self._make_engine(seed)
        epoch = next(self._numbers)
        self._next_epoch = epoch + 1
        if self.seed is not None:
            engine.set_epoch(epoch)
        return engine, _Place(epoch, seed)

    @property
    def epoch(self) -> int:
        """The number of the current epoch, from 0; between epochs, of the next one."""
        place = self._place
        return self._next_epoch if place is None or place.ended else place.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, which determines the order of a loader with a seed."""
        number = operator.index(epoch)
        if not 0 <= number < 2**62:
            raise ValueError(f"DataLoader.set_epoch: epoch {shown(number)}, takes 0 to 2**62 - 1")
        self._go_to(number)

    def _go_to(self, epoch: int) -> None:
        self._numbers = itertools.count(epoch)
        self._next_epoch = epoch
        self._place = None
        self._resumed = []

    def state_dict(self) -> dict[str, Tensor | str]:
        """The position of the latest loop: a loader that loads it continues with the next batch.

        Between epochs the next order is not drawn yet, unless there is a seed: save the state of
        the generator too.

        >>> loader = bg.data.DataLoader(bg.data.TensorDataset(bg.arange(4)), shuffle=True)
        >>> batches = iter(loader)
        >>> first = next(batches)
        >>> other = bg.data.DataLoader(bg.data.TensorDataset(bg.arange(4)), shuffle=True)
        >>> other.load_state_dict(loader.state_dict())
        >>> [int(x) for (x,) in batches] == [int(x) for (x,) in other]
        True
        """
        place = self._place
        state: dict[str, Tensor | str] = self._make_engine().state()
        if place is not None and not place.ended:
            state["epoch"] = str(place.epoch)
            state["position"] = str(place.position)
            state["seed"] = str(place.seed)
        else:
            state["epoch"] = str(self._next_epoch)
            state["seed"] = "" if self.seed is None else str(self.seed)
        state["order"] = "generator" if self.seed is None else "seed"
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor | str]) -> None:
        """Continues from a saved state. ``ValueError`` if the dataset size or batching differs."""
        state = dict(state_dict)
        order = state.pop("order", "seed")
        if order not in ("seed", "generator"):
            raise ValueError(f"DataLoader.load_state_dict: the order is {shown(order)}")
        drawn = order == "generator"
        undrawn = drawn and state.get("seed") == ""
        if undrawn:
            state["seed"] = "0"
        engine = self._make_engine()
        engine.load_state(state)
        epoch, seed = int(str(state["epoch"])), int(str(state["seed"]))
        if drawn:
            # The seed was drawn for one epoch, whatever its number.
            engine.load_state({**state, "epoch": "0"})
        self.seed = None if drawn else seed
        self._go_to(epoch if undrawn else epoch + 1)
        if not undrawn:
            self._place = _Place(epoch, seed, engine.position)
            self._resumed = [(engine, self._place)]


class _Place:
    """The position of one loop. The loader keeps it for its state after the loop is gone."""

    def __init__(self, epoch: int, seed: int, position: int = 0) -> None:
        self.epoch = epoch
        self.seed = seed
        self.position = position
        self.ended = False


class _Batches:
    """One epoch of a loader."""

    def __init__(self, loader: DataLoader, engine: _engine.Loader, place: _Place) -> None:
        # Keeps the dataset and the transform alive: the engine has weak references to them.
        self._loader = loader
        self._engine = engine
        self._place = place
        if loader.num_workers > 0:
            _with_workers.add(engine)

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        try:
            batch = self._engine.next()
        except BaseException:
            self._place.position = self._engine.position
            raise
        if batch is None:
            self._place.ended = True
            raise StopIteration
        self._place.position = self._engine.position
        return batch


_with_workers: weakref.WeakSet[_engine.Loader] = weakref.WeakSet()


def _forget_busy() -> None:
    """In the child of a fork: drops loaders in use, since the threads that used them are gone."""
    for engine in list(_with_workers):
        if not engine.is_free():
            _with_workers.discard(engine)


os.register_at_fork(after_in_child=_forget_busy)


@atexit.register
def _rest() -> None:
    """Stops the workers at exit, so that none runs Python code during the shutdown."""
    for engine in list(_with_workers):
        engine.rest()


# ---- Files


class CsvTable(NamedTuple):
    """The result of ``read_csv``."""

    #: Names of the values' columns; empty without a header.
    columns: list[str]
    #: [rows, columns]
    values: Tensor
    #: [rows]; None without a label column. int64 for classes, else of the values' dtype.
    labels: Tensor | None
    #: Names of the classes if labels are texts: label i is classes[i].
    classes: list[str]


def read_csv(
    path: str | os.PathLike[str],
    *,
    delimiter: str = ",",
    quote: str = '"',
    header: bool | None = None,
    dtype: DType | str = "float32",
    missing: float | None = None,
    label: str | int | None = None,
    max_bytes: int | None = None,
) -> CsvTable:
    """Comma-separated numbers, plain or gzipped.

    ``header`` says whether the first line names the columns; by default it does if it has a field
    that is not a number. ``missing`` is the value of an empty field; by default it is an error.
    ``label`` is the column of the label, by name or number. Whole numbers and texts are classes,
    int64; a column with a number that is not whole (0.5, 1.0, nan) holds regression targets and has
    ``dtype``. ``max_bytes`` limits the unpacked text and the values; by
    default 64 MiB, or 100 times the file if that is more.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.csv"
    >>> _ = path.write_text("length,width,kind\\n5.1,3.5,setosa\\n7.0,3.2,versicolor\\n")
    >>> table = bg.data.read_csv(path, label="kind")
    >>> table.values
    tensor([[5.1000, 3.5000],
            [7.0000, 3.2000]])
    >>> table.labels, table.classes
    (tensor([0, 1]), ['setosa', 'versicolor'])
    """
    column = "" if label is None else str(label)
    return CsvTable(
        *_engine.read_csv(path, delimiter, quote, header, dtype, missing, column, max_bytes)
    )


# ---- Sets


def load_dataset(
    name: str = "best",
    train: bool = True,
    *,
    root: str | os.PathLike[str] | None = None,
    at_most: int = 0,
    scaling: tuple[float, float] | str = (0.0, 255.0),
) -> ImageDataset:
    """Loads ``"mnist"``, ``"fashion"`` or ``"digits"``; ``"best"`` is the first of them that is found.

    Files are looked for in root, ``$BAREGRAD_DATA``, ``./data``, the user's cache, and where
    systems keep them. ``at_most`` limits the number of images; 0 takes all. ``scaling="auto"``
    gives pixels mean 0 and deviation 1.

    >>> bg.data.load_dataset("digits", at_most=50)
    ImageDataset(digits, 50 of 28x28)
    """
    found = _engine.load_dataset(name, train, "" if root is None else root, at_most)
    return _image_dataset(found, scaling)


def mnist(
    root: str | os.PathLike[str] | None = None,
    train: bool = True,
    *,
    scaling: tuple[float, float] | str = (0.0, 255.0),
) -> ImageDataset:
    """Handwritten digits: 60,000 training images, or 10,000 test images."""
    return load_dataset("mnist", train, root=root, scaling=scaling)


def fashion(
    root: str | os.PathLike[str] | None = None,
    train: bool = True,
    *,
    scaling: tuple[float, float] | str = (0.0, 255.0),
) -> ImageDataset:
    """Fashion-MNIST: pieces of clothing in the format of MNIST."""
    return load_dataset("fashion", train, root=root, scaling=scaling)


def digits(
    n: int, seed: int = 0, *, scaling: tuple[float, float] | str = (0.0, 255.0)
) -> ImageDataset:
    """Digits drawn by the engine, without files; image i depends only on the seed and on i.

    >>> bg.data.digits(3).labels.shape
    (3,)
    """
    return _image_dataset(_engine.digits(n, seed), scaling)


def _image_dataset(found: tuple[Any, ...], scaling: tuple[float, float] | str) -> ImageDataset:
    images, labels, classes, name, folder = found
    return ImageDataset(
        images, labels, classes=classes, scaling=scaling, name=name, folder=folder
    )
