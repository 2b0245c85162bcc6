"""An error starts with the name of the function that was called, not of a function that it calls."""

import random
import re
import warnings

import pytest

import baregrad as bg

CALLS = 60

# Arguments for an annotation of a signature. Some fit, most do not.
SHAPES = [(2, 3), (3,), (), (0,), (2, 2, 2), (3, 3), (1, 2, 4, 4), (2, 0)]
DTYPES = [bg.float32, bg.float64, bg.int64, bg.bool, bg.float16, bg.uint8]
TENSORS = [bg.ones(shape, dtype=dtype) for shape in SHAPES for dtype in DTYPES]
TENSORS += [bg.asarray([7, -9, 0]), bg.asarray([[0, 9], [1, -9]]), bg.asarray([2.0, -1.0])]
INTS = [-9, -2, -1, 0, 1, 2, 3, 9]
AXES = [None, -9, -1, 0, 1, 7, (0, 0), (0, 9), (1, -9), ()]
SIZES = [(2, 3), (7,), (-1,), (-2, 3), (2, -1, -1), 0, 5, -3, (), (1, 2, 3, 4)]
KINDS = {
    "Tensor": TENSORS,
    "baregrad._core.Tensor": TENSORS,
    "int": INTS,
    "float": [-1.0, 0.0, 0.5, 2.0, float("nan"), float("inf")],
    "bool": [True, False],
    "str": ["mean", "none", "left", "ij", "relu", "nonsense", "reflect", "ij,jk->ik", "i,"],
    "DType": [bg.float32, bg.int8, bg.bool],
    "Device": [bg.Device("cpu"), bg.Device("cuda:63"), "gpu", 3.5],
    "baregrad._core.Device": [bg.Device("cpu"), bg.Device("cuda:63"), "gpu", 3.5],
    "None": [None],
}
# Errors without a name: those of Python itself, or of nanobind for arguments that do not fit.
FOREIGN = re.compile(r"\w+\(\): incompatible function arguments|__\w+__|.*'int'|.* object |.*unpack|.*not iterable")
# Functions that need files, callbacks or state; wait; or return objects that later calls use.
SKIPPED = {"load", "save", "from_dlpack", "set_num_threads", "manual_seed", "set_printoptions", "register_hook",
           "register_post_accumulate_grad_hook", "backward", "share_memory_", "from_numpy", "apply_", "map_",
           "__array_namespace__", "set_deterministic"}  # fmt: skip


def values_for(annotation):
    found = []
    if "Sequence[int]" in annotation or "Axes" in annotation or "Shape" in annotation:
        found += AXES if "None" in annotation else SIZES
    if "Sequence[" in annotation and "Tensor" in annotation or "Tensors" in annotation or "list[" in annotation:
        found += [TENSORS[:2], [TENSORS[0], TENSORS[-1]], []]
    for kind, values in KINDS.items():
        if re.search(rf"(?<![\w\[.]){re.escape(kind)}(?![\w\]])", annotation):
            found += values
    return found or [None, *INTS[:3], TENSORS[0]]


def parameters_of(signature):
    """(name, annotation, has a default, kind) of each parameter of "def f(a: T, /, *, b: U = 0) -> V"."""
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inside):
        depth += c in "[(" and 1 or c in "])" and -1 or 0
        if c == "," and depth == 0:
            parts.append(inside[start:i])
            start = i + 1
    parts.append(inside[start:])
    kind, found = "positional", []
    for part in (p.strip() for p in parts):
        if part == "*":
            kind = "keyword"
        elif part.startswith("*"):
            found.append((part.lstrip("*"), part.partition(":")[2], False, "several"))
            kind = "keyword"
        elif part and part not in ("/", "self"):
            name, _, annotation = part.partition(":")
            has_default = "=" in annotation
            found.append((name.strip(), annotation.split("=")[0], has_default, kind))
    return found


def arguments(choose, parameters):
    positional, keywords = [], {}
    for name, annotation, has_default, kind in parameters:
        if kind == "several":
            positional += [choose.choice(values_for(annotation)) for _ in range(choose.randrange(3))]
        elif kind == "keyword":
            if not has_default or choose.random() < 0.5:
                keywords[name] = choose.choice(values_for(annotation))
        elif has_default and (keywords or choose.random() < 0.4):
            break
        else:
            positional.append(choose.choice(values_for(annotation)))
    return positional, keywords


def callables():
    for prefix, space in [("bg", bg), ("linalg", bg.linalg), ("F", bg.nn.functional), ("Tensor", bg.Tensor)]:
        for name in sorted(dir(space)):
            member = getattr(space, name)
            if name.startswith("_") or name in SKIPPED or not hasattr(member, "__nb_signature__"):
                continue
            # An object with several names does not know by which it was called.
            names = {other for other in dir(space) if getattr(space, other) is member}
            yield pytest.param(prefix == "Tensor", member, names, id=f"{prefix}.{name}")


@pytest.mark.parametrize(("is_method", "function", "names"), callables())
def test_errors_start_with_the_name_that_was_called(is_method, function, names):
    choose = random.Random(sorted(names)[0])
    wrong = set()
    signatures = [parameters_of(overload[0]) for overload in function.__nb_signature__]
    for _ in range(CALLS):
        positional, keywords = arguments(choose, choose.choice(signatures))
        if is_method and not (positional and isinstance(positional[0], bg.Tensor)):
            positional.insert(0, choose.choice(TENSORS).clone())
        try:
            with warnings.catch_warnings(action="ignore"):
                function(*positional, **keywords)
        except (ValueError, IndexError, TypeError, RuntimeError, MemoryError) as error:
            said = str(error)
            if FOREIGN.match(said):
                continue
            if said.partition(":")[0] not in names:
                wrong.add(said[:100])
    assert not wrong, "\n".join(sorted(wrong))
