"""Datasets, the loader with and without workers, files, the progress bar."""

import gc
import gzip
import io
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import baregrad as bg
from baregrad._progress import ProgressBar

DataLoader, TensorDataset = bg.data.DataLoader, bg.data.TensorDataset


def values(tensor):
    return np.array(tensor.numpy())


def numbers(n):
    return TensorDataset(bg.tensor(np.arange(n)), bg.tensor(np.arange(n) * 10))


def order(loader):
    return [int(v) for batch in loader for v in values(batch[0]).ravel()]


class Squares(bg.data.Dataset):
    """Does not call super().__init__(), like most user classes."""

    def __init__(self, n, fail_at=None):
        self.n = n
        self.fail_at = fail_at

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.fail_at:
            raise LookupError(f"no item {i} today")
        return np.full((2,), i, "float32"), i * i


# ---- Order


def test_without_shuffling_items_come_as_they_are():
    batches = [(values(x).tolist(), values(y).tolist()) for x, y in DataLoader(numbers(5), 2)]
    assert batches == [([0, 1], [0, 10]), ([2, 3], [20, 30]), ([4], [40])]


def test_last_batch_is_dropped_on_request():
    loader = DataLoader(numbers(5), 2, drop_last=True)
    assert len(loader) == 2 and order(loader) == [0, 1, 2, 3]


def test_shuffling_depends_on_seed_and_epoch_alone():
    loader = DataLoader(numbers(50), 8, shuffle=True, seed=3)
    first, second = order(loader), order(loader)
    assert sorted(first) == list(range(50)) and first != second
    assert first != list(range(50))
    again = DataLoader(numbers(50), 8, True, seed=3)
    assert [order(again), order(again)] == [first, second]
    assert order(DataLoader(numbers(50), 8, True, seed=4)) != first
    again.set_epoch(1)
    assert order(again) == second and again.epoch == 2


def test_each_loop_is_an_epoch_of_its_own():
    loader = DataLoader(numbers(40), 2, shuffle=True, seed=3)
    firsts = [values(next(iter(loader))[0]).tolist() for _ in range(6)]
    assert len({tuple(first) for first in firsts}) == 6 and loader.epoch == 5
    loader.set_epoch(4)
    assert values(next(iter(loader))[0]).tolist() == firsts[4]


@pytest.mark.parametrize("workers", [0, 2])
def test_loops_at_the_same_time_do_not_meet(workers):
    loader = DataLoader(numbers(6), 2, num_workers=workers)
    pairs = [(values(x).tolist(), values(y).tolist()) for x, _ in loader for y, _ in loader]
    batches = [[0, 1], [2, 3], [4, 5]]
    assert pairs == [(a, b) for a in batches for b in batches]
    same = [(values(a[0]).tolist(), values(b[0]).tolist()) for a, b in zip(loader, loader)]
    assert same == [(a, a) for a in batches]
    shuffled = DataLoader(numbers(30), 3, shuffle=True, num_workers=workers)
    first, second = zip(*zip(shuffled, shuffled))
    first, second = ([int(v) for x, _ in side for v in values(x)] for side in (first, second))
    assert sorted(first) == sorted(second) == list(range(30)) and first != second


def test_manual_seed_decides_the_order():
    def epochs(**options):
        loader = DataLoader(numbers(50), 7, shuffle=True, **options)
        return [order(loader), order(loader)]

    orders = []
    for seed in (1, 1, 2):
        bg.manual_seed(seed)
        orders.append(epochs())
    assert orders[0] == orders[1] and orders[0][0] != orders[0][1]
    assert not {tuple(o) for o in orders[0]} & {tuple(o) for o in orders[2]}
    loader = DataLoader(numbers(50), 7, shuffle=True)
    for _ in range(2):
        bg.manual_seed(1)
        assert order(loader) == orders[0][0]
    # An own generator or a seed leaves the default one unchanged; so does an order that is not
    # drawn.
    before = bg.default_generator.get_state().tolist()
    drawn = [epochs(generator=bg.Generator(seed)) for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1] != drawn[2]
    epochs(seed=4)
    order(DataLoader(numbers(5)))
    assert bg.default_generator.get_state().tolist() == before
    with pytest.raises(ValueError, match="a seed or a generator"):
        epochs(seed=1, generator=bg.Generator(1))


def test_manual_seed_decides_splits():
    def split():
        return bg.data.random_split(range(60), [30, 30])[0].indices

    splits = []
    for seed in (1, 1, 2):
        bg.manual_seed(seed)
        splits.append((split(), split()))
    assert splits[0] == splits[1] != splits[2] and splits[0][0] != splits[0][1]


def test_a_loop_that_has_ended_stays_ended():
    batches = iter(DataLoader(numbers(4), 2))
    assert len(list(batches)) == 2
    assert [next(batches, None) for _ in range(3)] == [None] * 3 and iter(batches) is batches


def test_loops_in_two_threads():
    loader = DataLoader(numbers(200), 4, shuffle=True, num_workers=1)
    seen, shared = [], iter(loader)

    def run():
        seen.append(sorted(order(loader)))

    def share():
        taken.append(order(shared))

    taken = []
    threads = [threading.Thread(target=f) for f in (run, share, run, share)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [list(range(200))] * 2
    assert sorted(v for part in taken for v in part) == list(range(200))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_outlives_its_loader(workers):
    dataset = Squares(20)
    batches = iter(DataLoader(dataset, 5, num_workers=workers, transform=lambda b, g: b[1]))
    del dataset
    gc.collect()
    assert [values(b).tolist()[0] for b in batches] == [0, 25, 100, 225]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_may_grow_and_shrink(workers):
    items = list(range(6))
    loader = DataLoader(items, 2, num_workers=workers)
    assert len(loader) == 3 and order([b.reshape(1, -1) for b in loader]) == list(range(6))
    items.extend([6, 7])
    assert len(loader) == 4 and len(list(loader)) == 4
    batches = iter(loader)
    next(batches)
    del items[1:]
    if workers == 0:  # workers may have prefetched
        with pytest.raises(IndexError):
            list(batches)
    assert len(loader) == 1 and len(list(loader)) == 1


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("make", [lambda: numbers(103), lambda: Squares(103)])
def test_workers_deliver_the_same(make, workers):
    def epochs(num_workers):
        loader = DataLoader(
            make(), 10, True, seed=5, num_workers=num_workers, transform=jitter
        )
        return [tuple(map(values, batch)) for _ in range(2) for batch in loader]

    def jitter(batch, generator):
        x, y = batch
        return x + bg.rand(x.shape, generator=generator), y

    for mine, other in zip(epochs(workers), epochs(0), strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_batches_may_be_kept():
    for workers in (0, 2):
        kept = [x for x, _ in DataLoader(numbers(100), 10, num_workers=workers)]
        assert np.concatenate([values(x) for x in kept]).tolist() == list(range(100))


def test_state_goes_on_with_the_next_batch():
    for workers in (0, 2):
        loader = DataLoader(numbers(30), 4, True, seed=1, num_workers=workers)
        order(loader)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
        other = DataLoader(numbers(30), 4, True, seed=9, num_workers=workers)
        other.load_state_dict(state)
        assert order(other) == [int(v) for x, _ in batches for v in values(x)]
        assert other.epoch == 2 and order(other) == order(loader)
    with pytest.raises(ValueError, match="batch_size"):
        DataLoader(numbers(30), 5, True).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 2])
def test_state_of_an_order_that_was_drawn(workers):
    def make():
        return DataLoader(numbers(30), 4, shuffle=True, num_workers=workers)

    bg.manual_seed(7)
    loader = make()
    order(loader)
    batches = iter(loader)
    seen = [next(batches) for _ in range(3)]
    state, random = loader.state_dict(), bg.default_generator.get_state()
    rest = [int(v) for x, _ in batches for v in values(x)]
    after, between = order(loader), loader.state_dict()
    bg.manual_seed(99)
    other = make()
    other.load_state_dict(state)
    bg.default_generator.set_state(random)
    assert (other.epoch, len(seen)) == (1, 3)
    assert order(other) == rest and order(other) == after and other.epoch == 3
    # Between epochs the generator determines the next order.
    random = bg.default_generator.get_state()
    following = order(loader)
    bg.default_generator.set_state(random)
    third = make()
    third.load_state_dict(between)
    assert (third.epoch, order(third)) == (3, following)


def test_states_that_do_not_fit_leave_the_loader_as_it_was():
    loader = DataLoader(numbers(30), 4, True, seed=1)
    state = loader.state_dict()
    for wrong in ({"items": "31"}, {"epoch": "x"}, {"position": "99"}, {"order": "chance"}, {"seed": ""}):
        with pytest.raises(ValueError):
            loader.load_state_dict({**state, **wrong})
    for wrong in ({}, {"epoch": "1"}):
        with pytest.raises(ValueError):
            loader.load_state_dict(wrong)
    assert order(loader) == order(DataLoader(numbers(30), 4, True, seed=1))
    # Older states without an order.
    del state["order"]
    loader.load_state_dict(state)
    assert order(loader) == order(DataLoader(numbers(30), 4, True, seed=1))


# ---- Datasets


def test_fields_of_tensor_datasets():
    x = np.arange(12).reshape(4, 3)
    one = TensorDataset(bg.tensor(x))
    assert [values(b).shape for (b,) in DataLoader(one, 3)] == [(3, 3), (1, 3)]
    tensors = [bg.tensor(x), bg.tensor(x * 2), bg.tensor(x * 3), bg.tensor(np.arange(4))]
    many = TensorDataset(*tensors)
    assert len(many) == 4 and [values(t).tolist() for t in many[-1]][3] == 3
    for a, b, c, i in DataLoader(many, 2, shuffle=True):
        np.testing.assert_array_equal(values(a), x[values(i)])
        np.testing.assert_array_equal(values(b), 2 * x[values(i)])
        np.testing.assert_array_equal(values(c), 3 * x[values(i)])


def test_python_items_are_stacked():
    (x, y), *_ = DataLoader(Squares(6), 4)
    assert x.dtype == bg.float32 and values(x).tolist() == [[i, i] for i in range(4)]
    assert y.dtype == bg.int64 and values(y).tolist() == [0, 1, 4, 9]


def test_anything_with_items_is_a_dataset():
    batches = list(DataLoader([1.5, 2.5, 3.5], 2))
    assert [values(b).tolist() for b in batches] == [[1.5, 2.5], [3.5]]
    assert batches[0].dtype == bg.float32
    assert [values(b).tolist() for b in DataLoader(range(3), 3)] == [[0, 1, 2]]
    triples = [(bg.tensor([i]), i, True) for i in range(2)]
    ((a, b, c),) = DataLoader(triples, 2)
    assert values(a).tolist() == [[0], [1]] and c.dtype == bg.bool
    assert values(b).tolist() == [0, 1]


def test_a_subclass_with_items_of_its_own_is_asked_for_them():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            (x,) = super().__getitem__(i)
            return 2 * x

    (batch,) = DataLoader(Doubled(bg.tensor([1, 2, 3])), 3)
    assert values(batch).tolist() == [2, 4, 6]


def test_subset_and_random_split():
    subset = bg.data.Subset(Squares(10), [7, 3])
    assert len(subset) == 2 and subset[1][1] == 9
    ((_, y),) = DataLoader(subset, 2)
    assert values(y).tolist() == [49, 9]
    a, b = bg.data.random_split(numbers(10), [7, 3], seed=4)
    assert sorted(a.indices + b.indices) == list(range(10))
    assert a.indices == bg.data.random_split(numbers(10), [7, 3], seed=4)[0].indices
    assert a.indices != bg.data.random_split(numbers(10), [7, 3], seed=5)[0].indices
    assert [len(p) for p in bg.data.random_split(numbers(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    draws = [
        bg.data.random_split(range(50), [25, 25], generator=bg.Generator(seed))[0].indices
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_transform_of_a_bare_item():
    def both(batch, generator):
        return batch, -batch

    ((x, y),) = DataLoader([1, 2], 2, transform=both)
    assert (values(x).tolist(), values(y).tolist()) == ([1, 2], [-1, -2])
    (z,) = DataLoader(numbers(2), 2, transform=lambda batch, generator: batch[1])
    assert values(z).tolist() == [0, 10]


# ---- Errors


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_items_arrive_as_they_were_raised(workers):
    loader = DataLoader(Squares(20, fail_at=13), 4, num_workers=workers)
    seen = []
    with pytest.raises(LookupError, match="no item 13 today") as caught:
        for _, y in loader:
            seen += values(y).tolist()
    assert seen == [i * i for i in range(12)]
    assert "__getitem__" in {entry.name for entry in caught.traceback}
    # The loop continues after the batch that failed.
    batches, seen = iter(loader), []
    for _ in range(5):
        try:
            seen.append(values(next(batches)[1])[0])
        except LookupError:
            seen.append(None)
    assert seen == [0, 16, 64, None, 256] and next(batches, None) is None
    loader.dataset.fail_at = None
    assert len(order(loader)) == 40


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_of_transforms(workers):
    def transform(batch, generator):
        return {}["nothing"]

    with pytest.raises(KeyError, match="nothing"):
        list(DataLoader(numbers(4), num_workers=workers, transform=transform))
    with pytest.raises(ValueError, match="what the transform returned is empty"):
        list(DataLoader(numbers(4), num_workers=workers, transform=lambda b, g: ()))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: DataLoader(numbers(3), 0), ValueError, "DataLoader: batch_size is 0"),
        (lambda: DataLoader(numbers(3), num_workers=-1), ValueError, "workers is -1"),
        (lambda: DataLoader(5), TypeError, "int has not"),
        (lambda: DataLoader(numbers(3), progress="yes"), ValueError, "progress is 'yes'"),
        (lambda: len(bg.data.Dataset()), NotImplementedError, "needs __len__"),
        (lambda: TensorDataset(), ValueError, "TensorDataset"),
        (
            lambda: TensorDataset(*map(bg.zeros, [(3, 2), (3,), (4,)])),
            ValueError,
            r"tensor 2 is float32\[4\], needs 3 items",
        ),
        (lambda: bg.data.Subset(numbers(3), [3]), IndexError, "index 3 is out of range"),
        (lambda: bg.data.random_split(numbers(3), [1, 1]), ValueError, "the dataset has 3"),
        (lambda: bg.data.random_split(numbers(3), [0.5, 0.6]), ValueError, "do not add up to 1"),
        (lambda: list(DataLoader([(1,), (1, 2)], 2)), ValueError, "item 1 has 2 fields"),
        (lambda: list(DataLoader([[1, 2], 3], 2)), ValueError, "item 1 has 1 fields"),
        (lambda: list(DataLoader([(), ()], 2)), ValueError, "an item is empty"),
        (lambda: list(DataLoader([bg.zeros(2), bg.zeros(3)], 2)), ValueError, "stack"),
    ],
)
def test_mistakes_are_named(make, error, match):
    with pytest.raises(error, match=match):
        make()


# ---- Threads and processes


def test_a_loader_that_is_dropped_in_the_middle_ends_its_workers():
    before = threading.active_count()
    for _ in range(20):
        batches = iter(DataLoader(Squares(1000), 10, num_workers=3))
        next(batches)
    del batches
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_that_holds_its_loader_is_collected(workers):
    class Holds(Squares):
        def __init__(self):
            super().__init__(20)
            self.loader = DataLoader(self, 4, num_workers=workers)
            self.subset = bg.data.Subset(self, [0, 1])

    dataset = Holds()
    assert len(list(dataset.loader)) == 5 and len(list(DataLoader(dataset.subset))) == 2
    gone = weakref.ref(dataset)
    del dataset
    gc.collect()
    assert gone() is None


def test_ctrl_c_ends_a_wait_for_workers():
    class Slow(Squares):
        def __getitem__(self, i):
            if i > 0:
                let_go.wait(30)
            return super().__getitem__(i)

    let_go = threading.Event()
    batches = iter(DataLoader(Slow(10), num_workers=1))
    next(batches)
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert time.monotonic() - began < 20
    let_go.set()
    # An interrupt skips nothing.
    assert len(list(batches)) == 9


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_whose_transform_is_a_method_of_its_holder_is_collected(workers):
    class Trainer:
        def __init__(self):
            self.loader = DataLoader(numbers(40), 4, num_workers=workers, transform=self.negate)

        def negate(self, batch, generator):
            return -batch[0]

    trainer = Trainer()
    assert values(next(iter(trainer.loader))).tolist() == [0, -1, -2, -3]
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None


def test_the_interpreter_leaves_while_workers_are_at_work():
    script = textwrap.dedent(
        """
        import time
        import baregrad as bg

        class Slow:
            def __len__(self):
                return 1000
            def __getitem__(self, i):
                time.sleep(0.001)
                return i

        loader = bg.data.DataLoader(Slow(), 4, num_workers=3)
        batches = iter(loader)
        next(batches)
        print("left")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


def test_a_child_process_goes_on():
    loader = DataLoader(Squares(40), 4, num_workers=2)
    expected = order(loader)
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        os._exit(0 if order(loader) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_ends_while_a_thread_of_its_parent_is_in_a_loop():
    script = textwrap.dedent(
        """
        import os, sys, threading, time
        import baregrad as bg

        class Slow:
            def __len__(self):
                return 1000
            def __getitem__(self, i):
                time.sleep(0.002)
                return i

        loader = bg.data.DataLoader(Slow(), 4, num_workers=2)
        threading.Thread(target=lambda: list(zip(loader, range(400))), daemon=True).start()
        time.sleep(0.2)
        children = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                first = int(next(iter(loader))[0])
                sys.exit(first)
            children.append(child)
        print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
        # The subject is the children. At a normal exit Python ends daemon threads inside our code.
        os._exit(0)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{[0] * 10}\n", "")


# ---- Progress


def test_progress_line():
    bar = ProgressBar("epoch 1", 200, 50)
    bar._done = 100
    assert bar.line(10.0) == (
        "epoch 1  50%|############            | 100/200 [00:10<00:20, 5.0 batch/s]"
    )
    assert "[1:01:01<" in bar.line(3661.0)
    assert ProgressBar("e", 0).line(0.0).startswith("e 100%|")


def test_progress_shows_where_it_is_asked_for(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    assert order(DataLoader(numbers(6), 2, progress=True)) == list(range(6))
    assert stream.getvalue() == ""
    assert order(DataLoader(numbers(6), 2, progress="always")) == list(range(6))
    lines = stream.getvalue().split("\r")
    assert lines[1].startswith("epoch 0   0%|") and "| 3/3 [" in lines[-1]
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("columns", [200, 80, 50, 20, 2])
def test_progress_fits_its_terminal(columns):
    line = ProgressBar("epoch 1", 2_000_000, 50).line(3661.0, columns - 1)
    assert len(line) < columns
    assert line.endswith("batch/s]") == (columns >= 80)


def on_terminal(columns, term):
    """The output of a loader with a bar on a terminal of this width."""
    code = f"""
        import fcntl, struct, sys, termios
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, {columns}, 0, 0))
        import baregrad as bg
        for _ in bg.data.DataLoader(bg.data.TensorDataset(bg.arange(6)), progress=True):
            pass
    """
    leader, follower = os.openpty()
    env = {**os.environ, "TERM": term}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], stderr=follower, env=env)
    os.close(follower)
    text = b""
    while True:
        try:
            text += os.read(leader, 65536)
        except OSError:
            break
    os.close(leader)
    assert done.returncode == 0, text
    return text.decode()


def test_progress_on_terminals():
    lines = on_terminal(40, "xterm").rstrip("\r\n").split("\r")
    assert len(lines) > 1 and max(map(len, lines)) < 40
    # A terminal that cannot overwrite a line gets one line.
    text = on_terminal(80, "dumb")
    assert text.count("\n") == 1 and text.startswith("epoch 0 100%|")


# ---- Files and sets


def test_read_csv(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a;kind;b\n1;x;2.5\n;y;-4\n")
    table = bg.data.read_csv(file, delimiter=";", missing=0, label="kind", dtype=bg.float64)
    assert table.columns == ["a", "b"] and table.classes == ["x", "y"]
    assert values(table.values).tolist() == [[1.0, 2.5], [0.0, -4.0]]
    assert table.values.dtype == bg.float64
    assert values(table.labels).tolist() == [0, 1]
    file.write_text("1,2\n3,4\n")
    table = bg.data.read_csv(str(file), label=-1)
    assert table.columns == [] and values(table.labels).tolist() == [2, 4]
    assert bg.data.read_csv(file).labels is None
    file.write_text("1,2\n3\n")
    with pytest.raises(OSError, match=r"table\.csv"):
        bg.data.read_csv(file)


def test_read_idx(tmp_path):
    array = np.arange(24, dtype="uint8").reshape(2, 3, 4)
    file = tmp_path / "images-idx3-ubyte"
    file.write_bytes(struct.pack(">HBB3i", 0, 8, 3, *array.shape) + array.tobytes())
    np.testing.assert_array_equal(values(bg.data.read_idx(file)), array)


def test_read_image(tmp_path):
    file = tmp_path / "picture.pgm"
    file.write_bytes(b"P5 3 2 255\n" + bytes([0, 1, 2, 253, 254, 255]))
    image = bg.data.read_image(file)
    assert image.dtype == bg.uint8
    assert values(image).tolist() == [[[0, 1, 2], [253, 254, 255]]]
    with pytest.raises(OSError, match="missing"):
        bg.data.read_image(tmp_path / "missing.png")


def test_digits_are_scaled_on_the_way_out():
    digits = bg.data.digits(40, seed=2)
    images = values(digits.images)
    assert images.shape == (40, 28, 28) and images.dtype == np.uint8
    ((x, y),) = DataLoader(digits, 40)
    np.testing.assert_allclose(values(x), images[:, None] / np.float32(255), rtol=1e-6)
    np.testing.assert_array_equal(values(y), values(digits.labels))
    image, label = digits[-1]
    np.testing.assert_array_equal(values(image), values(x)[-1])
    assert int(label) == values(y)[-1]
    with pytest.raises(IndexError):
        digits[40]
    ((x, _),) = DataLoader(bg.data.digits(40, seed=2, scaling="auto"), 40)
    assert abs(values(x).mean()) < 1e-5 and abs(values(x).std() - 1) < 1e-5
    assert repr(digits) == "ImageDataset(digits, 40 of 28x28)"


def test_mnist_from_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60000, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 60000, dtype=np.uint8)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, n in (("train", 60000), ("t10k", 10000)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">HBB3i", 0, 8, 3, n, 28, 28) + images[:n].tobytes()
        )
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">HBBi", 0, 8, 1, n) + labels[:n].tobytes()
        )
    train = bg.data.mnist(tmp_path)
    assert (len(train), train.name, train.folder) == (60000, "mnist", str(folder))
    np.testing.assert_array_equal(values(train.images), images)
    np.testing.assert_array_equal(values(train.labels), labels)
    assert len(bg.data.mnist(tmp_path, train=False)) == 10000
    assert len(bg.data.load_dataset("mnist", root=tmp_path, at_most=7)) == 7
    with pytest.raises(OSError, match="truncated|short|bytes"):
        (folder / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03")
        bg.data.mnist(tmp_path)


def test_read_csv_of_real_labels(tmp_path):
    file = tmp_path / "regression.csv"
    file.write_text("x,y\n1,0.5\n2,3\n")
    table = bg.data.read_csv(file, label="y")
    assert table.classes == [] and table.labels.dtype == bg.float32
    assert values(table.labels).tolist() == [0.5, 3.0]


def bomb(tmp_path, megabytes=200):
    """A CSV file that unpacks to far more than its size."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 6) as file:
        for _ in range(megabytes):
            file.write(b"1,2\n" * (1 << 18))
    return path


def test_files_that_unpack_to_much_are_refused(tmp_path):
    path = bomb(tmp_path, 70)
    with pytest.raises(OSError, match="limit of 67108864 bytes .*max_bytes"):
        bg.data.read_csv(path)
    for read in [bg.data.read_csv, bg.data.read_idx, bg.data.read_image]:
        with pytest.raises(ValueError, match="max_bytes"):
            read(path, max_bytes=0)
        with pytest.raises(OSError):
            read(path, max_bytes=1000)


def test_readers_are_interrupted(tmp_path):
    path = bomb(tmp_path)
    code = f"""
        import time
        import baregrad as bg
        print("ready", flush=True)
        try:
            while True:
                bg.data.read_csv({str(path)!r}, max_bytes=1 << 40)
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    # One read takes several seconds.
    assert process.communicate(timeout=5)[0] == "interrupted\n"
