"""Our event files, read by TensorBoard's own reader.

BAREGRAD_IO_SAMPLES names the program that writes them (tests/io/samples).
"""

import os
import pathlib
import subprocess

import pytest
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = os.environ.get(
    "BAREGRAD_IO_SAMPLES", str(ROOT / "build" / "release" / "tests" / "io_samples")
)


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("run") / "logs"
    subprocess.run([SAMPLES, "events", str(folder)], check=True, timeout=120)
    return folder


def test_resumed_run(folder):
    """The steps of the first run from 3 on are dropped: the second run began there."""
    accumulator = event_accumulator.EventAccumulator(str(folder))
    accumulator.Reload()
    found = [(event.step, event.wall_time, event.value) for event in accumulator.Scalars("loss")]
    assert [step for step, _, _ in found] == [0, 1, 2, 3, 4, 5]
    assert [time for _, time, _ in found] == [100, 101, 102, 203, 204, 205]
    assert [value for _, _, value in found] == pytest.approx([1, 1 / 2, 1 / 3, 13, 14, 15])


def test_text(folder):
    accumulator = event_accumulator.EventAccumulator(str(folder))
    accumulator.Reload()
    assert accumulator.SummaryMetadata("notes").plugin_data.plugin_name == "text"
    [event] = accumulator.Tensors("notes")
    assert list(event.tensor_proto.string_val) == [b"first **run**"]


def test_torn_last_record(folder, tmp_path):
    """After a crash, all records but the torn one are read."""
    first = min(folder.iterdir(), key=lambda path: path.name)
    data = first.read_bytes()
    whole = list(event_file_loader.EventFileLoader(str(first)).Load())
    assert len(whole) == 7
    torn = tmp_path / first.name
    torn.write_bytes(data[:-3])
    assert len(list(event_file_loader.EventFileLoader(str(torn)).Load())) == 6
