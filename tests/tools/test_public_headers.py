"""The public headers in the hands of a user: what compiles without a warning, what warns, what is refused.

Calls that are refused by overload resolution stand in tests/ops/test_refused.cpp. Here are those for
which a compiler must run: results that are dropped, and arguments that would hide tensors from autograd.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMPILERS = [name for name in ("g++", "clang++-14") if shutil.which(name)]

EVERYTHING = '#include "baregrad/baregrad.h"\n'

# A line that ends in "// warns" drops a result that is all its call is for; no other line warns.
DROPPED = """
void drop(bg::Tensor x, bg::nn::Module& net, bg::optim::Optimizer& optimizer) {
  bg::no_grad();                                      // warns
  bg::enable_grad();                                  // warns
  bg::autograd::Label("name");                        // warns
  bg::autograd::AnomalyScope();                       // warns
  bg::AllocatorScope{bg::current_allocator()};        // warns
  bg::profile::record("trace.json");                  // warns
  bg::graph::GradientRecorder();                      // warns
  relu(x);                                            // warns
  x + x;                                              // warns
  sum(x, 0);                                          // warns
  bg::zeros({2});                                     // warns
  x.reshape({-1});                                    // warns
  x.clone();                                          // warns
  x.detach();                                         // warns
  x.to(bg::DType::Float64);                           // warns
  x.index_put({0}, 1);                                // warns
  x[0];                                               // warns
  x.defined();                                        // warns
  x.numel();                                          // warns
  x.item<float>();                                    // warns
  x.to_vector<float>();                               // warns
  split(x, 2);                                        // warns
  topk(x, 2);                                         // warns
  bg::linalg::svd(x);                                 // warns
  max_pool2d_with_indices(x, {.kernel = {2, 2}});     // warns
  bg::autograd::grad({x}, {x});                       // warns
  bg::autograd::gradcheck({}, {x});                   // warns
  net(x);                                             // warns
  net.parameters();                                   // warns
  net.state_dict();                                   // warns
  optimizer.state();                                  // warns
  bg::nn::make<bg::nn::ReLU>();                       // warns
  bg::nn::sequential({bg::nn::make<bg::nn::ReLU>()}); // warns
  bg::describe(x);                                    // warns

  const bg::no_grad off;
  relu_(x);
  x += 1;
  x.copy_(x);
  x.fill_(0);
  x.index_put_({0}, 1);
  x.requires_grad_();
  x.backward();
  x.register_hook([](const bg::Tensor& g) { return g; });
  net.eval();
  net.to(bg::DType::Float64);
  net.load_state_dict({});
  optimizer.step();
  bg::optim::clip_grad_norm_({x}, 1.0);
  static_cast<void>(relu(x));
}
"""

FUNCTION = """
#include <array>
#include <filesystem>
#include "baregrad/autograd.h"
#include "baregrad/ops.h"
#include "baregrad/state.h"
namespace bg = baregrad;
struct F : bg::autograd::Function<F> {
  static constexpr const char* kName = "f";
  template <class... T>
  static bg::Tensor forward(bg::autograd::Context&, const bg::Tensor& x, const T&...) { return x; }
  static bg::autograd::Tensors backward(bg::autograd::Context&, const bg::autograd::Tensors& g) {
    return g;
  }
};
struct Plain { int size; double scale; };
template <int> struct Hiding { bg::Tensor weight; };
struct Named { std::string name; };
template <>
inline constexpr bool bg::autograd::holds_no_tensor<Named> = true;
void call(bg::Tensor x, std::vector<bg::Tensor> list) {
  static_cast<void>(F::apply(x, ARGUMENT));
}
"""
TAKEN = [
    "x", "1", "2.5", "true", '"text"', "std::string()", "bg::Dims{1, 2}", "bg::Scalar(1)",
    "bg::DType::Float32", "Plain{}", "Named{}", "list", "std::array{x, x}", "std::span(list)",
    "std::optional(x)", "std::pair(x, 1)", "std::tuple(x, list, 2)", "std::vector<double>{}",
    "(std::map<std::string, bg::Tensor>{})", "(std::vector<std::vector<bg::Tensor>>{})",
    "std::optional<bg::autograd::Tensors>()",
    "&bg::default_generator()",
]  # fmt: skip
REFUSED = [
    "Hiding<0>{}", "std::make_shared<bg::Tensor>()", "&x", "std::cref(x)", "bg::Operand(x)",
    "std::vector<bg::Index>{}", "std::vector<Hiding<1>>{}", "std::optional<Hiding<2>>()",
    "std::function<void()>()", "std::any(x)", "bg::NamedTensor{}", "std::filesystem::path()",
]  # fmt: skip


def compile_text(compiler: str, text: str, folder: pathlib.Path, *flags: str) -> subprocess.CompletedProcess[str]:
    source = folder / "main.cpp"
    source.write_text(text)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I", str(ROOT / "include")]
    return subprocess.run(
        [*command, *flags, str(source)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("compiler", COMPILERS)
def test_dropped_results_warn(compiler: str, tmp_path: pathlib.Path) -> None:
    text = EVERYTHING + DROPPED
    done = compile_text(compiler, text, tmp_path)
    assert done.returncode == 0, done.stderr
    warned = {int(line) for line in re.findall(r"main\.cpp:(\d+):\d+: warning:", done.stderr)}
    wanted = {i for i, line in enumerate(text.splitlines(), 1) if line.endswith("// warns")}
    lines = dict(enumerate(text.splitlines(), 1))
    assert [lines[i] for i in sorted(wanted - warned)] == []
    assert [lines[i] for i in sorted(warned - wanted)] == []


@pytest.mark.parametrize("compiler", COMPILERS)
def test_functions_take_what_hides_no_tensor(compiler: str, tmp_path: pathlib.Path) -> None:
    calls = "".join(f"  static_cast<void>(F::apply(x, {argument}));\n" for argument in TAKEN)
    text = FUNCTION.replace("  static_cast<void>(F::apply(x, ARGUMENT));\n", calls)
    done = compile_text(compiler, text, tmp_path, "-Werror")
    assert done.returncode == 0, done.stderr


def test_functions_refuse_what_may_hide_a_tensor(tmp_path: pathlib.Path) -> None:
    # One compilation for all: each refusal is an error on the line of its own call.
    calls = "".join(f"  static_cast<void>(F::apply(x, {argument}));\n" for argument in REFUSED)
    text = FUNCTION.replace("  static_cast<void>(F::apply(x, ARGUMENT));\n", calls)
    first = text.splitlines().index(f"  static_cast<void>(F::apply(x, {REFUSED[0]}));") + 1
    done = compile_text(COMPILERS[0], text, tmp_path, "-fmax-errors=0")
    assert done.returncode != 0
    assert done.stderr.count("Function::apply: ") >= len(REFUSED)
    found = {int(line) for line in re.findall(r"main\.cpp:(\d+):\d+:   required from here", done.stderr)}
    missed = [REFUSED[i] for i in range(len(REFUSED)) if first + i not in found]
    assert missed == []
