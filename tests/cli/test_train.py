"""`baregrad train`, `eval`, `predict` and `graph` as a user runs them, and their failures.

Small runs on the generated digits: no file is needed.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_cli import BIN, run  # noqa: E402

LONG = bool(os.environ.get("BAREGRAD_TEST_LONG"))


def small(epochs=2):
    return ["digits", "--items", "600", "--hidden", "32", "--batch", "50", "--epochs", str(epochs)]


class TrainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_folder = self.folder / "run"

    def train(self, *arguments, **options):
        done = run("train", *arguments, "--out", str(self.run_folder), **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def final_checkpoint(self, folder=None):
        files = sorted(((folder or self.run_folder) / "checkpoints").iterdir())
        return files[-1].read_bytes()


class RunTest(TrainTest):
    def test_a_run_leaves_what_it_promises(self):
        file = self.folder / "epochs.json"
        text = self.train(*small(), "--json", str(file))
        self.assertIn("digits: 600 images to learn from, 10,000 to test on", text)
        self.assertIn("truth \\ answer", text)
        objects = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual([o.get("epoch") for o in objects], [1, 2, None])
        self.assertEqual(sum(map(sum, objects[2]["confusion"])), 10000)
        right = sum(objects[2]["confusion"][k][k] for k in range(10))
        self.assertEqual(right / 10000, objects[2]["test_accuracy"])
        self.assertEqual(objects[1]["test_accuracy"], objects[2]["test_accuracy"])
        lines = [json.loads(x) for x in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([x["step"] for x in lines if x["kind"] == "epoch"], [12, 24])
        self.assertEqual(json.loads((self.run_folder / "config.json").read_text())["batch"], "50")
        names = {p.name for p in self.run_folder.iterdir()}
        self.assertLessEqual({"config.json", "metrics.jsonl", "events", "checkpoints", "graph.dot"}, names)
        self.assertIn("digraph", (self.run_folder / "graph.dot").read_text())

    def test_a_second_run_takes_a_folder_of_its_own(self):
        self.train(*small())
        done = run("train", *small(), "--out", str(self.run_folder))
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is a run in", done.stderr)
        for expected in ["runs/digits-mlp", "runs/digits-mlp-2"]:
            done = run("train", *small(1), cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"run    {expected}\n", done.stdout)

    def test_eval_predict_and_graph(self):
        self.train(*small())
        file = self.folder / "out.json"
        done = run("eval", str(self.run_folder), "--json", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        accuracy = json.loads(file.read_text())["test_accuracy"]
        lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(accuracy, json.loads(lines[-1])["test_accuracy"])
        self.assertIn(f"{100 * accuracy:.2f} % right", done.stdout)

        done = run("predict", str(self.run_folder), "test:3", "--json", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("█", done.stdout)
        self.assertRegex(done.stdout, r"It is \d\.")
        p = json.loads(file.read_text())["probabilities"]
        self.assertAlmostEqual(sum(p.values()), 1, 5)

        # The same image as a file, dark on light and three times as large.
        pixels = self.image_of(done.stdout)
        self.assertEqual(len(pixels), 28)
        done = run("predict", str(self.run_folder), str(self.write_pgm(pixels)), "--json", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("turned round", done.stdout)
        again = json.loads(file.read_text())["probabilities"]
        self.assertEqual(max(p, key=p.get), max(again, key=again.get))

        dot, svg = self.folder / "g.dot", self.folder / "g.svg"
        done = run("graph", str(self.run_folder), "--dot", str(dot), "--svg", str(svg))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("digraph", dot.read_text())
        self.assertIn("</svg>", svg.read_text())

    @staticmethod
    def image_of(text):
        shades = {" ": 0, "░": 64, "▒": 128, "▓": 192, "█": 255}
        return [[shades[c] for c in line[::2]] for line in text.split("\n")[:28]]

    def write_pgm(self, pixels):
        rows = [[255 - v for v in row for _ in range(3)] for row in pixels for _ in range(3)]
        data = b"P5 84 84 255\n" + bytes(v for row in rows for v in row)
        path = self.folder / "image.pgm"
        path.write_bytes(data)
        return path

    def test_wrong_arguments(self):
        for arguments, status, word in [
            (["train", "cifar"], 2, "cifar"),
            (["train", "--model", "rnn"], 2, "rnn"),
            (["train", "--epochs", "0"], 2, "0"),
            (["train", "digits", "--dropout", "2"], 2, "dropout"),
            (["train", "digits", "--resume"], 1, "--out"),
            (["train", "digits", "--resume", "--out", str(self.folder / "no")], 1, "no checkpoint"),
            (["eval", str(self.folder / "no")], 1, "no checkpoint"),
            (["predict", str(self.folder / "no"), "x.png"], 1, "no checkpoint"),
            (["predict", str(self.folder / "no")], 2, "image"),
            (["graph", str(self.folder / "no")], 1, "--dot"),
        ]:
            done = run(*arguments)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(word, done.stderr)
            self.assertTrue(done.stderr.startswith("baregrad"), done.stderr)

    def test_images_that_are_none(self):
        self.train(*small(1))
        broken = self.folder / "broken.png"
        broken.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
        for image, word in [(str(broken), "broken.png"), ("test:10000", "test:9999"),
                            ("test:x", "test:9999"), (str(self.folder / "no.pgm"), "no.pgm")]:
            done = run("predict", str(self.run_folder), image)
            self.assertEqual(done.returncode, 1, image)
            self.assertIn(word, done.stderr)


class AccuracyTest(TrainTest):
    """The accuracy after training. The other bars take minutes each and are checked in the long
    tests."""

    def accuracy_of(self, *arguments):
        done = run("train", *arguments, "--out", str(self.run_folder), "--json", str(self.folder / "e"),
                   timeout=3600)
        if done.returncode == 1 and "looked" in done.stderr:
            self.skipTest(f"no data here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "e").read_text().splitlines()[-1])["test_accuracy"]

    def test_mlp_on_mnist(self):
        self.assertGreaterEqual(self.accuracy_of("mnist", "--epochs", "5"), 0.98)

    @unittest.skipUnless(LONG, "minutes")
    def test_cnn_on_mnist(self):
        self.assertGreaterEqual(self.accuracy_of("mnist", "--model", "cnn", "--epochs", "5"), 0.99)

    @unittest.skipUnless(LONG, "minutes")
    def test_mlp_on_fashion(self):
        self.assertGreaterEqual(self.accuracy_of("fashion", "--epochs", "10"), 0.88)

    @unittest.skipUnless(LONG, "minutes")
    def test_cnn_on_fashion(self):
        self.assertGreaterEqual(self.accuracy_of("fashion", "--model", "cnn", "--epochs", "5"), 0.90)


class InterruptionTest(TrainTest):
    def start(self, *arguments):
        return subprocess.Popen([BIN, "train", *arguments, "--out", str(self.run_folder)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        truth = self.folder / "truth"
        many = [*small(40), "--test-items", "200"]
        done = run("train", *many, "--out", str(truth))
        self.assertEqual(done.returncode, 0, done.stderr)
        child = self.start(*many)
        while not (self.run_folder / "checkpoints").exists():
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        text, _ = child.communicate(timeout=60)
        if child.returncode != 0:  # it may be complete already
            self.assertEqual(child.returncode, 130)
            found = re.search(r"Go on with  baregrad (train --resume --out \S+)", text)
            done = run(*found[1].split())
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.final_checkpoint(), self.final_checkpoint(truth))


if __name__ == "__main__":
    unittest.main()
