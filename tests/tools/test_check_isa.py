"""Tests of check_isa.py on small objects compiled here, each with one known mistake or none."""

import pathlib
import platform
import subprocess
import tempfile
import unittest

import check_isa

FLAGS = {
    "scalar": [],
    "sse4": ["-msse4.2"],
    "avx2": ["-mavx2", "-mfma", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512vl", "-mavx2"],
}
KERNEL = """
#include <cstddef>
namespace baregrad::{namespace} {{
template <class T> __attribute__((noinline)) T twice(T x) {{ return x + x; }}
void kernel(float* p, std::size_t n) {{
  for (std::size_t i = 0; i < n; ++i) p[i] = twice(p[i]) + p[i] * 3.0f;
}}
}}
"""
BASELINE = """
#include <cstddef>
#include <algorithm>
__attribute__((noinline)) int ctz(unsigned x) { return __builtin_ctz(x); }
void baseline(float* p, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = std::max(p[i] * 2.0f, 1.0f) + float(ctz(unsigned(i)));
}
"""


@unittest.skipUnless(platform.machine() == "x86_64", "instruction sets of x86-64")
class CheckIsaTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        for isa, facts in check_isa.ISAS.items():
            self.compile(f"baregrad_kernels_{isa}", KERNEL.format(namespace=facts.namespaces[0]),
                         FLAGS[isa])
        self.compile("baregrad", BASELINE, [])

    def compile(self, target, source, flags, optimise="-O3"):
        folder = self.build / "CMakeFiles" / f"{target}.dir"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.cpp").write_text(source)
        subprocess.run(["g++", "-std=c++20", "-fPIC", optimise, *flags, "-c", "a.cpp", "-o", "a.cpp.o"],
                       cwd=folder, check=True)

    def problems(self, excludes=()):
        return check_isa.check(self.build, list(excludes))[0]

    def assert_one_problem(self, *parts):
        problems = self.problems()
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])

    def test_clean_objects_pass(self):
        self.assertEqual(self.problems(), [])

    def test_shared_inline_function_in_a_kernel_object(self):
        source = "inline __attribute__((noinline)) float shared(float x) { return x * x; }\n"
        source += KERNEL.format(namespace="N_AVX3").replace("twice(p[i]) +", "shared(p[i]) +")
        self.compile("baregrad_kernels_avx512", source, FLAGS["avx512"])
        self.assert_one_problem("baregrad_kernels_avx512", "shared(float)", "HWY_NAMESPACE")

    def test_shared_template_of_std_in_a_kernel_object(self):
        source = "#include <algorithm>\n" + KERNEL.format(namespace="N_AVX2").replace(
            "twice(p[i]) +", "std::max(p[i], 1.0f) +")
        self.compile("baregrad_kernels_avx2", source, FLAGS["avx2"], optimise="-O0")
        self.assert_one_problem("baregrad_kernels_avx2", "std::max<float>")

    def test_namespace_of_another_isa(self):
        self.compile("baregrad_kernels_avx2", KERNEL.format(namespace="N_AVX3"), FLAGS["avx2"])
        self.assert_one_problem("weak symbol outside N_AVX2", "twice")

    def test_namespace_is_compared_as_a_whole(self):
        self.compile("baregrad_kernels_avx2", KERNEL.format(namespace="N_AVX2_OTHER"), FLAGS["avx2"])
        self.assert_one_problem("weak symbol outside N_AVX2")

    def test_constructor_that_runs_at_load_time(self):
        source = KERNEL.format(namespace="N_AVX2") + """
        #include <cstdlib>
        static float seed = float(std::rand());
        namespace baregrad::N_AVX2 { float get() { return seed; } }
        """
        self.compile("baregrad_kernels_avx2", source, FLAGS["avx2"])
        self.assert_one_problem("when the library is loaded", "_GLOBAL__sub_I_")

    def test_wide_instruction_in_a_baseline_object(self):
        self.compile("baregrad", BASELINE, ["-mavx2"])
        problems = self.problems()
        self.assertTrue(problems)
        self.assertIn("VEX", problems[0])
        self.assertIn("in baseline(float*, unsigned long)", "".join(problems))

    def test_general_register_vex_instruction_in_a_baseline_object(self):
        source = "unsigned long f(unsigned long x, unsigned n) { return x << n; }"
        self.compile("baregrad_core", source, ["-mbmi2"])
        self.assert_one_problem("VEX", "shlx")

    def test_sse4_instruction_in_a_baseline_object(self):
        self.compile("baregrad_core", "int f(unsigned x) { return __builtin_popcount(x); }",
                     ["-mpopcnt"])
        self.assert_one_problem("SSE4", "popcnt")

    def test_avx512_instruction_in_an_avx2_object(self):
        # Without the call the loop can be vectorised.
        source = KERNEL.format(namespace="N_AVX2").replace("twice(p[i]) +", "p[i] +")
        self.compile("baregrad_kernels_avx2", source,
                     [*FLAGS["avx512"], "-mprefer-vector-width=512"])
        self.assertIn("EVEX", "".join(self.problems()))

    def test_small_kernels_are_held_to_their_instruction_set(self):
        self.compile("baregrad_small_kernels_avx2", KERNEL.format(namespace="N_AVX2"), FLAGS["avx2"])
        self.assertEqual(self.problems(), [])
        self.compile("baregrad_small_kernels_avx2", KERNEL.format(namespace="N_AVX3"), FLAGS["avx2"])
        self.assert_one_problem("weak symbol outside N_AVX2", "twice")

    def test_programs_around_the_library_are_left_out(self):
        self.compile("baregrad_tests", BASELINE, ["-mavx2"])
        self.assertEqual(self.problems(check_isa.DEFAULT_EXCLUDES), [])
        self.assertNotEqual(self.problems(), [])

    def test_missing_kernels_are_no_success(self):
        for obj in self.build.rglob("baregrad_kernels_sse4.dir/*.o"):
            obj.unlink()
        self.assert_one_problem("no objects of baregrad_kernels_sse4")

    def test_objects_without_code_are_no_success(self):
        for obj in list(self.build.rglob("*.o")):
            (obj.parent / "a.cpp").write_text("int x;")
            subprocess.run(["g++", "-c", "a.cpp", "-o", obj.name], cwd=obj.parent, check=True)
        self.assert_one_problem("no instructions")

    def test_encodings(self):
        for code, expected in [
            ("0f 58 c1", check_isa.SSE2),  # addps
            ("f3 0f 1e fa", check_isa.SSE2),  # endbr64
            ("f3 0f bc c7", check_isa.SSE2),  # tzcnt, which an old CPU runs as bsf
            ("66 2e 0f 1f 84 00 00 00 00 00", check_isa.SSE2),  # nopw
            ("8f 00", check_isa.SSE2),  # pop (%rax)
            ("66 0f 38 00 c1", check_isa.SSE4),  # pshufb
            ("66 41 0f 3a 08 c1 00", check_isa.SSE4),  # roundps
            ("f3 0f b8 c7", check_isa.SSE4),  # popcnt
            ("f2 0f 7c c1", check_isa.SSE4),  # haddps
            ("c5 f8 77", check_isa.VEX),  # vzeroupper
            ("c4 e2 71 b8 c2", check_isa.VEX),  # vfmadd231ps
            ("8f e8 78 c0 c1 01", check_isa.VEX),  # XOP
            ("62 f1 74 48 58 c2", check_isa.EVEX),  # vaddps zmm
        ]:
            with self.subTest(code=code):
                self.assertEqual(check_isa.encoding_of(bytes.fromhex(code)), expected)


if __name__ == "__main__":
    unittest.main()
