"""The package as a whole: what importing it costs and leaves behind, its version, the README's example."""

import pathlib
import re
import subprocess
import sys

import baregrad as bg

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_python(source: str) -> str:
    done = subprocess.run([sys.executable, "-B", "-c", source], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_examples(document: str) -> list[tuple[str, str]]:
    """Each ```python block with the output block that follows it ("" when there is none)."""
    blocks = FENCE.findall((ROOT / document).read_text(encoding="utf-8"))
    pairs = zip(blocks, [*blocks[1:], ("end", "")])
    return [(source, output if after in ("", "text") else "")
            for (language, source), (after, output) in pairs if language == "python"]


def test_version_is_that_of_the_build():
    version = re.search(r"project\(baregrad VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert bg.__version__ == version[1]


def test_import_needs_the_standard_library_alone():
    out = run_python(
        "import sys; before = set(sys.modules); import baregrad;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "print(*sorted(new - set(sys.stdlib_module_names) - {'baregrad'}))")
    assert out.split() == []


def test_import_prints_and_starts_nothing():
    out = run_python("import baregrad, os; print(len(os.listdir('/proc/self/task')))")
    assert out.split() == ["1"], "no thread before the first op that wants one"


def test_submodules_are_the_packages_own():
    for name in ("autograd", "data", "graph", "io", "linalg", "nn", "optim", "profile"):
        module = getattr(bg, name)
        assert module.__name__ == f"baregrad.{name}", "the engine's own submodule shows through"


def test_what_all_lists_is_there():
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "baregrad":
            missing = [entry for entry in getattr(module, "__all__", []) if not hasattr(module, entry)]
            assert not missing, name


def test_examples_in_the_documents_print_what_they_say():
    examples = [(document, *pair) for document in ("README.md", "docs/python.md")
                for pair in python_examples(document)]
    assert any(document == "README.md" for document, _, _ in examples)
    for document, source, expected in examples:
        printed = run_python(source)
        assert printed.split("\n") == expected.split("\n") or not expected, f"{document}:\n{source}\n{printed}"


def test_clean_exit_with_everything_in_use():
    out = run_python(
        "import baregrad as bg\n"
        "x = bg.ones((300, 300)).requires_grad_()\n"
        "y = bg.sum(x @ x)\n"
        "x.register_hook(lambda g: g)\n"
        "y.backward()\n"
        "keep = [y, x.grad, bg.nn.Linear(3, 4)]\n"
        "print('done')")
    assert out == "done\n"
