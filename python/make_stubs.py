"""Writes the type stubs of a built baregrad._core beside it: make_stubs.py FOLDER_OF_THE_PACKAGE

nanobind's stubgen does the work, with stubs.pat for the operators. This script corrects the rest for
type checkers: `bool`, `int` and `float` are also names of dtypes and of methods, so annotations say
builtins.bool; bare generics get their parameters; names that signatures use are imported.
"""

import ast
import builtins
import collections.abc
import pathlib
import re
import shutil
import sys
import typing

from nanobind import stubgen

PATTERNS = pathlib.Path(__file__).with_name("stubs.pat")
SHADOWED = {"bool", "int", "float"}
PARAMETERS = {"tuple": "[Any, ...]", "list": "[Any]", "dict": "[Any, Any]", "type": "[Any]",
              "Callable": "[..., Any]", "PathLike": "[str]"}

Edit = tuple[int, int, str]  # row, column in bytes, what to insert


def annotations(tree: ast.AST) -> list[ast.expr]:
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            found.append(node.annotation)
    return [annotation for annotation in found if annotation is not None]


def insert(text: str, edits: set[Edit]) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for row, column, addition in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + addition.encode() + line[column:]
    return b"".join(lines).decode()


def with_whole_annotations(text: str) -> str:
    edits: set[Edit] = set()
    tree = ast.parse(text)
    for annotation in annotations(tree):
        inside = {id(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Subscript)}
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id in SHADOWED:
                edits.add((node.lineno, node.col_offset, "builtins."))
            name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
            if name in PARAMETERS and id(node) not in inside and isinstance(node, (ast.Name, ast.Attribute)):
                edits.add((node.end_lineno, node.end_col_offset, PARAMETERS[name]))
    for node in ast.walk(tree):
        # Separate sizes, or one sequence of them.
        if isinstance(node, ast.FunctionDef) and node.args.vararg and node.args.vararg.annotation is None:
            place = node.args.vararg
            edits.add((place.end_lineno, place.end_col_offset, ": builtins.int | Sequence[builtins.int]"))
    return insert(text, edits)


def with_imports(text: str, engine_names: set[str]) -> str:
    """Imports for names in annotations that are not defined."""
    tree = ast.parse(text)
    defined = set(dir(builtins)) | {"builtins"}
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            defined.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
    used = {node.id for annotation in annotations(tree) for node in ast.walk(annotation)
            if isinstance(node, ast.Name)}
    used |= {base.id for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases
             if isinstance(base, ast.Name)}
    lines = ["import builtins"]
    for name in sorted(used - defined):
        if name in engine_names:
            lines.append(f"from baregrad._core import {name}")
        elif name in collections.abc.__all__:
            lines.append(f"from collections.abc import {name}")
        elif hasattr(typing, name):
            lines.append(f"from typing import {name}")
        elif name in sys.stdlib_module_names:
            lines.append(f"import {name}")
        else:
            sys.exit(f"make_stubs: a signature uses {name!r}, which nothing defines")
    first = re.search(r"^(from|import|class|def|@\w+|\w+:)", text, re.MULTILINE)
    assert first is not None
    return text[:first.start()] + "\n".join(lines) + "\n" + text[first.start():]


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    package = root / "baregrad"
    shutil.rmtree(package / "_core", ignore_errors=True)
    (package / "_core.pyi").unlink(missing_ok=True)
    # -P: names that end in an underscore would count as private. The package uses those that begin with one.
    stubgen.main(["-q", "-r", "-P", "-i", str(root), "-O", str(package), "-p", str(PATTERNS),
                  "-m", "baregrad._core"])
    engine_names = set(vars(sys.modules["baregrad._core"]))
    stubs = [*package.glob("_core.pyi"), *package.glob("_core/**/*.pyi")]
    if not stubs:
        sys.exit("make_stubs: stubgen wrote nothing")
    for stub in stubs:
        text = stub.read_text(encoding="utf-8")
        text = re.sub(r"^__all__: list =", "__all__: list[str] =", text, flags=re.MULTILINE)
        text = with_whole_annotations(text)
        stub.write_text(with_imports(text, engine_names), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
