"""Tests of check_layers.py, check_repo.py, check_comments.py and readme_example.py on small made-up inputs."""

import pathlib
import tempfile
import unittest

import check_comments
import check_layers
import check_repo
import readme_example


class CheckLayersTest(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check_layers.check(root, sorted(files))

    def test_downward_and_same_layer_includes_pass(self):
        self.assertEqual(self.problems({
            "src/core/layout.h": "#include <vector>\n",
            "src/core/tensor.cpp": '#include "core/layout.h"\n#include "layout.h"\n',
            "src/backends/cpu/abi.h": '#include "core/layout.h"\n',
            "src/ops/add.cpp": '#include "backends/cpu/abi.h"\n#include "../core/layout.h"\n',
            "src/nn/linear.cpp": '#include "ops/add.h"\n',
        }), [])

    def test_rooms_that_stay_apart(self):
        self.assertEqual(self.problems({
            "src/ops/watch.h": "",
            "src/autograd/node.h": "",
            "src/profile/profiler.cpp": '#include "ops/watch.h"\n#include "autograd/node.h"\n',
        }), ["src/profile/profiler.cpp:2: profile must not include src/autograd/node.h: profile"
             " does without autograd"])

    def test_upward_include_is_named_with_its_line(self):
        problems = self.problems({
            "src/core/tensor.cpp": '// A tensor.\n#include "ops/ops.h"\n',
            "src/ops/ops.h": "",
        })
        self.assertEqual(problems, [
            "src/core/tensor.cpp:2: core must not include src/ops/ops.h: ops lies above core"])

    def test_upward_include_by_relative_path_or_through_a_public_header(self):
        for include in ('"../backends/cpu/abi.h"', '"src/backends/cpu/abi.h"', "<baregrad/ops.h>"):
            with self.subTest(include=include):
                self.assertEqual(len(self.problems({
                    "src/parallel/pool.cpp": f"#include {include}\n",
                    "src/backends/cpu/abi.h": "",
                    "include/baregrad/ops.h": "",
                })), 1)

    def test_includes_in_comments_do_not_count(self):
        self.assertEqual(self.problems({
            "src/core/a.h": '// #include "ops/b.h"\n/* x\n#include "ops/b.h"\n*/\n',
            "src/ops/b.h": "",
        }), [])

    def test_op_table_is_open_to_kernels_but_sees_nothing_above_them(self):
        self.assertEqual(self.problems({
            "src/backends/cpu/abi.h": '#include "ops/ops.def"\n', "src/ops/ops.def": ""}), [])
        self.assertEqual(len(self.problems({
            "src/ops/functors.h": '#include "ops/infer.h"\n', "src/ops/infer.h": ""})), 1)

    def test_a_backend_library_sees_the_plain_interface_only(self):
        known = {"src/backends/backend.h": "", "src/core/host.h": "", "src/backends/call.h": "",
                 "src/backends/sim/queue.h": "", "include/baregrad/dtype.h": ""}
        for fine in ("backends/backend.h", "backends/sim/queue.h"):
            self.assertEqual(self.problems({"src/backends/sim/a.cpp": f'#include "{fine}"\n', **known}), [])
        for wrong in ("core/host.h", "backends/call.h", "baregrad/dtype.h"):
            self.assertEqual(len(self.problems({"src/backends/sim/a.cpp": f'#include "{wrong}"\n', **known})), 1)

    def test_library_must_not_include_tests(self):
        self.assertEqual(len(self.problems({
            "src/core/a.h": '#include "tests/b.h"\n', "tests/b.h": ""})), 1)

    def test_public_headers_take_standard_headers_only(self):
        for include in ("<immintrin.h>", "<hwy/highway.h>", "<cuda_runtime.h>", '"fmt/core.h"',
                        '"core/layout.h"'):
            with self.subTest(include=include):
                self.assertEqual(len(self.problems({
                    "include/baregrad/tensor.h": f"#include <cstdint>\n#include {include}\n",
                    "src/core/layout.h": "",
                })), 1)

    def test_unknown_rooms_are_reported(self):
        self.assertIn("src/attic/ has no layer", self.problems({"src/attic/a.h": ""})[0])
        self.assertIn("has no layer", self.problems({"include/baregrad/attic.h": ""})[0])


class CheckRepoTest(unittest.TestCase):
    GOOD = "// A file.\n#pragma once\n"

    def assert_one(self, path, text, part):
        problems = check_repo.check_text(path, text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(part, problems[0])

    def test_good_file_passes(self):
        self.assertEqual(check_repo.check_text("src/a.h", self.GOOD), [])

    def test_length(self):
        full = self.GOOD + "int x;\n" * (check_repo.MAX_LINES - 2)
        self.assertEqual(check_repo.check_text("src/a.h", full), [])
        self.assert_one("src/a.h", full + "int y;\n", "801 lines")
        self.assertEqual(check_repo.check_text("docs/a.md", full + "int y;\n"), [])

    def test_relaxed_math(self):
        for flag in ("-ffast-math", "-Ofast", "-ffinite-math-only"):
            self.assert_one("cmake/a.cmake", f"# A file.\nadd_compile_options({flag})\n", flag)
        self.assertEqual(check_repo.check_text("docs/a.md", "-ffast-math is banned\n"), [])
        named = "// A file.\nconst char* flag = \"-Ofast\";\n"
        self.assert_one("lab/ladder/exp_ladder.cpp", named, "-Ofast")
        self.assertEqual(check_repo.check_text("lab/flags/exp_flags.cpp", named), [])
        self.assertEqual(check_repo.check_text("docs/lab/flags.jsonl", '{"flags": "-Ofast"}\n'), [])

    def test_bindings_read_in_one_place(self):
        for text in ("PyUnicode_AsUTF8(name);", "nb::str(key).c_str();", "nb::gil_scoped_acquire lock;",
                     "while (PyDict_Next(d, &at, &k, &v)) {}", "#include <nanobind/stl/pair.h>"):
            with self.subTest(text=text):
                self.assert_one("python/src/a.cpp", f"// A file.\n{text}\n", ".h has")
        self.assertEqual(
            check_repo.check_text("python/src/text.cpp", "// Text.\nPyUnicode_AsUTF8(name);\n"), [])

    def test_bytes_of_tensors(self):
        for line in ("x.data_ptr();", "x.data<float>();", "p->data<T>();"):
            self.assert_one("src/nn/a.cpp", "// A layer.\n" + line + "\n", "HostRead")
            for path in ("src/core/a.cpp", "src/backends/cpu/a.cpp", "src/io/a.cpp", "tests/nn/a.cpp"):
                self.assertEqual(check_repo.check_text(path, "// A file.\n" + line + "\n"), [])
        self.assertEqual(check_repo.check_text("src/nn/a.cpp", "// A layer.\nwords.data();\n"), [])

    def test_unfinished_work(self):
        self.assert_one("src/a.h", self.GOOD + "// TODO: more\n", "TODO")
        self.assertEqual(check_repo.check_text("src/a.h", self.GOOD + "int kTODOS;\n"), [])

    def test_machine_paths(self):
        self.assert_one("docs/a.md", "see /home/somebody/baregrad\n", "path of one machine")
        self.assertEqual(check_repo.check_text("docs/a.md", "see ../work/x, $HOME/root/x\n"), [])

    def test_small_rules(self):
        self.assert_one("src/a.h", "// A file.\n", "#pragma once")
        self.assert_one("src/a.cpp", "#include <vector>\n", "first line")
        self.assert_one("src/a.cpp", "// A file.\nint x; \n", "trailing whitespace")
        self.assert_one("src/a.cpp", "// A file.\n\tint x;\n", "tab")
        self.assert_one("src/a.cpp", "// A file.", "newline")
        self.assertEqual(check_repo.check_text("a.sh", "#!/bin/sh\n# A script.\n"), [])


class CheckCommentsTest(unittest.TestCase):
    CODE = {
        "src/core/tensor.h": '// A tensor.\nvoid read_all(Layout& shape); int total_;\nsave("log.jsonl");\n',
        "src/core/tensor.cpp": "// Reading.\n#include <sys/mman.h>\nnamespace baregrad { int kTile; }\n",
        "docs/design.md": "# The design\n",
    }

    def found(self, path, text):
        """The paths and names that the check misses in one more file."""
        problems = check_comments.check(self.CODE | {path: text})
        for problem in problems:
            self.assertTrue(problem.startswith(f"{path}:"), problem)
        return [problem.split(": ")[1] for problem in problems]

    def test_what_exists_passes(self):
        for text in ("tensor.h, core/tensor.cpp, src/core/ and tensor.{h,cpp}", "core/*.h", "sys/mman.h, log.jsonl",
                     "`read_all` and read_all(), baregrad::kTile, Layout::shape", "the member total", "read_*",
                     "NAME.jsonl, DIR/OUT_DIR/x.h, <kind>.cpp, build/x.h", "a read/write lock, 3 km/h, x_1 + w_i",
                     "https://example.org/no/such_file.h", "`x + 1`, `make test`, `--json FILE`", "std::no_such_thing"):
            with self.subTest(text=text):
                self.assertEqual(self.found("src/core/a.cpp", f"// {text}\n"), [])
                self.assertEqual(self.found("docs/a.md", f"{text}\n"), [])

    def test_missing_paths(self):
        for path in ("ops/tensor.h", "irregular.cpp", "docs/x.md", "tests/foo/", "src/kernels/gemm", "tensor.{h,py}",
                     "core/*.def"):
            with self.subTest(path=path):
                self.assertEqual(self.found("src/core/a.cpp", f"// See {path}.\n"), [path])

    def test_missing_names(self):
        for text, name in (("`forget_all` does", "forget_all"), ("calls forget()", "forget"),
                           ("baregrad::forget, which", "baregrad::forget"), ("what forget_all does", "forget_all"),
                           ("a PlainCall", "PlainCall"), ("kPlain bytes", "kPlain"), ("forget_* functions", "forget_*"),
                           ("`plain`", "plain"), ("BAREGRAD_PLAIN", "BAREGRAD_PLAIN")):
            with self.subTest(text=text):
                self.assertEqual(self.found("src/core/a.cpp", f"int a; // {text}\n"), [name])
                self.assertEqual(self.found("docs/a.md", f"{text}\n"), [name])

    def test_a_folder_in_backticks_is_a_path(self):
        self.assertEqual(self.found("docs/a.md", "`kernels/` and `core/`\n"), ["kernels/"])

    def test_every_kind_of_comment_is_read_and_code_is_not(self):
        for path, text in (
            ("src/a.h", '/* lost.h */ const char* s = "gone.h // gone.h"; char c = \'"\'; // lost.py\n'),
            ("a.py", '"""lost.h"""\ns = "gone.h # gone.h"\ndef f():\n    """lost.py"""\n'),
            ("a.sh", 'echo "gone.h" # lost.h lost.py\n'),
            ("Makefile", "# lost.h lost.py\na: gone.h\n"),
        ):
            with self.subTest(path=path):
                self.assertEqual(sorted(self.found(path, text)), ["lost.h", "lost.py"])

    def test_names_in_comments_alone_do_not_count(self):
        problems = check_comments.check({"a.h": "// run_all() is below.\n", "b.h": "// See run_all().\n"})
        self.assertEqual(problems, ["a.h:1: run_all: no such name in code", "b.h:1: run_all: no such name in code"])

    def test_a_document_may_introduce_names_in_its_code(self):
        self.assertEqual(self.found("docs/a.md", "`fresh` and fresh_()\n```cpp\nvoid fresh();\n```\n"), [])


class ReadmeExampleTest(unittest.TestCase):
    def test_example_and_its_output(self):
        text = "# x\n```sh\nmake\n```\n```cpp\nint main() {}\n```\nprints\n```text\n1 2\n```\n"
        self.assertEqual(readme_example.extract(text), ("int main() {}\n", "1 2\n"))

    def test_missing_parts(self):
        for text in ("no code\n", "```cpp\nint main() {}\n```\n",
                     "```cpp\nint main() {}\n```\n```cpp\nint x;\n```\n"):
            with self.subTest(text=text), self.assertRaises(SystemExit):
                readme_example.extract(text)


if __name__ == "__main__":
    unittest.main()
