"""Writes golden.txt: layers and losses of PyTorch with weights, inputs, outputs and gradients.

    python make_golden.py > golden.txt        (PyTorch 2.13.0)

Inputs and weights are multiples of 1/1000, so that text holds them exactly; everything is computed
in float64. A case is the lines from one `case` to the next:

    case NAME train|eval
    repr TEXT                       what PyTorch prints, newlines as \\n
    state NAME SIZE...              the keys and shapes of state_dict, in order
    KEY TYPE SIZE... : VALUE...     a tensor, TYPE f (float64), i (int64) or b (bool)

Keys: p.NAME parameters and buffers before the call, x0 x1 ... inputs, y0 y1 ... results, c0 c1 ...
what comes back for each, g.x0 ... and g.NAME gradients, b.NAME buffers after the call.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_dtype(torch.float64)


def drawn(*shape, scale=2.0):
    return torch.randint(-1000, 1001, shape).double() / 1000 * scale


def positive(*shape):
    return torch.randint(100, 901, shape).double() / 1000


def value_text(v, kind):
    if kind != "f":
        return str(int(v))
    return repr(round(v, 3)) if abs(v * 1000 - round(v * 1000)) < 1e-12 else f"{v:.13g}"


def write(key, t):
    kind = "f" if t.is_floating_point() else "b" if t.dtype == torch.bool else "i"
    sizes = "".join(f" {s}" for s in t.shape)
    values = " ".join(value_text(v, kind) for v in t.detach().reshape(-1).tolist())
    print(f"{key} {kind}{sizes} : {values}".rstrip())


def case(name, module, inputs, call=None, train=True, grads=None):
    """`grads`: which inputs get a gradient; all floating ones by default."""
    torch.manual_seed(sum(map(ord, name)))
    print(f"case {name} {'train' if train else 'eval'}")
    if isinstance(module, nn.Module):
        module.train(train)
        print("repr " + repr(module).replace("\n", "\\n"))
        with torch.no_grad():
            for key, t in module.state_dict().items():
                print("state " + " ".join([key, *map(str, t.shape)]))
                if t.is_floating_point():
                    above = "var" in key or isinstance(module, nn.modules.loss._Loss)
                    t.copy_(positive(*t.shape) if above else drawn(*t.shape, scale=0.8))
                write("p." + key, t)
    inputs = [make() for make in inputs]
    for i, t in enumerate(inputs):
        write(f"x{i}", t)
        if t.is_floating_point() and (grads is None or i in grads):
            t.requires_grad_()
    results = (call or (lambda m, *x: m(*x)))(module, *inputs)
    results = list(results) if isinstance(results, tuple) else [results]
    back = [drawn(*y.shape, scale=1.0) for y in results]
    for i, (y, c) in enumerate(zip(results, back)):
        write(f"y{i}", y)
        write(f"c{i}", c)
    if any(y.requires_grad for y in results):
        torch.autograd.backward(results, back)
    for i, t in enumerate(inputs):
        if t.requires_grad:
            write(f"g.x{i}", torch.zeros_like(t) if t.grad is None else t.grad)
    if isinstance(module, nn.Module):
        for key, p in module.named_parameters():
            write("g." + key, torch.zeros_like(p) if p.grad is None else p.grad)
        if train:
            for key, b in module.named_buffers():
                write("b." + key, b)


def x(*shape, scale=2.0):
    return lambda: drawn(*shape, scale=scale)


def probability(*shape):
    return lambda: positive(*shape)


def ints(high, *shape):
    return lambda: torch.randint(0, high, shape)


def given(t):
    return lambda: t.clone()


def signs(*shape):
    return lambda: torch.randint(0, 2, shape).double() * 2 - 1


def layers():
    case("linear", nn.Linear(4, 3), [x(2, 4)])
    case("linear_no_bias", nn.Linear(4, 3, bias=False), [x(2, 2, 4)])
    case("linear_relu", None, [x(3, 4), x(5, 4), x(5)], lambda m, a, w, b: F.relu(F.linear(a, w, b)))
    case("embedding", nn.Embedding(5, 3), [ints(5, 2, 4)])
    case("embedding_padding", nn.Embedding(5, 3, padding_idx=-4), [given(torch.tensor([1, 0, 1, 4]))])
    case("flatten", nn.Flatten(), [x(2, 3, 2)])
    case("identity", nn.Identity(), [x(2, 2)])
    case("dropout_eval", nn.Dropout(0.25), [x(2, 3)], train=False)
    case(
        "sequential",
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 2), nn.Identity())),
        [x(2, 3)],
    )
    for name, module in {
        "relu": nn.ReLU(),
        "leaky_relu": nn.LeakyReLU(0.2),
        "elu": nn.ELU(1.5),
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU(approximate="tanh"),
        "silu": nn.SiLU(),
        "mish": nn.Mish(),
        "softplus": nn.Softplus(2.0, 10.0),
        "hardswish": nn.Hardswish(),
        "sigmoid": nn.Sigmoid(),
        "tanh": nn.Tanh(),
        "softmax": nn.Softmax(dim=1),
        "log_softmax": nn.LogSoftmax(dim=-1),
    }.items():
        case(name, module, [x(3, 4, scale=4.0)])


def recurrent():
    def from_state(m, a, *state):
        y, h = m(a, state[0] if len(state) == 1 else tuple(state))
        return (y, *h) if isinstance(h, tuple) else (y, h)

    case("rnn", nn.RNN(3, 2), [x(4, 2, 3)], lambda m, a: m(a)[0])
    case("rnn_relu", nn.RNN(3, 2, nonlinearity="relu"), [x(3, 2, 3), x(1, 2, 2)], from_state)
    case(
        "rnn_stack",
        nn.RNN(2, 3, num_layers=2, bidirectional=True, batch_first=True),
        [x(2, 3, 2), x(4, 2, 3)],
        from_state,
    )
    case("lstm", nn.LSTM(3, 2), [x(4, 2, 3)], lambda m, a: m(a)[0])
    case("lstm_no_bias", nn.LSTM(2, 2, bias=False), [x(3, 1, 2), x(1, 1, 2), x(1, 1, 2)], from_state)
    case(
        "lstm_stack",
        nn.LSTM(2, 3, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5),
        [x(2, 3, 2), x(4, 2, 3), x(4, 2, 3)],
        from_state,
        train=False,
    )
    case("lstm_unbatched", nn.LSTM(2, 3), [x(4, 2), x(1, 3), x(1, 3)], from_state)
    case("gru", nn.GRU(3, 2), [x(4, 2, 3)], lambda m, a: m(a)[0])
    case(
        "gru_stack",
        nn.GRU(2, 3, num_layers=2, bidirectional=True),
        [x(3, 2, 2), x(4, 2, 3)],
        from_state,
    )


def losses():
    both = [x(3, 4), x(3, 4)]
    for reduction in ("none", "mean", "sum"):
        case(f"mse_{reduction}", nn.MSELoss(reduction=reduction), both)
        case(f"l1_{reduction}", nn.L1Loss(reduction=reduction), both)
        case(f"smooth_l1_{reduction}", nn.SmoothL1Loss(reduction=reduction, beta=0.7), both)
        case(f"huber_{reduction}", nn.HuberLoss(reduction=reduction, delta=1.3), both)
        case(f"bce_{reduction}", nn.BCELoss(reduction=reduction), [probability(3, 4), probability(3, 4)])
        case(f"bce_logits_{reduction}", nn.BCEWithLogitsLoss(reduction=reduction),
             [x(3, 4, scale=5.0), probability(3, 4)])
        case(f"nll_{reduction}", None, [x(4, 3), ints(3, 4)],
             lambda m, a, t, r=reduction: F.nll_loss(a, t, reduction=r))
        case(f"kl_div_{reduction}", None, [x(3, 4), probability(3, 4)],
             lambda m, a, t, r=reduction: F.kl_div(a, t, reduction=r))
        case(f"hinge_embedding_{reduction}", nn.HingeEmbeddingLoss(margin=0.8, reduction=reduction),
             [x(3, 4), signs(3, 4)], grads=[0])
        case(f"multi_margin_{reduction}", nn.MultiMarginLoss(reduction=reduction), [x(4, 3), ints(3, 4)])
        case(f"cosine_embedding_{reduction}", nn.CosineEmbeddingLoss(margin=0.1, reduction=reduction),
             [x(5, 3), x(5, 3), signs(5)], grads=[0, 1])
        case(f"cross_entropy_{reduction}", nn.CrossEntropyLoss(reduction=reduction), [x(4, 3), ints(3, 4)])
    case("bce_weight", None, [probability(3, 4), probability(3, 4), probability(4)],
         lambda m, a, t, w: F.binary_cross_entropy(a, t, w), grads=[0, 1])
    case("bce_edges", None, [given(torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])),
                             given(torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]))],
         lambda m, a, t: F.binary_cross_entropy(a, t, reduction="none"), grads=[0])
    case("bce_logits_weights", nn.BCEWithLogitsLoss(weight=positive(4), pos_weight=positive(4) * 3),
         [x(3, 4), probability(3, 4)])
    case("bce_logits_large", None,
         [given(torch.tensor([1000.0, -1000.0, 40.0, -40.0, 0.0, 1000.0])),
          given(torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]))],
         lambda m, a, t: F.binary_cross_entropy_with_logits(a, t, reduction="none"))
    case("nll_weight_ignore", nn.NLLLoss(weight=positive(3), ignore_index=1),
         [x(2, 3, 4), given(torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]]))])
    case("nll_single", None, [x(3), given(torch.tensor(2))], lambda m, a, t: F.nll_loss(a, t))
    case("kl_div_log_target", None, [x(3, 4), x(3, 4)],
         lambda m, a, t: F.kl_div(a, t, reduction="sum", log_target=True))
    case("kl_div_zeros", None, [x(4), given(torch.tensor([0.0, 0.25, 0.0, 0.75]))],
         lambda m, a, t: F.kl_div(a, t, reduction="sum"), grads=[0])
    case("multi_margin_squares", nn.MultiMarginLoss(p=2, margin=0.6, weight=positive(3)),
         [x(4, 3), ints(3, 4)])
    case("cross_entropy_weight_ignore", nn.CrossEntropyLoss(weight=positive(3), ignore_index=1),
         [x(2, 3, 4), given(torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]]))])
    case("cross_entropy_smooth", nn.CrossEntropyLoss(label_smoothing=0.1), [x(4, 3), ints(3, 4)])
    case("cross_entropy_probabilities", nn.CrossEntropyLoss(), [x(4, 3), probability(4, 3)], grads=[0])


def convolutions():
    case("conv1d", nn.Conv1d(2, 3, 3), [x(2, 2, 6)])
    case("conv1d_options", nn.Conv1d(4, 2, 2, stride=2, padding=1, dilation=2, groups=2, bias=False),
         [x(1, 4, 7)])
    case("conv2d", nn.Conv2d(2, 3, 3), [x(2, 2, 5, 4)])
    case("conv2d_options",
         nn.Conv2d(4, 2, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
         [x(1, 4, 5, 5)])
    case("conv2d_padded", nn.Conv2d(1, 2, 3, padding=1, bias=False), [x(1, 1, 3, 3)])
    case("conv_transpose2d", nn.ConvTranspose2d(2, 3, 2), [x(1, 2, 3, 2)])
    case("conv_transpose2d_options",
         nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=1),
         [x(1, 2, 3, 2)])
    case("max_pool1d", nn.MaxPool1d(3, stride=2), [x(2, 2, 7)])
    case("max_pool2d", nn.MaxPool2d(2), [x(1, 2, 4, 5)])
    case("max_pool2d_options", nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True),
         [x(1, 2, 4, 5)])
    case("avg_pool1d", nn.AvgPool1d(2), [x(1, 2, 5)])
    case("avg_pool2d", nn.AvgPool2d(3, stride=2, padding=1), [x(1, 2, 4, 5)])
    case("avg_pool2d_uncounted", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
         [x(1, 2, 4, 5)])
    case("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(3), [x(1, 2, 7)])
    case("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((2, 3)), [x(1, 2, 5, 4)])
    case("adaptive_avg_pool2d_one", nn.AdaptiveAvgPool2d(1), [x(2, 2, 3, 3)])


def norms():
    case("layer_norm", nn.LayerNorm(4), [x(2, 3, 4)])
    case("layer_norm_two_axes", nn.LayerNorm((3, 4), eps=1e-3, bias=False), [x(2, 3, 4)])
    case("layer_norm_plain", nn.LayerNorm(4, elementwise_affine=False), [x(2, 4)])
    case("rms_norm", nn.RMSNorm(4), [x(2, 3, 4)])
    case("rms_norm_eps", nn.RMSNorm((4,), eps=1e-3, elementwise_affine=False), [x(2, 4)])
    case("group_norm", nn.GroupNorm(2, 4), [x(2, 4, 3)])
    case("group_norm_plain", nn.GroupNorm(3, 3, affine=False), [x(2, 3, 2, 2)])
    case("batch_norm1d", nn.BatchNorm1d(3), [x(4, 3)])
    case("batch_norm1d_eval", nn.BatchNorm1d(3), [x(2, 3, 4)], train=False)
    case("batch_norm1d_average", nn.BatchNorm1d(3, momentum=None), [x(4, 3)])
    case("batch_norm1d_untracked", nn.BatchNorm1d(3, track_running_stats=False), [x(4, 3)], train=False)
    case("batch_norm2d", nn.BatchNorm2d(2), [x(2, 2, 3, 2)])
    case("batch_norm2d_plain", nn.BatchNorm2d(2, affine=False, momentum=0.3, eps=1e-3), [x(2, 2, 3, 2)])


def attention():
    def only(m, *a, **k):
        return m(*a, need_weights=False, **k)[0]

    later = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    case("attention", nn.MultiheadAttention(4, 2), [x(3, 2, 4)], lambda m, a: only(m, a, a, a))
    case("attention_cross", nn.MultiheadAttention(4, 2, batch_first=True),
         [x(2, 3, 4), x(2, 5, 4), x(2, 5, 4)], only)
    case("attention_sizes", nn.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False),
         [x(3, 2, 4), x(2, 2, 3), x(2, 2, 5)], only)
    case("attention_causal", nn.MultiheadAttention(4, 2, batch_first=True), [x(2, 3, 4)],
         lambda m, a: only(m, a, a, a, attn_mask=later, is_causal=True))
    case("attention_masks", nn.MultiheadAttention(4, 2, batch_first=True),
         [x(2, 3, 4), given(torch.tensor([[False, False, True], [False, True, False]])), given(later)],
         lambda m, a, p, k: only(m, a, a, a, key_padding_mask=p, attn_mask=k))
    case("attention_float_masks", nn.MultiheadAttention(4, 2, batch_first=True),
         [x(2, 3, 4), given(torch.tensor([[False, False, True], [False, True, False]])), x(4, 3, 3)],
         lambda m, a, p, k: only(m, a, a, a, key_padding_mask=torch.zeros(2, 3).masked_fill(p, -torch.inf),
                                 attn_mask=k), grads=[0])
    case("attention_unbatched", nn.MultiheadAttention(4, 2), [x(3, 4)], lambda m, a: only(m, a, a, a))
    case("attention_weights", nn.MultiheadAttention(4, 2, batch_first=True), [x(2, 3, 4), x(2, 4, 4)],
         lambda m, q, k: m(q, k, k))
    case("encoder_layer", nn.TransformerEncoderLayer(4, 2, dim_feedforward=6, dropout=0.1), [x(3, 2, 4)],
         train=False)
    case("encoder_layer_norm_first",
         nn.TransformerEncoderLayer(4, 2, dim_feedforward=5, dropout=0.0, activation="gelu",
                                    batch_first=True, norm_first=True, bias=False),
         [x(2, 3, 4)])
    case("encoder_layer_masks",
         nn.TransformerEncoderLayer(4, 2, dim_feedforward=5, dropout=0.0, batch_first=True),
         [x(2, 3, 4), given(torch.tensor([[False, False, True], [False, True, False]]))],
         lambda m, a, p: m(a, src_mask=later, src_key_padding_mask=p, is_causal=True))


layers()
recurrent()
losses()
convolutions()
norms()
attention()
