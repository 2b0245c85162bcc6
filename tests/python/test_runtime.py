"""The engine in a process: threads, the interpreter's lock, signals, fork, exit, memory."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import baregrad as bg

# A product that takes hours and no memory: all its rows and columns are one repeated number.
LONG_PRODUCT = """
a = bg.broadcast_to(bg.ones((1, 1)), (4000, 400_000_000))
b = bg.broadcast_to(bg.ones((1, 1)), (400_000_000, 4000))
"""


def run_python(code, *, interrupt=False, timeout=120):
    """Runs code in another process; with `interrupt`, sends SIGINT after it printed "ready"."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", "import baregrad as bg\n" + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out = ""
    try:
        if interrupt:
            while not out.endswith("ready\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                out += line
            time.sleep(0.3)  # waits for the op to begin; harmless if it has not
            process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out + rest, err


# ---- Threads and configuration


def test_num_threads():
    before = bg.get_num_threads()
    try:
        bg.set_num_threads(3)
        assert bg.get_num_threads() == 3
        with pytest.raises(ValueError, match="set_num_threads: takes 1 to 1024"):
            bg.set_num_threads(0)
        assert bg.get_num_threads() == 3
    finally:
        bg.set_num_threads(before)


def test_config(capsys):
    config = bg.config()
    assert config["version"] == bg.__version__ and bg.__version__[0].isdigit()
    assert config["isa"] in config["available_isas"] + ["reference"]
    bg.show_config()
    assert f"isa: {config['isa']}" in capsys.readouterr().out


# ---- Memory


def test_memory_counts_live_bytes():
    before = bg.memory.stats("pool")
    x = bg.ones((1 << 18,))
    now = bg.memory.stats("pool")
    assert now["live_bytes"] - before["live_bytes"] == 1 << 20
    assert now["allocations"] > before["allocations"]
    del x
    assert bg.memory.stats("pool")["live_bytes"] == before["live_bytes"]
    bg.memory.reset_peak("pool")
    assert bg.memory.stats("pool")["peak_bytes"] < now["peak_bytes"] + (1 << 20)


def test_memory_scope_and_trim():
    name = bg.memory.stats()["allocator"]
    with bg.memory.scope("system"):
        before = bg.memory.stats()
        assert before["allocator"] == "system"
        x = bg.ones((1000,))
        assert bg.memory.stats()["live_bytes"] - before["live_bytes"] == 4000
    assert bg.memory.stats()["allocator"] == name
    del x
    y = bg.ones((1 << 20,))
    del y
    assert bg.memory.trim("pool") >= 1 << 22
    with pytest.raises(ValueError):
        bg.memory.scope("heap")


def test_memory_limit():
    code = """
    bg.memory.set_limit(1 << 20)
    assert bg.memory.limit() == 1 << 20
    try:
        bg.ones((1 << 22,))
    except MemoryError as error:
        print("none left")
    bg.memory.set_limit(0)
    print(bg.ones((1 << 22,)).shape)
    """
    assert run_python(code) == (0, "none left\n(4194304,)\n", "")


# ---- Ctrl-C


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_one_long_product_and_the_process_goes_on(threads):
    code = f"""
    bg.set_num_threads({threads})
    {LONG_PRODUCT.replace(chr(10), chr(10) + "    ")}
    x = bg.ones((300, 300))
    expected = x @ x
    before = bg.memory.stats("pool")["live_bytes"]
    try:
        print("ready")
        a @ b
    except KeyboardInterrupt:
        print("interrupted")
    assert bg.memory.stats("pool")["live_bytes"] == before
    assert bg.all(x @ x == expected)
    y = bg.ones((1 << 20,))
    y += 1
    print(bg.sum(y).item())
    """
    assert run_python(code, interrupt=True) == (0, "ready\ninterrupted\n2097152.0\n", "")


@pytest.mark.parametrize(
    "work",
    [
        "while True: bg.sort(x)",
        "while True: bg.sum(chain()).backward()",
        "bg.autograd.checkpoint(lambda x: forever(x), leaf)",
    ],
)
def test_ctrl_c_in_other_work(work):
    code = f"""
    x = bg.ones((20_000_000,))
    leaf = bg.ones((1,)).requires_grad_()
    def chain():
        y = leaf
        for _ in range(100_000):
            y = y * 1
        return y
    def forever(x):
        while True:
            x * 1
    try:
        print("ready")
        {work}
    except KeyboardInterrupt:
        print("interrupted")
    """
    assert run_python(code, interrupt=True) == (0, "ready\ninterrupted\n", "")


def test_a_signal_handler_runs_during_an_op_and_may_use_the_engine():
    code = f"""
    import signal
    {LONG_PRODUCT.replace(chr(10), chr(10) + "    ")}
    class Stop(Exception):
        pass
    def handler(*_):
        total = bg.sum(bg.ones((1_000_000,))).item()
        raise Stop(total)
    signal.signal(signal.SIGINT, handler)
    try:
        print("ready")
        a @ b
    except Stop as stop:
        print(stop)
    """
    assert run_python(code, interrupt=True) == (0, "ready\n1000000.0\n", "")


def test_an_op_in_another_thread_is_not_interrupted():
    code = """
    import threading
    x = bg.broadcast_to(bg.ones((1, 1)), (1000, 20_000))
    result, done = [], threading.Event()
    def work():
        result.append(x @ x.mT)
        done.set()
    threading.Thread(target=work).start()
    try:
        print("ready")
        while True:
            bg.sum(bg.ones((100_000,)))
    except KeyboardInterrupt:
        print("interrupted")
    done.wait()
    print(result[0][0, 0].item())
    """
    assert run_python(code, interrupt=True) == (0, "ready\ninterrupted\n20000.0\n", "")


# ---- The lock


def test_python_runs_while_an_op_does():
    """If the lock were held, the other thread could not tick during the product."""
    a = bg.broadcast_to(bg.ones((1, 1)), (1000, 30_000))
    inside, ticks, stop = threading.Event(), [0], threading.Event()

    def tick():
        while not stop.is_set():
            time.sleep(0.001)
            if inside.is_set():
                ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    interval = sys.getswitchinterval()
    # The other thread can run only if the lock is released.
    sys.setswitchinterval(1000)
    try:
        inside.set()
        a @ a.mT
        inside.clear()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert ticks[0] > 3


def test_backward_gives_the_lock_away_and_hooks_take_it():
    x = bg.broadcast_to(bg.ones((1, 1)), (500, 30_000))
    w = bg.ones((500, 500)).requires_grad_()
    loss = bg.sum(w @ x)
    hooked, other = [], []
    w.register_hook(lambda g: hooked.append((threading.current_thread(), len(other))))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=lambda: (time.sleep(0.001), other.append(1)))
        thread.start()
        loss.backward()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    # The other thread ran before the gradient arrived at the leaf.
    assert hooked == [(threading.main_thread(), 1)]


# ---- Many threads


def program(seed, rounds):
    """Everything at once; the result depends only on the seed."""
    rng = np.random.default_rng(seed)
    weight = bg.asarray(rng.standard_normal((40, 40)), dtype=bg.float64).requires_grad_()
    seen = []

    class Twice(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            assert ctx.saved_tensors[0].shape == (40, 40)
            return gradient * 2

    for i in range(rounds):
        x = bg.asarray(rng.standard_normal((40, 40)))
        large = bg.asarray(rng.standard_normal(20_000))
        hidden = bg.tanh(Twice.apply(weight @ x))
        hidden.register_hook(lambda g: seen.append(bg.sum(g).item()))
        with bg.autograd.label(f"round {i}"):
            loss = bg.mean(hidden * hidden) + bg.mean(bg.exp(-large * large))
        loss.backward()
        with bg.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad = None
        del x, hidden, loss
    return weight.detach().numpy().copy(), seen


def test_eight_threads_compute_what_one_does():
    rounds = 30
    expected = [program(seed, rounds) for seed in range(8)]
    results = [None] * 8
    errors = []

    def work(seed):
        try:
            results[seed] = program(seed, rounds)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    for got, wanted in zip(results, expected):
        np.testing.assert_array_equal(got[0], wanted[0])
        assert got[1] == wanted[1]


def test_eight_threads_share_one_leaf():
    w = bg.ones((1000,)).requires_grad_()
    calls = []
    w.register_hook(lambda g: calls.append(1))

    def work():
        for _ in range(50):
            bg.sum(w * 2).backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(w.grad.numpy(), np.full(1000, 800.0))
    assert len(calls) == 400


# ---- fork


def child_sum(n):
    x = bg.ones((n,)).requires_grad_()
    bg.sum(x * 3).backward()
    return bg.sum(x.grad).item()


def test_fork_after_use():
    x = bg.ones((1 << 20,))
    assert bg.sum(x).item() == 1 << 20  # the pool's threads exist
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(child_sum, [1 << 20] * 4) == [3.0 * (1 << 20)] * 4
    assert child_sum(1 << 20) == 3.0 * (1 << 20)


def test_fork_while_another_thread_computes():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            bg.sum(bg.ones((200_000,)) * 2)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if child_sum(100_000) == 300_000 else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


# ---- Exit


@pytest.mark.parametrize(
    "code",
    [
        # workers of the pool still spin
        "x = bg.sum(bg.ones((1_000_000,)) * 2)",
        # alive in globals, with a graph
        "x = bg.ones((1000, 1000)).requires_grad_(); y = bg.sum(x @ x)",
        # in a cycle
        """
        class Cycle: pass
        c = Cycle(); c.self = c; c.tensor = bg.ones((3,)).requires_grad_() * 2
        """,
        # in a thread's own storage, and in a thread that still runs
        """
        import threading
        local = threading.local()
        ready = threading.Event()
        def work():
            local.x = bg.ones((1000,)).requires_grad_() * 2
            ready.set()
            while True:
                bg.sum(bg.ones((300_000,))).item()
        threading.Thread(target=work, daemon=True).start()
        ready.wait()
        """,
        # daemon threads that make tensors, clip and step
        """
        import threading
        ready = threading.Barrier(4)
        def work():
            w = bg.ones((300_000,)).requires_grad_()
            w.grad = bg.ones((300_000,))
            sgd = bg.optim.SGD([w])
            ready.wait()
            while True:
                bg.arange(300_000)
                bg.optim.clip_grad_norm_([w], 1.0)
                sgd.step()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        ready.wait()
        """,
        # hooks and functions of a graph that outlives the interpreter
        """
        class F(bg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.keep = [ctx, x]
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g
        x = bg.ones((3,)).requires_grad_()
        y = F.apply(x)
        y.register_hook(lambda g: y)
        bg.keep = y
        """,
        # a recording that was not stopped, scopes that were not left
        """
        import tempfile
        bg.profile.start(tempfile.mkdtemp() + "/trace.json")
        bg.no_grad().__enter__()
        scope = bg.memory.scope("system"); scope.__enter__()
        anomaly = bg.autograd.detect_anomaly(); anomaly.__enter__()
        x = bg.ones((10,)) + 1
        """,
        # used while modules are torn down
        """
        import atexit
        class Last:
            def __del__(self):
                x + x
        x = bg.ones((100_000,))
        last = Last()
        atexit.register(lambda: bg.sum(x * 2))
        """,
    ],
)
def test_clean_exit(code):
    assert run_python(code) == (0, "", "")


@pytest.mark.parametrize("value", ["0", "-1", "1025", "two", "2 ", "0x2", "9" * 30, "\x1b[2J"])
def test_a_thread_count_that_is_none_is_said(value):
    code = "import warnings; warnings.simplefilter('always'); import baregrad as bg; bg.ones(3)"
    env = {**os.environ, "BAREGRAD_NUM_THREADS": value}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert "RuntimeWarning: BAREGRAD_NUM_THREADS: " in done.stderr
    assert "is not a whole number from 1 to 1024" in done.stderr and "\x1b" not in done.stderr


def test_messages_hold_text_that_a_terminal_only_shows():
    for path in ["\x1b]0;title\x07", "\u202egnp", "\udcff", "a\nb", "\x9b2J"]:
        for read in [bg.data.read_image, bg.data.read_csv, bg.data.read_idx, bg.load]:
            with pytest.raises(OSError) as caught:
                read("/nowhere/" + path + ".npy")
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", str(caught.value))
