"""`baregrad lab` as a user runs it: names, folders, interruptions, and missing programs.

`energy` is the shortest experiment. No test asserts a time or a measured number.
"""

import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_cli import BIN, ROOT, run  # noqa: E402

EXPERIMENTS = ["ceilings", "ladder", "flags", "cache", "branches", "wall", "scaling", "roofline", "pages", "training",
               "jitter", "energy"]
NO_PYTHON = {"BAREGRAD_LAB_PYTHON": "/nonexistent/python"}


class LabTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"

    def lab(self, *arguments, **options):
        """Runs experiments; returns its messages. Results are files, so standard output stays
        empty."""
        done = run("lab", *arguments, "--out", str(self.out), "--quick", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.splitlines()

    def fails(self, *arguments, status=1, **options):
        done = run("lab", *arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def records(self, name):
        return [json.loads(line) for line in (self.out / f"{name}.jsonl").read_text().splitlines()]


class ArgumentsTest(LabTest):
    def test_the_list_names_every_experiment_with_its_question(self):
        done = run("lab", "list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], EXPERIMENTS)
        for line in lines:
            self.assertRegex(line, r"^\w+ +[A-Z].*\?$")

    def test_the_list_is_that_of_the_pages(self):
        source = (ROOT / "python/baregrad/lab/records.py").read_text()
        order = re.search(r"ORDER = \((.*?)\)", source, re.DOTALL)[1]
        self.assertEqual(re.findall(r'"(\w+)"', order), EXPERIMENTS)

    def test_help_says_how(self):
        done = run("lab", "--help")
        self.assertEqual(done.returncode, 0)
        for word in ["NAME", "--out", "--quick", "--threads", "--seed", "--no-report", "all", "list"]:
            self.assertIn(word, done.stdout)

    def test_wrong_names_are_refused_before_anything_is_done(self):
        said = self.fails("energy", "alchemy", "--out", str(self.out))
        self.assertTrue(said.startswith("baregrad: lab: there is no experiment 'alchemy': there are ceilings, "), said)
        self.assertFalse(self.out.exists())

    def test_a_folder_is_needed(self):
        self.assertEqual(self.fails("energy"), "baregrad: lab: where to? --out DIR names the folder of the results\n")

    def test_wrong_numbers_are_refused(self):
        self.fails("energy", "--out", str(self.out), "--threads", "0", status=2)
        self.fails("energy", "--out", str(self.out), "--seed", "x", status=2)
        self.fails("--out", str(self.out), status=2)


class RunTest(LabTest):
    def test_a_finished_experiment_is_not_done_again(self):
        self.lab("energy", "--no-report")
        before = (self.out / "energy.jsonl").read_bytes()
        records = self.records("energy")
        self.assertEqual(records[0]["kind"], "header")
        self.assertEqual(records[0]["command"], "baregrad lab energy --quick")
        self.assertEqual(records[-1]["kind"], "end")
        self.assertEqual(self.lab("energy", "--no-report"), ["[1/1] energy: there from before"])
        self.assertEqual((self.out / "energy.jsonl").read_bytes(), before)

    def test_without_a_report_there_are_records_alone(self):
        said = self.lab("energy", "--no-report")
        self.assertFalse(any("report" in line for line in said), said)
        self.assertEqual([path.name for path in self.out.glob("*.html")], [])

    def test_what_was_cut_off_is_done_again(self):
        self.lab("energy", "--no-report")
        path = self.out / "energy.jsonl"
        whole = self.records("energy")
        path.write_bytes(path.read_bytes()[:-30])
        self.lab("energy", "--no-report")
        again = self.records("energy")
        self.assertEqual([record["kind"] for record in again][-1], "end")
        self.assertEqual([record["key"] for record in again if record["kind"] == "part"],
                         [record["key"] for record in whole if record["kind"] == "part"])

    def other_build(self):
        """Makes the records look like those of another build."""
        path = self.out / "energy.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        header = {**json.loads(lines[0]), "program": "0123456789abcdef"}
        path.write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
        return path

    def test_what_another_build_began_is_begun_afresh(self):
        self.lab("energy", "--no-report")
        path = self.other_build()
        how = f"measured by another build of baregrad; remove '{path}' to do it again"
        self.assertEqual(self.lab("energy", "--no-report"), [f"[1/1] energy: there from before, {how}"])
        path.write_bytes(path.read_bytes()[:-5])  # the end of the file is missing
        said = self.lab("energy", "--no-report")
        self.assertIn(f"energy: another build of baregrad began '{path}': begun afresh", said)
        self.assertNotEqual(self.records("energy")[0]["program"], "0123456789abcdef")
        self.assertEqual(self.lab("energy", "--no-report"), ["[1/1] energy: there from before"])

    def test_other_settings_are_refused(self):
        self.lab("energy", "--no-report")
        said = self.fails("energy", "--out", str(self.out), "--quick", "--seed", "7")
        self.assertEqual(said.count("\n"), 1)
        self.assertIn("holds a run with another seed (1, now 7): choose another --out, or remove it", said)

    def test_a_folder_that_cannot_be_made(self):
        (self.folder / "file").write_text("")
        said = self.fails("energy", "--out", str(self.folder / "file" / "out"))
        self.assertTrue(said.startswith("baregrad: lab: "), said)
        self.assertEqual(said.count("\n"), 1)


class WithoutTest(LabTest):
    def test_no_python(self):
        said = self.lab("energy", env=NO_PYTHON)
        left_out = [line for line in said if line.startswith("report: ")]
        why = "cannot import baregrad (/nonexistent/python: No such file or directory)"
        self.assertEqual(left_out, [f"report: left out: /nonexistent/python {why}; `make lab` sets one up, "
                                    "$BAREGRAD_LAB_PYTHON names another"])

    def test_a_python_that_cannot_draw(self):
        script = self.folder / "python"
        script.write_text("#!/bin/sh\ncase $1 in -c) exit 0;; esac\necho 'lab: no matplotlib' >&2\nexit 1\n")
        script.chmod(0o755)
        said = self.lab("energy", env={"BAREGRAD_LAB_PYTHON": str(script)})
        self.assertEqual(said[-1], f"report: left out: `{script} -m baregrad.lab report {self.out}` failed: "
                                   "lab: no matplotlib")

    def test_a_home_that_cannot_be_written(self):
        home = self.folder / "home"
        home.mkdir()
        home.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(home.chmod, stat.S_IRWXU)
        self.lab("energy", "--no-report", env={**NO_PYTHON, "HOME": str(home)})
        self.assertEqual(list(home.iterdir()), [])

    def test_no_home_and_one_cpu(self):
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run(
            ["env", "-u", "HOME", "taskset", "-c", str(cpu), BIN, "lab", "energy", "--quick", "--no-report", "--out",
             str(self.out)],
            check=False, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.records("energy")[0]["threads"], 1)


class StopTest(LabTest):
    def stop(self, number):
        """Interrupts a report whose Python sleeps; returns the status, the messages, and the
        sleeper's number."""
        script, note = self.folder / "python", self.folder / "sleeper"
        script.write_text(f"#!/bin/sh\ncase $1 in -c) exit 0;; esac\nsleep 600 &\necho $! > {note}.new\n"
                          f"mv {note}.new {note}\nwait\n")
        script.chmod(0o755)
        process = subprocess.Popen([BIN, "lab", "energy", "--quick", "--out", str(self.out)], text=True,
                                   stderr=subprocess.PIPE, env={**os.environ, "BAREGRAD_LAB_PYTHON": str(script)})
        deadline = time.monotonic() + 60
        while not note.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        return process.returncode, said.splitlines(), int(note.read_text())

    def wait_until_gone(self, process):
        """It has another parent by now, which may take a while to notice its end."""
        deadline = time.monotonic() + 30
        status = pathlib.Path(f"/proc/{process}/stat")
        while status.exists() and status.read_text().rpartition(")")[2].split()[0] not in "ZX":
            self.assertLess(time.monotonic(), deadline, f"process {process} goes on")
            time.sleep(0.01)

    def test_ctrl_c_ends_children_too_and_says_how_to_go_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                status, said, sleeper = self.stop(number)
                self.assertEqual(status, 128 + number)
                self.assertEqual(said[-1], "lab: stopped; the same command goes on with the part that was interrupted")
                self.wait_until_gone(sleeper)
                (self.folder / "sleeper").unlink()
        self.assertEqual(self.lab("energy", "--no-report"), ["[1/1] energy: there from before"])

    def test_ctrl_c_leaves_no_scratch_folder(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        process = subprocess.Popen([BIN, "lab", "flags", "--quick", "--no-report", "--out", str(self.out)],
                                   stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(scratch)})
        deadline = time.monotonic() + 60
        while not list(scratch.glob("*/*.so")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertNotEqual(list(scratch.iterdir()), [])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGINT)
        self.assertEqual([str(path) for path in scratch.rglob("*")], [])


if __name__ == "__main__":
    unittest.main()
