"""The command with damaged files: images, run folders, archives that unpack to far more than their
size.

A result or an error, within a limit of memory; no crash, no hang. tests/fuzz_files gives the same
loaders far more files; here the whole command runs. More with BAREGRAD_TEST_LONG=1.
"""

import gzip
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_arguments import BIN, LONG, problem_with  # noqa: E402

# : Address space; the program with its threads and libraries needs 0.3 GiB.
MEMORY = 1 << 30
COUNT = 1500 if LONG else 30


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, depth=8, colour=0):
    """An image of zeros."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = bytes(1 + (width * channels * depth + 7) // 8)
    packer = zlib.compressobj(1)
    block = row * max(1, (1 << 20) // len(row))
    data, left = [], height * len(row)
    while left > 0:
        data.append(packer.compress(block[: min(left, len(block))]))
        left -= min(left, len(block))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(6)) if colour == 3 else b""
    body = chunk(b"IDAT", b"".join(data) + packer.flush())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + body + chunk(b"IEND", b"")


def gzip_of(head, unit, count):
    """head, and count times unit, packed piece by piece."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = unit * max(1, (1 << 20) // len(unit))
    out, left = [packer.compress(head)], count * len(unit)
    while left > 0:
        out.append(packer.compress(block[: min(left, len(block))]))
        left -= min(left, len(block))
    return b"".join(out) + packer.flush()


class DamagedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_folder = cls.folder / "run"
        small = ["--items", "100", "--test-items", "50", "--hidden", "4", "--epochs", "1"]
        done = subprocess.run([BIN, "train", "digits", *small, "--out", cls.run_folder], capture_output=True)
        assert done.returncode == 0, done.stderr

    def execute(self, *words, memory=MEMORY):
        """Checks that the process ends by itself with a result or an error; returns its result."""
        began = time.monotonic()
        done = subprocess.run(
            [BIN, *words],
            capture_output=True,
            timeout=60,
            env={**os.environ, "BAREGRAD_NUM_THREADS": "2"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
        )
        self.assertIn(done.returncode, (0, 1), (words, done.stderr))
        self.assertEqual(done.stderr.startswith(b"baregrad: "), bool(done.stderr), done.stderr)
        self.assertEqual(done.returncode == 1, bool(done.stderr) and b"passed over" not in done.stderr, done.stderr)
        self.assertIsNone(problem_with(done.stdout + done.stderr))
        self.slowest = max(getattr(self, "slowest", 0), time.monotonic() - began)
        return done

    def refused(self, *words):
        done = self.execute(*words)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr.decode()

    def test_images_that_unpack_to_far_more(self):
        image = self.folder / "image"
        for name, data in {
            "a palette": png(5000, 5000, 1, 3),
            "colours": png(4200, 4200, 8, 6),
            "sixteen bits": png(3400, 3400, 16, 2),
            "a line": png((1 << 26) + 1, 1),
            "a column": png(1, (1 << 25) + 1, 16),
            "gzipped": gzip.compress(png(4200, 4200, 8, 6)),
            "gray, gzipped": gzip_of(b"P5 8192 8500 255\n", bytes(1), 8192 * 8500),
            "text, gzipped": gzip_of(b"P2 8192 8500 255\n", b"0 ", 8192 * 8500),
            "noise behind it, gzipped": gzip_of(b"P5 1 1 255\n1", bytes(1), 1 << 27),
        }.items():
            with self.subTest(name):
                image.write_bytes(data)
                self.assertLess(len(data), 1 << 21)
                self.assertRegex(self.refused("predict", self.run_folder, image), r"limit of \d+ bytes .*max_bytes")
        # With the option it works, and shrinks the image without full copies.
        image.write_bytes(png(9000, 9000))
        done = self.execute("predict", self.run_folder, image, "--max-bytes", "81000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("max_bytes", self.refused("predict", self.run_folder, image, "--max-bytes", "80999999"))

    def test_headers_that_declare_too_much(self):
        image = self.folder / "header"
        for data in [
            b"P5 999999999 999999999 255\n",
            b"P2 16384 16384 255\n0 0 0",
            b"P6 18446744073709551616 1 255\n",
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 16, 6, 0, 0, 0)),
            b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**31 - 1) + b"IHDR",
        ]:
            with self.subTest(data[:30]):
                image.write_bytes(data)
                self.refused("predict", self.run_folder, image)

    def test_datasets_that_unpack_to_far_more(self):
        folder = self.folder / "mnist"
        folder.mkdir()
        size = (1 << 17).to_bytes(4, "big")
        images = gzip_of(b"\0\0\x08\x03" + size + b"\0\0\0\x1c\0\0\0\x1c", bytes(1), (1 << 17) * 784)
        for part in ("train", "t10k"):
            (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(images)
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + size + bytes(1 << 17))
        said = self.refused("train", "mnist", "--data", folder, "--out", self.folder / "never")
        self.assertRegex(said, r"limit of \d+ bytes")

    @staticmethod
    def mutated(data, dice):
        data = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(data) + 1)
            match dice.randrange(5):
                case 0 if at < len(data):
                    data[at] ^= 1 << dice.randrange(8)
                case 1:
                    data[at : at + 4] = dice.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
                case 2:
                    del data[at : at + dice.randint(1, 64)]
                case 3:
                    data[at:at] = dice.randbytes(dice.randint(1, 16))
                case 4:
                    del data[at:]
        return bytes(data)

    def test_damaged_images(self):
        seeds = [png(20, 30), png(9, 9, 16, 6), png(28, 28, 1, 3), b"P5 5 4 255\n" + bytes(20), b"P3 1 2 9 1 2 3 4 5 6"]
        seeds += [gzip.compress(seed) for seed in seeds]
        image = self.folder / "damaged"
        worked = 0
        for number in range(COUNT):
            dice = random.Random(number)
            image.write_bytes(self.mutated(dice.choice(seeds), dice))
            worked += self.execute("predict", self.run_folder, image).returncode == 0
        self.assertLess(worked, COUNT)

    def test_damaged_run_folders(self):
        files = [path for path in self.run_folder.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 4)
        worked = 0
        for number in range(COUNT):
            dice = random.Random(number)
            copy = self.folder / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.run_folder, copy)
            for path in dice.sample(files, dice.randint(1, 2)):
                target = copy / path.relative_to(self.run_folder)
                target.write_bytes(self.mutated(path.read_bytes(), dice))
            words = dice.choice([["eval", copy], ["predict", copy, "test:0"], ["graph", copy, "--dot", self.folder / "g"],
                                 ["train", "--resume", "--out", copy]])  # fmt: skip
            worked += self.execute(*words).returncode == 0
        self.assertLess(worked, COUNT)

    def test_things_that_are_no_files(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for path in [fifo, self.folder, "/dev/zero", "/dev/null", "/proc/self/mem", "/dev/full"]:
            with self.subTest(path):
                self.refused("predict", self.run_folder, path)
                self.refused("bench", "matmul", "--check", path)
                self.refused("eval", path)
        for kind in ["pipe", "folder"]:
            out = self.folder / kind
            out.mkdir()
            path = out / "energy.jsonl"
            os.mkfifo(path) if kind == "pipe" else path.mkdir()
            self.refused("lab", "energy", "--quick", "--no-report", "--out", out)
        loop = self.folder / "loop"
        loop.symlink_to(loop)
        self.refused("predict", self.run_folder, loop)
        self.refused("eval", loop)


if __name__ == "__main__":
    unittest.main()
