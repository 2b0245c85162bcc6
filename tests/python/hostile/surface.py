"""The public callables of the package: functions, constructors, methods, properties, operators."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import baregrad as bg

# Dunder names of Python's own class machinery.
NOT_CALLED = {
    "__abstractmethods__",
    "__annotations__",
    "__class_getitem__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__init_subclass__",
    "__match_args__",
    "__module__",
    "__new__",
    "__orig_bases__",
    "__parameters__",
    "__qualname__",
    "__slots__",
    "__subclasshook__",
    "__weakref__",
}
# Records and pictures of experiments: a program rather than a library.
LEFT_OUT = {"baregrad.lab"}


@dataclass
class Parameter:
    """One parameter of a callable: its name and annotation, empty where unknown."""

    name: str
    annotation: str = ""
    required: bool = False
    keyword_only: bool = False


@dataclass
class Target:
    """Something that can be called: ``kind`` is function, class, method, get, set or delete."""

    name: str
    kind: str
    value: Any = None
    owner: type | None = None
    attribute: str = ""
    signatures: list[list[Parameter]] = field(default_factory=list)


def modules() -> list[types.ModuleType]:
    """The public modules, each once."""
    found: dict[str, types.ModuleType] = {}
    waiting = [bg]
    while waiting:
        module = waiting.pop()
        found[module.__name__] = module
        for key, value in sorted(vars(module).items()):
            if key.startswith("_") or not isinstance(value, types.ModuleType):
                continue
            name = value.__name__
            public = name.startswith("baregrad.") and not any(p.startswith("_") for p in name.split("."))
            if public and name not in LEFT_OUT and name not in found:
                waiting.append(value)
    return [found[name] for name in sorted(found)]


def _is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "baregrad").startswith("baregrad")


def public_classes() -> dict[str, type]:
    """Public classes by the shortest name they have."""
    found: dict[type, str] = {}
    for module in modules():
        for key, value in sorted(vars(module).items()):
            if key.startswith("_") or not inspect.isclass(value) or not _is_ours(value):
                continue
            name = f"{module.__name__}.{key}"
            if value not in found or len(name) < len(found[value]):
                found[value] = name
    return {name: kind for kind, name in sorted(found.items(), key=lambda item: item[1])}


def targets() -> list[Target]:
    """All targets by name. Methods inherited from a public class belong to that class."""
    out: dict[str, Target] = {}
    functions: dict[int, str] = {}
    classes = public_classes()
    for module in modules():
        for key, value in sorted(vars(module).items()):
            if inspect.isclass(value) or isinstance(value, types.ModuleType):
                continue
            dunder = key.startswith("__array_namespace_info")
            if (key.startswith("_") and not dunder) or not callable(value) or not _is_ours(value):
                continue
            name = f"{module.__name__}.{key}"
            # The same function under the names of two modules is one target.
            if id(value) in functions:
                continue
            functions[id(value)] = name
            out[name] = Target(name, "function", value, signatures=signatures_of(value))
    for name, kind in classes.items():
        out[name] = Target(name, "class", kind, kind, signatures=_constructor(kind))
        for target in _members(name, kind, set(classes.values())):
            out[target.name] = target
    return [out[name] for name in sorted(out)]


def _constructor(kind: type) -> list[list[Parameter]]:
    found = [s[1:] if s and s[0].name == "self" else s for s in signatures_of(kind.__init__)]
    return found or signatures_of(kind)


def _members(prefix: str, kind: type, public: set[type]) -> Iterator[Target]:
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("baregrad") or (base is not kind and base in public):
            continue
        for key in sorted(vars(base)):
            private = key.startswith("_") and not (key.startswith("__") and key.endswith("__"))
            if private or key in NOT_CALLED or key in seen:
                continue
            seen.add(key)
            value = inspect.getattr_static(kind, key)
            name = f"{prefix}.{key}"
            if isinstance(value, property) or inspect.isdatadescriptor(value):
                for what in ("get", "set", "delete"):
                    yield Target(f"{name}:{what}", what, value, kind, key)
            elif callable(getattr(kind, key, None)):
                found = signatures_of(getattr(kind, key))
                found = [s[1:] if s and s[0].name in ("self", "arg") else s for s in found]
                yield Target(name, "method", value, kind, key, found)


# ---- Signatures


def signatures_of(value: Callable[..., Any]) -> list[list[Parameter]]:
    """The known parameters; empty if none are known."""
    texts = getattr(value, "__nb_signature__", None)
    if texts:
        return [found for text in texts if (found := _parsed(text[0])) is not None]
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    out = []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        text = "" if p.annotation is p.empty else str(p.annotation)
        out.append(Parameter(p.name, text, p.default is p.empty, p.kind is p.KEYWORD_ONLY))
    return [out]


def _parsed(text: str) -> list[Parameter] | None:
    """Parses parameters from nanobind's text; defaults are written as backslash and number."""
    text = text.replace("\\", "0x")
    try:
        function = ast.parse(text + ": ...").body[0]
    except SyntaxError:
        return None
    if not isinstance(function, ast.FunctionDef):
        return None
    args = function.args
    positional = args.posonlyargs + args.args
    required = len(positional) - len(args.defaults)
    out = []
    for i, arg in enumerate(positional):
        note = ast.unparse(arg.annotation) if arg.annotation else ""
        out.append(Parameter(arg.arg, note, i < required))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        note = ast.unparse(arg.annotation) if arg.annotation else ""
        out.append(Parameter(arg.arg, note, default is None, True))
    return out
