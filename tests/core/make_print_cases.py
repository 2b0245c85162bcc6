#!/usr/bin/env python3
"""Writes print_cases.txt: arrays and NumPy's str() of them. --check only compares."""

import argparse
import itertools
import math
import pathlib
import random
import sys
import textwrap

import numpy as np

GOLDEN = pathlib.Path(__file__).with_name("print_cases.txt")
HEADER = f"""\
# Arrays and what str() of them is in NumPy {np.__version__}. Written by make_print_cases.py.
#
#   case NAME
#   array DTYPE SHAPE OPTION=VALUE...
#   data BITS...      elements as hexadecimal bits, row-major, repeated until the shape is full
#   |TEXT|            the expected lines, between bars
"""

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")

# Our names of the options, and NumPy's.
OPTIONS = {
    "precision": "precision",
    "threshold": "threshold",
    "edge_items": "edgeitems",
    "line_width": "linewidth",
    "suppress": "suppress",
}


def log_uniform(rng, low, high):
    return 10.0 ** rng.uniform(math.log10(low), math.log10(high))


def signed(rng, value):
    return -value if rng.random() < 0.5 else value


# Each takes a generator and a dtype's finfo and returns one value.
FLOAT_VALUES = {
    "whole": lambda rng, info: float(rng.randint(0, 99)),
    "signed_whole": lambda rng, info: float(rng.randint(-500, 500)),
    "quarters": lambda rng, info: rng.randint(-40, 40) / 4,
    "unit": lambda rng, info: rng.random(),
    "normal": lambda rng, info: rng.gauss(0, 1),
    "tiny": lambda rng, info: signed(rng, float(info.tiny) * log_uniform(rng, 1, 1e3)),
    "huge": lambda rng, info: signed(rng, float(info.max) * log_uniform(rng, 1e-2, 1)),
    "mixed": lambda rng, info: signed(rng, log_uniform(rng, 1e-7, min(float(info.max), 1e12))),
    "hundreds": lambda rng, info: log_uniform(rng, 1, 999),
    "subnormal": lambda rng, info: signed(rng, float(info.tiny) * rng.random()),
    "zeros": lambda rng, info: rng.choice((0.0, -0.0, 0.5, -2.0)),
    "non_finite": lambda rng, info: rng.choice((math.nan, math.inf, -math.inf, rng.gauss(0, 9))),
    "nan_and_tiny": lambda rng, info: rng.choice((math.nan, -math.inf, 1e-6, 3.25)),
    "only_non_finite": lambda rng, info: rng.choice((math.nan, math.inf)),
    "powers_of_two": lambda rng, info: math.ldexp(1.0, rng.randint(info.minexp, info.maxexp - 1)),
    "powers_of_ten": lambda rng, info: 10.0 ** rng.randint(-7, int(math.log10(float(info.max)))),
    "small_powers_of_two": lambda rng, info: math.ldexp(1.0, rng.randint(-9, 9)),
    "ties": lambda rng, info: rng.randint(0, 64) / 16,
    "nines": lambda rng, info: 10.0 ** rng.randint(-3, 2) * (1 - 10.0 ** -rng.randint(1, 9)),
    "any_bits": lambda rng, info: float(
        np.array(rng.getrandbits(info.bits), dtype=f"uint{info.bits}").view(info.dtype)
    ),
}

# Around the limits between fixed and exponent form.
EDGES = {
    "float16": (
        [999.5], [1000.0], [1e-4], [9.99e-5], [1.0, 0.001], [1.0, 0.0009995], [13.7, 0.0137],
        [65504.0, 1.0],
    ),
    "float32": (
        [999999.94], [1e6], [1e-4], [9.999999e-5], [1.0, 0.001], [1.0, 0.00099999994],
        [95.9, 0.0959], [3.4e38, 1e-45], [1e-5, 1234.5678], [1e-5, 1e5], [0.1, 0.2, 0.3],
    ),
    "float64": (
        [99999999.99999999], [1e8], [1e-4], [9.999999999999999e-5], [1.0, 0.001],
        [1.0, 0.0009999999999999998], [1.7e308, 5e-324], [1e-100, 1.0], [1e99, 9.999999999e99],
        [0.1 + 0.2], [1 / 3, 2 / 3], [123456.789, 1000.0], [0.000123456789123, 0.1],
        # Their 16 nearest digits would read back as the value below.
        [2.0**149, 1.234567890123456], [2.0**-645, 1.234567890123456],
    ),
}  # fmt: skip

LONE_FLOATS = (
    0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 100.0, 999.5, 1e3, 12345.678, 999999.94, 1e6, 1e8, 9.99e15,
    1e16, 1e-4, 1.1e-4, 9.9e-5, 3e-8, 6e-8, 65504.0, 1e-45, 5e-324, 1.7976931348623157e308,
    math.pi, math.nan, math.inf, -math.inf,
)  # fmt: skip


def case(name, dtype, shape, values, **options):
    """One case; `values` may be shorter than the shape and is then repeated."""
    with np.errstate(over="ignore"):
        stored = np.array(values, dtype=dtype)
    array = np.resize(stored, shape) if math.prod(shape) > 0 else np.zeros(shape, dtype)
    with np.printoptions(**{OPTIONS[key]: value for key, value in options.items()}):
        text = str(array)
    width = stored.dtype.itemsize
    bits = " ".join(f"{b:0{2 * width}x}" for b in stored.view(f"u{width}").tolist())
    settings = "".join(f" {key}={int(value)}" for key, value in options.items())
    sizes = ",".join(map(str, shape))
    lines = [f"case {name}", f"array {dtype} [{sizes}]{settings}"]
    lines += [f"data {line}" for line in textwrap.wrap(bits, 90)]
    lines += [f"|{line}|" for line in text.split("\n")]
    return name, "\n".join(lines) + "\n"


def draw(rng, dtype, kind, count):
    info = np.finfo(dtype)
    return [FLOAT_VALUES[kind](rng, info) for _ in range(count)]


def draw_ints(rng, dtype, kind, count):
    info = np.iinfo(dtype)
    low, high = {
        "small": (max(info.min, -9), 9),
        "wide": (info.min, info.max),
        "positive": (0, min(info.max, 12345)),
        "extremes": (info.min, info.max),
    }[kind]
    if kind == "extremes":
        return [low, high, 0, 1][:count]
    return [rng.randint(low, high) for _ in range(count)]


def spell(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def float_cases(salt):
    settings = (
        ("default", {}),
        ("precision3", {"precision": 3}),
        ("suppress", {"suppress": True}),
        ("suppress_precision2", {"suppress": True, "precision": 2}),
        ("line_width40", {"line_width": 40, "precision": 17}),
    )
    for dtype, kind, (label, options) in itertools.product(FLOATS, FLOAT_VALUES, settings):
        name = f"{dtype}_{kind}_{label}"
        rng = random.Random(name + salt)
        shape = rng.choice(((1,), (4,), (7,), (3, 2), (2, 5), (2, 2, 3)))
        yield case(name, dtype, shape, draw(rng, dtype, kind, math.prod(shape)), **options)
    for dtype in FLOATS:
        for i, values in enumerate(EDGES[dtype]):
            for label, options in settings:
                yield case(f"{dtype}_edge{i}_{label}", dtype, (len(values),), values, **options)
        yield case(f"{dtype}_precision0", dtype, (6,), [0.5, 1.5, 2.5, 3.25, 0.7, 10], precision=0)
        yield case(f"{dtype}_precision0_exponents", dtype, (3,), [9.5e3, 1e-6, 3], precision=0)


def lone_cases(salt):
    del salt
    for dtype in FLOATS:
        for i, value in enumerate(LONE_FLOATS):
            yield case(f"{dtype}_lone{i}", dtype, (), [value])
        yield case(f"{dtype}_lone_options", dtype, (), [2 / 3], precision=2, threshold=0)
    for dtype in (*SIGNED, *UNSIGNED):
        yield case(f"{dtype}_lone", dtype, (), [np.iinfo(dtype).min])
        yield case(f"{dtype}_lone_max", dtype, (), [np.iinfo(dtype).max])
    for value in (False, True):
        yield case(f"bool_lone_{value}", "bool", (), [value])


def integer_cases(salt):
    kinds = ("small", "wide", "positive", "extremes")
    for dtype, kind in itertools.product((*SIGNED, *UNSIGNED), kinds):
        name = f"{dtype}_{kind}"
        rng = random.Random(name + salt)
        shape = (4,) if kind == "extremes" else rng.choice(((5,), (3, 4), (2, 2, 2), (23,)))
        yield case(name, dtype, shape, draw_ints(rng, dtype, kind, math.prod(shape)))
    for shape in ((1,), (2,), (6,), (40,), (2, 3), (3, 1, 2)):
        name = f"bool_{spell(shape)}"
        rng = random.Random(name + salt)
        yield case(name, "bool", shape, [rng.random() < 0.5 for _ in range(math.prod(shape))])
    yield case("bool_all_true", "bool", (3,), [True])


def shape_cases(salt):
    shapes = (
        (0,), (0, 3), (2, 0), (2, 0, 3), (1, 1), (1, 1, 1), (5, 1), (1, 5), (2, 2, 2, 2),
        (1, 2, 1, 2, 1), (3, 30), (2, 2, 25), (1000,), (1, 1000), (10, 10, 10), (1,) * 16,
        (1,) * 15 + (30,), (2,) + (1,) * 14 + (2,),
    )  # fmt: skip
    for shape, dtype in itertools.product(shapes, ("int16", "float32")):
        name = f"{dtype}_shape_{spell(shape)}"
        rng = random.Random(name + salt)
        count = min(math.prod(shape), 41)
        whole = [rng.randint(-999, 999) for _ in range(count)]
        yield case(name, dtype, shape, whole if dtype == "int16" else [v / 8 for v in whole])


def summary_cases(salt):
    cuts = (
        ((1001,), {}),
        ((7,), {"threshold": 6}),
        ((6,), {"threshold": 5}),
        ((1,), {"threshold": 0}),
        ((11,), {"threshold": 10}),
        ((11,), {"threshold": 10, "edge_items": 1}),
        ((9, 9), {"threshold": 10, "edge_items": 2}),
        ((2, 20), {"threshold": 10}),
        ((20, 2), {"threshold": 10}),
        ((7, 7, 7), {"threshold": 10, "edge_items": 1}),
        ((3, 8, 9), {"threshold": 10}),
        ((1001,), {"line_width": 20}),
        ((1001,), {"edge_items": 30}),
        ((100, 100), {"line_width": 30, "precision": 2}),
        ((40, 40), {"line_width": 1}),
        ((3, 3, 3, 3, 3), {"threshold": 3, "edge_items": 1}),
        ((4,) * 4, {"threshold": 200, "edge_items": 1}),
        ((1,) * 15 + (1001,), {}),
    )
    for (shape, options), dtype in itertools.product(cuts, ("int32", "float64", "float16", "bool")):
        words = "_".join(f"{key}{value}" for key, value in options.items())
        name = f"{dtype}_summary_{spell(shape)}_{words or 'default'}"
        rng = random.Random(name + salt)
        count = min(math.prod(shape), 41)
        if dtype == "int32":
            values = [rng.randint(-99, 9999) for _ in range(count)]
        elif dtype == "bool":
            values = [rng.random() < 0.5 for _ in range(count)]
        else:
            values = draw(rng, dtype, rng.choice(("normal", "mixed", "whole")), count)
        yield case(name, dtype, shape, values, **options)
    # The widest number is not shown, and does not count.
    hidden = [1.0] * 5 + [123456.789] + [2.0] * 5
    yield case("float64_summary_hidden", "float64", (11,), hidden, threshold=10)
    yield case("int64_summary_hidden", "int64", (11,), [int(v) for v in hidden], threshold=10)


def generate(salt=""):
    parts = (float_cases, lone_cases, integer_cases, shape_cases, summary_cases)
    cases = [named for part in parts for named in part(salt)]
    assert len(dict(cases)) == len(cases), "two cases of one name"
    return HEADER + "".join("\n" + text for _, text in cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    parser.add_argument("--salt", default="", help="draw other values, for a wider hunt")
    options = parser.parse_args()
    text = generate(options.salt)
    if not options.check:
        options.out.write_text(text)
        print(f"{options.out.name}: {text.count(chr(10) + 'case ')} cases")
        return 0
    if options.out.read_text() != text:
        print(f"{options.out.name} is not what NumPy {np.__version__} says", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
