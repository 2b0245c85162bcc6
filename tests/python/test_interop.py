"""Memory shared with NumPy, buffers and DLPack: values, identity of memory, lifetimes, false
claims."""

import array
import ctypes
import gc
import io
import subprocess
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baregrad as bg

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
PLAIN = [np.dtype(name) for name in ["bool", *INTEGERS, "float16", "float32", "float64"]]
DTYPES = PLAIN + [BFLOAT16]
NAMES = [dtype.name for dtype in DTYPES]


def values(dtype, count):
    """Distinct numbers, in every dtype."""
    numbers = np.arange(count) % 2 if dtype == np.bool_ else np.arange(count) % 100
    return numbers.astype(dtype)


@st.composite
def strided(draw, dtypes=DTYPES):
    """An array with steps of both signs, axes in any order and perhaps a repeated one."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    steps = [draw(st.sampled_from([-2, -1, 1, 2])) for _ in shape]
    whole = values(dtype, int(np.prod([2 * n for n in shape]))).reshape([2 * n for n in shape])
    out = whole[(..., *(slice(None, None, step) for step in steps))]
    out = out.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        out = np.lib.stride_tricks.as_strided(out, (3, *out.shape), (0, *out.strides))
    return out


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- NumPy


@given(strided())
def test_numpy_arrays_come_in_shared(a):
    x = bg.asarray(a)
    assert x.shape == a.shape
    assert x.dtype.name == a.dtype.name
    back = x.numpy()
    assert same_bits(back, a)
    if a.size:
        assert np.shares_memory(back, a)
        assert [s for s, n in zip(back.strides, a.shape) if n > 1] == [
            s for s, n in zip(a.strides, a.shape) if n > 1
        ]


@given(strided(), st.sampled_from(NAMES))
def test_a_dtype_that_is_asked_for_converts(a, name):
    x = bg.asarray(a, dtype=name)
    want = a.astype(BFLOAT16 if name == "bfloat16" else name)
    assert same_bits(x.numpy(), np.asarray(want, order="C"))
    if a.dtype.name != name:
        with pytest.raises(ValueError, match="asarray: copy=False"):
            bg.asarray(a, dtype=name, copy=False)
    elif a.size:
        assert np.shares_memory(x.numpy(), a)


@given(strided())
def test_copies_are_apart(a):
    x = bg.asarray(a, copy=True)
    assert same_bits(x.numpy(), np.ascontiguousarray(a).reshape(a.shape))
    assert not np.shares_memory(x.numpy(), a)
    y = bg.tensor(a)
    assert not np.shares_memory(y.numpy(), a)


@given(strided(PLAIN))
def test_read_only_arrays_are_copied(a):
    a.flags.writeable = False
    x = bg.asarray(a)
    assert same_bits(x.numpy(), np.ascontiguousarray(a).reshape(a.shape))
    assert not np.shares_memory(x.numpy(), a)
    with pytest.raises(ValueError, match="read-only"):
        bg.asarray(a, copy=False)


@given(strided(PLAIN))
def test_the_other_byte_order_is_copied(a):
    swapped = a.astype(a.dtype.newbyteorder(">"))
    x = bg.asarray(swapped)
    assert same_bits(x.numpy(), np.asarray(a, order="C"))
    if a.dtype.itemsize > 1 and a.size:
        with pytest.raises(ValueError, match="bytes are in the other order"):
            bg.asarray(swapped, copy=False)


@given(st.sampled_from(PLAIN), st.booleans())
def test_fields_of_records_are_copied(dtype, flip):
    records = np.zeros(5, dtype=[("skip", "u1"), ("number", dtype)])
    records["number"] = values(dtype, 5)
    field = records["number"][:: -1 if flip else 1]
    assert same_bits(bg.asarray(field).numpy(), field.copy())
    if dtype.itemsize > 1:
        with pytest.raises(ValueError, match="no multiples"):
            bg.asarray(field, copy=False)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_unaligned_arrays_are_shared(dtype):
    raw = bytearray(1 + 3 * dtype.itemsize)
    a = np.frombuffer(raw, dtype=dtype, offset=1)
    a[:] = values(dtype, 3)
    x = bg.asarray(a)
    assert same_bits(x.numpy(), a)
    assert same_bits(np.asarray(x == x), np.array([True] * 3))


@given(strided(PLAIN))
def test_every_door_to_numpy_shares(a):
    x = bg.asarray(a)
    for out in (np.asarray(x), x.__array__(), x.numpy(), np.from_dlpack(x)):
        assert same_bits(out, a)
        assert not a.size or np.shares_memory(out, a)

    class OnlyInterface:
        __array_interface__ = x.__array_interface__

    assert same_bits(np.asarray(OnlyInterface()), a)


def test_writes_are_seen_on_the_other_side():
    a = np.zeros((2, 3), np.float32)
    x = bg.asarray(a)
    a[1, 2] = 4
    assert x.numpy()[1, 2] == 4
    x += 1
    assert a.tolist() == [[1, 1, 1], [1, 1, 5]]
    x.numpy()[0] = 7
    assert a[0].tolist() == [7, 7, 7]


def test_array_method():
    x = bg.asarray([1.0, 2.0])
    assert x.__array__().dtype == np.float32
    assert x.__array__(np.float64).dtype == np.float64
    assert x.__array__(dtype=np.float32, copy=False).ctypes.data == x.numpy().ctypes.data
    assert x.__array__(copy=True).ctypes.data != x.numpy().ctypes.data
    with pytest.raises(ValueError, match="__array__: copy=False"):
        x.__array__(np.float64, copy=False)
    assert np.array(x, copy=True).ctypes.data != x.numpy().ctypes.data
    assert np.asarray(x, dtype="i8").tolist() == [1, 2]
    assert np.array([x, x]).tolist() == [[1, 2], [1, 2]]


def test_bfloat16_arrays_go_both_ways():
    a = np.array([1.5, -2, np.inf], BFLOAT16)
    x = bg.asarray(a)
    assert x.dtype is bg.bfloat16
    a[0] = 3
    for out in (x.numpy(), np.asarray(x)):
        assert out.dtype == BFLOAT16
        assert out.ctypes.data == a.ctypes.data
        assert out.astype(float).tolist() == [3, -2, np.inf]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    assert not hasattr(x, "__array_interface__")
    assert np.asarray(bg.zeros((), dtype=bg.bfloat16)).shape == ()


def test_tensors_that_require_gradients_stay():
    x = bg.ones(3, requires_grad=True)
    for door in (x.numpy, lambda: np.asarray(x), x.__array__):
        with pytest.raises(RuntimeError, match=r"detach\(\)"):
            door()
    for door in (lambda: memoryview(x), x.__dlpack__, lambda: np.from_dlpack(x)):
        with pytest.raises(BufferError, match=r"detach\(\)"):
            door()
    assert not hasattr(x, "__array_interface__")


def test_numpy_scalars_keep_their_dtype():
    for dtype in PLAIN:
        assert bg.asarray(dtype.type(1)).dtype.name == dtype.name
    assert bg.asarray(BFLOAT16.type(1.5)).dtype is bg.bfloat16
    assert bg.asarray([np.float64(1.5), 2]).dtype is bg.float64
    assert bg.asarray([np.int8(1), True]).dtype is bg.int8
    assert bg.asarray([np.int8(1), 1.0]).dtype is bg.float32


@pytest.mark.parametrize(
    "a",
    [
        np.zeros(2, complex),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "U3"),
        np.zeros(2, object),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, np.longdouble),
        np.zeros(2, "V2"),
        np.zeros(2, ml_dtypes.float8_e4m3),
    ],
    ids=lambda a: str(a.dtype),
)
def test_dtypes_that_tensors_do_not_have(a):
    with pytest.raises(TypeError, match="asarray: no dtype"):
        bg.asarray(a)


def test_too_many_axes():
    assert bg.asarray(np.zeros((1,) * 16)).ndim == 16
    with pytest.raises(ValueError):
        bg.asarray(np.zeros((1,) * 17))


def test_numpy_is_imported_only_when_asked_for():
    code = (
        "import sys, baregrad as bg\n"
        "x = bg.asarray([[1.0, 2.0]]); memoryview(x).tolist(); bg.from_dlpack(x)\n"
        "assert 'numpy' not in sys.modules\n"
        "x.numpy()\n"
        "assert 'numpy' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_from_numpy_shares_or_refuses():
    a = np.arange(3)
    assert bg.from_numpy(a).numpy().ctypes.data == a.ctypes.data
    a.flags.writeable = False
    with pytest.raises(ValueError, match="from_numpy: copy=False"):
        bg.from_numpy(a)
    with pytest.raises(TypeError, match="from_numpy"):
        bg.from_numpy([1, 2])


# ---- The buffer protocol


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_arrays_of_the_standard_library(code):
    a = array.array(code, [1, 2, 3])
    x = bg.asarray(a)
    assert x.dtype.itemsize == a.itemsize
    a[1] = 9
    assert x.numpy().tolist() == [1, 9, 3]


def test_bytes_are_copied_and_bytearrays_shared():
    assert bg.asarray(b"abc").numpy().tolist() == [97, 98, 99]
    assert bg.asarray(b"").shape == (0,)
    with pytest.raises(ValueError, match="read-only"):
        bg.asarray(b"abc", copy=False)
    raw = bytearray(b"abc")
    x = bg.asarray(raw)
    raw[0] = 0
    assert x.numpy().tolist() == [0, 98, 99]
    with pytest.raises(BufferError):
        raw.append(1)  # would move the memory under x
    del x
    raw.append(1)


def test_memoryviews_with_steps_and_shapes():
    view = memoryview(bytearray(range(24)))
    assert bg.asarray(view[::-3]).numpy().tolist() == list(range(24))[::-3]
    assert bg.asarray(view.cast("h", (3, 4))).shape == (3, 4)
    assert bg.asarray(view[:1].cast("?", ())).dtype is bg.bool
    assert bg.asarray((ctypes.c_double * 2)(1, 2)).numpy().tolist() == [1, 2]
    assert bg.asarray((ctypes.c_long * 2)(1, -2)).numpy().tolist() == [1, -2]


def test_buffers_that_refuse():
    released = memoryview(b"abc")
    released.release()
    with pytest.raises(ValueError, match="released"):
        bg.asarray(released)
    with pytest.raises(TypeError, match="format"):
        bg.asarray(memoryview(b"abc").cast("c"))
    with pytest.raises(TypeError, match="format"):
        bg.asarray(array.array("u", "ab"))


@given(strided(PLAIN))
def test_tensors_have_buffers(a):
    x = bg.asarray(a)
    view = memoryview(x)
    assert view.format == memoryview(a).format
    assert view.shape == a.shape
    assert view.nbytes == a.nbytes
    assert not view.readonly
    if a.size:
        assert view.tobytes() == a.tobytes()
        assert view.c_contiguous == a.flags.c_contiguous
        assert view.f_contiguous == a.flags.f_contiguous
    if a.flags.c_contiguous:
        assert io.BytesIO(x).getvalue() == a.tobytes()


def test_buffers_in_an_order_that_does_not_lie_there():
    x = bg.asarray(np.zeros((2, 3)).T)
    for refused in (x, bg.asarray(np.zeros(4)[::2])):
        with pytest.raises(BufferError, match=r"contiguous\(\)"):
            io.BytesIO(refused)
    (ctypes.c_char * 48).from_buffer(bg.asarray(np.zeros((2, 3))))


# ---- DLPack


@given(strided())
def test_from_dlpack_shares(a):
    if a.dtype == BFLOAT16:
        x = bg.from_dlpack(bg.asarray(a))
    else:
        x = bg.from_dlpack(a)
    assert same_bits(x.numpy(), a)
    assert not a.size or np.shares_memory(x.numpy(), a)


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_capsules_are_taken_once(version):
    x = bg.asarray([1.0, 2.0])
    capsule = x.__dlpack__(max_version=version)
    versioned = version is not None and version[0] >= 1
    name = "dltensor_versioned" if versioned else "dltensor"
    assert f'"{name}"' in repr(capsule)
    y = bg.from_dlpack(capsule)
    assert f'"used_{name}"' in repr(capsule)
    assert y.numpy().ctypes.data == x.numpy().ctypes.data
    with pytest.raises(BufferError, match="used_"):
        bg.from_dlpack(capsule)


def test_dlpack_device_stream_and_copy():
    x = bg.asarray([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    x.__dlpack__(dl_device=(1, 0), stream=None)
    with pytest.raises(BufferError, match="CPU"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="max_version"):
        x.__dlpack__(max_version="1.0")
    copy = bg.from_dlpack(x.__dlpack__(copy=True, max_version=(1, 0)))
    assert copy.numpy().ctypes.data != x.numpy().ctypes.data
    assert bg.from_dlpack(x, copy=True).numpy().ctypes.data != x.numpy().ctypes.data
    assert bg.from_dlpack(x, device="cpu", copy=False).numpy().ctypes.data == x.numpy().ctypes.data
    with pytest.raises(ValueError, match="cpu"):
        bg.from_dlpack(x, device="gpu")
    with pytest.raises(TypeError):
        bg.from_dlpack([1, 2])


def test_read_only_dlpack_is_copied():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = bg.from_dlpack(a)
    assert not np.shares_memory(x.numpy(), a)
    with pytest.raises(ValueError, match="read-only"):
        bg.from_dlpack(a, copy=False)


class DLArray(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLLegacy(ctypes.Structure):
    _fields_ = [("array", DLArray), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", DLArray),
    ]


class Handmade:
    """A DLPack capsule filled by hand; counts how often it is released."""

    def __init__(
        self, versioned=True, shape=(4,), strides=None, null_shape=False, null=False, **fields
    ):
        self.memory = (ctypes.c_float * 8)(*range(8))
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        array_fields = dict(
            data=None if null else ctypes.addressof(self.memory),
            device_type=1,
            ndim=len(shape),
            code=2,
            bits=32,
            lanes=1,
        )
        head = {name: fields.pop(name) for name in ("major", "flags") if name in fields}
        array_fields.update(fields)
        self.managed = DLVersioned(major=1) if versioned else DLLegacy()
        for name, value in head.items():
            setattr(self.managed, name, value)
        for name, value in array_fields.items():
            setattr(self.managed.array, name, value)
        if not null_shape:
            self.managed.array.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            self.strides = (ctypes.c_int64 * max(len(strides), 1))(*strides)
            self.managed.array.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        self.deleted = 0
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._delete)
        self.managed.deleter = ctypes.cast(self.callback, ctypes.c_void_p)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"

    def _delete(self, _):
        self.deleted += 1

    def capsule(self, name=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule_name = name or self.name
        return new(ctypes.addressof(self.managed), self.capsule_name, None)


@pytest.mark.parametrize("versioned", [True, False])
def test_capsules_by_hand(versioned):
    made = Handmade(versioned)
    x = bg.from_dlpack(made.capsule())
    assert x.numpy().tolist() == [0, 1, 2, 3]
    made.memory[0] = 5
    y = x.numpy()
    assert y[0] == 5
    del x
    gc.collect()
    assert made.deleted == 0
    del y
    gc.collect()
    assert made.deleted == 1
    offset = Handmade(versioned, shape=(2, 2), strides=(-2, 1), byte_offset=8)
    assert bg.from_dlpack(offset.capsule()).numpy().tolist() == [[2, 3], [0, 1]]
    assert offset.deleted == 1
    assert bg.from_dlpack(Handmade(versioned, shape=()).capsule()).shape == ()
    assert bg.from_dlpack(Handmade(versioned, shape=(0, 3), null=True).capsule()).shape == (0, 3)


def test_the_read_only_flag():
    made = Handmade(flags=1)
    x = bg.from_dlpack(made.capsule())
    assert made.deleted == 1
    x += 1
    assert list(made.memory)[:2] == [0, 1]
    refused = Handmade(flags=1)
    with pytest.raises(ValueError, match="read-only"):
        bg.from_dlpack(refused.capsule(), copy=False)
    assert refused.deleted == 1  # consumed, checked and released


@pytest.mark.parametrize(
    "wrong",
    [
        dict(device_type=2),
        dict(lanes=4),
        dict(bits=12),
        dict(bits=128),
        dict(code=5, bits=64),
        dict(code=77),
        dict(code=6, bits=32),
        dict(ndim=-1),
        dict(ndim=17),
        dict(null_shape=True),
        dict(null=True),
        dict(major=2),
        dict(shape=(-1,)),
        dict(shape=(2**62, 4)),
        dict(shape=(4,), strides=(2**62,)),
        dict(shape=(2**40,), strides=(2**30,)),
    ],
    ids=str,
)
def test_capsules_that_are_refused_stay_untaken(wrong):
    made = Handmade(**wrong)
    capsule = made.capsule()
    with pytest.raises((BufferError, ValueError), match="from_"):
        bg.from_dlpack(capsule)
    # It was never consumed, or it was released: exactly one owner is left.
    taken = '"used_' in repr(capsule)
    assert made.deleted == (1 if taken else 0)


def test_capsules_of_other_things():
    with pytest.raises(BufferError, match="'other'"):
        bg.from_dlpack(Handmade().capsule(b"other"))
    with pytest.raises(BufferError, match="used_dltensor"):
        bg.from_dlpack(Handmade().capsule(b"used_dltensor"))


class Producer:
    def __init__(self, x, device=(1, 0), result=None):
        self.x, self.device, self.result = x, device, result

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self):  # as before version 1: no arguments
        return self.result if self.result is not None else self.x.__dlpack__()


def test_producers():
    x = bg.asarray([1.0, 2.0])
    assert bg.from_dlpack(Producer(x)).numpy().ctypes.data == x.numpy().ctypes.data
    assert bg.asarray(Producer(x)).numpy().ctypes.data == x.numpy().ctypes.data
    with pytest.raises(BufferError, match="device of type 2"):
        bg.from_dlpack(Producer(x, device=(2, 0)))
    with pytest.raises(TypeError, match="pair"):
        bg.from_dlpack(Producer(x, device="cpu"))
    with pytest.raises(TypeError, match="not a capsule"):
        bg.from_dlpack(Producer(x, result=3))

    class Raises(Producer):
        def __dlpack__(self, **_):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        bg.from_dlpack(Raises(x))


# ---- Lifetimes


class Owned(np.ndarray):
    """An array that weak references can watch."""


def owned(count=1000):
    return np.arange(float(count)).view(Owned)


@pytest.mark.parametrize("door", [bg.asarray, bg.from_dlpack, bg.from_numpy])
def test_the_array_lives_as_long_as_the_tensor(door):
    a = owned()
    watch = weakref.ref(a)
    x = door(a)
    del a
    gc.collect()
    assert watch() is not None
    view = x.numpy()[10:]
    y = bg.asarray(view)
    del x
    gc.collect()
    assert watch() is not None
    assert y.numpy()[0] == 10
    del y, view
    gc.collect()
    assert watch() is None


def test_the_tensor_lives_as_long_as_what_sees_it():
    doors = [bg.Tensor.numpy, np.asarray, np.from_dlpack, memoryview, bg.Tensor.__dlpack__]
    for door in doors:
        a = owned()
        watch = weakref.ref(a)
        out = door(bg.asarray(a))
        del a
        gc.collect()
        assert watch() is not None
        del out
        gc.collect()
        assert watch() is None


def test_refused_arrays_are_let_go():
    a = owned()
    count = sys.getrefcount(a)
    for _ in range(3):
        with pytest.raises(ValueError):
            bg.asarray(a, dtype=bg.int8, copy=False)
        with pytest.raises(TypeError):
            bg.asarray(np.zeros(2, complex))
        bg.asarray(a, copy=True)
        bg.asarray(a, dtype=bg.float32)
    assert sys.getrefcount(a) == count


def test_tensors_may_end_on_any_thread():
    a = owned(10**6)
    watch = weakref.ref(a)
    box = [bg.asarray(a)]
    del a

    def drop():
        x = box.pop()
        y = x + 1  # long work: the lock is released
        del x, y

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    gc.collect()
    assert watch() is None


def test_tensors_may_outlive_the_interpreter():
    code = (
        "import numpy as np, baregrad as bg, sys\n"
        "sys.kept = [bg.asarray(np.zeros(5)), bg.from_dlpack(np.zeros(5))]\n"
        "sys.kept += [x.numpy() for x in sys.kept]\n"
        "sys.kept += [sys.kept[0].__dlpack__(), memoryview(sys.kept[1])]\n"
        "class Late:\n"
        "    def __init__(self, x): self.x = x\n"
        "    def __del__(self): self.x = None\n"
        "kept = Late(bg.asarray(np.zeros(5)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def resident_pages():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_flat():
    a = np.zeros(2048)  # 16 KiB: 10,000 leaks would be 160 MiB

    def round_trip():
        x = bg.asarray(a, copy=True)
        bg.from_dlpack(np.from_dlpack(x))
        bg.asarray(memoryview(x.numpy()))
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 0), copy=True)
        bg.asarray(a[::-1], dtype=bg.float32)
        bg.asarray(a.astype(">f8"))
        bg.asarray([1.0, [2.0][0], np.float64(3)])
        x.__array_interface__
        try:
            bg.asarray([[1.0], [2.0, 3.0]])
        except ValueError:
            pass

    for _ in range(500):
        round_trip()
    gc.collect()
    before = resident_pages()
    for _ in range(10_000):
        round_trip()
    gc.collect()
    assert resident_pages() - before < 500  # 2 MiB


# ---- False claims


def liar(**entries):
    class Liar:
        pass

    out = Liar()
    a = np.arange(6.0)
    out.kept = a
    interface = dict(shape=(6,), typestr="<f8", data=(a.ctypes.data, False), version=3)
    interface.update(entries)
    out.__array_interface__ = {k: v for k, v in interface.items() if v is not ...}
    return out


def test_the_array_interface_of_anything():
    assert bg.asarray(liar()).numpy().tolist() == [0, 1, 2, 3, 4, 5]
    assert bg.asarray(liar(strides=None)).shape == (6,)
    assert bg.asarray(liar(shape=(3,), strides=(16,))).numpy().tolist() == [0, 2, 4]
    assert bg.asarray(liar(shape=(2,), strides=(-8,))).shape == (2,)  # cannot be checked, not read
    text = bytearray(range(16))
    assert bg.asarray(liar(data=text, typestr="|u1", shape=(16,))).numpy().tolist() == list(text)
    part = bg.asarray(liar(data=text, typestr="|u1", shape=(3,), strides=(-2,), offset=5))
    assert part.numpy().tolist() == [5, 3, 1]
    text[3] = 77
    assert part.numpy().tolist() == [5, 77, 1]


@pytest.mark.parametrize(
    "entries",
    [
        dict(shape=...),
        dict(typestr=...),
        dict(data=...),
        dict(data=None),
        dict(data=(0, False)),
        dict(data=(1,)),
        dict(data=(-1, False)),
        dict(data=("x", False)),
        dict(data=(2**70, False)),
        dict(data=5),
        dict(shape=(-1,)),
        dict(shape=6),
        dict(shape=("a",)),
        dict(shape=(2.5,)),
        dict(shape=(2**62, 2**62)),
        dict(shape=(2**70,)),
        dict(shape=(1,) * 40),
        dict(strides=(8, 8)),
        dict(strides="x"),
        dict(strides=(2**62,)),
        dict(strides=(2**70,)),
        dict(typestr="f8"),
        dict(typestr="<c16"),
        dict(typestr=5),
        dict(typestr="<f9"),
        dict(typestr="<f\xff"),
        dict(typestr="<V2"),
        dict(mask=np.zeros(6, bool)),
        dict(data=bytearray(47)),
        dict(data=bytearray(48), offset=1),
        dict(data=bytearray(48), offset=-1),
        dict(data=bytearray(48), offset=2**62),
        dict(data=bytearray(48), strides=(16,)),
        dict(data=bytearray(48), strides=(-8,)),
        dict(data=memoryview(bytearray(96))[::2]),
    ],
    ids=str,
)
def test_lies_are_refused(entries):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        bg.asarray(liar(**entries))


def test_interfaces_that_are_no_dictionaries_or_raise():
    class Wrong:
        __array_interface__ = 7

    with pytest.raises(ValueError, match="no dictionary"):
        bg.asarray(Wrong())

    class Raises:
        @property
        def __array_interface__(self):
            raise KeyError("mine")

    with pytest.raises((KeyError, TypeError)):
        bg.asarray(Raises())

    class Array:
        def __init__(self, result):
            self.result = result

        def __array__(self, dtype=None, copy=None):
            return self.result

    assert bg.asarray(Array(np.arange(3))).numpy().tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="not an array"):
        bg.asarray(Array([1, 2]))
    with pytest.raises(TypeError):
        bg.asarray(np.ndarray)
