"""Memory shared with PyTorch, in both directions."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import baregrad as bg

FLOATS = ["float16", "bfloat16", "float32", "float64"]
NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split() + FLOATS


@st.composite
def torch_tensors(draw):
    dtype = getattr(torch, draw(st.sampled_from(NAMES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    numel = int(np.prod(shape))
    t = (torch.arange(2 * numel, dtype=torch.int64) % 2).to(dtype).reshape(2, *shape)[1]
    t = t.permute(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        t = t[..., None][..., 0]
    if draw(st.booleans()) and shape:
        t = t[::2]
    if draw(st.booleans()):
        t = t.expand(3, *t.shape)
    return t


def same(x, t):
    """Bits, read by PyTorch from baregrad's memory."""
    back = torch.from_dlpack(x)
    assert back.dtype == t.dtype
    assert back.shape == t.shape
    assert torch.equal(back.to(torch.float64), t.to(torch.float64))
    if t.numel():
        assert back.data_ptr() == t.data_ptr()


@given(torch_tensors())
def test_pytorchs_tensors_are_shared_both_ways(t):
    for x in (bg.from_dlpack(t), bg.asarray(t)):
        assert x.dtype.name == str(t.dtype).removeprefix("torch.")
        assert x.shape == tuple(t.shape)
        same(x, t)


@pytest.mark.parametrize("name", NAMES)
def test_writes_are_seen(name):
    t = torch.zeros(3, dtype=getattr(torch, name))
    x = bg.from_dlpack(t)
    t[1] = 1
    assert torch.from_dlpack(x).tolist() == t.tolist()
    y = bg.ones(3, dtype=name)
    u = torch.from_dlpack(y)
    u[0] = 0
    assert torch.from_dlpack(y).to(torch.float32).tolist() == [0, 1, 1]


def test_dtypes_that_baregrad_does_not_have():
    for dtype in (torch.complex64, torch.float8_e4m3fn):
        with pytest.raises((BufferError, TypeError)):
            bg.from_dlpack(torch.zeros(2, dtype=dtype))


def test_gradients_do_not_cross():
    with pytest.raises((BufferError, RuntimeError)):
        bg.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="detach"):
        torch.from_dlpack(bg.ones(2, requires_grad=True))


def test_capsules_of_pytorch():
    capsule = torch.utils.dlpack.to_dlpack(torch.arange(3))
    x = bg.from_dlpack(capsule)
    assert x.numpy().tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="used_dltensor"):
        bg.from_dlpack(capsule)
    t = torch.utils.dlpack.from_dlpack(x.__dlpack__())
    assert t.tolist() == [0, 1, 2]
    versioned = torch.from_dlpack(x.__dlpack__(max_version=(1, 0)))
    assert versioned.tolist() == [0, 1, 2]


def test_memory_lives_as_long_as_either_side():
    # PyTorch's tensor on NumPy's memory on ours, and back.
    a = np.arange(1000.0).view(type("Owned", (np.ndarray,), {}))
    watch = weakref.ref(a)
    t = torch.from_dlpack(bg.asarray(a))
    del a
    gc.collect()
    assert watch() is not None
    x = bg.from_dlpack(t)
    del t
    gc.collect()
    assert watch() is not None
    assert x.numpy()[7] == 7
    del x
    gc.collect()
    assert watch() is None


def test_lists_of_pytorchs_tensors():
    x = bg.asarray([torch.ones(2), torch.zeros(2)])
    assert x.numpy().tolist() == [[1, 1], [0, 0]]
    assert bg.asarray([torch.tensor(1.5), 2]).numpy().tolist() == [1.5, 2]


@pytest.mark.parametrize(
    "data",
    [True, 3, 2.5, [1, 2], [1, 2.5], [True, 2], [[True], [False]], [], [[], []], (1.0, (2))],
    ids=str,
)
def test_tensor_infers_what_pytorch_infers(data):
    x, t = bg.tensor(data), torch.tensor(data)
    assert x.dtype.name == str(t.dtype).removeprefix("torch.")
    assert x.numpy().tolist() == t.tolist()
