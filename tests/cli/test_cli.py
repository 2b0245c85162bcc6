"""Tests of the `baregrad` command, run as a user runs it. BAREGRAD_BIN names the program.

Nothing here asserts a time; that the numbers hang together is what can be tested.
"""

import json
import os
import pathlib
import pty
import re
import stat
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("BAREGRAD_BIN", str(ROOT / "build" / "baregrad"))
BENCHES = ["elementwise", "reduce", "overhead", "alloc", "parallel"]
RESULT_KEYS = [
    "bench",
    "row",
    "dtype",
    "shape",
    "implementation",
    "threads",
    "isa",
    "repeats",
    "median_ns",
    "p10_ns",
    "p90_ns",
    "ns_per_element",
    "gb_per_s",
    "stream_gb_per_s",
    "percent_of_stream",
    "ratio",
]


def run(*arguments, env=None, **options):
    """Runs the command; stdout and stderr are text."""
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [BIN, *arguments],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        **options,
    )


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "out.json"

    def fails(self, status, *arguments, **options):
        """The command says on stderr why it fails, and nothing on stdout. Returns what it said."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("baregrad"), done.stderr)
        return done.stderr

    def bench(self, *arguments):
        """Runs a benchmark; its table and its JSON objects."""
        done = run("bench", *arguments, "--quick", "--json", str(self.file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout, [json.loads(line) for line in self.file.read_text().splitlines()]


class ArgumentsTest(CliTest):
    def test_version_is_the_projects(self):
        stated = re.search(r"project\(baregrad VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
        done = run("--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"baregrad {stated[1]}\n"))

    def test_help_names_commands_and_benchmarks(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("Usage: baregrad [OPTIONS]", done.stdout)
        for word in ["info", "bench", "BAREGRAD_ISA"]:
            self.assertIn(word, done.stdout)
        done = run("bench", "--help")
        self.assertEqual(done.returncode, 0)
        for word in [*BENCHES, "--sizes", "--threads", "--seconds", "--quick", "--json"]:
            self.assertIn(word, done.stdout)

    def test_wrong_arguments(self):
        for arguments, word in [
            ([], "subcommand"),
            (["fly"], "subcommand"),
            (["info", "now"], "now"),
            (["bench"], "names"),
            (["bench", "alloc", "--threads", "0"], "--threads"),
            (["bench", "alloc", "--threads", "1025"], "--threads"),
            (["bench", "alloc", "--sizes", "0"], "'0' is not a whole number"),
            (["bench", "alloc", "--sizes", "8,-1"], "'-1' is not a whole number"),
            (["bench", "alloc", "--sizes", "9223372036854775808"], "is not a whole number"),
            (["bench", "alloc", "--seconds", "0"], "--seconds"),
            (["bench", "alloc", "--seconds", "1", "--quick"], "excludes"),
        ]:
            with self.subTest(arguments):
                self.assertIn(word, self.fails(2, *arguments))

    def test_unknown_benchmark_lists_those_there_are(self):
        said = self.fails(2, "bench", "alloc", "matmull")
        self.assertIn("'matmull'", said)
        for name in BENCHES:
            self.assertIn(name, said)

    def test_environment_that_names_nothing(self):
        self.assertIn("BAREGRAD_ISA", self.fails(1, "info", env={"BAREGRAD_ISA": "mmx"}))
        self.assertIn("BAREGRAD_ISA", self.fails(1, "bench", "alloc", env={"BAREGRAD_ISA": "mmx"}))
        self.assertIn("BAREGRAD_ALLOC", self.fails(1, "info", env={"BAREGRAD_ALLOC": "heap"}))


class InfoTest(CliTest):
    def info(self, **env):
        done = run("info", "--json", str(self.file), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        lines = self.file.read_text().splitlines()
        self.assertEqual(len(lines), 1)
        return done.stdout, json.loads(lines[0])

    def test_says_everything_with_units(self):
        text, data = self.info(BAREGRAD_NUM_THREADS="2", BAREGRAD_ALLOC="system")
        self.assertEqual((data["threads"], data["allocator"]), (2, "system"))
        self.assertEqual(data["usable_cpus"], len(os.sched_getaffinity(0)))
        self.assertIn(data["isa"], data["isas"])
        self.assertEqual(data["isas"][0], "scalar")
        self.assertEqual(
            [(f["dtype"], f["threads"]) for f in data["fma"]],
            [(dtype, threads) for dtype in ("float32", "float64") for threads in (1, 2)],
        )
        self.assertEqual(
            {(s["loop"], s["level"], s["threads"]) for s in data["streams"]},
            {
                (loop, level, threads)
                for loop in ("read", "copy", "add")
                for level in ("L1", "L2", "L3", "memory")
                for threads in (1, 2)
            },
        )
        self.assertTrue(all(f["gflop_per_s"] > 0 for f in data["fma"]))
        self.assertTrue(all(s["gb_per_s"] > 0 for s in data["streams"]))
        for word in [data["cpu"], data["isa"], "2 threads", "system", "GCC", "KiB", "MiB", "GiB"]:
            self.assertIn(word, text)
        self.assertEqual(len(re.findall(r"^  multiply-add.*GFLOP/s.*GFLOP/s$", text, re.M)), 2)
        self.assertEqual(len(re.findall(r"^  (?:read|copy|add) .*GB/s.*GB/s$", text, re.M)), 12)

    def test_one_thread_is_measured_once(self):
        _, data = self.info(BAREGRAD_NUM_THREADS="1")
        self.assertEqual({s["threads"] for s in data["streams"] + data["fma"]}, {1})

    def test_every_isa_can_be_forced(self):
        _, data = self.info()
        for isa in [*data["isas"], "reference"]:
            with self.subTest(isa):
                text, forced = self.info(BAREGRAD_ISA=isa, BAREGRAD_NUM_THREADS="1")
                self.assertEqual(forced["isa"], isa)
                self.assertRegex(text, rf"ISA in use +{isa} ")


class BenchTest(CliTest):
    def check_results(self, results, names):
        """Every object is complete and its numbers follow from each other."""
        self.assertEqual({r["bench"] for r in results}, set(names))
        ours = None
        for r in results:
            self.assertEqual(list(r), RESULT_KEYS)
            self.assertGreater(r["repeats"], 0)
            self.assertGreater(r["p10_ns"], 0)
            self.assertLessEqual(r["p10_ns"], r["median_ns"])
            self.assertLessEqual(r["median_ns"], r["p90_ns"])
            if r["gb_per_s"] is not None:
                share = 100 * r["gb_per_s"] / r["stream_gb_per_s"]
                self.assertAlmostEqual(r["percent_of_stream"] / share, 1)
            if r["implementation"] == "baregrad":
                ours = r
                continue
            # A peer follows ours and did the same work.
            for key in ["row", "dtype", "shape", "threads", "isa"]:
                self.assertEqual(r[key], ours[key])
            self.assertAlmostEqual(r["ratio"] / (r["median_ns"] / ours["median_ns"]), 1)
            self.assertLessEqual(ours["ratio"], r["ratio"])

    def test_elementwise(self):
        text, results = self.bench("elementwise", "--sizes", "1024", "--threads", "2")
        self.check_results(results, ["elementwise"])
        ours = [r for r in results if r["implementation"] == "baregrad"]
        self.assertEqual(
            [r["row"] for r in ours],
            ["add", "multiply", "relu", "exp", "log", "tanh", "sigmoid", "gelu", "erf"]
            + ["add [N,1] + [1,N]", "add x.T + y", "add x[:, ::2] + y"],
        )
        self.assertEqual({r["threads"] for r in results}, {2})
        self.assertEqual(ours[0]["shape"], "[1024]")
        self.assertEqual(ours[-1]["shape"], "[32,32]")
        add = ours[0]
        self.assertAlmostEqual(add["ns_per_element"] * 1024 / add["median_ns"], 1)
        self.assertAlmostEqual(add["gb_per_s"] * add["median_ns"] / (12 * 1024), 1)
        for title in ["median", "p10", "p90", "ns/element", "GB/s", "memory-bound", "ratio"]:
            self.assertIn(title, text)

    def test_large_outputs_are_fresh_memory(self):
        _, results = self.bench("elementwise", "--sizes", "8000000", "--threads", "1")
        self.check_results(results, ["elementwise"])
        self.assertEqual(
            {r["row"] for r in results},
            {f"{op}, fresh memory" for op in ("add", "multiply", "relu")},
        )

    def test_reduce(self):
        _, results = self.bench("reduce", "--sizes", "48", "--threads", "1")
        self.check_results(results, ["reduce"])
        self.assertEqual(
            [r["row"] for r in results if r["implementation"] == "baregrad"],
            [f"{op}, {over}" for op in ("sum", "max", "mean", "var") for over in ("all", "axis 0", "axis 1")]
            + ["softmax"],
        )

    def test_overhead_and_alloc_in_one_run(self):
        text, results = self.bench("overhead", "alloc", "--sizes", "4096")
        self.check_results(results, ["overhead", "alloc"])
        self.assertLess(text.index("overhead:"), text.index("alloc:"))
        rows = {r["row"] for r in results}
        self.assertLessEqual({"add", "add scalar", "relu", "sum", "copy of a handle"}, rows)
        self.assertLessEqual({"pool", "arena", "system"}, rows)
        peers = {r["implementation"] for r in results if r["bench"] == "alloc"}
        self.assertEqual(peers, {"baregrad", "malloc", "mmap"})

    def test_parallel(self):
        _, results = self.bench("parallel", "--sizes", "2,3")
        self.check_results(results, ["parallel"])
        self.assertEqual({r["threads"] for r in results}, {2, 3})
        self.assertEqual({r["implementation"] for r in results}, {"baregrad", "OpenMP"})
        self.assertIn("thread counts", self.fails(1, "bench", "parallel", "--sizes", "5000"))

    def test_more_than_there_is_memory_for(self):
        said = self.fails(1, "bench", "elementwise", "--sizes", str(10**15), "--json", str(self.file))
        self.assertIn("memory", said)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.fails(1, "bench", "reduce", "--sizes", str(2**62))


class JsonFileTest(CliTest):
    QUICK = ("bench", "alloc", "--quick", "--sizes", "64", "--json")

    def test_refused_before_anything_is_measured(self):
        missing = self.folder / "no" / "such.json"
        for command in [["info"], ["bench", "elementwise"]]:
            self.assertIn(f"'{missing}'", self.fails(1, *command, "--json", str(missing)))
            self.assertIn("directory", self.fails(1, *command, "--json", str(self.folder)))

    def test_replaces_a_file_and_keeps_its_mode(self):
        self.file.write_text("before")
        self.file.chmod(0o640)
        self.assertEqual(run(*self.QUICK, str(self.file)).returncode, 0)
        self.assertTrue(self.file.read_text().startswith('{"bench":"alloc"'))
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o640)
        self.assertEqual(list(self.folder.iterdir()), [self.file])

    def test_a_failed_run_leaves_the_file_alone(self):
        self.file.write_text("before")
        self.fails(1, "bench", "alloc", "--sizes", str(2**60), "--json", str(self.file))
        self.assertEqual(self.file.read_text(), "before")
        self.assertEqual(list(self.folder.iterdir()), [self.file])

    def test_a_link_stays_a_link(self):
        link = self.folder / "link.json"
        link.symlink_to(self.file)
        for _ in range(2):  # first to nothing, then to a file
            self.assertEqual(run(*self.QUICK, str(link)).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertTrue(self.file.read_text().startswith("{"))

    def test_a_name_without_a_folder(self):
        self.assertEqual(run(*self.QUICK, "here.json", cwd=self.folder).returncode, 0)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["here.json"])

    def test_a_pipe_is_written_and_not_replaced(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        got = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
        reader.start()
        done = run(*self.QUICK, str(fifo))
        reader.join()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(got[0].startswith("{"))
        self.assertTrue(stat.S_ISFIFO(fifo.stat().st_mode))


class TerminalTest(CliTest):
    def test_a_reader_that_went_away_is_no_error(self):
        for arguments in [["--help"], ["--version"], ["info"], JsonFileTest.QUICK[:-1]]:
            with self.subTest(arguments):
                read_end, write_end = os.pipe()
                os.close(read_end)
                done = run(*arguments, stdout=write_end)
                os.close(write_end)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_json_file_is_written_all_the_same(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = run(*JsonFileTest.QUICK, str(self.file), stdout=write_end)
        os.close(write_end)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.file.read_text().splitlines()), 9)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = run("--version", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_progress_is_for_terminals(self):
        leader, follower = pty.openpty()
        done = subprocess.run(
            [BIN, *JsonFileTest.QUICK[:-1]],
            check=False,
            stdout=subprocess.PIPE,
            stderr=follower,
            text=True,
            timeout=120,
        )
        os.close(follower)
        shown = os.read(leader, 65536).decode()
        os.close(leader)
        self.assertEqual(done.returncode, 0)
        self.assertIn("alloc: pool", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), "the last line is wiped")
        self.assertNotIn("\x1b", done.stdout)


if __name__ == "__main__":
    unittest.main()
