// Draws sample graphs for test_svg.py: `graph_samples network`, `deep`, or `named TEXT`.
#include <cstring>
#include <iostream>
#include <limits>
#include <string>

#include "baregrad/baregrad.h"
#include "baregrad/graph.h"

namespace bg = baregrad;

namespace {

/// Two layers with labels, and a gradient of every colour.
std::string network() {
  const bg::Tensor w1 = bg::full({3, 4}, 0.5).requires_grad_();
  const bg::Tensor w2 = bg::full({4, 2}, 0.5).requires_grad_();
  const bg::Tensor tiny = bg::ones({2}).requires_grad_();
  const bg::Tensor broken = bg::ones({2}).requires_grad_();
  const bg::Tensor x = bg::ones({5, 3});
  bg::Tensor h;
  {
    const bg::autograd::Label model("model");
    {
      const bg::autograd::Label layer("layer 1");
      h = bg::tanh(bg::matmul(x, w1));
    }
    const bg::autograd::Label layer("layer 2");
    h = bg::matmul(h, w2) * 1e6;
  }
  const bg::Tensor small = bg::sum(tiny * 1e-12);
  const bg::Tensor infinite = bg::sum(broken * std::numeric_limits<double>::infinity());
  const bg::Tensor loss = bg::sum(h) + small + infinite;
  const bg::graph::GradientRecorder gradients;
  loss.backward();
  return bg::graph::to_dot(loss,
                           {.names = {{"W1", w1}, {"W2", w2}, {"tiny", tiny}, {"broken", broken}},
                            .gradients = &gradients});
}

std::string deep() {
  bg::Tensor h = bg::ones({1}).requires_grad_();
  for (int i = 0; i < 100'000; ++i) h = bg::negative(h);
  return bg::graph::to_dot(h, {.max_nodes = 50});
}

/// The text as the name of a leaf and as a label.
std::string named(const std::string& text) {
  const bg::Tensor x = bg::ones({1}).requires_grad_();
  const bg::autograd::Label label(text);
  return bg::graph::to_dot(bg::negative(x), {.names = {{text, x}}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "network") == 0) {
    std::cout << network();
  } else if (argc == 2 && std::strcmp(argv[1], "deep") == 0) {
    std::cout << deep();
  } else if (argc == 3 && std::strcmp(argv[1], "named") == 0) {
    std::cout << named(argv[2]);
  } else {
    std::cerr << "graph_samples: takes network, deep, or named TEXT\n";
    return 2;
  }
}
