"""Every command with closed or full standard streams, and in a removed or read-only folder.

No crash, no hang, no text in a file that is not for text, and an error that says what failed.
"""

import fcntl
import itertools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_arguments import BIN, problem_with  # noqa: E402

SMALL = ["--items", "100", "--test-items", "50", "--hidden", "4", "--epochs", "2"]
# : The time limit of each command.
COMMANDS = {
    "version": ["--version"],
    "help": ["--help"],
    "bench help": ["bench", "--help"],
    "wrong": ["fly"],
    "train": ["train", "digits", *SMALL, "--out", "OUT/new"],
    "resume": ["train", "--resume", "--out", "RUN"],
    "eval": ["eval", "RUN", "--json", "OUT/eval.json"],
    "predict": ["predict", "RUN", "test:0"],
    "predict file": ["predict", "RUN", "IMAGE"],
    "predict nothing": ["predict", "RUN", "OUT/nothing.png"],
    "graph": ["graph", "RUN", "--dot", "OUT/g.dot", "--svg", "OUT/g.svg"],
    "lab": ["lab", "list"],
    "lab nothing": ["lab", "nothing", "--out", "OUT/lab"],
    "bench": ["bench", "overhead", "--quick", "--sizes", "4", "--json", "OUT/bench.json"],
    "bench check": ["bench", "matmul", "--check", "OUT/none.json"],
}
FAILING = {"wrong": 2, "predict nothing": 1, "lab nothing": 1, "bench check": 1}


class StreamsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_folder = cls.folder / "run"
        cls.image = cls.folder / "image.pgm"
        cls.image.write_bytes(b"P5 28 28 255\n" + bytes(784))
        done = subprocess.run([BIN, "train", "digits", *SMALL, "--out", cls.run_folder], capture_output=True)
        assert done.returncode == 0, done.stderr

    def words(self, name):
        """The command, with a new folder for its output."""
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        self.addCleanup(shutil.rmtree, out, ignore_errors=True)
        places = {"OUT": str(out), "RUN": str(self.run_folder), "IMAGE": str(self.image)}
        return out, [re.sub(r"^(OUT|RUN|IMAGE)", lambda m: places[m[1]], word) for word in COMMANDS[name]]

    def check_files(self, out):
        """Checks that the written files are valid."""
        for path in out.rglob("*.json*"):
            for line in path.read_text().splitlines() if path.name != "config.json" else [path.read_text()]:
                json.loads(line)
        for path in out.rglob("*.dot"):
            self.assertTrue(path.read_text().startswith("digraph"))
        for path in out.rglob("*.svg"):
            self.assertIn("</svg>", path.read_text())

    def execute(self, words, **options):
        options.setdefault("timeout", 60)
        return subprocess.run([BIN, *words], check=False, **options)

    def test_closed(self):
        for name in COMMANDS:
            for closed in itertools.chain.from_iterable(itertools.combinations(range(3), n) for n in (1, 2, 3)):
                with self.subTest(command=name, closed=closed):
                    out, words = self.words(name)
                    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

                    def close():
                        for stream in closed:
                            os.close(stream)

                    done = self.execute(words, preexec_fn=close, **streams)
                    self.assertEqual(done.returncode, FAILING.get(name, 0), done.stderr)
                    self.check_files(out)

    def test_a_full_device(self):
        for name in COMMANDS:
            for full in ("stdout", "stderr"):
                with self.subTest(command=name, full=full):
                    out, words = self.words(name)
                    other = "stderr" if full == "stdout" else "stdout"
                    with open("/dev/full", "wb") as device:
                        done = self.execute(words, **{full: device, other: subprocess.PIPE})
                    self.check_files(out)
                    if full == "stderr" or name in ("resume", *FAILING):
                        self.assertIn(done.returncode, (FAILING.get(name, 0), 1))
                        continue
                    prints = name != "graph"
                    self.assertEqual(done.returncode, 1 if prints else 0)
                    if prints:
                        self.assertIn(b"cannot write to standard output: No space left", done.stderr)
                    if name == "train":  # nothing of the run is lost
                        self.assertTrue((out / "new" / "checkpoints" / "step-000000004.safetensors").exists())

    def test_a_reader_that_went_away(self):
        for name in COMMANDS:
            for stream in ("stdout", "stderr"):
                with self.subTest(command=name, stream=stream):
                    out, words = self.words(name)
                    read, write = os.pipe()
                    os.close(read)
                    other = "stderr" if stream == "stdout" else "stdout"
                    done = self.execute(words, **{stream: write, other: subprocess.PIPE})
                    os.close(write)
                    self.assertEqual(done.returncode, FAILING.get(name, 0))
                    self.check_files(out)

    def test_a_folder_that_is_gone(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                out, words = self.words(name)
                gone = tempfile.mkdtemp(dir=self.folder)
                done = self.execute(words, cwd=gone, preexec_fn=lambda: os.rmdir(gone), capture_output=True)
                self.assertEqual(done.returncode, FAILING.get(name, 0), done.stderr)
                self.check_files(out)
        # A relative name of a run has no folder there.
        for words in [["train", "digits", *SMALL], ["eval", "run"], ["train", "digits", "--data", "x"]]:
            with self.subTest(words):
                gone = tempfile.mkdtemp(dir=self.folder)
                done = self.execute(words, cwd=gone, preexec_fn=lambda: os.rmdir(gone), capture_output=True)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertTrue(done.stderr.startswith(b"baregrad: "), done.stderr)

    def test_a_read_only_folder(self):
        # Nobody can create a folder in /proc; permissions do not apply to root.
        for words in [
            ["train", "digits", *SMALL, "--out", "/proc/run"],
            ["train", "digits", *SMALL, "--json", "/proc/x.json"],
            ["train", "digits", *SMALL],
            ["info", "--json", "/proc/x.json"],
            ["graph", str(self.run_folder), "--dot", "/proc/x.dot"],
            ["eval", str(self.run_folder), "--json", "x.json"],
            ["lab", "ladder", "--out", "lab"],
            ["bench", "overhead", "--json", "x.json"],
        ]:
            with self.subTest(words):
                done = self.execute(words, cwd="/proc", capture_output=True)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stderr, rb"^baregrad: .*cannot|baregrad: .*No such")


class TerminalTest(unittest.TestCase):
    """The line that overwrites itself."""

    def on_terminal(self, columns, term):
        """The standard error of a short training on a terminal of this width."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {k: v for k, v in os.environ.items() if k != "TERM"}
        if term is not None:
            env["TERM"] = term
        received = []

        def collect():
            while True:
                try:
                    received.append(os.read(leader, 65536))
                except OSError:
                    return

        with tempfile.TemporaryDirectory() as folder:
            words = ["train", "digits", "--items", "2000", "--test-items", "10", "--hidden", "4", "--epochs", "1"]
            process = subprocess.Popen(
                [BIN, *words, "--out", folder + "/run"], stdout=subprocess.DEVNULL, stderr=follower, env=env
            )
            os.close(follower)
            reader = threading.Thread(target=collect)
            reader.start()
            self.assertEqual(process.wait(60), 0)
            reader.join()
            os.close(leader)
        return b"".join(received).decode()

    def test_fits_the_terminal(self):
        for columns in (200, 80, 60, 40, 12, 2):
            with self.subTest(columns):
                lines = self.on_terminal(columns, "xterm").split("\r\x1b[K")
                self.assertGreater(len(lines), 3)
                self.assertLess(max(map(len, lines)), columns)
                if columns >= 80:
                    self.assertIn("left", lines[1])

    def test_no_sequences_for_a_terminal_that_knows_none(self):
        for term in ("dumb", "", None):
            with self.subTest(term):
                self.assertEqual(self.on_terminal(80, term), "")


class InterruptTest(unittest.TestCase):
    def test_every_long_command_ends_on_interrupt(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in [
                ["train", "digits", "--out", folder + "/run"],
                ["info"],
                ["bench", "matmul", "--sizes", "2000"],
                ["lab", "ladder", "--out", folder + "/lab"],
            ]:
                for sent in (signal.SIGINT, signal.SIGTERM):
                    with self.subTest(words=words, sent=sent):
                        process = subprocess.Popen([BIN, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                        time.sleep(0.3)
                        process.send_signal(sent)
                        _, said = process.communicate(timeout=5)
                        self.assertIn(process.returncode, (-sent, 128 + sent, 130, 1), said)


if __name__ == "__main__":
    unittest.main()
