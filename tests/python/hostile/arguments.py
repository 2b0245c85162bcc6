"""Random arguments: some fit a parameter, some are invalid."""

from __future__ import annotations

import itertools
import random
from collections import OrderedDict
from typing import Any

import numpy as np

import baregrad as bg
from hostile import objects
from hostile.surface import Parameter

F = bg.nn.functional

DTYPES = [
    bg.bool, bg.int8, bg.int16, bg.int32, bg.int64, bg.uint8, bg.uint16, bg.uint32, bg.uint64,
    bg.float16, bg.bfloat16, bg.float32, bg.float64,
]  # fmt: skip
INTEGERS = [0, 1, 2, 3, -1, -2, 5, 63, 64, -64, 127, 128, 255, 65535, 2**31 - 1, 2**31, -(2**31)]
INTEGERS += [2**32, 2**40, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**70), 10**400]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e308, -1e308, 5e-324, 0.1, 2.5, 3e38]
FLOATS += [float("nan"), float("inf"), float("-inf")]
STRINGS = ["", "a", "sum", "mean", "none", "float32", "relu", "0", "weight", "a.b", "..", ".", "\0"]
STRINGS += ["w\0evil", "\udc80", "\ud800\udfff", "é", "x" * 5000, "%s%n", "{}", "\n", "ij,jk->ik"]
STRINGS += ["b i -> i b", "same", "reflect", "cpu", "cuda:0", "=f8", "i4", "no/such/file", "f.npz"]
SHAPES = [(), (1,), (3,), (2, 3), (3, 3), (3, 2), (0,), (0, 3), (2, 0, 3), (2, 3, 4), (1, 2, 4, 4)]
SHAPES += [(2, 1, 3), (1, 1, 2, 4, 4), (1,) * 16, (2, 2, 2, 2), (4, 2, 5)]
NUMPY_TYPES = ["f2", "f4", "f8", ">f4", ">i8", "i1", "u8", "?", "c8", "c16", "U3", "S2", "M8[s]"]

# Names of parameters and arguments that fit them.
AXES = {"axis", "axes", "dim", "dims", "start_dim", "end_dim", "source", "destination", "dim0"}
AXES |= {"dim1", "axis1", "axis2"}
TENSORS = {"x", "x1", "x2", "input", "other", "a", "b", "tensor", "value", "target", "weight", "bias"}
TENSORS |= {"query", "key", "gradient", "mask", "outputs", "inputs", "output", "end", "data", "object"}
INDICES = {"index", "indices", "labels", "target", "repeats"}
SHAPE_NAMES = {"shape", "size", "sizes", "normalized_shape", "output_size", "kernel_size", "stride"}
SHAPE_NAMES |= {"padding", "dilation", "pad", "shifts", "reps", "repeats", "block"}
COUNTS = {"n", "num", "k", "in_features", "out_features", "in_channels", "out_channels", "groups"}
COUNTS |= {"num_layers", "hidden_size", "input_size", "num_heads", "embed_dim", "batch_size", "count"}
COUNTS |= {"step_size", "T_max", "epochs", "total_steps", "seed", "num_classes", "start", "stop"}
CALLABLES = {"fn", "function", "hook", "transform", "lr_lambda", "func", "closure", "callable", "f"}


def build(make: Any) -> Any:
    """The result of a maker; None if it fails."""
    try:
        return make()
    except Exception:  # noqa: BLE001: an argument that cannot be made is not this test's subject
        return None


class Draw:
    """Draws from one stream of random numbers."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.last: Any = None
        self.modules_made = 0

    def choice(self, items: Any) -> Any:
        return self.random.choice(items)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    # ---- Tensors

    def good_tensor(self) -> Any:
        shape = self.choice(SHAPES[:11])
        dtype = self.choice([bg.float32, bg.float32, bg.float64, bg.int64, bg.bool])
        x = bg.arange(int(np.prod(shape)), dtype=bg.float32).reshape(shape) * 0.25 - 0.5
        x = x.astype(dtype)
        if dtype in (bg.float32, bg.float64) and self.chance(0.3):
            x.requires_grad_()
        return x

    def index_tensor(self) -> Any:
        shape = self.choice([(), (3,), (2, 3), (0,), (1,)])
        low, high = self.choice([(0, 2), (-1, 3), (-9, 9), (2**62, 2**63 - 1)])
        values = [self.random.randint(low, high) for _ in range(int(np.prod(shape)))]
        dtype = self.choice(["i8", "i8", "i4", "u1", "f4", "?"])
        return build(lambda: bg.asarray(np.array(values).astype(dtype).reshape(shape)))

    def tensor(self) -> Any:
        """Every dtype, every layout."""
        dtype = self.choice(DTYPES)
        shape = self.choice(SHAPES)
        kind = self.random.randrange(16)
        if kind == 0 and self.last is not None:
            return self.last
        if kind == 1:
            return bg.Tensor.__new__(bg.Tensor)
        if kind == 2:
            return build(lambda: bg.zeros((2, 0, 2**40), dtype=dtype))
        if kind == 3:
            return bg.full((2, 3), self.choice([2**62, -(2**63), -1]), dtype=bg.int64)
        if kind == 4:
            return bg.full((2, 3), self.choice(FLOATS), dtype=bg.float32)
        x = bg.ones(shape, dtype=dtype)
        if kind == 5:
            x = x.mT if x.ndim > 1 else x
        elif kind == 6:
            x = bg.broadcast_to(bg.ones((), dtype=dtype), (3, 4))
        elif kind == 7:
            x = bg.ones((7, 5), dtype=dtype)[::2, ::-1]
        elif kind == 8 and dtype in DTYPES[9:]:
            x.requires_grad_()
        elif kind == 9 and dtype in DTYPES[9:]:
            x = x.requires_grad_() * 2
        elif kind == 10:
            # The array is freed, its memory is still in use.
            x = bg.asarray(np.ones((2, 3), dtype=np.float32))
        elif kind == 11:
            x = build(lambda: bg.asarray(objects.read_only_array()))
        elif kind == 12:
            x = build(lambda: bg.from_dlpack(np.arange(6.0).reshape(3, 2).T))
        elif kind == 13:
            x = bg.nn.Parameter(bg.ones((2, 3)))
        elif kind == 14:
            x = build(lambda: objects.SubTensor([1.0, 2.0]))
        self.last = x
        return x

    # ---- Everything else

    def number(self) -> Any:
        kind = self.random.randrange(8)
        if kind < 3:
            return self.choice(INTEGERS)
        if kind < 5:
            return self.choice(FLOATS)
        if kind == 5:
            return self.choice([True, False, 1j, np.int8(3), np.float32(2), np.float64("nan")])
        if kind == 6:
            return self.choice([np.uint64(2**64 - 1), np.bool_(True), np.longdouble(1), np.int64(-1)])
        return self.random.randint(-4, 8)

    def shape(self) -> Any:
        size = self.random.randrange(5)
        items = [self.choice([0, 1, 2, 3, 2, 3, -1, self.number()]) for _ in range(size)]
        return self.choice([tuple, list])(items)

    def text(self) -> str:
        return self.choice(STRINGS)

    def callable(self) -> Any:
        tensor = bg.ones(())
        return self.choice(
            [
                lambda *a, **k: a[0] if a else None,
                lambda *a, **k: a,
                lambda *a, **k: None,
                lambda *a, **k: (a[0] * 2).sum() if a else tensor,
                lambda *a, **k: objects.cleared_list(),
                lambda *a, **k: (a[0], None) if a else None,
                lambda *a, **k: (),
                lambda *a, **k: 2**70,
                lambda *a, **k: "text",
                lambda: 1.0,
                objects._raise,
                lambda *a, **k: bg.Tensor.__new__(bg.Tensor),
                len,
                bg.sin,
                bg.nn.ReLU(),
                objects.Function.apply,
                objects.BadFunction.apply,
                dict,
                type,
            ]
        )

    def module(self) -> Any:
        nn = bg.nn
        return self.choice(
            [
                lambda: nn.Linear(3, 2),
                lambda: nn.ReLU(),
                lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh()),
                lambda: nn.Sequential(),
                lambda: nn.BatchNorm1d(3),
                lambda: nn.ModuleList([nn.Linear(2, 2)]),
                lambda: nn.ModuleDict({"a": nn.ReLU()}),
                lambda: objects.SubModule(),
                lambda: objects.ModuleThat(self.callable()),
                lambda: nn.Module(),
                lambda: nn.Module.__new__(nn.Linear),
                lambda: nn.GRU(3, 2),
                lambda: nn.MultiheadAttention(4, 2),
            ]
        )()

    def sequence(self) -> Any:
        draws = [self.tensor, self.number, self.text, self.good_tensor]
        draws += [lambda: self.random.randrange(3), lambda: None, self.shape]
        draw = self.choice(draws)
        items = [draw() for _ in range(self.random.randrange(6))]
        return self.choice([list, tuple, tuple, iter, objects.BadList, objects.LyingTuple])(items)

    def mapping(self) -> Any:
        keys = [self.text() for _ in range(self.random.randrange(4))]
        values = self.choice([self.tensor, self.number, self.text, self.good_tensor, self.module])
        kind = self.choice([dict, dict, OrderedDict, objects.BadDict])
        made = kind((key, values()) for key in keys)
        if self.chance(0.1):
            made[self.choice([None, 1, (), b"a"])] = values()
        if self.chance(0.1):
            made["self"] = made
        return made

    def object(self) -> Any:
        """Raises, returns wrong values, or has an unusual type."""
        nasty = [
            lambda: objects.raising(*objects.CONVERSIONS),
            lambda: objects.raising(self.choice(objects.CONVERSIONS)),
            lambda: objects.raising("__class__", "__getattribute__", "__getattr__"),
            lambda: objects.answering(self.number(), *objects.CONVERSIONS[:12]),
            lambda: objects.answering(self.number(), self.choice(objects.CONVERSIONS)),
            lambda: objects.answering(self.tensor(), "__array__", "__dlpack__", "__getitem__"),
            lambda: objects.answering(np.ones(3), "__array__", "__index__", "__float__"),
            lambda: objects.answering(None, *objects.CONVERSIONS),
            lambda: objects.answering(self.text(), *objects.CONVERSIONS),
            lambda: objects.answering(objects.used_capsule(), "__dlpack__"),
            lambda: objects.answering((self.number(), self.number()), "__dlpack_device__", "shape"),
            objects.Anything,
            objects.Pretends,
            lambda: objects.LongerThanItIs(self.choice([3, 0, 2**31, 2**62]), self.choice([0, 2])),
            lambda: objects.BadInt(2),
            lambda: objects.BadFloat(2.0),
            lambda: objects.BadStr("sum"),
            lambda: objects.BadList([1, 2]),
            lambda: objects.BadTuple((1, 2)),
            lambda: objects.LyingTuple((1, 2)),
            lambda: objects.BadDict(a=1),
            lambda: objects.cleared_list(self.choice([0, 1, 2, -1])),
            lambda: objects.cleared_list(self.choice([0, 1, 2]), objects.Grows),
            lambda: tuple(objects.cleared_list()),
            lambda: objects.cleared_dict(self.tensor()),
            lambda: [objects.cleared_list(), objects.cleared_list()],
            objects.loop_list,
            lambda: objects.deep_list(self.choice([3, 17, 70, 3000])),
            lambda: objects.stopping_generator(self.random.randrange(3)),
            lambda: (i for i in range(3)),
            lambda: [0] * self.choice([65, 300, 20000]),
            lambda: [1, [2, 3], 4],
            lambda: [[1, 2], [3]],
            lambda: ["a", 1, None],
            objects.read_only_array,
            objects.released_view,
            lambda: memoryview(b"abcdefgh").cast("d"),
            lambda: np.ones((2, 3), self.choice(NUMPY_TYPES[:10])),
            lambda: build(lambda: np.zeros((2,), self.choice(NUMPY_TYPES))),
            lambda: np.array([None, 1], dtype=object),
            lambda: np.ones((1,) * 30),
            lambda: np.broadcast_to(np.float32(1), (3, 4)),
            lambda: np.lib.stride_tricks.as_strided(np.arange(9.0), (3, 3), (8, 8)),
            lambda: np.ones((4, 3))[::-1, ::2],
            lambda: np.frombuffer(b"\1" * 17, np.uint8)[1:].view("f4"),
            lambda: bytes(self.random.randrange(256) for _ in range(9)),
            lambda: bytearray(b"ab"),
            lambda: slice(self.number(), self.number(), self.number()),
            lambda: slice(None, None, self.choice([0, -1, 2**63, None])),
            lambda: range(self.choice([0, 3, 2**40])),
            lambda: {1, 2},
            lambda: frozenset(),
            lambda: ...,
            lambda: NotImplemented,
            lambda: object(),
            lambda: type,
            lambda: objects.SubTensor,
            lambda: bg,
            lambda: bg.nn.Linear,
            lambda: bg.Generator(3),
            lambda: bg.Generator.__new__(bg.Generator),
            lambda: itertools.islice(itertools.count(), 4),
            lambda: Exception("an exception"),
            lambda: ValueError,
            lambda: bg.optim.SGD([bg.nn.Parameter(bg.ones(2))], 0.1),
            lambda: bg.data.TensorDataset(bg.arange(5)),
        ]
        return build(self.choice(nasty))

    def nasty(self) -> Any:
        """Any object."""
        kind = self.random.randrange(20)
        if kind < 5:
            return self.tensor()
        if kind < 8:
            return self.number()
        if kind < 10:
            return self.sequence()
        if kind == 10:
            return self.text()
        if kind == 11:
            return self.shape()
        if kind == 12:
            return build(self.module)
        if kind == 13:
            return build(self.mapping)
        if kind == 14:
            return self.callable()
        if kind == 15:
            return None
        if kind == 16:
            return self.choice(DTYPES)
        return self.object()

    # ---- Fitting arguments

    def fitting(self, parameter: Parameter) -> Any:
        name, note = parameter.name.lower(), parameter.annotation
        if "dtype" in name or "DType" in note:
            return self.choice([*DTYPES, "float32", "int64", np.float32, float, None])
        if name in AXES:
            axis = self.choice([0, 0, 1, -1, 2, None])
            return (axis,) if "equence" in note or "uple" in note and self.chance(0.5) else axis
        if name in INDICES and "Tensor" in note:
            return self.index_tensor()
        if name in CALLABLES or "Callable" in note:
            return self.callable()
        if "Generator" in note:
            return bg.Generator(self.random.randrange(5))
        if name in SHAPE_NAMES and ("int" in note or not note):
            whole = self.choice([1, 2, 3, 0])
            return self.choice([whole, (whole,), (2, whole), (2, 3), [whole, 1, 2]])
        if "path" in name or "PathLike" in note or name in {"file", "folder", "filename"}:
            return self.choice(["some.npy", "f.npz", "f.safetensors", "missing", ".", "", b"f.npy"])
        if "Module" in note or name in {"module", "model", "network", "net"}:
            return self.module()
        if name in {"params", "parameters"}:
            return list(bg.nn.Linear(3, 2).parameters())
        if name == "optimizer":
            return bg.optim.SGD(bg.nn.Linear(3, 2).parameters(), lr=0.1, momentum=0.9)
        if name in {"tensors", "arrays"} or "Sequence[Tensor" in note or "list[Tensor" in note:
            x = self.good_tensor()
            return self.choice([[x, x], (x,), [x, self.good_tensor()]])
        if name in COUNTS or note in {"int", "int | None"}:
            return self.choice([1, 2, 3, 4, 0])
        if note in {"bool", "bool | None"}:
            return self.chance(0.5)
        if note in {"float", "float | None"}:
            return self.choice([0.1, 0.5, 1.0, 0.0, 2])
        if "str" in note and "Tensor" not in note:
            return self.choice(["mean", "sum", "none", "a", "constant", "ij,jk->ik", "relu", "fro"])
        if "dataset" in name:
            return self.choice([[1, 2, 3], bg.data.TensorDataset(bg.arange(6)), range(5)])
        if "state" in name or "ict" in note or "Mapping" in note:
            return self.mapping()
        if name in TENSORS or "Tensor" in note or name.startswith("x"):
            return self.good_tensor()
        return self.choice([self.good_tensor, self.number, self.shape, self.sequence])()

    def call(self, signatures: list[list[Parameter]]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for a callable with one of these signatures."""
        how = self.random.random()
        if not signatures or how < 0.2:
            count = self.choice([0, 1, 1, 2, 2, 3, 4, 6])
            args = [self.nasty() for _ in range(count)]
            keys = [self.text() for _ in range(self.choice([0, 0, 0, 1, 2]))]
            return args, {key: self.nasty() for key in keys}
        parameters = self.choice(signatures)
        # The number of wrong arguments.
        spoil = 0.0 if how < 0.35 else self.choice([0.2, 0.2, 0.5, 1.0])
        wrong = self.random.randrange(len(parameters)) if parameters and spoil == 0.2 else -1
        args, keywords, by_name = [], {}, False
        for i, parameter in enumerate(parameters):
            if not parameter.required and self.chance(0.5) and i != wrong:
                by_name = True
                continue
            bad = i == wrong or (spoil > 0.2 and self.chance(spoil))
            value = self.nasty() if bad else self.fitting(parameter)
            if parameter.keyword_only or by_name:
                keywords[parameter.name] = value
            else:
                args.append(value)
        if self.chance(0.03):
            keywords[self.text()] = self.nasty()
        if self.chance(0.03):
            args.append(self.nasty())
        return args, keywords
