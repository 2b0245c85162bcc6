"""Long work ends within a second of Ctrl-C; absurd counts are refused before work begins."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest

LIMIT_SECONDS = 20  # generous: the machine may be busy. Uninterrupted, all of these take longer.


def interrupted_after_start(setup, call):
    """Seconds from the signal to the end of a process that runs `call`; it must end by KeyboardInterrupt."""
    code = f"""
        import sys, baregrad as bg
        bg.manual_seed(0)
        {setup}
        try:
            print("ready", flush=True)
            {call}
            print("finished", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.7)  # for the decomposition to be under way
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
        assert out == "interrupted\n"
        return time.monotonic() - begin
    finally:
        process.kill()
        process.wait()


DECOMPOSITIONS = ["eigh(x)", "svd(x)", "qr(x)"]
if os.environ.get("BAREGRAD_TEST_LONG"):
    DECOMPOSITIONS += ["eigvalsh(x)", "svdvals(x)", "pinv(x)", "matrix_rank(x)", "matrix_norm(x, ord=2)"]
    DECOMPOSITIONS += ["inv(y)", "slogdet(y)", "solve(y, y)", "cholesky(y.mT @ y)"]


@pytest.mark.parametrize("call", DECOMPOSITIONS)
def test_decompositions_end_at_an_interrupt(call):
    size = 3000 if "x" in call else 8000
    interrupted_after_start(f"{'x' if 'x' in call else 'y'} = bg.randn(({size}, {size}))", f"bg.linalg.{call}")


def in_little_memory(code, timeout=60):
    """Runs code with 3 GB of address space: a larger allocation fails at once."""
    size = 3 << 30
    return subprocess.run(
        [sys.executable, "-c", "import baregrad as bg\nF = bg.nn.functional\n" + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=timeout,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )  # fmt: skip


ABSURD = [
    ("F.adaptive_avg_pool1d(bg.ones((1, 1, 3)), 2**40)", "adaptive_avg_pool1d"),
    ("F.adaptive_avg_pool1d(bg.ones((1, 1, 3)), 2**33)", "adaptive_avg_pool1d"),
    ("F.adaptive_avg_pool2d(bg.ones((1, 1, 3, 3)), (2**20, 2**20))", "adaptive_avg_pool2d"),
    ("bg.nn.AdaptiveAvgPool1d(2**40)(bg.ones((1, 1, 3)))", "adaptive_avg_pool1d"),
    ("bg.nn.RNN(3, 5, 2**40)", "RNN"),
    ("bg.nn.LSTM(3, 5, num_layers=2**31)", "LSTM"),
    ("bg.nn.GRU(3, 5, 4097)", "GRU"),
    ("bg.nn.RNN(3, 2**40)", "RNN"),
    ("bg.nn.Linear(2**40, 2**40)", "Linear"),
    ("bg.nn.Embedding(2**40, 2)", "Embedding"),
    ("bg.nn.MultiheadAttention(2**40, 2**40)", "MultiheadAttention"),
    ("bg.nn.MultiheadAttention(4, 2**40)", "MultiheadAttention"),
    ("bg.nn.TransformerEncoderLayer(4, 2, 2**60)", "Linear"),
    ("bg.nn.Conv2d(1, 1, 2**40)", "Conv2d"),
    ("bg.nn.LayerNorm(2**40)", "LayerNorm"),
    ("bg.nn.BatchNorm1d(2**40)", "BatchNorm1d"),
    ("bg.nn.MLP([2, 2**40, 2])", "Linear"),
    ("bg.repeat(bg.ones(2), 2**60)", "repeat"),
    ("bg.tile(bg.ones(2), (2**40,))", "tile"),
    ("F.one_hot(bg.asarray([2**40]))", "one_hot"),
    ("F.one_hot(bg.asarray([1]), 2**40)", "one_hot"),
    ("bg.arange(2**60)", "arange"),
    ("bg.linspace(0, 1, 2**60)", "linspace"),
    ("bg.eye(2**40)", "eye"),
    ("bg.randperm(2**40)", "randperm"),
    ("bg.zeros(2**40)", "zeros"),
    ("F.pad(bg.ones(2), (2**40, 2**40))", "pad"),
    ("bg.ones(1).expand(2**40).split(1)", "split"),
    ("bg.ones(1).expand(2**40).unbind()", "unbind"),
    ("bg.ones(1).expand(2**40).chunk(2**40)", "chunk"),
    ("bg.ones(1).expand(2**40).tolist()", ""),
    ("bg.ones(1).expand(2**40).clone()", "clone"),
    ("bg.meshgrid(bg.arange(2**20), bg.arange(2**20), bg.arange(2**20))[0].clone()", "meshgrid"),
    ("F.conv1d(bg.ones((1, 1, 3)), bg.ones((1, 1, 1)), padding=2**40)", "conv1d"),
    ("F.conv_transpose2d(bg.ones((1, 1, 3, 3)), bg.ones((1, 1, 2, 2)), stride=2**40)", "conv_transpose2d"),
    ("bg.ones(4).unfold(0, 2**40, 1)", "unfold"),
    ("bg.nextafter(bg.ones(3), 2.0).topk(2**40)", "topk"),
    ("bg.cumulative_sum(bg.ones(1).expand(2**40))", "cumulative_sum"),
]


@pytest.mark.parametrize(("call", "name"), ABSURD)
def test_absurd_counts_are_refused(call, name):
    done = in_little_memory(f"""
        try:
            {call}
            print("accepted")
        except (ValueError, MemoryError, IndexError) as error:
            print("refused by", error)
    """)
    assert done.stdout.startswith(f"refused by {name}"), (done.returncode, done.stdout, done.stderr)


def test_counts_that_are_large_but_fine():
    done = in_little_memory("""
        x = bg.asarray([[[1.0, 2.0, 4.0]]])
        y = F.adaptive_avg_pool1d(x, 1_000_001)
        assert y.shape == (1, 1, 1_000_001) and y[0, 0, 0].item() == 1 and y[0, 0, -1].item() == 4
        assert bg.nn.RNN(1, 1, 300)(bg.ones((2, 1, 1)))[0].shape == (2, 1, 1)
        print("fine")
    """)
    assert done.stdout == "fine\n", done.stderr
