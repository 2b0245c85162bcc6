"""Tests of the `baregrad` command, run as a user runs it. BAREGRAD_BIN names the program.

No test asserts a time; they check that the numbers are consistent.
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
BENCHES = ["elementwise", "reduce", "overhead", "alloc", "parallel", "matmul", "autograd", "train", "conv",
           "optim", "norm"]
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
    "gflop_per_s",
    "fma_gflop_per_s",
    "percent_of_fma",
    "max_error",
    "ratio",
]


def run(*arguments, env=None, **options):
    """Runs the command; stdout and stderr are text."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("timeout", 120)
    return subprocess.run(
        [BIN, *arguments],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
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
        """Checks that the command fails with a message on stderr and nothing on stdout. Returns the
        message."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("baregrad"), done.stderr)
        return done.stderr

    def bench(self, *arguments, **options):
        """Runs a benchmark; returns its table and its JSON objects."""
        done = run("bench", *arguments, "--quick", "--json", str(self.file), **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout, [json.loads(line) for line in self.file.read_text().splitlines()]

    def check_results(self, results, names):
        """Every object is complete and its numbers are consistent."""
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
        options = ["--sizes", "--threads", "--seconds", "--quick", "--json"]
        matmul = ["--dtype", "--shapes", "--peers", "--check", "openblas,blis,dnnl,mkl"]
        for word in [*BENCHES, *options, *matmul]:
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
            (["bench", "alloc", "--peers", "blis"], "alloc has no --peers"),
            (["bench", "matmul", "reduce", "--dtype", "f64"], "reduce has no --dtype"),
            (["bench", "overhead", "--shapes", "1x2x3"], "overhead has no --shapes"),
            (["bench", "elementwise", "--check", "some.json"], "elementwise has no --check"),
            (["bench", "matmul", "--peers", "openblas,atlas"], "atlas"),
            (["bench", "matmul", "--dtype", "int8"], "'int8' is none of f32, f64, f16, bf16"),
            (["bench", "matmul", "--shapes", "1x2x3", "--sizes", "4"], "excludes"),
            (["bench", "matmul", "--shapes", "2x3"], "MxNxK"),
            (["bench", "matmul", "--shapes", "2x3x4x5x6"], "MxNxK"),
            (["bench", "matmul", "--shapes", "2x3x4,2x0x4"], "'0' is not a whole number"),
            (["bench", "matmul", "--shapes", "2x-3x4"], "'-3' is not a whole number"),
            (["bench", "matmul", "--shapes", "2x3x4x"], "'' is not a whole number"),
            (["bench", "matmul", "--shapes", "2x3x1099511627776"], "1 to 2147483647"),
            (["bench", "matmul", "--check", ""], "no name"),
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
                for loop in ("read", "copy", "add", "update")
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
        self.assertLessEqual({"empty region", "5 us of work after 200 us"}, {r["row"] for r in results})
        self.assertIn("thread counts", self.fails(1, "bench", "parallel", "--sizes", "5000"))

    def test_more_than_there_is_memory_for(self):
        said = self.fails(1, "bench", "elementwise", "--sizes", str(10**15), "--json", str(self.file))
        self.assertIn("memory", said)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.fails(1, "bench", "reduce", "--sizes", str(2**62))
        for name in BENCHES:
            with self.subTest(name):
                self.fails(1, "bench", name, "--sizes", str(2**63 - 1))


class LibtorchPeerTest(CliTest):
    """A fake libtorch: returns the right gradients, or wrong ones on request."""

    PEER = r"""
    #include <cstdint>
    #include <cstdlib>
    #include "bench/libtorch/peer.h"
    namespace {
    const char* version() { return "0.0.stand-in"; }
    void set_threads(int) {}
    void spend(int64_t calls) {
      for (volatile int64_t i = 0; i < 50 * calls; i = i + 1) {
      }
    }
    void add(int64_t, int64_t calls) { spend(calls); }
    void allocate(int64_t, int, int64_t calls) { spend(calls); }
    void ten_ops(float a, float b, float* grads, int64_t calls) {
      spend(calls);
      const auto slope = [](double x, double y, bool first) {
        const auto value = [](double p, double q) {
          const double e = (p + q) * (p * q), f = __builtin_tanh(e);
          const double k = (__builtin_exp((f + p) * q) - (p + q)) * f;
          return k > 0 ? k : 0;
        };
        const double h = 1e-5;
        return (value(x + (first ? h : 0), y + (first ? 0 : h)) -
                value(x - (first ? h : 0), y - (first ? 0 : h))) / (2 * h);
      };
      const float off = std::getenv("TEST_PEER_WRONG") != nullptr ? 0.1F : 0.0F;
      grads[0] = static_cast<float>(slope(a, b, true)) + off;
      grads[1] = static_cast<float>(slope(a, b, false));
    }
    void chain(int64_t, int64_t calls) { spend(calls); }
    void step(const int64_t*, int, int64_t, int64_t calls) { spend(calls); }
    const BaregradLibtorchPeer peer{version, set_threads, add, allocate, ten_ops, chain, step};
    }
    const BaregradLibtorchPeer* baregrad_libtorch_peer(void) { return &peer; }
    """

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        peer = pathlib.Path(folder.name) / "libpeer.so"
        source = peer.with_suffix(".cpp")
        source.write_text(cls.PEER)
        root = pathlib.Path(__file__).resolve().parents[2]
        compiler = os.environ.get("CXX", "g++")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", f"-I{root}", "-o", peer, source], check=True)
        cls.env = {"BAREGRAD_LIBTORCH_PEER": str(peer)}

    def test_it_takes_part(self):
        text, results = self.bench("overhead", "alloc", "autograd", "--sizes", "100", env=self.env)
        self.assertIn("libtorch 0.0.stand-in", text)
        rows = {(r["bench"], r["row"]) for r in results if r["implementation"] == "libtorch"}
        self.assertLessEqual({("overhead", "add"), ("alloc", "pool"), ("autograd", "chain of adds"),
                              ("autograd", "ten numbers, forward + backward"),
                              ("autograd", "training step, SGD")}, rows)
        for r in results:
            if r["implementation"] == "libtorch":
                self.assertGreater(r["ratio"], 0)

    def test_wrong_gradients_are_not_timed(self):
        env = {**self.env, "TEST_PEER_WRONG": "1"}
        said = self.fails(1, "bench", "autograd", "--quick", "--sizes", "10", env=env)
        self.assertIn("ten ops of libtorch", said)

    def test_absent(self):
        text, results = self.bench("overhead", "--sizes", "4", env={"BAREGRAD_LIBTORCH_PEER": ""})
        self.assertIn("libtorch is no peer here", text)
        self.assertNotIn("libtorch", {r["implementation"] for r in results})

    def test_a_file_that_is_no_peer(self):
        for file, why in (("/nowhere/peer.so", "cannot open shared object"), ("libm.so.6", "is no libtorch peer")):
            with self.subTest(file):
                said = self.fails(1, "bench", "overhead", "--quick", env={"BAREGRAD_LIBTORCH_PEER": file})
                self.assertIn("BAREGRAD_LIBTORCH_PEER", said)
                self.assertIn(why, said)


class MatmulTest(CliTest):
    """A fake peer library, so that none needs to be installed."""

    PEER = r"""
    #include <cstdlib>
    #include <cstring>
    namespace {
    int threads = 0;
    // Column-major, no transposes; an environment variable makes it wrong.
    template <class T>
    void multiply(int m, int n, int k, const T* a, int lda, const T* b, int ldb, T* c, int ldc) {
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < m; ++i) {
          T sum = 0;
          for (int l = 0; l < k; ++l) sum += a[i + l * lda] * b[l + j * ldb];
          c[i + j * ldc] = sum;
        }
      }
      if (std::getenv("TEST_PEER_WRONG") != nullptr) c[m - 1 + (n - 1) * ldc] += T(0.5);
    }
    }  // namespace
    extern "C" {
    void MKL_Set_Num_Threads(int n) { threads = n < 64 ? n : 64; }
    int MKL_Get_Max_Threads() { return threads; }
    void MKL_Get_Version_String(char* text, int size) { std::strncpy(text, "test peer 1.0", size); }
    #define GEMM(name, T)                                                                         \
      void name(const char*, const char*, const int* m, const int* n, const int* k, const T*,     \
                const T* a, const int* lda, const T* b, const int* ldb, const T*, T* c,           \
                const int* ldc) {                                                                 \
        multiply(*m, *n, *k, a, *lda, b, *ldb, c, *ldc);                                          \
      }
    GEMM(sgemm_, float)
    GEMM(dgemm_, double)
    }
    """
    BOUNDS = {"f32": 1e-5, "f64": 1e-14, "f16": 2e-3, "bf16": 2e-2}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.peer = pathlib.Path(folder.name) / "libpeer.so"
        source = cls.peer.with_suffix(".cpp")
        source.write_text(cls.PEER)
        compiler = os.environ.get("CXX", "g++")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", cls.peer, source], check=True)
        cls.env = {"BAREGRAD_MKL": str(cls.peer)}
        cls.missing = {"BAREGRAD_MKL": "/nowhere/libmkl_rt.so"}

    def matmul(self, *arguments, **options):
        return self.bench("matmul", "--peers", "mkl", *arguments, env=self.env, **options)

    def check(self, rows, *arguments, **top):
        """Runs --check with a file of these rows."""
        targets = self.folder / "targets.json"
        targets.write_text(json.dumps({"peers": ["mkl"], "rows": rows, **top}))
        command = ["bench", "matmul", "--quick", "--check", str(targets), *arguments]
        return run(*command, env=self.env)

    def test_numbers_hang_together(self):
        for dtype, name in [("f32", "float32"), ("f64", "float64"), ("f16", "float16"), ("bf16", "bfloat16")]:
            with self.subTest(dtype):
                text, results = self.matmul("--dtype", dtype, "--shapes", "5x7x9,33x1x65", "--threads", "1")
                self.check_results(results, ["matmul"])
                peer = "mkl" if dtype in ("f32", "f64") else "mkl via f32"
                self.assertEqual(
                    [(r["shape"], r["implementation"], r["dtype"], r["threads"]) for r in results],
                    [(s, i, name, 1) for s in ("5x7x9", "33x1x65") for i in ("baregrad", peer)],
                )
                for r in results:
                    m, n, k = map(int, r["shape"].split("x"))
                    self.assertAlmostEqual(r["gflop_per_s"] * r["median_ns"] / (2 * m * n * k), 1)
                    share = 100 * r["gflop_per_s"] / r["fma_gflop_per_s"]
                    self.assertAlmostEqual(r["percent_of_fma"] / share, 1)
                    self.assertLessEqual(r["max_error"], self.BOUNDS[dtype])
                for word in ["mkl: test peer 1.0", "GFLOP/s", "of FMA", "error", "best peer"]:
                    self.assertIn(word, text)
                self.assertEqual(len(re.findall(rf"^5x7x9 +{name} +1 .* {peer} ", text, re.M)), 1)

    def test_sizes_are_squares_and_four_numbers_are_a_batch(self):
        _, results = self.matmul("--sizes", "3,4", "--threads", "2")
        self.assertEqual([r["shape"] for r in results[::2]], ["3x3x3", "4x4x4"])
        self.assertEqual({r["threads"] for r in results}, {2})
        for threads in ("1", "2"):
            _, results = self.matmul("--shapes", "6x2x3x4", "--threads", threads)
            self.check_results(results, ["matmul"])
            self.assertEqual([r["implementation"] for r in results], ["baregrad", "mkl loop"])
            self.assertEqual({r["row"] for r in results}, {"matmul, batched"})
            ours = results[0]
            self.assertAlmostEqual(ours["gflop_per_s"] * ours["median_ns"] / (2 * 6 * 2 * 3 * 4), 1)

    def test_an_absent_peer_is_named(self):
        said = self.fails(1, "bench", "matmul", "--peers", "mkl", "--sizes", "4", env=self.missing)
        self.assertIn("mkl is absent (PyPI package mkl", said)
        self.assertIn("/nowhere/libmkl_rt.so", said)
        text, results = self.bench("matmul", "--sizes", "4", env=self.missing)
        self.check_results(results, ["matmul"])
        self.assertIn("mkl is absent (PyPI package mkl", text)
        for peer in ("openblas", "blis", "dnnl"):
            there = any(r["implementation"] == peer for r in results)
            self.assertRegex(text, rf"(?m)^{peer}{': ' if there else ' is absent .Debian package lib'}")

    def test_a_library_that_is_no_blas(self):
        libm = {"BAREGRAD_MKL": "libm.so.6"}
        said = self.fails(1, "bench", "matmul", "--peers", "mkl", "--sizes", "4", env=libm)
        self.assertIn("libm.so.6 has no sgemm", said)

    def test_more_threads_than_the_peer_can_use(self):
        text, results = self.matmul("--sizes", "4", "--threads", "65")
        self.assertIn("mkl cannot use 65 threads", text)
        self.assertEqual([(r["implementation"], r["ratio"]) for r in results], [("baregrad", None)])

    def test_a_wrong_product_is_not_timed(self):
        env = {**self.env, "TEST_PEER_WRONG": "1"}
        for shape in ("3x4x5", "300x200x64", "90x2x3x4"):
            with self.subTest(shape):
                command = ["bench", "matmul", "--quick", "--peers", "mkl", "--shapes", shape]
                said = self.fails(1, *command, env=env)
                self.assertRegex(said, rf"the result of mkl( loop)? for {shape} is off")

    def test_too_large(self):
        self.assertIn("2147483647", self.fails(1, "bench", "matmul", "--sizes", str(2**40)))
        self.assertIn("memory", self.fails(1, "bench", "matmul", "--sizes", str(2**31 - 1)))
        shape = f"{2**31 - 1}x{2**31 - 1}x1"
        self.assertIn("memory", self.fails(1, "bench", "matmul", "--shapes", shape))

    def test_check_decides_what_is_run(self):
        rows = [
            {"dtype": "f32", "size": 6, "threads": 1, "min_ratio": 1e-9},
            {"dtype": "f64", "shape": "2x3x4", "threads": 2, "min_ratio": 1e-9, "min_percent_of_fma": 1e-9},
        ]
        done = self.check(rows, "--json", str(self.file), about="for a test")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        results = [json.loads(line) for line in self.file.read_text().splitlines()]
        self.check_results(results, ["matmul"])
        self.assertEqual(
            [(r["shape"], r["dtype"], r["threads"]) for r in results[::2]],
            [("6x6x6", "float32", 1), ("2x3x4", "float64", 2)],
        )
        verdicts = done.stdout.split("Against ")[1]
        self.assertRegex(verdicts, r"(?m)^6x6x6 .* ok$")
        self.assertRegex(verdicts, r"(?m)^2x3x4 .* ok$")
        self.assertNotIn("not run", verdicts)
        for arguments, shape in [
            (["--dtype", "f64"], "2x3x4"),
            (["--threads", "1"], "6x6x6"),
            (["--sizes", "6", "--threads", "1"], "6x6x6"),
        ]:
            done = self.check(rows, *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            verdicts = done.stdout.split("Against ")[1]
            self.assertEqual(re.findall(r"(?m)^(\S+) .* ok$", verdicts), [shape])
            self.assertIn("not run: 1 more", verdicts)
        self.assertIn("no row of that", self.check(rows, "--dtype", "bf16").stderr)
        done = self.check(rows, "--sizes", "7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none of the rows", done.stderr)

    def test_check_fails_below_the_target(self):
        row = {"dtype": "f32", "size": 6, "threads": 1, "min_ratio": 1e9}
        known = {**row, "measured": 1e-9, "reason": "the test says so"}
        fma = {**row, "min_ratio": 1e-9, "min_percent_of_fma": 1e9}
        for case, status, verdict in [
            (row, 1, "FAILS$"),
            ({**row, "min_ratio": 1e-9}, 0, "ok$"),
            (known, 0, "misses, as known: the test says so$"),
            ({**known, "measured": 1e8}, 1, "FAILS: below 90 % of what was measured before$"),
            ({**known, "min_ratio": 1e-9}, 0, "ok now; was known to miss: the test says so$"),
            (fma, 1, "FAILS$"),
            ({**fma, "measured_percent_of_fma": 1e-9, "reason": "why"}, 0, "misses, as known: why$"),
        ]:
            with self.subTest(case):
                done = self.check([case])
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertRegex(done.stdout, rf"(?m)^6x6x6 +float32 +1 .* {verdict}")
                if status == 1:
                    self.assertIn("1 of 1 rows fall below", done.stderr)

    def test_check_needs_a_peer(self):
        done = self.check([{"dtype": "f32", "size": 6, "threads": 65, "min_ratio": 1e-9}])
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILS: no peer to compare with", done.stdout)

    def test_malformed_targets(self):
        row = {"dtype": "f32", "size": 6, "threads": 1, "min_ratio": 1.5}
        cases = [
            ("", "line 1, column 1"),
            ('{\n"rows": [\n{,}]}', "line 3, column 2"),
            ("[1]", "must be an object"),
            ("{}", '"rows" is missing'),
            ('{"rows": []}', "has no rows"),
            ('{"rows": {}}', '"rows" must be a list'),
            ('{"rows": [7]}', "rows[0]: must be an object"),
            ('{"rows": [], "peers": ["atlas"]}', '"peers" must be of openblas, blis, dnnl, mkl'),
        ]
        for change, word in [
            ({"min_ratoi": 2}, 'unknown field "min_ratoi"'),
            ({"min_ratio": "fast"}, '"min_ratio" must be a number above 0, not "fast"'),
            ({"min_ratio": 0}, '"min_ratio" must be a number above 0'),
            ({"min_ratio": None}, '"min_ratio" must be a number above 0'),
            ({"dtype": "f8"}, "\"dtype\": 'f8' is none of"),
            ({"dtype": 32}, '"dtype" must be a string'),
            ({"size": 2**40}, '"size" must be a whole number from 1 to 2147483647'),
            ({"size": -1}, '"size" must be'),
            ({"size": 1.5}, '"size" must be'),
            ({"shape": "1x2x3"}, 'either "shape" or "size"'),
            ({"threads": 0}, '"threads" must be a whole number from 1 to 1024'),
            ({"threads": 1e300}, '"threads" must be'),
            ({"measured": 1.2}, '"measured" and "reason" come together'),
            ({"reason": "none"}, '"measured" and "reason" come together'),
        ]:
            cases.append((json.dumps({"rows": [row, {**row, "size": 7, **change}]}), "rows[1]: "))
            cases.append((cases[-1][0], word))
        no_threads = {key: value for key, value in row.items() if key != "threads"}
        flat = {"dtype": "f32", "shape": "1x2", "threads": 1, "min_ratio": 1}
        for rows, word in [
            ([row, {**row, "min_ratio": 2}], "rows[1]: is the same product as rows[0]"),
            ([flat], "\"shape\": '1x2' is no shape"),
            ([no_threads], '"threads" is missing'),
        ]:
            cases.append((json.dumps({"rows": rows}), word))
        for text, word in cases:
            with self.subTest(text):
                self.file.write_text(text)
                said = self.fails(1, "bench", "matmul", "--check", str(self.file), env=self.env)
                self.assertIn(f"--check: '{self.file}': ", said)
                self.assertIn(word, said)
        self.file.write_text('{"peers": ' + "[" * 200_000 + "]" * 200_000 + "}")
        self.assertIn("nested deeper", self.fails(1, "bench", "matmul", "--check", str(self.file)))
        for path in (self.folder / "none.json", self.folder):
            self.assertIn(f"--check: '{path}': ", self.fails(1, "bench", "matmul", "--check", str(path)))

    def test_the_projects_own_targets_can_be_read(self):
        targets = ROOT / "bench" / "targets" / "matmul.json"
        said = self.fails(1, "bench", "matmul", "--check", str(targets), "--threads", "1023")
        self.assertIn("no row of that --dtype and --threads", said)


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
