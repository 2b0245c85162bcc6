"""Every example in a docstring runs and prints the shown output; every public function and class
has one."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import baregrad as bg

# Public callables without an example, each with its reason.
NO_EXAMPLE = {
    "baregrad.DType": "never made by a user; every example with a dtype shows one",
    "baregrad.FloatInfo": "what finfo gives, shown there",
    "baregrad.IntInfo": "what iinfo gives, shown there",
    "baregrad.autograd.FunctionCtx": "made by Function, shown there",
    "baregrad.data.fashion": "needs the files of the data set",
    "baregrad.data.mnist": "needs the files of the data set",
    "baregrad.graph.Drawing": "what draw gives, shown there",
    "baregrad.optim.lr_scheduler.LRScheduler": "the base of the schedules, each of which has one",
    "baregrad.show_config": "prints what differs from machine to machine",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """The package's own modules. baregrad._core is tested through them; baregrad.lab is a program."""
    yield bg
    for info in pkgutil.walk_packages(bg.__path__, "baregrad."):
        parts = info.name.split(".")
        if parts[1] != "lab" and not any(part.startswith("_") for part in parts):
            yield importlib.import_module(info.name)


def is_ours(value) -> bool:
    return (getattr(value, "__module__", None) or "").split(".")[0] == "baregrad"


def members(cls, path):
    """Methods and properties that a class itself defines."""
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if callable(value) or isinstance(value, property):
            yield f"{path}.{name}", value


def public_objects():
    """(path, object, kind), each object once, under the shortest of its names."""
    found = {}

    def add(path, value, kind):
        known = found.get(id(value))
        if known is None or (path.count("."), len(path)) < (known[0].count("."), len(known[0])):
            found[id(value)] = (path, value, kind)

    for module in modules():
        add(module.__name__, module, "module")
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in names:
            value = getattr(module, name)
            path = f"{module.__name__}.{name}"
            if inspect.isclass(value):
                if is_ours(value):
                    add(path, value, "class")
            elif callable(value) and is_ours(value):
                add(path, value, "function")
    for path, value, kind in list(found.values()):
        if kind == "class":
            for member_path, member in members(value, path):
                add(member_path, member, "method")
    return sorted(found.values(), key=lambda entry: entry[0])


OBJECTS = public_objects()


def docstring(value) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def description(value) -> str:
    """A docstring without the signatures that nanobind puts before it."""
    return re.sub(r"^(\w+\(.*\) -> .*|\d+\. ``.*``|Overloaded function.*)$", "", docstring(value),
                  flags=re.MULTILINE).strip()


def examples(path, value):
    return doctest.DocTestParser().get_doctest(docstring(value), {}, path, None, 0)


WITH_EXAMPLES = [(path, value) for path, value, _ in OBJECTS if ">>>" in docstring(value)]


@pytest.mark.parametrize(("path", "value"), WITH_EXAMPLES, ids=[path for path, _ in WITH_EXAMPLES])
def test_example(path, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Examples may write files.
    test = examples(path, value)
    numpy = pytest.importorskip("numpy") if "np." in docstring(value) else None
    test.globs.update(bg=bg, np=numpy)
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    bg.manual_seed(0)
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_every_public_object_says_what_it_is():
    silent = [path for path, value, _ in OBJECTS if not description(value)]
    assert not silent, f"{len(silent)} without a docstring: {', '.join(silent)}"


def is_result(value) -> bool:
    """A named tuple: it appears in the example of the function that returns it."""
    return inspect.isclass(value) and issubclass(value, tuple)


def test_every_function_and_class_has_an_example():
    missing = [path for path, value, kind in OBJECTS
               if kind in ("function", "class") and not is_result(value)
               and ">>>" not in docstring(value) and path not in NO_EXAMPLE]
    assert not missing, f"{len(missing)} without an example: {', '.join(missing)}"


def test_the_list_of_exceptions_names_what_there_is():
    assert not NO_EXAMPLE.keys() - {path for path, _, _ in OBJECTS}


def test_the_walk_finds_the_package():
    kinds = [kind for _, _, kind in OBJECTS]
    assert {kind: kinds.count(kind) > 0 for kind in ("module", "class", "function", "method")} == {
        "module": True, "class": True, "function": True, "method": True}
    assert "baregrad.add" in {path for path, _, _ in OBJECTS}
