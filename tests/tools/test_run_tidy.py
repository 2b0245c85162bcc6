"""Tests of scripts/run_tidy.py: which command reads a source, what is reported, and what the cache skips."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import run_tidy

NULL = "int sum(long x) {\n  int* p = nullptr;\n  if (x == 3) return *p;\n  return 0;\n}\n"
CLEAN = "int twice(int x) { return 2 * x; }\n"


class RunTidyTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name).resolve()
        self.cache = self.root / "cache"
        self.cache.mkdir()

    def entry(self, name, text, target="baregrad_calls_objects"):
        source = self.root / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        return {"directory": str(self.root), "file": str(source),
                "command": f"c++ -std=c++20 -O2 -o {target}.dir/{name}.o -c {source}"}

    def run_tidy(self, *entries):
        """What is printed, the number of sources with findings and of those skipped."""
        chosen = run_tidy.choose_commands(list(entries), self.root, [])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            failed, known = run_tidy.run(chosen, 2, False, self.cache)
        return printed.getvalue(), failed, known

    def test_each_source_of_src_is_read_once_a_kernel_as_avx2(self):
        entries = [self.entry("src/a.cpp", CLEAN, f"baregrad_kernels_{isa}") for isa in ("sse4", "avx2", "avx512")]
        entries += [self.entry("src/b.cpp", CLEAN), self.entry("tests/c.cpp", CLEAN)]
        self.assertEqual(run_tidy.choose_commands(entries, self.root, []),
                         {"src/a.cpp": entries[1], "src/b.cpp": entries[3]})
        self.assertEqual(list(run_tidy.choose_commands(entries, self.root, ["b.c"])), ["src/b.cpp"])

    def test_findings_of_checks_and_analyzer_name_source_and_line(self):
        printed, failed, _ = self.run_tidy(
            self.entry("src/a.cpp", CLEAN), self.entry("src/b.cpp", NULL),
            self.entry("src/c.cpp", "void f(int x) {\n  if (x == 1);\n    x = 2;\n}\n"))
        self.assertEqual(failed, 2)
        self.assertIn(f"{self.root}/src/b.cpp:3:22: error: Dereference of null pointer", printed)
        self.assertIn(f"{self.root}/src/c.cpp:2:", printed)
        self.assertNotIn("a.cpp", printed)

    def test_kernels_go_without_the_analyzer(self):
        self.assertEqual(self.run_tidy(self.entry("src/backends/cpu/b.cpp", NULL)), ("", 0, 0))

    def test_what_does_not_compile_is_reported(self):
        printed, failed, _ = self.run_tidy(self.entry("src/a.cpp", "int f() { return g(); }\n"))
        self.assertEqual(failed, 1)
        self.assertIn("clang-diagnostic-error", printed)

    def test_the_cache_skips_clean_sources_until_they_or_their_headers_change(self):
        header = self.root / "src" / "a.h"
        a = self.entry("src/a.cpp", '#include "a.h"\nint a() { return f(); }\n')
        b = self.entry("src/b.cpp", NULL)
        header.write_text("inline int f() { return 1; }\n")
        self.assertEqual(self.run_tidy(a, b)[1:], (1, 0))
        self.assertEqual(self.run_tidy(a, b)[1:], (1, 1), "findings are reported every time")
        header.write_text("inline int f() { return 2; }\n")
        self.assertEqual(self.run_tidy(a, b)[1:], (1, 0))
        self.assertEqual(self.run_tidy(a)[1:], (0, 1))
        a["command"] = a["command"].replace("-O2", "-O3")
        self.assertEqual(self.run_tidy(a)[1:], (0, 0))


if __name__ == "__main__":
    unittest.main()
