"""The text of tensors: identical to PyTorch's output, with our module's name."""

import numpy as np
import pytest

import baregrad as bg

inf, nan = float("inf"), float("nan")

GOLDEN = [
    (np.array([1.5, -2.25, 3.0], "float32"), "tensor([ 1.5000, -2.2500,  3.0000])"),
    (np.array([1.0, 2.0, -30.0], "float32"), "tensor([  1.,   2., -30.])"),
    (np.array([1.0, inf, -inf, nan], "float32"), "tensor([1., inf, -inf, nan])"),
    (np.array([0.5, inf, nan], "float32"), "tensor([0.5000,    inf,    nan])"),
    (np.array([1e-5, 1.0, 12345.6], "float32"), "tensor([1.0000e-05, 1.0000e+00, 1.2346e+04])"),
    (np.array([1e9, 2.0]), "tensor([1.0000e+09, 2.0000e+00], dtype=baregrad.float64)"),
    (np.array([-0.0, 0.5], "float32"), "tensor([-0.0000, 0.5000])"),
    (np.zeros(3, "float32"), "tensor([0., 0., 0.])"),
    (np.array(3.5, "float32"), "tensor(3.5000)"),
    (np.array(0.0), "tensor(0., dtype=baregrad.float64)"),
    (np.array([[1, -20], [300, 4]]), "tensor([[  1, -20],\n        [300,   4]])"),
    (np.array([1, 2], "int32"), "tensor([1, 2], dtype=baregrad.int32)"),
    (np.array(200, "uint8"), "tensor(200, dtype=baregrad.uint8)"),
    (np.array([True, False]), "tensor([ True, False])"),
    (np.array([True, True]), "tensor([True, True])"),
    (np.zeros(0, "float32"), "tensor([])"),
    (np.zeros((0, 3), "float32"), "tensor([], size=(0, 3))"),
    (np.zeros((2, 0), "int64"), "tensor([], size=(2, 0), dtype=baregrad.int64)"),
    (
        np.arange(40),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n"
        "        36, 37, 38, 39])",
    ),
    (
        np.arange(8, dtype="float32").reshape(2, 2, 2),
        "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])",
    ),
    (np.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (
        np.arange(2000).reshape(2, 1000),
        "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n"
        "        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])",
    ),
]


@pytest.mark.parametrize("array, expected", GOLDEN)
def test_golden(array, expected):
    x = bg.asarray(array)
    assert repr(x) == expected
    assert str(x) == expected


def test_views_show_what_they_see():
    x = bg.asarray(np.arange(6).reshape(2, 3), copy=True)
    assert repr(x.mT) == "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"
    assert repr(x[:, ::-2]) == "tensor([[2, 0],\n        [5, 3]])"


def test_history_is_named():
    x = bg.asarray(np.ones(2, "float32")).requires_grad_()
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x + 1) == "tensor([2., 2.], grad_fn=<add>)"
    assert repr(x.double() * 2) == "tensor([2., 2.], dtype=baregrad.float64, grad_fn=<multiply>)"


def test_suffixes_wrap():
    x = bg.asarray(np.arange(9, dtype="float32") + 0.5).requires_grad_()
    assert repr(x).endswith(",\n       requires_grad=True)")


def test_extreme_integers_and_half_precision():
    assert repr(bg.asarray(np.array([2**63 - 1, -(2**63)]))) == (
        "tensor([ 9223372036854775807, -9223372036854775808])"
    )
    assert repr(bg.asarray(np.array([2**64 - 1], "uint64"))) == (
        "tensor([18446744073709551615], dtype=baregrad.uint64)"
    )
    assert repr(bg.asarray(np.array([0.1], "float32")).bfloat16()) == (
        "tensor([0.1001], dtype=baregrad.bfloat16)"
    )


def test_subclasses_carry_their_name():
    class Weight(bg.Tensor):
        pass

    assert repr(Weight(bg.asarray([1, 2]))) == "Weight([1, 2])"


@pytest.fixture
def options():
    yield bg.set_printoptions
    bg.set_printoptions(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)


def test_options(options):
    x = bg.asarray(np.array([1.23456, 2.0], "float32"))
    options(precision=2)
    assert repr(x) == "tensor([1.23, 2.00])"
    options(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00, 2.00e+00])"
    options(precision=0, sci_mode=False)
    assert repr(x) == "tensor([1, 2])"
    options(threshold=4, edgeitems=1)
    assert repr(bg.asarray(np.arange(5))) == "tensor([0,  ..., 4])"
    options(threshold=1000, linewidth=20)
    assert repr(bg.asarray(np.arange(6))) == "tensor([0, 1, 2, 3,\n        4, 5])"


@pytest.mark.parametrize(
    "wrong", [{"precision": -1}, {"edgeitems": 0}, {"linewidth": 0}, {"threshold": -1}, {"precision": 10**6}]
)
def test_wrong_options_change_nothing(options, wrong):
    with pytest.raises(ValueError, match="set_printoptions"):
        options(**wrong)
    assert repr(bg.asarray(np.array([0.5], "float32"))) == "tensor([0.5000])"


def test_an_expanded_tensor_of_any_size_prints():
    x = bg.asarray(np.ones(1, "float32")).expand(*[10] * 16)
    text = repr(x)
    assert text.startswith("tensor([[[[[[[[[[[[[[[[1.,  ..., 1.]") and len(text) < 10**7


def test_format():
    x = bg.asarray(3.14159)
    assert f"{x:.2f}" == "3.14"
    assert f"{bg.asarray(7):04d}" == "0007"
    assert f"{bg.asarray([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError, match="0-d"):
        f"{bg.asarray([1, 2]):.2f}"
    with pytest.raises(ValueError):
        f"{x:d}"


def test_html_is_a_table():
    from xml.etree import ElementTree

    html = bg.asarray(np.arange(6).reshape(2, 3))._repr_html_()
    tree = ElementTree.fromstring(html)
    rows = [[cell.text for cell in row] for row in tree.iter("tr")]
    assert rows == [["0", "1", "2"], ["3", "4", "5"]]
    assert "(2, 3)" in html and "int64" in html
    wide = bg.asarray(np.zeros((2000, 2000), "float32"))._repr_html_()
    assert wide.count("<tr>") == 7 and "&hellip;" in wide
    history = (bg.asarray(np.ones((2, 2, 2), "float32")).requires_grad_() * 2)._repr_html_()
    assert "<pre>" in history
    for odd in (np.array(1.5), np.zeros((0, 2)), np.ones(3)):
        ElementTree.fromstring(bg.asarray(odd)._repr_html_())
