"""x[...] and x[...] = ... against NumPy: random expressions, then special cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baregrad as bg

SIZES = st.integers(0, 4)
SHAPES = st.lists(SIZES, min_size=0, max_size=4).map(tuple)


def numbers(shape, dtype=np.int64):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.none() | st.integers(-3, 3).filter(bool))
    return slice(draw(bound), draw(bound), step)


@st.composite
def positions(draw, size, block):
    """An array of positions: of the block's shape, or smaller and broadcast to it."""
    shape = block[draw(st.integers(0, len(block))):]
    shape = tuple(1 if draw(st.booleans()) else n for n in shape)
    values = st.integers(-size, size - 1) if size else st.just(0)
    count = int(np.prod(shape))
    flat = draw(st.lists(values, min_size=count, max_size=count))
    return np.array(flat, dtype=np.int64).reshape(shape)


@st.composite
def masks(draw, shape):
    count = int(np.prod(shape))
    return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool).reshape(shape)


@st.composite
def expressions(draw, shape):
    """An index for an array of this shape; sometimes out of range."""
    block = draw(st.sampled_from([(), (2,), (2, 3), (1,), (0,)]))
    out = []
    axis = 0
    named = draw(st.integers(0, len(shape)))
    ellipsis_at = draw(st.none() | st.integers(0, named))
    while axis < named:
        if ellipsis_at == axis:
            out.append(Ellipsis)
            # The axes after the ellipsis are counted from the end.
            axis, named, ellipsis_at = axis + len(shape) - named, len(shape), None
            continue
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "mask", "none", "bool"]))
        size = shape[axis]
        if kind == "none":
            out.append(None)
            if len(out) > 6:
                break
            continue
        if kind == "bool":
            out.append(draw(st.booleans()))
            if len(out) > 6:
                break
            continue
        if kind == "mask":
            width = draw(st.integers(1, min(2, named - axis)))
            out.append(draw(masks(shape[axis : axis + width])))
            axis += width
            continue
        if kind == "int":
            out.append(draw(st.integers(-size - (1 if size < 2 else 0), max(size - 1, 0))))
        elif kind == "slice":
            out.append(draw(slices(size)))
        else:
            out.append(draw(positions(size, block)))
        axis += 1
    return tuple(out)


def ours(item, how):
    """The same index in our types: tensors, NumPy's own arrays, or lists."""
    if not isinstance(item, np.ndarray):
        return item
    if how == "tensor":
        return bg.asarray(item)
    if how == "list" and item.ndim and item.size:
        return item.tolist()
    return item


@st.composite
def cases(draw):
    shape = draw(SHAPES)
    expression = draw(expressions(shape))
    how = draw(st.sampled_from(["tensor", "array", "list"]))
    mine = tuple(ours(item, how) for item in expression)
    if len(expression) == 1 and draw(st.booleans()):
        expression, mine = expression[0], mine[0]
    return shape, expression, mine


def outcome(f):
    try:
        return f(), None
    except (IndexError, ValueError) as error:
        return None, type(error)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_get_is_numpys(case):
    shape, theirs, mine = case
    a = numbers(shape)
    expected, error = outcome(lambda: a[theirs])
    got, our_error = outcome(lambda: bg.asarray(a, copy=True)[mine])
    # If the result is empty, NumPy does not check positions, and accepts wrong ones.
    if our_error is IndexError and error is None and np.size(expected) == 0:
        return
    assert (error is None) == (our_error is None), (error, our_error)
    if error is None:
        assert got.shape == np.shape(expected)
        np.testing.assert_array_equal(got.tolist(), np.asarray(expected).tolist())


@settings(max_examples=200, deadline=None)
@given(cases())
def test_views_share_and_copies_do_not(case):
    shape, theirs, mine = case
    a = numbers(shape)
    expected, error = outcome(lambda: a[theirs])
    if error is not None or np.size(expected) == 0 or np.ndim(expected) == 0:
        return
    x = bg.asarray(a, copy=True)
    got = x[mine]
    expected[...] = -1
    got.fill_(-1)
    np.testing.assert_array_equal(x.tolist(), a.tolist())


@settings(max_examples=300, deadline=None)
@given(cases(), st.sampled_from(["number", "tensor", "array", "broadcast"]))
def test_set_is_numpys(case, how):
    shape, theirs, mine = case
    a = numbers(shape)
    target, error = outcome(lambda: a[theirs])
    x = bg.asarray(a, copy=True)
    if error is None and np.size(target) == 0:
        return
    if error is not None:
        assert outcome(lambda: x.__setitem__(mine, 0))[1] is not None
        return
    value = 1000 + np.arange(np.size(target), dtype=np.int64).reshape(np.shape(target))
    if how == "number":
        value = 7
    elif how == "broadcast":
        value = value[(slice(0, 1),) * value.ndim]
    # With repeated positions the last write is not defined: only unique ones are compared.
    marks = np.zeros(shape, dtype=np.int64)
    np.add.at(marks, theirs, 1)
    if how != "number" and marks.size and marks.max() > 1:
        return
    a[theirs] = value
    x[mine] = bg.asarray(value) if how == "tensor" else value
    np.testing.assert_array_equal(x.tolist(), a.tolist())


def test_plain_integers_and_slices_are_views():
    x = bg.asarray(numbers((3, 4)), copy=True)
    assert x[1].tolist() == [4, 5, 6, 7]
    assert x[-1, -2].item() == 10
    assert x[:, 1].tolist() == [1, 5, 9]
    assert x[::-1, ::-2].tolist() == [[11, 9], [7, 5], [3, 1]]
    x[::-1, ::-2][0, 0] = -5
    assert x[2, 3].item() == -5
    whole = x[:]
    whole[0, 0] = 99
    assert x[0, 0].item() == 99 and whole is not x
    assert x[()].shape == (3, 4)


@pytest.mark.parametrize(
    "key, words",
    [
        (5, ["axis 0", "size 3"]),
        (-4, ["axis 0", "size 3"]),
        ((0, 4), ["axis 1", "size 4"]),
        ((slice(None), -5), ["axis 1", "size 4"]),
        ((0, 0, 0), ["3 axes", "int64[3,4]"]),
        (([0, 3],), ["axis 0", "size 3"]),
        ((Ellipsis, Ellipsis), ["ellips"]),
        (2**100, []),
        (-(2**100), []),
        (1.5, ["float"]),
        ("a", ["str"]),
        (b"a", ["bytes"]),
        ({}, ["dict"]),
        ([0.5], ["float"]),
        (([True, False],), ["mask", "axis 0"]),
    ],
)
def test_index_errors_say_where(key, words):
    x = bg.asarray(numbers((3, 4)))
    with pytest.raises(IndexError) as caught:
        x[key]
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(IndexError):
        x[key] = 0


def test_numpy_scalars_ranges_and_tuples_are_positions():
    a = numbers((5, 4))
    x = bg.asarray(a)
    assert x[np.int8(2)].tolist() == a[2].tolist()
    assert x[np.int64(-1), np.uint8(3)].item() == a[-1, 3]
    assert x[range(0, 5, 2)].tolist() == a[0:5:2].tolist()
    assert x[(0, 1), (2, 3)].tolist() == a[(0, 1), (2, 3)].tolist()
    assert x[np.array(2)].tolist() == a[2].tolist()
    assert x[bg.asarray(2)].tolist() == a[2].tolist()
    assert x[[]].shape == (0, 4)
    assert x[np.bool_(True)].shape == (1, 5, 4)
    assert x[bg.asarray(1) : bg.asarray(3)].tolist() == a[1:3].tolist()


def test_set_takes_lists_and_arrays_and_refuses_what_does_not_fit():
    x = bg.asarray(np.zeros((2, 3), np.float32), copy=True)
    x[0] = [1, 2, 3]
    x[1] = np.array([4.0, 5.0, 6.0])
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    x[:, 0] = bg.asarray([True, False])
    assert x.tolist() == [[1, 2, 3], [0, 5, 6]]
    with pytest.raises(ValueError):
        x[0] = [1.0, 2.0]
    with pytest.raises((TypeError, ValueError)):
        x[0] = "abc"
    with pytest.raises((TypeError, ValueError)):
        x[0, 0] = None
    with pytest.raises(TypeError, match="delete"):
        del x[0]
    counts = bg.asarray([1, 2, 3], copy=True)
    with pytest.raises(TypeError, match="index_put"):
        counts[0] = 1.5
    with pytest.raises(TypeError, match="index_put"):
        counts[[0]] = 1.5
    assert counts.tolist() == [1, 2, 3]
    assert x.tolist() == [[1, 2, 3], [0, 5, 6]]


def test_a_number_goes_to_every_place_once():
    x = bg.asarray(np.zeros((2, 3)))
    x[1] = 2
    x[:, ::2] = 0.5
    x[0, 1] = True
    assert x.tolist() == [[0.5, 1, 0.5], [0.5, 2, 0.5]]
    with pytest.raises(ValueError):
        bg.asarray(np.zeros(2, np.int8))[0] = 1000


def test_lists_are_read_in_the_tensors_own_precision():
    x = bg.asarray(np.zeros(2))
    x[:] = [0.1, 1 / 3]
    assert x.tolist() == [0.1, 1 / 3]


def test_set_from_itself_reads_first():
    x = bg.asarray(np.arange(6), copy=True)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[::-1] = x.clone()
    assert x.tolist() == [4, 3, 2, 1, 0, 0]


def test_indexing_is_differentiable():
    x = bg.asarray(np.arange(12.0).reshape(3, 4)).requires_grad_()
    (x[1, 1:] * 2).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 0], [0, 2, 2, 2], [0, 0, 0, 0]]
    x.grad = None
    x[[0, 0, 2], [1, 1, 3]].sum().backward()
    assert x.grad.tolist() == [[0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    y = x * 1
    y[0] = 0
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [[0] * 4, [1] * 4, [1] * 4]


class Raises:
    def __index__(self):
        raise KeyError("from __index__")


class Mutates:
    """Drops the tensor that it indexes."""

    def __init__(self, box):
        self.box = box

    def __index__(self):
        self.box.clear()
        return 1


def test_indices_that_run_code():
    x = bg.asarray(numbers((3, 4)))
    for key in (Raises(), (0, Raises()), slice(Raises(), 2), [Raises()]):
        with pytest.raises((KeyError, TypeError, ValueError)):
            x[key]
    box = [bg.asarray(numbers((3, 4)), copy=True)]
    assert box[0][Mutates(box)].tolist() == [4, 5, 6, 7]
    box = [bg.asarray(numbers((3, 4)), copy=True)]
    assert box[0][:, Mutates(box)].tolist() == [1, 5, 9]
    box = [bg.asarray(numbers((3, 4)), copy=True)]
    box[0][Mutates(box)] = 5


def test_recursive_lists_are_refused():
    x = bg.asarray(numbers((3,)))
    loop = []
    loop.append(loop)
    with pytest.raises((RecursionError, ValueError, TypeError, IndexError)):
        x[loop]
    with pytest.raises((RecursionError, ValueError, TypeError, IndexError)):
        x[0] = loop


@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_uninitialised_tensor_has_no_elements():
    x = bg.Tensor.__new__(bg.Tensor)
    for use in (
        lambda: x[0],
        lambda: x.__setitem__(0, 1),
        lambda: len(x),
        lambda: iter(x),
        lambda: 1 in x,
        lambda: bool(x),
        lambda: hash(x),
        lambda: float(x),
        lambda: x + 1,
        lambda: -x,
        lambda: repr(x),
        lambda: x.shape,
        lambda: x.add_(1),
        lambda: bg.asarray(numbers((3,)))[x],
    ):
        with pytest.raises((TypeError, IndexError, RuntimeError)):
            use()


def test_len_iter_contains():
    x = bg.asarray(numbers((3, 2)))
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 5 in x and 6 not in x and 2.0 in x
    assert bg.asarray([0, 1]) in x
    with pytest.raises(TypeError):
        "a" in x
    scalar = bg.asarray(1.0)
    for use in (len, iter, list):
        with pytest.raises(TypeError, match="0-d"):
            use(scalar)
