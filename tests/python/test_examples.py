"""The examples, run as a new user would; their output shows whether they work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def losses(output):
    return [float(text) for text in re.findall(r"loss (\d+\.\d+)", output)]


def test_tensors_in_ten_lines():
    output = run("tensors_in_ten_lines.py")
    assert "the mean of each column: tensor([1.5000, 2.5000, 3.5000])" in output
    # (10*1 + 1*2 + 2*3)^2 + (3 + 8 + 15)^2, and 2 (18 [10 1 2] + 26 [3 4 5])
    assert "loss = 1000, and its gradient by w is tensor([516., 244., 332.])" in output


def test_xor_is_solved():
    output = run("xor.py")
    answers = re.findall(r"(\d) xor (\d) = (\d\.\d+)", output)
    assert len(answers) == 4
    for a, b, answer in answers:
        assert abs(float(answer) - (int(a) ^ int(b))) < 0.1
    assert losses(output)[-1] < 0.01 < losses(output)[0]


@pytest.mark.parametrize(("model", "least"), [("mlp", 75.0), ("cnn", 80.0)])
def test_mnist_is_learned(model, least):
    output = run("mnist.py", "--model", model, "--data", "digits", "--quick")
    assert "6000 pictures to learn from, 2000 to be tested with" in output
    accuracy = re.search(r"accuracy (\d+\.\d+)%", output)
    assert float(accuracy[1]) > least


def test_char_gpt_learns_and_writes():
    output = run("char_gpt.py", "--quick")
    fell = losses(output)
    assert fell[0] > 3.5 and fell[-1] < 2.6
    written = output.split("now it writes:\n\n")[1]
    assert written.startswith("A tensor ") and len(written) == len("A tensor ") + 200 + 1


def test_custom_function_finds_whole_prices():
    output = run("custom_function.py")
    assert "LogCosh agrees with finite differences: True" in output
    assert output.rstrip().endswith("loss 0.0000  prices [3.0, 7.0, 2.0]")
