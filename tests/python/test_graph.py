"""Graphs as text, tables and pictures; recordings of the profiler."""

import json
import shutil
import xml.etree.ElementTree

import numpy as np
import pytest

import baregrad as bg


@pytest.fixture
def network():
    x = bg.tensor([3.0, 4.0], requires_grad=True)
    w = bg.tensor([1.0, 2.0], requires_grad=True)
    with bg.autograd.label("layer"):
        y = bg.tanh(x * w)
    return x, w, bg.sum(y)


def test_to_dot_names_ops_labels_and_tensors(network):
    x, w, loss = network
    dot = bg.graph.to_dot(loss, {"input": x, "weight": w})
    assert dot.startswith("digraph")
    for word in ("multiply", "tanh", "sum", "layer", "input", "weight"):
        assert word in dot
    assert dot == bg.graph.to_dot([loss], [("input", x), ("weight", w)])
    assert dot == bg.graph.to_dot(loss, iter([("input", x), ("weight", w)]))
    assert "input" not in bg.graph.to_dot(loss)


def test_to_dot_of_several_roots_and_with_few_nodes(network):
    x, w, loss = network
    assert "exp" in bg.graph.to_dot([loss, bg.exp(x)])
    assert len(bg.graph.to_dot(loss, max_nodes=1)) < len(bg.graph.to_dot(loss))


def test_a_tensor_without_history():
    with pytest.raises(RuntimeError, match="to_dot"):
        bg.graph.to_dot(bg.ones((2,)))
    with pytest.raises(TypeError, match="to_dot: takes tensors"):
        bg.graph.to_dot("x")


def test_summary(network):
    _, w, loss = network
    table = bg.graph.summary(loss, {"weight": w})
    for word in ("tanh", "layer", "weight", "float32"):
        assert word in table


def test_gradient_recorder():
    x = bg.tensor([3.0, 4.0], dtype=bg.float64, requires_grad=True)
    y = x * x
    loss = bg.sum(y) / 2
    with bg.graph.GradientRecorder() as gradients:
        loss.backward(retain_graph=True)
    assert gradients.norm(x) == pytest.approx(5.0, rel=1e-15)
    assert gradients.norm(y) == pytest.approx(np.sqrt(0.5), rel=1e-15)
    assert gradients.norm(bg.exp(x)) is None
    assert len(gradients) >= 3
    dot = bg.graph.to_dot(loss, gradients=gradients)
    assert dot != bg.graph.to_dot(loss) and "5" in dot
    # removed: a later backward is not recorded
    (loss * 10).backward()
    assert gradients.norm(x) == pytest.approx(5.0, rel=1e-15)
    gradients.clear()
    assert len(gradients) == 0


def test_gradient_recorder_that_was_never_entered(network):
    with pytest.raises(ValueError, match="never entered"):
        bg.graph.GradientRecorder().norm(network[0])


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_draw_gives_a_picture(network):
    drawing = bg.graph.draw(network[2], max_nodes=50)
    assert drawing.dot == bg.graph.to_dot(network[2], max_nodes=50)
    root = xml.etree.ElementTree.fromstring(drawing._repr_svg_())
    assert root.tag.endswith("svg")
    assert "tanh" in drawing._repr_svg_()


def test_draw_without_graphviz(network, monkeypatch):
    monkeypatch.setenv("PATH", "")
    drawing = bg.graph.draw(network[2])
    assert drawing.dot.startswith("digraph")
    with pytest.raises(RuntimeError, match="no `dot` on the PATH"):
        drawing.svg()


def test_profile(tmp_path):
    path = tmp_path / "trace.json"
    x = bg.tensor([1.0, 2.0], requires_grad=True)
    with bg.profile.record(path):
        assert bg.profile.is_recording()
        bg.sum(bg.tanh(x)).backward()
    assert not bg.profile.is_recording()
    events = json.loads(path.read_text())["traceEvents"]
    assert {"op", "backward"} <= {event.get("cat") for event in events}
    assert "tanh" in {event["name"] for event in events}


def test_profile_writes_the_file_also_after_an_exception(tmp_path):
    path = tmp_path / "trace.json"
    with pytest.raises(KeyError):
        with bg.profile.record(path):
            bg.ones((2,)) + 1
            raise KeyError
    assert path.exists() and not bg.profile.is_recording()
    with pytest.raises(ValueError):
        bg.profile.stop()
    with pytest.raises(OSError):
        bg.profile.start(tmp_path / "no" / "such" / "folder.json")
