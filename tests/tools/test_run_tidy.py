"""Tests of scripts/run_tidy.py: what is read together, and that findings are told by where they are."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import run_tidy

PRIVATE = """#include <vector>
namespace baregrad {
namespace {

constexpr int kMost = 3;
const char* const kNames[] = {"a"};
struct Walk {
  int inside;
};
using Words = std::vector<int>;
int twice(int x) { return 2 * x; }

}  // namespace

int shared(int x) { return twice(x); }

}  // namespace baregrad
"""


class RunTidyTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)

    def sources(self, texts, flags=()):
        chosen = {}
        for name, text in texts.items():
            source = self.root / name
            source.write_text(text)
            words = ["c++", "-std=c++20", *flags, "-O2", "-o", f"{name}.o", "-c", str(source)]
            chosen[source] = {"directory": str(self.root), "file": str(source), "arguments": words}
        return chosen

    def told(self, texts):
        batches = run_tidy.make_batches(self.sources(texts))
        self.assertEqual(len(batches), 1)
        work = self.root / "work"
        work.mkdir()
        return run_tidy.Tidy(work, None, thorough=False).read(batches[0], "batch")

    def test_private_names(self):
        self.assertEqual(run_tidy.private_names(PRIVATE + "#define ROW(x) x\n"),
                         {"kMost", "kNames", "Walk", "Words", "twice(int x) { return 2 * x; }", "ROW"})

    def test_sources_that_share_a_private_name_are_apart(self):
        batches = run_tidy.make_batches(self.sources({"a.cpp": PRIVATE, "b.cpp": PRIVATE, "c.cpp": "int other;\n"}))
        self.assertEqual(sorted(sorted(source.name for source in batch.sources) for batch in batches),
                         [["a.cpp", "c.cpp"], ["b.cpp"]])

    def test_flags_part_sources_but_not_how_hard_they_are_optimised(self):
        chosen = self.sources({"a.cpp": "int a;\n"}) | self.sources({"b.cpp": "int b;\n"}, ["-O3"])
        self.assertEqual(len(run_tidy.make_batches(chosen)), 1)
        chosen |= self.sources({"c.cpp": "int c;\n"}, ["-mavx2"])
        self.assertEqual(len(run_tidy.make_batches(chosen)), 2)

    def test_no_batch_is_too_long_and_none_is_lost(self):
        chosen = self.sources({f"{i}.cpp": f"int x{i};\n" for i in range(run_tidy.MOST_SOURCES + 1)})
        batches = run_tidy.make_batches(chosen)
        self.assertEqual(len(batches), 2)
        self.assertEqual({source for batch in batches for source in batch.sources}, set(chosen))

    def test_findings_of_checks_and_analyzer_name_source_and_line(self):
        told = self.told({
            "a.cpp": "int clean(int x) { return x; }\n",
            "b.cpp": "int sum(long x) {\n  int* p = nullptr;\n  if (x == 3) return *p;\n  return 0;\n}\n",
            "c.cpp": "void f(int x) {\n  if (x == 1);\n    x = 2;\n}\n",
        })
        self.assertEqual(len(told), 1)
        self.assertIn(f"{self.root}/b.cpp:3:22: error: Dereference of null pointer", told[0])
        self.assertIn(f"{self.root}/c.cpp:2:", told[0])
        self.assertNotIn("batch.cpp", told[0])

    def test_what_does_not_compile_together_is_read_apart(self):
        told = self.told({
            "a.cpp": "static int twice(int x) { return 2 * x; }\nint a(int x) { return twice(x); }\n",
            "b.cpp": "static int twice(int x) { return 2 * x; }\nint b(int x) {\n  int* p = nullptr;\n"
                     "  return twice(x) + *p;\n}\n",
        })
        self.assertEqual(len(told), 1)
        self.assertIn(f"{self.root}/b.cpp:4:", told[0])
        self.assertNotIn("redefinition", told[0])

    def test_a_clean_batch_tells_nothing(self):
        self.assertEqual(self.told({"a.cpp": "int a(int x) { return x; }\n"}), [])


if __name__ == "__main__":
    unittest.main()
