"""Run folders under failures: kills, parallel starts, readers, full disks, removed folders.

No run is lost or mixed with another, and the next command always works. BAREGRAD_TEST_LONG=1
kills 500 times instead of 20.
"""

import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_cli import BIN, run  # noqa: E402

LONG = bool(os.environ.get("BAREGRAD_TEST_LONG"))
HANG = 60  # seconds; a command here takes a fraction of one


def small(epochs=2, *more):
    return ["digits", "--items", "600", "--test-items", "200", "--hidden", "32", "--batch", "50",
            "--epochs", str(epochs), *more]


class RunsTest(unittest.TestCase):
    place = None  # the folder for run folders; None: the one for temporary files

    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True, dir=self.place)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_folder = self.folder / "run"
        self.checkpoints = self.run_folder / "checkpoints"

    def start(self, *arguments, **options):
        child = subprocess.Popen([BIN, *map(str, arguments)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def start_long_run(self):
        """A run that writes a checkpoint at every step, and lasts longer than any test."""
        child = self.start("train", *small(100000, "--checkpoint-steps", "1"), "--out", self.run_folder)
        self.wait_for_checkpoint(child)
        return child

    def wait_for_checkpoint(self, child):
        limit = time.monotonic() + HANG
        while not any(self.checkpoints.glob("step-*.safetensors")):
            self.assertIsNone(child.poll(), "the run ended before its first checkpoint")
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.002)

    def finish(self, *arguments, **options):
        done = run(*map(str, arguments), timeout=HANG, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_fails(self, child, *words):
        _, errors = child.communicate(timeout=HANG)
        self.assertEqual(child.returncode, 1, errors)
        self.assertTrue(errors.startswith("baregrad: "), errors)
        for word in words:
            self.assertIn(word, errors)

    @staticmethod
    def last_checkpoint(folder):
        return sorted((folder / "checkpoints").glob("step-*.safetensors"))[-1].read_bytes()

    @staticmethod
    def snapshot(folder):
        return {str(p): (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                for p in [folder, *folder.rglob("*")] for s in [p.lstat()]}


class ReaderTest(RunsTest):
    def arguments(self, name, folder):
        extra = {"eval": [], "predict": ["test:0"], "graph": ["--dot", str(self.folder / "g.dot")]}[name]
        return [name, str(folder), *extra]

    def test_readers_change_nothing(self):
        self.finish("train", *small(1), "--out", self.run_folder)
        # A leftover of a killed save: only a writer may remove it.
        (self.checkpoints / "step-000000099.safetensors.1.2.tmp").write_bytes(b"half")
        before = self.snapshot(self.run_folder)
        for name in ["eval", "predict", "graph"]:
            self.finish(*self.arguments(name, self.run_folder))
            self.assertEqual(self.snapshot(self.run_folder), before, name)
            done = run(*self.arguments(name, self.folder / "absent"))
            self.assertEqual(done.returncode, 1)
            self.assertFalse((self.folder / "absent").exists())

    def test_readers_of_a_live_run(self):
        """A reader must not remove the temporary file of a running save. A save may remove a file
        that a reader has listed."""
        steps = 12 * (60 if LONG else 8)
        child = self.start("train", *small(steps // 12, "--checkpoint-steps", "1", "--keep", "1"),
                           "--out", self.run_folder)
        self.wait_for_checkpoint(child)
        readers = 0
        while child.poll() is None:
            group = [self.start(*self.arguments(name, self.run_folder)) for name in ["eval", "predict", "graph"]]
            for reader in group:
                _, errors = reader.communicate(timeout=HANG)
                self.assertEqual(reader.returncode, 0, errors)
                readers += 1
        _, errors = child.communicate()
        self.assertEqual(child.returncode, 0, errors)
        self.assertGreater(readers, 5)
        lines = [json.loads(x) for x in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(sum(x["kind"] == "epoch" for x in lines), steps // 12)


class ParallelTest(RunsTest):
    def test_twenty_runs_with_default_names(self):
        children = [self.start("train", *small(2, "--seed", str(seed)), cwd=self.folder)
                    for seed in range(20)]
        named = set()
        for child in children:
            text, errors = child.communicate(timeout=4 * HANG)
            self.assertEqual(child.returncode, 0, errors)
            named.add(re.search(r"^run +(\S+)$", text, re.M)[1])
        expected = {"runs/digits-mlp"} | {f"runs/digits-mlp-{i}" for i in range(2, 21)}
        self.assertEqual(named, expected)
        seeds = set()
        for folder in expected:
            seed = json.loads((self.folder / folder / "config.json").read_text())["seed"]
            seeds.add(int(seed))
            lines = (self.folder / folder / "metrics.jsonl").read_text().splitlines()
            self.assertEqual([json.loads(x)["step"] for x in lines], [12, 24])
        self.assertEqual(seeds, set(range(20)))
        # Two runs at once learn what one learns alone.
        seed = json.loads((self.folder / "runs/digits-mlp-7/config.json").read_text())["seed"]
        self.finish("train", *small(2, "--seed", seed), "--out", self.run_folder)
        self.assertEqual(self.last_checkpoint(self.folder / "runs/digits-mlp-7"),
                         self.last_checkpoint(self.run_folder))

    def test_one_folder_has_one_writer(self):
        child = self.start_long_run()
        for second in [["--resume"], small()]:
            done = run("train", *second, "--out", str(self.run_folder), timeout=HANG)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"process {child.pid} on ", done.stderr)
        self.assertIsNone(child.poll())
        # The kernel releases the lock when the process ends in any way.
        child.kill()
        child.communicate()
        again = self.start("train", "--resume", "--out", self.run_folder)
        time.sleep(0.2)
        self.assertIsNone(again.poll())

    def test_twenty_runs_in_one_folder(self):
        children = [self.start("train", *small(2, "--seed", str(seed)), "--out", self.run_folder)
                    for seed in range(20)]
        ends = [(child.communicate(timeout=4 * HANG)[1], child.returncode) for child in children]
        self.assertEqual([code for _, code in ends].count(0), 1, ends)
        for errors, code in ends:
            if code != 0:
                self.assertRegex(errors, r"in use by process \d+ on |there is a run in")
        lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(x)["step"] for x in lines], [12, 24])


class KillTest(RunsTest):
    # No fsync: the kernel keeps the data of a killed process.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def test_a_folder_without_a_checkpoint_is_no_run(self):
        """Killed before the first checkpoint: both commands handle it."""
        for left in [[], ["lock"], ["lock", "config.json"], ["lock", "config.json", "metrics.jsonl"]]:
            shutil.rmtree(self.run_folder, ignore_errors=True)
            self.run_folder.mkdir()
            for name in left:
                (self.run_folder / name).write_text("")
            (self.run_folder / "config.json.1.2.tmp").write_text("half")
            for reader in [["train", "--resume", "--out"], ["eval"]]:
                done = run(*reader, str(self.run_folder))
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"`baregrad train --out {self.run_folder}`", done.stderr)
            self.finish("train", *small(1), "--out", self.run_folder)
            self.assertFalse((self.run_folder / "config.json.1.2.tmp").exists())

    def test_kill_9_at_any_moment(self):
        """Commands follow the messages; the last file has the bytes of an undisturbed run."""
        epochs = 12 if LONG else 4
        arguments = small(epochs, "--checkpoint-steps", "1", "--workers", "1")
        truth = self.folder / "truth"
        begin = time.monotonic()
        self.finish("train", *arguments, "--out", truth)
        whole = time.monotonic() - begin
        rng = random.Random(5)
        resume = False
        kills = finished = 0
        while kills < (500 if LONG else 20):
            command = ["train", *(["--resume"] if resume else arguments), "--out", self.run_folder]
            child = self.start(*command)
            # A third of the processes dies during start-up, the others up to the end of the run.
            time.sleep(rng.uniform(0, 0.05) if rng.random() < 0.33 else rng.uniform(0, whole))
            child.kill()
            _, errors = child.communicate(timeout=HANG)
            if child.returncode == -signal.SIGKILL:
                kills += 1
                if kills % 10 == 0:
                    done = run("eval", str(self.run_folder), timeout=HANG)
                    self.assertTrue(done.returncode == 0 or "begins a run there" in done.stderr, done.stderr)
            elif child.returncode == 0:
                finished += 1
                self.assertEqual(self.last_checkpoint(self.run_folder), self.last_checkpoint(truth))
                shutil.rmtree(self.run_folder)
                resume = False
            elif resume:
                self.assertIn(f"`baregrad train --out {self.run_folder}`", errors)
                resume = False
                continue
            else:
                self.assertIn(f"`baregrad train --resume --out {self.run_folder}`", errors)
                resume = True
                continue
            # Without a message, either command may be the right one.
            resume = child.returncode != 0 and rng.random() < 0.5
        for _ in range(2):
            done = run("train", *(["--resume"] if resume else arguments), "--out", str(self.run_folder),
                       timeout=4 * HANG)
            if done.returncode == 0:
                break
            resume = not resume
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.last_checkpoint(self.run_folder), self.last_checkpoint(truth))
        left = [p.name for p in self.run_folder.rglob("*.tmp")]
        self.assertEqual(left, [])
        steps = [json.loads(x)["step"] for x in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, sorted([12 * i for i in range(1, epochs + 1)] + [100] * (12 * epochs >= 100)))
        print(f"\n{kills} kills, {finished} runs finished between them, all to the same bytes")


    def test_restarts_with_one_process_number(self):
        """As in containers: every process is number 1, and several start within a second."""
        alone = ["unshare", "-p", "-f", "--kill-child"]
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs process numbers of its own; names of files are tested everywhere")
        for i in range(8):
            command = ["--resume"] if i > 0 else small(100000, "--checkpoint-steps", "1")
            child = subprocess.Popen([*alone, BIN, "train", *command, "--out", str(self.run_folder)],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, child)
            self.wait_for_checkpoint(child)
            events = self.run_folder / "events"
            limit = time.monotonic() + HANG
            while len(list(events.iterdir()) if events.exists() else []) <= i:
                self.assertIsNone(child.poll(), child.stderr.read() if child.poll() is not None else "")
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.002)
            child.kill()  # and a little later the process inside
            child.communicate(timeout=HANG)
            with (self.run_folder / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)


class DiskTest(RunsTest):
    """The disk fails. Saved files stay, the error is named, and the run resumes to the same bits."""

    def truth(self):
        truth = self.folder / "truth"
        self.finish("train", *small(3), "--out", truth)
        return self.last_checkpoint(truth)

    def test_limit_on_the_size_of_files(self):
        truth = self.truth()

        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        for size in [0, 100, 1000, 120_000, 200_000]:
            shutil.rmtree(self.run_folder, ignore_errors=True)
            child = self.start("train", *small(3), "--out", self.run_folder, preexec_fn=limit(size))
            self.assert_fails(child, "File too large")
            left = [p.name for p in self.run_folder.rglob("*.tmp")]
            self.assertEqual(left, [])
            started = any(self.checkpoints.glob("step-*.safetensors"))
            self.assertEqual(started, size >= 120_000)
            self.finish("train", *(["--resume"] if started else small(3)), "--out", self.run_folder)
            self.assertEqual(self.last_checkpoint(self.run_folder), truth)

    def test_full_disk(self):
        truth = self.truth()
        disk = self.folder / "disk"
        disk.mkdir()
        can_mount = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(disk)],
                                   capture_output=True, check=False).returncode == 0
        if not can_mount:
            self.skipTest("needs to mount a small disk; the limit on file sizes is tested everywhere")
        script = f"""
            set -eu
            mount -t tmpfs -o size=$1 tmpfs {disk}
            code=0
            {BIN} train {' '.join(small(3))} --out {disk}/run > {self.folder}/out 2> {self.folder}/errors || code=$?
            mount -o remount,size=10m {disk}
            resume=
            ls {disk}/run/checkpoints/step-* > /dev/null 2>&1 && resume=--resume
            {BIN} train ${{resume:-{' '.join(small(3))}}} --out {disk}/run > /dev/null
            cp -r {disk}/run {self.run_folder}
            exit $code
        """
        for size in ["8k", "64k", "180k", "500k"]:
            shutil.rmtree(self.run_folder, ignore_errors=True)
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", size], capture_output=True,
                                  text=True, timeout=HANG, check=False)
            errors = (self.folder / "errors").read_text()
            self.assertEqual(done.returncode, 1, (size, done.stderr, errors))
            self.assertIn("No space left on device", errors)
            self.assertEqual(self.last_checkpoint(self.run_folder), truth)

    def test_read_only_folder(self):
        self.finish("train", *small(1), "--out", self.run_folder)
        shared = self.folder / "shared"
        shared.mkdir()
        # Root may write anywhere, so the command runs as another user.
        somebody = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
        self.folder.chmod(0o755)
        program = self.folder / "baregrad"
        shutil.copy(BIN, program)
        for path in [*self.run_folder.rglob("*"), self.run_folder, shared]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            before = self.snapshot(self.run_folder)
            for command, code in [
                (["train", *small(1), "--out", str(shared / "run")], 1),
                (["train", "--resume", "--out", str(self.run_folder)], 1),
                (["train", *small(1), "--out", str(self.run_folder)], 1),
                (["eval", str(self.run_folder)], 0),
                (["predict", str(self.run_folder), "test:1"], 0),
            ]:
                done = subprocess.run([program, *command], capture_output=True, text=True, timeout=HANG,
                                      check=False, **somebody)
                self.assertEqual(done.returncode, code, (command, done.stderr))
                if code != 0:
                    self.assertRegex(done.stderr, "Permission denied|there is a run in")
            self.assertEqual(self.snapshot(self.run_folder), before)
        finally:
            for path in [self.run_folder, *self.run_folder.rglob("*"), shared]:
                path.chmod(0o755)

    def remove(self, folder):
        limit = time.monotonic() + HANG
        while folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.assertLess(time.monotonic(), limit)

    def test_folder_removed_under_a_run(self):
        child = self.start_long_run()
        self.remove(self.run_folder)
        self.assert_fails(child, str(self.run_folder))
        self.assertFalse(self.run_folder.exists(), "it is not made again")
        child = self.start_long_run()
        self.remove(self.checkpoints)
        self.assert_fails(child, str(self.checkpoints))

    def test_folder_replaced_under_a_run(self):
        child = self.start_long_run()
        self.run_folder.rename(self.folder / "away")
        self.finish("train", *small(2), "--out", self.run_folder)
        done = self.snapshot(self.run_folder)
        self.assert_fails(child, str(self.run_folder))
        self.assertEqual(self.snapshot(self.run_folder), done, "another run's folder is left alone")
        self.start("train", "--resume", "--out", self.folder / "away")

    def test_lock_removed_under_a_run(self):
        child = self.start_long_run()
        (self.run_folder / "lock").unlink()
        limit = time.monotonic() + HANG
        while not (self.run_folder / "lock").exists():
            self.assertIsNone(child.poll())
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)
        time.sleep(0.1)
        done = run("train", "--resume", "--out", str(self.run_folder), timeout=HANG)
        self.assertIn(f"process {child.pid} on ", done.stderr)


if __name__ == "__main__":
    unittest.main()
