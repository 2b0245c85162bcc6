"""The array API standard, 2024.12: every name and signature, special values, promotion, dtypes.

Signatures are those of array_api_strict; the other expected values are written here as the standard
states them.
"""

import ast
import inspect
import itertools
import math
import re

import array_api_strict as strict
import numpy as np
import pytest

import baregrad as bg

INF, NAN, PI = math.inf, math.nan, math.pi

# Names of array_api_strict that are not in this version of the standard.
NOT_IN_2024 = {"isin", "broadcast_shapes", "eig", "eigvals"}
STRICTS_OWN = {
    "ArrayAPIStrictFlags", "Device", "get_array_api_strict_flags",
    "set_array_api_strict_flags", "reset_array_api_strict_flags",
}  # fmt: skip


def standard_functions(namespace):
    return sorted(
        name
        for name in namespace.__all__
        if inspect.isfunction(getattr(namespace, name, None))
        and not name.startswith("_")
        and name not in NOT_IN_2024 | STRICTS_OWN
    )


CASES = [(strict, bg, name) for name in standard_functions(strict)] + [
    (strict.linalg, bg.linalg, name) for name in standard_functions(strict.linalg)
]


def test_the_list_of_functions_is_the_standards():
    names = {name for _, _, name in CASES}
    assert {"abs", "clip", "cumulative_prod", "take_along_axis", "count_nonzero", "diff"} <= names
    assert {"cholesky", "svd", "matrix_norm"} <= names
    assert len(CASES) > 150


def declared(function):
    """The parameters of the first signature of one of our functions."""
    text, _, defaults = function.__nb_signature__[0]
    for i, default in enumerate(defaults or ()):
        text = text.replace(f"\\{i}", repr(default))
    arguments = ast.parse(text + ": ...").body[0].args
    kinds = inspect.Parameter
    found = []
    positional = [(a, kinds.POSITIONAL_ONLY) for a in arguments.posonlyargs]
    positional += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in arguments.args]
    without_default = len(positional) - len(arguments.defaults)
    for i, (a, kind) in enumerate(positional):
        if re.fullmatch(r"arg\d*", a.arg):  # nanobind's name for an unnamed parameter
            kind = kinds.POSITIONAL_ONLY
        default = arguments.defaults[i - without_default] if i >= without_default else None
        found.append((a.arg, kind, default))
    if arguments.vararg:
        found.append((arguments.vararg.arg, kinds.VAR_POSITIONAL, None))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((a.arg, kinds.KEYWORD_ONLY, default))
    return {name: (kind, default) for name, kind, default in found}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[2])
def test_signature(case):
    theirs, ours, name = case
    wanted = inspect.signature(getattr(theirs, name)).parameters.values()
    found = declared(getattr(ours, name))
    only = [k for k, (kind, _) in found.items() if kind == inspect.Parameter.POSITIONAL_ONLY]
    assert len(only) == sum(p.kind == p.POSITIONAL_ONLY for p in wanted)
    for p in wanted:
        if p.kind == p.POSITIONAL_ONLY:
            continue
        assert p.name in found, f"{name} has no parameter {p.name}"
        kind, default = found[p.name]
        assert kind == p.kind, p.name
        if p.default is None or isinstance(p.default, (bool, int, float, str)):
            assert ast.literal_eval(default) == p.default, p.name
    extra = set(found) - {p.name for p in wanted} - set(only)
    assert all(found[e][1] is not None for e in extra), "what is more must have a default"


@pytest.mark.parametrize("name", ["abs", "sum", "argmax", "sort", "concat", "reshape", "matmul"])
def test_positional_only_is_meant(name):
    with pytest.raises(TypeError):
        getattr(bg, name)(x=bg.ones((2, 2)))


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("sum", {"axis": 0, "dtype": bg.float64, "keepdims": True}),
        ("prod", {"axis": (0, 1), "dtype": None, "keepdims": True}),
        ("max", {"axis": 0, "keepdims": True}),
        ("std", {"axis": 0, "correction": 1, "keepdims": True}),
        ("all", {"axis": None, "keepdims": False}),
        ("argmax", {"axis": 1, "keepdims": True}),
        ("count_nonzero", {"axis": (0,), "keepdims": True}),
        ("cumulative_sum", {"axis": 1, "dtype": bg.float64, "include_initial": True}),
        ("diff", {"axis": 0, "n": 1, "prepend": None, "append": None}),
        ("sort", {"axis": 0, "descending": True, "stable": False}),
        ("argsort", {"axis": 0, "descending": True, "stable": False}),
        ("flip", {"axis": (0, 1)}),
        ("roll", {"shift": (1, 2), "axis": (0, 1)}),
        ("reshape", {"shape": (4,), "copy": True}),
        ("clip", {"min": None, "max": bg.ones(2)}),
        ("expand_dims", {"axis": 0}),
        ("permute_dims", {"axes": (1, 0)}),
        ("unstack", {"axis": 1}),
    ],
)
def test_keywords_are_taken(name, keywords):
    getattr(bg, name)(bg.ones((2, 2)), **keywords)


# ---- Special values, as the standard lists them --------------------------------------------------

UNARY = {
    "abs": [(NAN, NAN), (-0.0, 0.0), (-INF, INF)],
    "acos": [(NAN, NAN), (1.5, NAN), (-1.5, NAN), (1.0, 0.0)],
    "acosh": [(NAN, NAN), (0.5, NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(NAN, NAN), (1.5, NAN), (-1.5, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2)],
    "atanh": [(NAN, NAN), (-2.0, NAN), (2.0, NAN), (-1.0, -INF), (1.0, INF), (-0.0, -0.0)],
    "ceil": [(NAN, NAN), (INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
    "cos": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    "exp": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)],
    "expm1": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0)],
    "floor": [(NAN, NAN), (INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0)],
    "log": [(NAN, NAN), (-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log1p": [(NAN, NAN), (-2.0, NAN), (-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF)],
    "log2": [(NAN, NAN), (-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log10": [(NAN, NAN), (-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "negative": [(NAN, NAN), (0.0, -0.0), (-0.0, 0.0), (INF, -INF)],
    "reciprocal": [(NAN, NAN), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)],
    "round": [(NAN, NAN), (INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (0.5, 0.0),
              (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0)],
    "sign": [(NAN, NAN), (-0.0, 0.0), (0.0, 0.0), (-3.0, -1.0), (INF, 1.0)],
    "signbit": [(0.0, False), (-0.0, True), (INF, False), (-INF, True), (2.0, False),
                (-2.0, True), (NAN, False), (math.copysign(NAN, -1.0), True)],
    "sin": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "sinh": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "sqrt": [(NAN, NAN), (-1.0, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF)],
    "square": [(NAN, NAN), (-INF, INF), (-0.0, 0.0)],
    "tan": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "tanh": [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "trunc": [(NAN, NAN), (INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
    "isfinite": [(INF, False), (-INF, False), (NAN, False), (-0.0, True)],
    "isinf": [(INF, True), (-INF, True), (NAN, False), (1.0, False)],
    "isnan": [(INF, False), (-INF, False), (NAN, True), (1.0, False)],
}  # fmt: skip

BINARY = {
    "add": [(NAN, 1.0, NAN), (INF, -INF, NAN), (INF, INF, INF), (INF, 1.0, INF),
            (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, -1.0, 0.0)],
    "atan2": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (1.0, 0.0, PI / 2), (1.0, -0.0, PI / 2),
              (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, -0.0, PI), (0.0, -1.0, PI),
              (-0.0, 1.0, -0.0), (-0.0, 0.0, -0.0), (-0.0, -0.0, -PI), (-0.0, -1.0, -PI),
              (-1.0, 0.0, -PI / 2), (1.0, INF, 0.0), (1.0, -INF, PI), (-1.0, INF, -0.0),
              (-1.0, -INF, -PI), (INF, 1.0, PI / 2), (-INF, 1.0, -PI / 2), (INF, INF, PI / 4),
              (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4), (-INF, -INF, -3 * PI / 4)],
    "copysign": [(1.0, -0.0, -1.0), (-1.0, 0.0, 1.0), (0.0, -3.0, -0.0), (INF, -1.0, -INF)],
    "divide": [(NAN, 1.0, NAN), (INF, INF, NAN), (0.0, 0.0, NAN), (1.0, 0.0, INF),
               (1.0, -0.0, -INF), (-1.0, 0.0, -INF), (0.0, 1.0, 0.0), (0.0, -1.0, -0.0),
               (INF, 2.0, INF), (INF, -2.0, -INF), (1.0, INF, 0.0), (1.0, -INF, -0.0)],
    "floor_divide": [(NAN, 1.0, NAN), (INF, INF, NAN), (0.0, 0.0, NAN), (1.0, 0.0, INF),
                     (0.0, 1.0, 0.0), (0.0, -1.0, -0.0), (1.0, INF, 0.0), (-1.0, INF, -1.0),
                     (1.0, -INF, -1.0), (-1.0, -INF, 0.0)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (1.0, NAN, NAN)],
    "logaddexp": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, 1.0, INF), (1.0, INF, INF)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, 1.0, INF)],
    "minimum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (-INF, 1.0, -INF)],
    "multiply": [(NAN, 1.0, NAN), (INF, 0.0, NAN), (INF, -0.0, NAN), (INF, -INF, -INF),
                 (0.0, -1.0, -0.0), (-0.0, -1.0, 0.0)],
    "nextafter": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (-0.0, 0.0, 0.0), (0.0, -0.0, -0.0)],
    "pow": [(2.0, NAN, NAN), (1.0, NAN, 1.0), (NAN, 0.0, 1.0), (NAN, -0.0, 1.0), (INF, 0.0, 1.0),
            (NAN, 2.0, NAN), (2.0, INF, INF), (2.0, -INF, 0.0), (1.0, INF, 1.0), (-1.0, INF, 1.0),
            (0.5, INF, 0.0), (0.5, -INF, INF), (INF, 2.0, INF), (INF, -2.0, 0.0),
            (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0),
            (0.0, 2.0, 0.0), (0.0, -2.0, INF), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0),
            (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (-2.0, 0.5, NAN)],
    "remainder": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, 1.0, NAN), (-INF, 1.0, NAN),
                  (0.0, 0.0, NAN), (-0.0, 0.0, NAN), (1.0, 0.0, NAN), (0.0, 1.0, 0.0),
                  (-0.0, 1.0, 0.0), (0.0, -1.0, -0.0), (-0.0, -1.0, -0.0), (1.0, INF, 1.0),
                  (-1.0, INF, INF), (1.0, -INF, -INF), (-1.0, -INF, -1.0)],
    "subtract": [(NAN, 1.0, NAN), (INF, INF, NAN), (INF, -INF, INF), (0.0, 0.0, 0.0),
                 (-0.0, 0.0, -0.0)],
    "equal": [(NAN, NAN, False), (0.0, -0.0, True), (INF, INF, True), (-INF, INF, False)],
    "not_equal": [(NAN, NAN, True), (0.0, -0.0, False)],
    "less": [(NAN, 1.0, False), (-INF, INF, True), (-0.0, 0.0, False)],
    "less_equal": [(NAN, 1.0, False), (-0.0, 0.0, True)],
    "greater": [(NAN, 1.0, False), (0.0, -0.0, False), (INF, -INF, True)],
    "greater_equal": [(1.0, NAN, False), (-0.0, 0.0, True)],
}  # fmt: skip


def same_value(found, wanted, dtype):
    if isinstance(wanted, bool):
        return found is wanted
    if math.isnan(wanted):
        return math.isnan(found)
    if wanted == 0 or math.isinf(wanted):
        return found == wanted and math.copysign(1, found) == math.copysign(1, wanted)
    return abs(found - wanted) <= 2 * bg.finfo(dtype).eps * abs(wanted)


# Each value fills a tensor that is long enough for vectors and a remainder.
@pytest.mark.parametrize("dtype", [bg.float16, bg.float32, bg.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values(name, dtype):
    for x, wanted in UNARY[name]:
        out = getattr(bg, name)(bg.full(19, x, dtype=dtype))
        for found in (out[0].item(), out[18].item()):
            assert same_value(found, wanted, dtype), f"{name}({x}) gave {found}, not {wanted}"


@pytest.mark.parametrize("dtype", [bg.float16, bg.float32, bg.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", BINARY)
def test_binary_special_values(name, dtype):
    for x, y, wanted in BINARY[name]:
        out = getattr(bg, name)(bg.full(19, x, dtype=dtype), bg.full(19, y, dtype=dtype))
        for found in (out[0].item(), out[18].item()):
            assert same_value(found, wanted, dtype), f"{name}({x}, {y}): {found}, not {wanted}"


# ---- Promotion -----------------------------------------------------------------------------------

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
ALL = ("bool", *SIGNED, *UNSIGNED, *FLOATS)


def promoted(a, b):
    """The name of the common dtype, None where there is none."""
    if a == b:
        return a
    for one, other in ((a, b), (b, a)):
        if one == "bool":
            return other
        if one in FLOATS and other not in FLOATS:
            return one
    if a in FLOATS:
        # Neither half-precision format contains the other.
        return "float64" if "float64" in (a, b) else "float32"
    if a in SIGNED and b in SIGNED or a in UNSIGNED and b in UNSIGNED:
        return max(a, b, key=lambda d: int(d.lstrip("uint")))
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    bits = max(int(signed[3:]), 2 * int(unsigned[4:]))
    return f"int{bits}" if bits <= 64 else None


@pytest.mark.parametrize("a", ALL)
def test_promotion(a):
    for b in ALL:
        x, y = bg.ones(2, dtype=getattr(bg, a)), bg.ones(2, dtype=getattr(bg, b))
        wanted = promoted(a, b)
        if wanted is None:
            with pytest.raises(TypeError):
                bg.result_type(x, y)
            with pytest.raises(TypeError):
                bg.add(x, y)
            assert not bg.can_cast(x, y.dtype)
            continue
        assert bg.result_type(x.dtype, y).name == wanted
        assert bg.add(x, y).dtype.name == wanted
        assert bg.equal(x, y).dtype == bg.bool
        assert bg.can_cast(x, y.dtype) == (wanted == b)


def test_promotion_is_numpys_within_a_kind():
    for names in itertools.product(SIGNED + UNSIGNED, repeat=2):
        wanted = np.result_type(*names).name
        assert promoted(*names) == (wanted if wanted != "float64" else None)


@pytest.mark.parametrize("name", ALL)
def test_numbers_are_weak(name):
    dtype = getattr(bg, name)
    x = bg.ones(2, dtype=dtype)
    if name != "bool":
        assert bg.multiply(x, 2).dtype == bg.result_type(x, 2) == dtype
        assert bg.maximum(3, x).dtype == dtype
    assert bg.logical_and(x, True).dtype == bg.bool
    assert bg.result_type(True, x) == dtype
    wanted = dtype if name in FLOATS else bg.float32
    assert bg.add(x, 0.5).dtype == bg.result_type(0.5, dtype) == wanted


def test_result_type_needs_a_dtype():
    with pytest.raises(ValueError, match="result_type"):
        bg.result_type(1, 2.0)


# ---- Data types and the namespace itself ---------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo(name):
    ours, numpys = bg.finfo(getattr(bg, name)), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, field) == float(getattr(numpys, field)), field
    assert ours.dtype == getattr(bg, name)
    assert bg.finfo(bg.ones(1, dtype=ours.dtype)).max == ours.max


def test_finfo_of_bfloat16():
    info = bg.finfo(bg.bfloat16)
    assert (info.bits, info.eps, info.smallest_normal) == (16, 2.0**-7, 2.0**-126)
    assert info.max == (2 - 2.0**-7) * 2.0**127


@pytest.mark.parametrize("name", SIGNED + UNSIGNED)
def test_iinfo(name):
    ours, numpys = bg.iinfo(getattr(bg, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max) == (numpys.bits, numpys.min, numpys.max)
    assert ours.dtype == getattr(bg, name)


def test_info_of_the_wrong_kind():
    with pytest.raises(TypeError, match="finfo"):
        bg.finfo(bg.int8)
    with pytest.raises(TypeError, match="iinfo"):
        bg.iinfo(bg.float32)


KINDS = {
    "bool": ("bool",),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": (),
    "numeric": SIGNED + UNSIGNED + FLOATS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype(kind):
    for name in ALL:
        assert bg.isdtype(getattr(bg, name), kind) == (name in KINDS[kind])
        assert bg.isdtype(getattr(bg, name), (kind, bg.bool)) == (name in (*KINDS[kind], "bool"))


def test_isdtype_of_dtypes_and_of_nonsense():
    assert bg.isdtype(bg.int8, bg.int8)
    assert not bg.isdtype(bg.int8, bg.int16)
    with pytest.raises(ValueError, match="real floating"):
        bg.isdtype(bg.int8, "float")


def test_astype():
    x = bg.asarray([1.5, -2.5])
    assert bg.astype(x, bg.int32).dtype == bg.int32
    assert bg.astype(x, x.dtype).data_ptr() != x.data_ptr()
    assert bg.astype(x, x.dtype, copy=False).data_ptr() == x.data_ptr()
    assert bg.astype(x, bg.float64, device="cpu").dtype == bg.float64
    with pytest.raises(ValueError, match="astype: .*cuda:63"):
        bg.astype(x, bg.int32, device="cuda:63")


def test_namespace_info():
    info = bg.__array_namespace_info__()
    theirs = strict.__array_namespace_info__()
    assert set(info.capabilities()) == set(theirs.capabilities())
    assert info.capabilities()["max dimensions"] == 16
    bg.ones((1,) * 16)
    with pytest.raises(ValueError, match="16"):
        bg.ones((1,) * 17)
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == bg.ones(1).dtype
    assert info.default_dtypes(device="cpu")["integral"] == bg.asarray(1).dtype
    assert info.default_dtypes()["indexing"] == bg.argmax(bg.ones(1)).dtype
    for kind in (None, *KINDS):
        names = {n for n in theirs.dtypes(kind=kind) if "complex" not in n}
        assert set(info.dtypes(kind=kind)) == names
    assert info.dtypes(kind=("bool", "real floating"))["bool"] == bg.bool
    assert bg.__array_api_version__ == "2024.12"


def test_named_results():
    x = bg.asarray([3, 1, 3])
    assert bg.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert bg.unique_counts(x)._fields == ("values", "counts")
    assert bg.unique_inverse(x)._fields == ("values", "inverse_indices")
    q, r = bg.linalg.qr(bg.eye(2))
    assert bg.linalg.qr(bg.eye(2))._fields == ("Q", "R")
    assert bg.linalg.svd(bg.eye(2))._fields == ("U", "S", "Vh")
    assert bg.linalg.eigh(bg.eye(2))._fields == ("eigenvalues", "eigenvectors")
    assert bg.linalg.slogdet(bg.eye(2))._fields == ("sign", "logabsdet")
    assert bg.array_equal(bg.matmul(q, r), bg.eye(2))
