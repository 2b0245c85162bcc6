"""Gradients against closed forms and finite differences."""

import collections
import gc
import threading
import traceback
import weakref

import numpy as np
import pytest

import baregrad as bg


def leaf(values, dtype=None):
    return bg.tensor(values, dtype=dtype or bg.float64, requires_grad=True)


# ---- Recording on and off


def test_no_grad_as_context_manager():
    x = leaf([1.0, 2.0])
    with bg.no_grad():
        assert not bg.is_grad_enabled()
        y = x * x
    assert bg.is_grad_enabled()
    assert not y.requires_grad and (x * x).requires_grad


def test_modes_nest_and_come_back_after_an_exception():
    with pytest.raises(KeyError):
        with bg.no_grad():
            with bg.enable_grad():
                assert bg.is_grad_enabled()
                with bg.no_grad():
                    raise KeyError("out")
    assert bg.is_grad_enabled()


def test_one_mode_object_may_be_entered_inside_itself():
    off = bg.no_grad()
    with off:
        with bg.enable_grad():
            with off:
                assert not bg.is_grad_enabled()
            assert bg.is_grad_enabled()
        assert not bg.is_grad_enabled()
    assert bg.is_grad_enabled()


@pytest.mark.parametrize(
    "make", [bg.no_grad, lambda: bg.no_grad, lambda: bg.set_grad_enabled(False)]
)
def test_decorated_functions(make):
    @make()
    def f(a, *, b):
        """what f does"""
        assert not bg.is_grad_enabled()
        if b is None:
            raise KeyError("b")
        return a + b

    assert f.__name__ == "f" and f.__doc__ == "what f does"
    assert f(1, b=2) == 3
    assert bg.is_grad_enabled()
    with pytest.raises(KeyError):
        f(1, b=None)
    assert bg.is_grad_enabled()


def test_a_decorated_function_may_call_itself():
    @bg.no_grad()
    def f(n):
        assert not bg.is_grad_enabled()
        return n if n == 0 else f(n - 1)

    assert f(5) == 0 and bg.is_grad_enabled()


def test_a_decorated_generator_switches_only_while_it_runs():
    closed = []

    @bg.no_grad()
    def count():
        got = None
        try:
            while True:
                assert not bg.is_grad_enabled()
                try:
                    got = yield got
                except KeyError as error:
                    got = error
                if got == "stop":
                    return "end"
        finally:
            closed.append(bg.is_grad_enabled())

    generator = count()
    assert next(generator) is None and bg.is_grad_enabled()
    assert generator.send(7) == 7 and bg.is_grad_enabled()
    error = KeyError("in")
    assert generator.throw(error) is error and bg.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        generator.send("stop")
    assert stop.value.value == "end" and closed == [False]

    generator = count()
    next(generator)
    generator.close()
    assert closed == [False, False] and bg.is_grad_enabled()


def test_set_grad_enabled_switches_at_once():
    bg.set_grad_enabled(False)
    assert not bg.is_grad_enabled()
    bg.set_grad_enabled(True)
    with bg.set_grad_enabled(False):
        assert not bg.is_grad_enabled()
    assert bg.is_grad_enabled()


def test_the_mode_belongs_to_the_thread():
    seen = []
    with bg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(bg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ---- grad and backward


def test_grad_of_closed_forms():
    x, y = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    gx, gy = bg.autograd.grad(bg.sum(x * x * y), [x, y])
    np.testing.assert_array_equal(gx.numpy(), 2 * x.detach().numpy() * y.detach().numpy())
    np.testing.assert_array_equal(gy.numpy(), x.detach().numpy() ** 2)
    assert x.grad is None and y.grad is None


def test_grad_with_given_gradients_of_several_outputs():
    x = leaf([1.0, 2.0])
    seed = bg.tensor([10.0, 100.0], dtype=bg.float64)
    (g,) = bg.autograd.grad([x * x, bg.sum(x)], x, [seed, None])
    np.testing.assert_array_equal(g.numpy(), [2 * 10 + 1, 4 * 100 + 1])


def test_grad_of_an_unused_input():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="grad: the outputs do not depend on input 1"):
        bg.autograd.grad(x * 2, [x, y])
    assert bg.autograd.grad(x * 2, [x, y], allow_unused=True)[1] is None


def test_third_derivative():
    x = leaf(2.0)
    y = x**5
    for expected in (5 * 2.0**4, 20 * 2.0**3, 60 * 2.0**2):
        (y,) = bg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected, rel=1e-12)


def test_the_graph_is_freed_unless_kept():
    x = leaf(3.0)
    y = x * x
    bg.autograd.grad(y, x, retain_graph=True)
    bg.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="retain_graph"):
        bg.autograd.grad(y, x)


def test_backward_of_several():
    x = leaf([1.0, 2.0])
    bg.autograd.backward([bg.sum(x * x), x * 3], [None, bg.tensor([1.0, 10.0], dtype=bg.float64)])
    np.testing.assert_array_equal(x.grad.numpy(), [2 + 3, 4 + 30])


def test_wrong_arguments_say_what_is_wrong():
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError, match="grad: takes tensors, got an object of type int"):
        bg.autograd.grad(3, x)
    with pytest.raises(RuntimeError, match="more than one element"):
        bg.autograd.grad(x * x, x)
    with pytest.raises(ValueError, match="2 gradients for 1 outputs"):
        bg.autograd.grad(bg.sum(x), x, [None, None])


def test_live_nodes():
    gc.collect()
    x = leaf(1.0)
    before = bg.autograd.live_nodes()
    y = x * x + x
    assert bg.autograd.live_nodes() == before + 2
    del y
    assert bg.autograd.live_nodes() == before


# ---- Function


class Cube(bg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x


class Affine(bg.autograd.Function):
    """scale * x + shift with a number among the arguments and a second result without a gradient."""

    @staticmethod
    def forward(ctx, x, power, scale):
        ctx.power = power
        ctx.save_for_backward(x, None, scale)
        sign = x > 0
        ctx.mark_non_differentiable(sign)
        return scale * x**power, sign, "a note"

    @staticmethod
    def backward(ctx, gradient, _):
        x, nothing, scale = ctx.saved_tensors
        assert nothing is None
        of_x = gradient * scale * ctx.power * x ** (ctx.power - 1)
        return of_x, None, bg.sum(gradient * x**ctx.power)


def test_function_and_its_second_derivative():
    x = leaf([1.0, -2.0, 3.0])
    y = Cube.apply(x)
    np.testing.assert_array_equal(y.detach().numpy(), [1, -8, 27])
    (g,) = bg.autograd.grad(bg.sum(y), x, create_graph=True)
    np.testing.assert_array_equal(g.detach().numpy(), [3, 12, 27])
    (gg,) = bg.autograd.grad(bg.sum(g), x)
    np.testing.assert_array_equal(gg.numpy(), [6, -12, 18])
    assert bg.autograd.gradcheck(Cube.apply, x)
    assert bg.autograd.gradgradcheck(Cube.apply, x)


def test_function_with_several_arguments_and_results():
    x, scale = leaf([1.0, -2.0]), leaf(3.0)
    y, sign, note = Affine.apply(x, 2, scale)
    assert note == "a note" and not sign.requires_grad and sign.dtype is bg.bool
    bg.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6, -12])
    assert scale.grad.item() == 5


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_needs_input_grad_is_known_in_forward_and_backward(wanted):
    seen = []

    class Look(bg.autograd.Function):
        @staticmethod
        def forward(ctx, a, number, b):
            seen.append(ctx.needs_input_grad)
            return a + b

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.needs_input_grad)
            return gradient, None, gradient

    a, b = bg.tensor(1.0, requires_grad=wanted[0]), bg.tensor(1.0, requires_grad=wanted[1])
    Look.apply(a, 5, b).backward()
    assert seen == [(wanted[0], False, wanted[1])] * 2


def test_function_without_recording_leaves_no_graph():
    x = leaf(2.0)
    with bg.no_grad():
        assert not Cube.apply(x).requires_grad
    assert not Cube.apply(x.detach()).requires_grad


def test_a_function_that_returns_its_input():
    class Same(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return -gradient

    x = leaf(2.0)
    (g,) = bg.autograd.grad(Same.apply(x), x)
    assert g.item() == -1


def test_an_output_without_gradient_brings_zeros():
    seen = []

    class Two(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a.numpy().tolist(), b.numpy().tolist()))
            return 2 * a + 3 * b

    x = leaf([1.0, 1.0])
    _, second = Two.apply(x)
    bg.sum(second).backward()
    assert seen == [([0, 0], [1, 1])]
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


class Failure(Exception):
    pass


def test_what_backward_raises_arrives_unchanged_with_its_traceback():
    error = Failure("from backward")

    class Fails(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            def deep_inside():
                raise error

            deep_inside()

    x = leaf(1.0)
    y = Fails.apply(x) * 2
    with pytest.raises(Failure) as caught:
        y.backward()
    assert caught.value is error
    assert "deep_inside" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert x.grad is None
    # the engine continues
    bg.autograd.grad(Cube.apply(x), x)


def test_wrong_results_of_backward():
    class Counts(bg.autograd.Function):
        result = None

        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, gradient):
            return Counts.result

    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="Counts: its backward gave 1 gradients for 2 arguments"):
        Counts.result = x
        Counts.apply(x, 2).backward()
    with pytest.raises(RuntimeError, match="gradient for argument 1, which is not a tensor"):
        Counts.result = (x, x)
        Counts.apply(x, 2).backward()
    with pytest.raises(TypeError, match="got an object of type str"):
        Counts.result = ("x", None)
        Counts.apply(x, 2).backward()


def test_wrong_results_of_forward():
    class Nothing(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return None

    with pytest.raises(TypeError, match="Nothing: its forward must return a tensor"):
        Nothing.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="forward"):
        bg.autograd.Function.apply(leaf(1.0))


def test_saved_tensors_that_were_overwritten():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = Cube.apply(y)
    with bg.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="Cube"):
        bg.sum(z).backward()


def test_ctx_goes_with_its_graph():
    class Marked(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = Mark()
            marks.append(weakref.ref(ctx.mark))
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            kept.append(ctx)
            return gradient * 2

    class Mark:
        pass

    marks, kept = [], []
    y = Marked.apply(leaf(1.0))
    assert marks[0]() is not None
    y.backward()
    del y
    assert marks[0]() is not None  # kept refers to ctx
    with pytest.raises(RuntimeError, match="the graph of this call is gone"):
        kept[0].saved_tensors
    kept.clear()
    assert marks[0]() is None


# ---- checkpoint


def test_checkpoint_gives_the_same_gradients_and_keeps_less():
    calls = []

    def chain(x, n, *, shift):
        calls.append(n)
        for _ in range(n):
            x = bg.sin(x) + shift
        return x, x * 2

    x = leaf([0.5, 1.5])
    shift = leaf(0.25)
    plain = bg.autograd.grad([bg.sum(v) for v in chain(x, 10, shift=shift)], [x, shift])
    before = bg.autograd.live_nodes()
    outputs = bg.autograd.checkpoint(chain, x, 10, shift=shift)
    assert isinstance(outputs, tuple) and len(outputs) == 2
    assert bg.autograd.live_nodes() == before + 1
    again = bg.autograd.grad([bg.sum(v) for v in outputs], [x, shift])
    for a, b in zip(plain, again):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert calls == [10, 10, 10]


def test_checkpoint_of_one_result_and_of_errors():
    x = leaf(2.0)
    y = bg.autograd.checkpoint(lambda x: x * x, x)
    assert isinstance(y, bg.Tensor)
    state = {"fail": False}

    def sometimes(x):
        if state["fail"]:
            raise Failure("again")
        return x * x

    y = bg.autograd.checkpoint(sometimes, x)
    state["fail"] = True
    with pytest.raises(Failure, match="again"):
        y.backward()


# ---- Checks, anomalies, labels


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(bg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2.001

    x = leaf([1.0, 2.0])
    assert not bg.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(RuntimeError):
        bg.autograd.gradcheck(Wrong.apply, x)
    assert bg.autograd.gradcheck(Wrong.apply, x, rtol=1e-2)
    assert bg.autograd.gradcheck(lambda a, b: (a * b, bg.exp(a)), [x, leaf([3.0, 4.0])])


def test_detect_anomaly():
    x = leaf(0.0)
    with bg.autograd.detect_anomaly():
        with pytest.raises(RuntimeError, match="anomaly: log"):
            bg.log(x)
        y = bg.sqrt(x)
        with pytest.raises(RuntimeError, match="anomaly: the gradient of sqrt"):
            y.backward()
    assert bg.log(x).item() == -np.inf


def test_label():
    x = leaf(2.0)
    with bg.autograd.label("outer"):
        with bg.autograd.label("inner"):
            y = x * x
    assert "outer" in bg.graph.to_dot(y) and "inner" in bg.graph.to_dot(y)
    assert "outer" not in bg.graph.to_dot(x * x)


# ---- Hooks


def test_what_a_hook_raises_arrives_unchanged():
    error = Failure("from a hook")

    def hook(gradient):
        raise error

    x = leaf(1.0)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(Failure) as caught:
        (y * 3).backward()
    assert caught.value is error


def test_backward_inside_a_hook():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x

    def hook(gradient):
        with bg.enable_grad():
            (w * w).backward()

    y.register_hook(hook)
    y.backward()
    assert x.grad.item() == 4 and w.grad.item() == 6


class TestCheckpointOutputs:
    """Objects that are not tensors pass through."""

    def test_a_tuple_with_none(self):
        x = bg.tensor([1.0, 2.0], requires_grad=True)
        y, nothing = bg.autograd.checkpoint(lambda x: (x * x, None), x)
        assert nothing is None
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_attention_without_weights(self):
        attention = bg.nn.MultiheadAttention(4, 2, batch_first=True)
        x = bg.rand(1, 3, 4, requires_grad=True)
        plain = bg.autograd.grad(attention(x, x, x, need_weights=False)[0].sum(), x)[0]
        y, weights = bg.autograd.checkpoint(
            lambda x: attention(x, x, x, need_weights=False), x
        )
        assert weights is None
        y.sum().backward()
        assert x.grad.tolist() == plain.tolist()

    def test_containers_of_anything(self):
        kept = object()

        def function(x):
            return {"a": [x * 2, (kept, x * 3)], "b": "text"}, 7

        x = bg.tensor(1.0, requires_grad=True)
        found, seven = bg.autograd.checkpoint(function, x)
        assert seven == 7 and found["b"] == "text" and found["a"][1][0] is kept
        assert type(found["a"]) is list and type(found["a"][1]) is tuple
        (found["a"][0] + found["a"][1][1]).backward()
        assert x.grad.item() == 5.0

    @pytest.mark.parametrize("value", [None, 3, "text", [], ()])
    def test_no_tensor_at_all(self, value):
        x = bg.tensor(1.0, requires_grad=True)
        assert bg.autograd.checkpoint(lambda x: value, x) == value
        with bg.no_grad():
            assert bg.autograd.checkpoint(lambda x: value, x) == value

    def test_named_tuples_stay(self):
        Pair = collections.namedtuple("Pair", "a b")
        x = bg.tensor(2.0, requires_grad=True)
        pair = bg.autograd.checkpoint(lambda x: Pair(x * x, None), x)
        assert isinstance(pair, Pair) and pair.b is None
        pair.a.backward()
        assert x.grad.item() == 4.0

    def test_another_shape_the_second_time_raises(self):
        shapes = iter([(2,), (3,)])
        x = bg.tensor(2.0, requires_grad=True)
        y = bg.autograd.checkpoint(lambda x: x.expand(next(shapes)) * 2, x)
        with pytest.raises(RuntimeError, match="when it ran again"):
            y.sum().backward()


class TestSetupContext:
    """PyTorch's other form: forward without ctx."""

    class Scale(bg.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, gradient):
            x, output = ctx.saved_tensors
            assert bg.all(output == x * ctx.factor)
            return gradient * ctx.factor, None

    def test_gradient(self):
        x = bg.tensor([1.0, 2.0], requires_grad=True)
        y = self.Scale.apply(x, 3.0)
        assert y.tolist() == [3.0, 6.0]
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]

    def test_several_outputs_as_a_list(self):
        class Both(bg.autograd.Function):
            @staticmethod
            def forward(x):
                return [x + 1, x * 2]

            @staticmethod
            def setup_context(ctx, inputs, output):
                assert isinstance(output, tuple) and len(output) == 2

            @staticmethod
            def backward(ctx, first, second):
                return first + 2 * second

        x = bg.tensor(1.0, requires_grad=True)
        a, b = Both.apply(x)
        (a + b).backward()
        assert x.grad.item() == 3.0

    def test_a_subclass_inherits_it(self):
        class More(self.Scale):
            pass

        x = bg.tensor(1.0, requires_grad=True)
        More.apply(x, 2.0).backward()
        assert x.grad.item() == 2.0
