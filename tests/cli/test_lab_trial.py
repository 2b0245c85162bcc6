"""`baregrad lab-trial` under Callgrind: counts of kernels with known numbers of loads."""

import os
import pathlib
import shutil
import subprocess

import pytest

BINARY = os.environ["BAREGRAD_BIN"]
OVERHEAD = 32  # loads, stores or branches of the call itself

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")


def count(folder: pathlib.Path, *trials: str) -> list[dict[str, int]]:
    """The events of each trial, by Callgrind's names."""
    out = folder / "out"
    options = ["--cache-sim=yes", "--branch-sim=yes", "--instr-atstart=no", "--D1=32768,8,64", "--LL=1048576,8,64"]
    command = ["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={out}", BINARY, "lab-trial", *trials]
    subprocess.run(command, check=True, capture_output=True)
    counts = []
    for number in range(1, len(trials) // 3 + 1):
        text = pathlib.Path(f"{out}.{number}").read_text()
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        sums = [int(word) for word in lines["summary"].split()]
        events = lines["events"].split()
        counts.append(dict(zip(events, sums + [0] * (len(events) - len(sums)), strict=True)))
    return counts


@needs_valgrind
def test_reading_a_million_floats(tmp_path):
    warm, cold, small, nothing = count(
        tmp_path, "read", "1000000", "1", "read", "1000000", "0", "read", "4096", "1", "nothing", "1", "0"
    )
    lines = 1_000_000 * 4 // 64
    for million in (warm, cold):
        assert 1_000_000 <= million["Dr"] <= 1_000_000 + OVERHEAD
        assert million["Dw"] <= OVERHEAD
        assert lines <= million["D1mr"] <= lines + OVERHEAD
        assert lines <= million["DLmr"] <= lines + OVERHEAD  # 4 MB go through 1 MiB
        assert 1_000_000 <= million["Bc"] <= 1_000_000 + OVERHEAD
    # 16 KiB stay in the cache after the first pass.
    assert 4096 <= small["Dr"] <= 4096 + OVERHEAD
    assert small["D1mr"] <= OVERHEAD
    # Neither starting the program nor making the inputs is counted.
    assert nothing["Ir"] <= 4 * OVERHEAD


@needs_valgrind
def test_products_of_matrices(tmp_path):
    (naive,) = count(tmp_path, "rung:naive", "20", "1")
    # The compiler may load several neighbours of a row at once, but not of a column.
    assert 20**3 <= naive["Dr"] <= 2 * 20**3 + 20**2 * 8
    assert 20**2 <= naive["Dw"] <= 20**2 * 2 + OVERHEAD


def test_wrong_arguments():
    def message(*arguments):
        done = subprocess.run([BINARY, "lab-trial", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        return done.stderr

    assert "there is no trial 'sleep'" in message("sleep", "1", "1")
    assert "NAME SIZE WARM_UPS" in message("read", "1")
    for number in ["many", "", "-1", "1 ", "1000000001", str(2**62), str(2**63 - 1), str(2**63), "nan"]:
        assert "no whole number" in message("read", number, "1")
        assert "no whole number" in message("nothing", "1", number)
    assert "out of memory" in message("rung:naive", "1000000000", "0")


def test_help_does_not_show_it():
    help_text = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    assert "lab-trial" not in help_text
