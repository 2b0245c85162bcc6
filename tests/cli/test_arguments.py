"""Invalid values for every option of every command.

An invalid value is refused at once: exit status 2, and one message that names the option and shows
the value without control characters. Regular expressions repeat here which values are valid, so
that the command's own parser is not the only judge.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("BAREGRAD_BIN", str(ROOT / "build" / "baregrad"))

LONG = bool(os.environ.get("BAREGRAD_TEST_LONG"))
HOSTILE = [
    b"", b" ", b"\t", b"nan", b"NaN", b"-nan", b"inf", b"-inf", b"Infinity", b"-1", b"-0", b"+1", b"1 ", b" 1",
    b"1e999", b"-1e999", b"1e-9999", b"0x10", b"0b1", b"1_000", b"1,000", b"1.5", b"1.", b".", b"e", b"--", b"-",
    b"2147483648", b"4294967297", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"1" * 400, b"garbage", b"1garbage", b"[1,2]", b"[]", b"{}", b"%%", b"true", b"\\x31",
    b"\xff\xfe", b"caf\xc3\xa9", b"\x1b[31mred\x1b[0m", b"\r\n", b"\xe2\x80\xae123", b"\xc2\x9b2J", b"x" * 100_000,
]  # fmt: skip

WHOLE = re.compile(rb"-?[0-9]+\Z")
REAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def whole(least, most):
    return lambda text: bool(WHOLE.match(text)) and least <= int(text) <= most


def real(least, most):
    def accepts(text):
        # C's std::from_chars takes no plus sign; values that round to 0 are out of its range.
        if not REAL.match(text) or text.startswith(b"+") or text == b"1e-9999":
            return False
        return least <= float(text) <= most

    return accepts


def whole_list(most):
    return lambda text: all(whole(1, most)(part) for part in text.split(b","))


def one_of(*words):
    return lambda text: text.decode(errors="replace") in words


BILLION = 10**9
SEED = whole(0, 2**64 - 1)
TRAIN = ["train", "digits"]
BENCH = ["bench", "matmul"]
#: The command before the option, the option, and what it accepts.
OPTIONS = [
    (TRAIN, "--model", one_of("mlp", "cnn")),
    (TRAIN, "--hidden", whole_list(10**6)),
    (TRAIN, "--epochs", whole(1, BILLION)),
    (TRAIN, "--batch", whole(1, BILLION)),
    (TRAIN, "--lr", real(0, 1000)),
    (TRAIN, "--weight-decay", real(0, 1000)),
    (TRAIN, "--dropout", real(0, 1)),
    (TRAIN, "--optimizer", one_of("sgd")),
    (TRAIN, "--schedule", one_of("step")),
    (TRAIN, "--seed", SEED),
    (TRAIN, "--items", whole(1, BILLION)),
    (TRAIN, "--test-items", whole(1, BILLION)),
    (TRAIN, "--workers", whole(0, 64)),
    (TRAIN, "--alloc", one_of("pool")),
    (TRAIN, "--checkpoint-steps", whole(1, BILLION)),
    (TRAIN, "--keep", whole(1, 10**6)),
    (TRAIN, "--threads", whole(1, 1024)),
    (["predict", "RUN", "x.png"], "--max-bytes", whole(1, 2**64 - 1)),
    (["lab", "list"], "--threads", whole(1, 1024)),
    (["lab", "list"], "--seed", SEED),
    (BENCH, "--sizes", whole_list(2**63 - 1)),
    (BENCH, "--threads", whole(1, 1024)),
    (BENCH, "--seconds", real(0.001, 3600)),
    (BENCH, "--dtype", one_of("f32")),
    (BENCH, "--shapes", one_of("1x1x1")),
    (BENCH, "--peers", one_of("blis")),
]
# : Values of positional arguments, by the command before them.
POSITIONALS = [["train"], ["bench"], ["lab"], []]
# : Options that name files or folders: any bytes, but not empty.
PATHS = [
    (TRAIN, "--out"), (TRAIN, "--json"), (TRAIN, "--data"), (["lab", "list"], "--out"), (["info"], "--json"),
    (BENCH, "--json"), (BENCH, "--check"), (["eval", "RUN"], "--data"), (["eval", "RUN"], "--json"),
    (["predict", "RUN", "test:0"], "--data"), (["predict", "RUN", "test:0"], "--json"),
    (["graph", "RUN"], "--dot"), (["graph", "RUN"], "--svg"), (["graph", "RUN"], "--data"),
]  # fmt: skip


def sample(command, option):
    """All of HOSTILE, or the worst and some others, which differ between options."""
    if LONG:
        return HOSTILE
    worst = [b"", b"nan", b"-1", b"18446744073709551616", b"0x10", b"\xff\xfe", b"\x1b[31mred\x1b[0m"]
    rest = [value for value in HOSTILE if value not in worst]
    first = zlib.crc32(repr((command, option)).encode()) % 5
    return worst + rest[first::5]


def run(*arguments, **options):
    options.setdefault("timeout", 60)
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([BIN, *arguments], check=False, stderr=subprocess.PIPE, **options)


def problem_with(text):
    """The control character that a terminal would execute, or None."""
    decoded = text.decode()  # raises for bytes that are not UTF-8
    bad = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]", decoded)
    return bad and repr(bad[0])


class ArgumentsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, status, *arguments, **options):
        """Checks that a call is refused with this status and only a message; returns the message."""
        done = run(*arguments, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, (arguments, done.stderr[:500]))
        self.assertEqual(done.stdout or b"", b"")
        self.assertTrue(done.stderr.startswith(b"baregrad"), done.stderr[:500])
        self.assertIsNone(problem_with(done.stderr), done.stderr[:500])
        self.assertEqual(list(self.folder.iterdir()), [])
        return done.stderr.decode()

    def test_what_is_no_value_is_refused_by_the_options_name(self):
        for command, option, accepts in OPTIONS:
            for value in sample(command, option):
                if accepts(value):
                    continue
                with self.subTest(command=command, option=option, value=value[:40]):
                    self.assertIn(option, self.refused(2, *command, option, value))

    def test_the_same_after_an_equals_sign(self):
        for command, option, accepts in OPTIONS:
            for value in [b"", b"nan", b"-1e9", b"\xff"]:
                if not accepts(value):
                    with self.subTest(command=command, option=option, value=value):
                        self.refused(2, *command, option.encode() + b"=" + value)

    def test_values_at_the_ends_of_ranges_are_taken(self):
        # An option that is refused comes after them, so nothing runs.
        stop = ["--keep", "0"]
        for option, value in [
            ("--lr", "0"), ("--lr", "1000"), ("--lr", "1e-300"), ("--dropout", "1"), ("--seed", "0"),
            ("--seed", str(2**64 - 1)), ("--seed", "010"), ("--workers", "64"), ("--hidden", "1,1000000"),
            ("--epochs", str(BILLION)),
        ]:  # fmt: skip
            said = self.refused(2, *TRAIN, option, value, *stop)
            self.assertIn("--keep", said)
            self.assertNotIn(option, said)

    def test_positionals(self):
        for command in POSITIONALS:
            for value in sample(command, ""):
                if value == b"--":  # the end of the options
                    continue
                with self.subTest(command=command, value=value[:40]):
                    done = run(*command, value, cwd=self.folder)
                    self.assertIn(done.returncode, (1, 2), (done.stdout, done.stderr[:500]))
                    self.assertIsNone(problem_with(done.stderr), done.stderr[:500])
                    self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_path_is_not_empty(self):
        for command, option in PATHS:
            with self.subTest(command=command, option=option):
                said = self.refused(2, *command, option, "")
                self.assertIn(option, said)
                self.assertIn("empty", said)
        for command in [["eval", ""], ["predict", "", "test:0"], ["predict", "RUN", ""], ["graph", ""]]:
            with self.subTest(command):
                self.assertIn("empty", self.refused(2, *command))

    def test_paths_that_cannot_be(self):
        long = "x" * 5000
        control = "no\x1b]0;title\x07such"
        for value in [long, control, "/dev/null/x", b"no\xff"]:
            for command in [
                ["eval", value],
                ["predict", value, "test:0"],
                ["graph", value, "--dot", "g.dot"],
                ["train", "digits", "--data", value],
                ["train", "digits", "--out", value, "--resume"],
                ["bench", "matmul", "--check", value],
            ]:
                with self.subTest(command=[str(x)[:40] for x in command]):
                    self.refused(1, *command)
        for value in [long, "/dev/null/x", "no-folder/x"]:
            with self.subTest(value[:40]):
                self.refused(1, "info", "--json", value)
                self.refused(1, "train", "digits", "--json", value)

    def test_environment(self):
        for variable, values in {
            "BAREGRAD_NUM_THREADS": ["0", "-1", "1025", "two", "2 ", "2.0", "0x2", "1" * 99, "\x1b[2J", b"\xff"],
            "BAREGRAD_ISA": ["mmx", " ", "avx2 ", "\x1b[2J", b"\xff", "x" * 5000],
            "BAREGRAD_ALLOC": ["heap", "arena:", "arena:0", "arena:-1", "arena:1x", "arena:" + "9" * 30, "\x1b[2J", b"\xff"],
        }.items():  # fmt: skip
            for value in values:
                for command in [["info"], ["train", "digits"], ["eval", "RUN"], ["bench", "alloc"], ["lab", "list"]]:
                    with self.subTest(variable=variable, value=value[:40], command=command):
                        said = self.refused(1, *command, env={**os.environ, variable: value})
                        self.assertIn(variable, said)
        for value in ["nowhere", "\x1b[2J", b"\xff", "/dev/null", "x" * 5000]:
            for command in [["train", "digits"], ["eval", "RUN"], ["predict", "RUN", "test:0"], ["graph", "RUN"]]:
                with self.subTest(value=value[:40], command=command):
                    said = self.refused(1, *command, env={**os.environ, "BAREGRAD_DATA": value})
                    self.assertRegex(said, "BAREGRAD_DATA: .* is no folder")
            self.assertEqual(run("lab", "list", env={**os.environ, "BAREGRAD_DATA": value}).returncode, 0)
        # Empty counts as unset; help and version need none of it.
        for variable in ["BAREGRAD_NUM_THREADS", "BAREGRAD_ISA", "BAREGRAD_ALLOC"]:
            self.assertEqual(run("lab", "list", env={**os.environ, variable: ""}).returncode, 0)
            self.assertEqual(run("--version", env={**os.environ, variable: "?"}).returncode, 0)


class RealRunTest(unittest.TestCase):
    """Commands that need a trained network."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def train(self, *arguments, **options):
        small = ["--items", "100", "--test-items", "50", "--hidden", "4", "--epochs", "1"]
        done = run("train", *arguments, *small, cwd=self.folder, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(problem_with(done.stdout))
        return done

    def test_folders_of_any_bytes(self):
        for number, name in enumerate([b"plain", b"sp ace", b"caf\xc3\xa9", b"\xff\xfe", b"\x1b[31m", b"a'b\\x41", b"[x,y]"]):
            with self.subTest(name):
                data = self.folder.joinpath(f"data{number}").as_posix().encode() + name
                self.make_mnist(data)
                out = b"run" + name
                done = self.train("mnist", "--data", data, "--out", out)
                config = json.loads((self.folder / os.fsdecode(out) / "config.json").read_text())
                self.assertEqual(set(config) >= {"data_folder", "lr"}, True)
                # Runs the program's last line, word by word, as a shell does.
                hint = re.search(r"^Try  (baregrad predict .*)$", done.stdout.decode(), re.M)[1]
                hint = hint.replace("baregrad", BIN, 1)
                shell = subprocess.run(["bash", "-c", hint], cwd=self.folder, capture_output=True)
                self.assertEqual(shell.returncode, 0, shell.stderr)
                self.assertIsNone(problem_with(shell.stdout))
                # From another folder, and resumed.
                there = self.folder / os.fsdecode(out)
                for command in [["eval"], ["predict"], ["graph"]]:
                    more = {"eval": [], "predict": ["test:1"], "graph": ["--dot", "/dev/null/x"]}[command[0]]
                    done = run(*command, there, *more, cwd="/")
                    self.assertNotIn(b"not found", done.stderr)
                    self.assertEqual(done.returncode, 1 if command == ["graph"] else 0, done.stderr)
                done = run("train", "--resume", "--out", there, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def make_mnist(folder):
        """Four files with the expected names, 100 and 50 images."""
        os.makedirs(folder, exist_ok=True)
        for part, count in [(b"train", 100), (b"t10k", 50)]:
            size = count.to_bytes(4, "big")
            with open(folder + b"/" + part + b"-images-idx3-ubyte", "wb") as file:
                pixels = bytes((i * 7) % 256 for i in range(count * 784))
                file.write(b"\0\0\x08\x03" + size + b"\0\0\0\x1c\0\0\0\x1c" + pixels)
            with open(folder + b"/" + part + b"-labels-idx1-ubyte", "wb") as file:
                file.write(b"\0\0\x08\x01" + size + bytes(i % 10 for i in range(count)))

    def test_a_failing_dot_is_a_warning(self):
        bodies = ["exit 1", "kill -9 $$", "cat; exit 3", "exit 0"]
        for number, body in enumerate([*bodies, "exec sleep 50"] if LONG else bodies):
            with self.subTest(body):
                tools = self.folder / f"tools{number}"
                tools.mkdir()
                (tools / "dot").write_text(f"#!/bin/sh\n{body}\n")
                (tools / "dot").chmod(0o755)
                env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
                done = self.train("digits", "--out", f"dot{number}", env=env)
                self.assertIn(b"graph.svg", done.stderr)
                self.assertIn(b"Try  baregrad predict", done.stdout)

    def test_a_data_folder_that_is_none(self):
        for arguments in [["train", "digits"], ["eval", "run-d"], ["predict", "run-d", "test:0"], ["graph", "run-d", "--dot", "x"]]:
            with self.subTest(arguments):
                if not (self.folder / "run-d").exists():
                    self.train("digits", "--out", "run-d")
                done = run(*arguments, "--data", "nowhere", cwd=self.folder)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"--data: 'nowhere' is no folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
