"""baregrad.nn beside PyTorch's own: same weights, same inputs; results, gradients, names, print."""

import numpy as np
import pytest
import torch
from torch import nn as tnn

import baregrad as bg
from baregrad import nn as bnn

torch.set_num_threads(1)

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integers(high, *shape):
    return RNG.integers(0, high, shape)


def to_bg(x):
    return bg.asarray(x) if isinstance(x, np.ndarray) else x


def to_torch(x):
    return torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x


def leaf(convert, x):
    t = convert(x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        t.requires_grad_()
    return t


def copy_weights(ours, theirs):
    with torch.no_grad():
        for name, tensor in theirs.state_dict().items():
            if tensor.is_floating_point():
                # Away from zeros and ones, so that an unused bias or gain is detected.
                tensor.add_(torch.from_numpy(0.1 * np.abs(floats(*tensor.shape))))
    state = {k: bg.asarray(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)


def flat(result):
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [] if result is None else [result]


def compare(name, ours, theirs, tolerance):
    a = ours.detach().numpy()
    b = theirs.detach().numpy()
    assert a.shape == b.shape, name
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def check(ours, theirs, *inputs, tolerance=1e-5, call=None, check_repr=True, **kwargs):
    copy_weights(ours, theirs)
    if check_repr:
        assert repr(ours) == repr(theirs)
    our_inputs = [leaf(to_bg, x) for x in inputs]
    their_inputs = [leaf(to_torch, x) for x in inputs]
    run = call or (lambda module, *args: module(*args, **kwargs))
    got, expected = flat(run(ours, *our_inputs)), flat(run(theirs, *their_inputs))
    assert len(got) == len(expected)
    our_sum, their_sum = 0, 0
    for i, (a, b) in enumerate(zip(got, expected)):
        compare(f"result {i}", a, b, tolerance)
        w = floats(*b.shape)
        our_sum = our_sum + (a * bg.asarray(w)).sum()
        their_sum = their_sum + (b * torch.from_numpy(w)).sum()
    if their_sum.requires_grad:
        our_sum.backward()
        their_sum.backward()
        for i, (a, b) in enumerate(zip(our_inputs, their_inputs)):
            if isinstance(b, torch.Tensor) and b.grad is not None:
                compare(f"gradient of input {i}", a.grad, b.grad, tolerance)
        theirs_by_name = dict(theirs.named_parameters())
        for name, parameter in ours.named_parameters():
            compare(f"gradient of {name}", parameter.grad, theirs_by_name[name].grad, tolerance)
    for (name, a), (other, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        assert name == other
        compare(name, a, b, tolerance)


def both(name, *args, **kwargs):
    return getattr(bnn, name)(*args, **kwargs), getattr(tnn, name)(*args, **kwargs)


# Class, arguments, named arguments, inputs.
LAYERS = [
    ("Linear", (7, 5), {}, (floats(4, 7),)),
    ("Linear", (7, 5), {"bias": False}, (floats(2, 3, 7),)),
    ("Conv1d", (4, 6, 3), {}, (floats(2, 4, 11),)),
    ("Conv1d", (4, 6, 3, 2, 1, 2, 2), {"bias": False}, (floats(2, 4, 11),)),
    ("Conv2d", (3, 8, 3), {}, (floats(2, 3, 9, 8),)),
    ("Conv2d", (4, 8, (3, 2)), {"stride": (2, 1), "padding": (1, 2), "dilation": 2, "groups": 2},
     (floats(2, 4, 9, 8),)),
    ("ConvTranspose2d", (4, 6, 3), {}, (floats(2, 4, 5, 4),)),
    ("ConvTranspose2d", (4, 6, (2, 3), 2, 1, 1, 2), {"dilation": 2}, (floats(2, 4, 5, 4),)),
    ("MaxPool1d", (2,), {}, (floats(2, 3, 9),)),
    ("MaxPool1d", (3, 2, 1), {"ceil_mode": True}, (floats(2, 3, 10),)),
    ("MaxPool2d", (2,), {}, (floats(2, 3, 8, 9),)),
    ("MaxPool2d", ((3, 2), (2, 1), (1, 0)), {}, (floats(2, 3, 8, 9),)),
    ("AvgPool1d", (2,), {}, (floats(2, 3, 9),)),
    ("AvgPool2d", (3, 2, 1), {}, (floats(2, 3, 8, 9),)),
    ("AvgPool2d", (3, 2, 1, True, False), {}, (floats(2, 3, 8, 8),)),
    ("AdaptiveAvgPool1d", (4,), {}, (floats(2, 3, 9),)),
    ("AdaptiveAvgPool2d", (3,), {}, (floats(2, 3, 8, 7),)),
    ("AdaptiveAvgPool2d", ((2, 5),), {}, (floats(2, 3, 8, 7),)),
    ("BatchNorm1d", (5,), {}, (floats(6, 5),)),
    ("BatchNorm1d", (5,), {"momentum": None, "eps": 1e-3}, (floats(6, 5, 3),)),
    ("BatchNorm2d", (5,), {}, (floats(6, 5, 4, 3),)),
    ("BatchNorm2d", (5,), {"affine": False, "track_running_stats": False}, (floats(6, 5, 4, 3),)),
    ("LayerNorm", (6,), {}, (floats(4, 6),)),
    ("LayerNorm", ((3, 6),), {"bias": False}, (floats(4, 3, 6),)),
    ("LayerNorm", (6,), {"elementwise_affine": False, "eps": 1e-3}, (floats(4, 6),)),
    ("GroupNorm", (3, 6), {}, (floats(4, 6, 5),)),
    ("RMSNorm", (6,), {}, (floats(4, 6),)),
    ("RMSNorm", (6,), {"eps": 1e-2}, (floats(4, 6),)),
    ("Dropout", (0.0,), {}, (floats(4, 6),)),
    ("Embedding", (10, 4), {}, (integers(10, 3, 5),)),
    ("Embedding", (10, 4), {"padding_idx": 2}, (integers(4, 3, 5),)),
    ("Flatten", (), {}, (floats(2, 3, 4),)),
    ("Flatten", (0, 1), {}, (floats(2, 3, 4),)),
    ("Identity", (), {}, (floats(2, 3),)),
    ("ReLU", (), {}, (floats(4, 5),)),
    ("Sigmoid", (), {}, (floats(4, 5),)),
    ("Tanh", (), {}, (floats(4, 5),)),
    ("SiLU", (), {}, (floats(4, 5),)),
    ("Mish", (), {}, (floats(4, 5),)),
    ("Hardswish", (), {}, (3 * floats(4, 5),)),
    ("LeakyReLU", (0.2,), {}, (floats(4, 5),)),
    ("ELU", (1.5,), {}, (floats(4, 5),)),
    ("GELU", (), {}, (floats(4, 5),)),
    ("GELU", ("tanh",), {}, (floats(4, 5),)),
    ("Softplus", (2.0, 3.0), {}, (3 * floats(4, 5),)),
    ("Softmax", (1,), {}, (floats(4, 5),)),
    ("LogSoftmax", (0,), {}, (floats(4, 5),)),
    ("RNN", (3, 4), {}, (floats(6, 2, 3),)),
    ("RNN", (3, 4, 2), {"nonlinearity": "relu", "bidirectional": True}, (floats(6, 2, 3),)),
    ("LSTM", (3, 4), {}, (floats(6, 2, 3),)),
    ("LSTM", (3, 4), {"num_layers": 2, "bidirectional": True, "batch_first": True},
     (floats(2, 6, 3),)),
    ("GRU", (3, 4), {}, (floats(6, 2, 3), floats(1, 2, 4))),
    ("GRU", (3, 4), {"num_layers": 2, "bias": False}, (floats(6, 3),)),
]


@pytest.mark.parametrize("name, args, kwargs, inputs", LAYERS, ids=lambda v: v if isinstance(v, str) else "")
def test_layer(name, args, kwargs, inputs):
    ours, theirs = both(name, *args, **kwargs)
    check(ours, theirs, *inputs, tolerance=3e-5)


@pytest.mark.parametrize("name", ["BatchNorm1d", "Dropout", "LayerNorm"])
def test_eval_mode(name):
    ours, theirs = both(name, *((0.5,) if name == "Dropout" else (5,)))
    ours.eval(), theirs.eval()
    check(ours, theirs, floats(6, 5))


def test_lstm_with_states():
    ours, theirs = both("LSTM", 3, 4, num_layers=2)
    check(ours, theirs, floats(5, 2, 3), floats(2, 2, 4), floats(2, 2, 4),
          call=lambda m, x, h, c: m(x, (h, c)))


# ---- Attention ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [{}, {"bias": False}, {"kdim": 5, "vdim": 6}, {"batch_first": True}])
def test_attention(kwargs):
    ours, theirs = both("MultiheadAttention", 8, 2, **kwargs)
    key = floats(5, 3, kwargs.get("kdim", 8))
    value = floats(5, 3, kwargs.get("vdim", 8))
    query = floats(5, 4, 8) if kwargs.get("batch_first") else floats(4, 3, 8)
    # PyTorch's out_proj has a class of its own, with the same numbers.
    check(ours, theirs, query, key, value, tolerance=3e-5, check_repr=False)


@pytest.mark.parametrize("average", [True, False])
def test_attention_masks_and_weights(average):
    ours, theirs = both("MultiheadAttention", 8, 2, batch_first=True)
    padding = np.zeros((2, 5), bool)
    padding[1, 3:] = True
    looks = np.triu(np.ones((5, 5), bool), 1)

    def call(module, x):
        convert = to_bg if isinstance(module, bnn.Module) else to_torch
        return module(x, x, x, key_padding_mask=convert(padding), attn_mask=convert(looks),
                      average_attn_weights=average)

    check(ours, theirs, floats(2, 5, 8), tolerance=3e-5, call=call, check_repr=False)


def test_attention_without_weights():
    ours, theirs = both("MultiheadAttention", 8, 4)
    x = bg.asarray(floats(5, 2, 8))
    assert ours(x, x, x, need_weights=False)[1] is None
    check(ours, theirs, floats(5, 2, 8), tolerance=3e-5, check_repr=False,
          call=lambda m, x: m(x, x, x, need_weights=False))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first, activation):
    ours, theirs = both("TransformerEncoderLayer", 8, 2, 16, 0.0, activation,
                        norm_first=norm_first, batch_first=True)
    check(ours, theirs, floats(2, 5, 8), tolerance=5e-5, check_repr=False)


# ---- Losses -------------------------------------------------------------------------------------

PROBABILITIES = RNG.uniform(0.05, 0.95, (6, 4)).astype(np.float32)
SIGNS = np.sign(floats(6)).astype(np.float32)
CLASSES = integers(4, 6)
SMOOTH = (PROBABILITIES / PROBABILITIES.sum(1, keepdims=True)).astype(np.float32)
LOSSES = [
    ("MSELoss", {}, (floats(6, 4),), floats(6, 4)),
    ("L1Loss", {}, (floats(6, 4),), floats(6, 4)),
    ("SmoothL1Loss", {"beta": 0.5}, (floats(6, 4),), floats(6, 4)),
    ("HuberLoss", {"delta": 0.7}, (floats(6, 4),), floats(6, 4)),
    ("BCELoss", {}, (PROBABILITIES,), PROBABILITIES[::-1].copy()),
    ("BCEWithLogitsLoss", {}, (10 * floats(6, 4),), PROBABILITIES),
    ("CrossEntropyLoss", {}, (floats(6, 4),), CLASSES),
    ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 2}, (floats(6, 4),), CLASSES),
    ("CrossEntropyLoss", {}, (floats(6, 4),), SMOOTH),
    ("CrossEntropyLoss", {}, (floats(2, 4, 3),), integers(4, 2, 3)),
    ("NLLLoss", {"ignore_index": 1}, (floats(6, 4),), CLASSES),
    ("KLDivLoss", {}, (floats(6, 4),), SMOOTH),
    ("KLDivLoss", {"log_target": True}, (floats(6, 4),), floats(6, 4)),
    ("HingeEmbeddingLoss", {"margin": 0.5}, (floats(6),), SIGNS),
    ("MultiMarginLoss", {"p": 2, "margin": 0.7}, (floats(6, 4),), CLASSES),
    ("CosineEmbeddingLoss", {"margin": 0.2}, (floats(6, 4), floats(6, 4)), SIGNS),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name, kwargs, inputs, target", LOSSES, ids=lambda v: v if isinstance(v, str) else "")
def test_loss(name, kwargs, inputs, target, reduction):
    ours, theirs = both(name, reduction=reduction, **kwargs)

    def call(module, *args):
        convert = to_bg if isinstance(module, bnn.Module) else to_torch
        return module(*args, convert(target))

    check(ours, theirs, *inputs, call=call)


def test_weighted_losses():
    weight = np.abs(floats(4))
    for name, inputs, target in [
        ("CrossEntropyLoss", (floats(6, 4),), CLASSES),
        ("NLLLoss", (floats(6, 4),), CLASSES),
        ("MultiMarginLoss", (floats(6, 4),), CLASSES),
        ("BCELoss", (PROBABILITIES,), SMOOTH),
        ("BCEWithLogitsLoss", (floats(6, 4),), SMOOTH),
    ]:
        ours = getattr(bnn, name)(weight=bg.asarray(weight))
        theirs = getattr(tnn, name)(weight=torch.from_numpy(weight.copy()))
        ours_x, theirs_x = leaf(to_bg, inputs[0]), leaf(to_torch, inputs[0])
        a, b = ours(ours_x, to_bg(target)), theirs(theirs_x, to_torch(target))
        compare(name, a, b, 1e-5)
        a.backward(), b.backward()
        compare(name, ours_x.grad, theirs_x.grad, 1e-5)


def test_batchmean():
    x, t = floats(6, 4), SMOOTH
    compare("batchmean", bnn.KLDivLoss(reduction="batchmean")(to_bg(x), to_bg(t)),
            tnn.KLDivLoss(reduction="batchmean")(to_torch(x), to_torch(t)), 1e-5)
    compare("batchmean", bnn.functional.kl_div(to_bg(x), to_bg(t), reduction="batchmean"),
            tnn.functional.kl_div(to_torch(x), to_torch(t), reduction="batchmean"), 1e-5)


# ---- Functions ----------------------------------------------------------------------------------

FUNCTIONS = [
    ("relu", (floats(4, 5),), {}),
    ("gelu", (floats(4, 5),), {"approximate": "tanh"}),
    ("leaky_relu", (floats(4, 5), 0.3), {}),
    ("softplus", (floats(4, 5), 2.0), {}),
    ("log_softmax", (floats(4, 5),), {"dim": 0}),
    ("linear", (floats(4, 5), floats(3, 5), floats(3)), {}),
    ("conv1d", (floats(2, 3, 9), floats(4, 3, 2)), {"stride": 2}),
    ("conv2d", (floats(2, 4, 6, 7), floats(6, 2, 3, 3), floats(6)), {"padding": (1, 0), "groups": 2}),
    ("conv_transpose2d", (floats(2, 4, 3, 3), floats(4, 2, 3, 3)), {"stride": 2, "output_padding": 1}),
    ("max_pool2d", (floats(2, 3, 8, 8), 3), {"stride": 2}),
    ("avg_pool2d", (floats(2, 3, 8, 8), (2, 3)), {}),
    ("max_pool1d", (floats(2, 3, 8), 2), {}),
    ("avg_pool1d", (floats(2, 3, 8), 2), {}),
    ("adaptive_avg_pool1d", (floats(2, 3, 8), 3), {}),
    ("adaptive_avg_pool2d", (floats(2, 3, 8, 8), (3, 2)), {}),
    ("layer_norm", (floats(4, 5), (5,), floats(5), floats(5)), {}),
    ("rms_norm", (floats(4, 5), (5,), floats(5)), {}),
    ("group_norm", (floats(4, 6, 3), 2, floats(6), floats(6)), {}),
    ("batch_norm", (floats(4, 3), None, None), {"training": True}),
    ("embedding", (integers(5, 3), floats(5, 4)), {}),
    ("scaled_dot_product_attention", (floats(2, 3, 5, 4), floats(2, 3, 6, 4), floats(2, 3, 6, 4)), {}),
    ("scaled_dot_product_attention", (floats(2, 5, 4), floats(2, 5, 4), floats(2, 5, 4)), {"is_causal": True}),
    ("pad", (floats(2, 3, 4), (1, 2, 0, 3)), {"value": 2.0}),
    ("pad", (floats(2, 3, 4), (1, 2)), {"mode": "reflect"}),
    ("pad", (floats(2, 3, 4), (1, 2)), {"mode": "replicate"}),
    ("normalize", (floats(3, 4),), {"p": 1.0, "dim": -1}),
    ("one_hot", (integers(4, 3, 2),), {"num_classes": 5}),
]


@pytest.mark.parametrize("name, args, kwargs", FUNCTIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_function(name, args, kwargs):
    our_args = [leaf(to_bg, x) for x in args]
    their_args = [leaf(to_torch, x) for x in args]
    a = getattr(bnn.functional, name)(*our_args, **kwargs)
    b = getattr(tnn.functional, name)(*their_args, **kwargs)
    compare(name, a, b, 2e-5)
    if not b.requires_grad:
        return
    w = floats(*b.shape)
    (a * bg.asarray(w)).sum().backward()
    (b * torch.from_numpy(w)).sum().backward()
    for i, (x, y) in enumerate(zip(our_args, their_args)):
        if isinstance(y, torch.Tensor) and y.grad is not None:
            compare(f"gradient {i}", x.grad, y.grad, 3e-5)


# ---- Whole networks -----------------------------------------------------------------------------


def mlp(nn):
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4))


def cnn(nn):
    # No bias before a BatchNorm: its gradient is rounding noise, which AdamW would amplify.
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )


@pytest.mark.parametrize("make, shape", [(mlp, (10,)), (cnn, (1, 8, 8))])
@pytest.mark.parametrize("rule, options", [("SGD", {"lr": 0.05, "momentum": 0.9}), ("AdamW", {"lr": 1e-3})])
def test_training_side_by_side(make, shape, rule, options):
    ours, theirs = make(bnn), make(tnn)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: bg.asarray(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    our_rule = getattr(bg.optim, rule)(ours.parameters(), **options)
    their_rule = getattr(torch.optim, rule)(theirs.parameters(), **options)
    rng = np.random.default_rng(7)
    for _ in range(200):
        x = rng.standard_normal((16, *shape)).astype(np.float32)
        y = rng.integers(0, 4, 16)
        a = bnn.functional.cross_entropy(ours(bg.asarray(x)), bg.asarray(y))
        b = tnn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        our_rule.zero_grad(), their_rule.zero_grad()
        a.backward(), b.backward()
        our_rule.step(), their_rule.step()
    expected = theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        np.testing.assert_allclose(
            tensor.numpy(), expected[name].numpy(), rtol=1e-4, atol=1e-4, err_msg=name
        )
