// From one number to a network: what happens under loss.backward(), in four steps.
//
//   backprop [FILE.dot]    fits XOR and a spiral; draws the graph of XOR's loss into FILE.dot
#include <cmath>
#include <fstream>
#include <iostream>
#include <numbers>
#include <utility>
#include <vector>

#include <baregrad/baregrad.h>

namespace {

using bg::Tensor;

// Step 1. A number, an op, a slope. Everything else is this, many times over.
void one_number() {
  const Tensor x = Tensor::scalar(3.0).requires_grad_();
  const Tensor y = x * x + 2.0 * x;
  y.backward();
  std::cout << "y = x * x + 2 * x at x = 3: y is " << y << ", dy/dx is " << x.grad() << "\n";
}

// Step 2. A slope can have a slope: gradients are tensors with a history of their own.
void slope_of_a_slope() {
  const Tensor x = Tensor::scalar(3.0).requires_grad_();
  const Tensor y = x * x * x;
  const Tensor first = bg::autograd::grad({y}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = bg::autograd::grad({first}, {x})[0];
  std::cout << "y = x^3 at x = 3: y' is " << first << ", y'' is " << second << "\n\n";
}

/// A network of fully connected layers, tanh in between.
struct Mlp {
  std::vector<std::pair<std::string, Tensor>> parameters;

  explicit Mlp(const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const double bound = std::sqrt(6.0 / static_cast<double>(sizes[i] + sizes[i + 1]));
      const std::string layer = "layer " + std::to_string(i + 1);
      parameters.emplace_back(
          layer + " weight", bg::uniform({sizes[i + 1], sizes[i]}, -bound, bound).requires_grad_());
      parameters.emplace_back(layer + " bias", bg::zeros({sizes[i + 1]}).requires_grad_());
    }
  }
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < parameters.size(); i += 2) {
      const bg::autograd::Label label("layer " + std::to_string(i / 2 + 1));
      x = bg::linear(x, parameters[i].second, parameters[i + 1].second);
      if (i + 2 < parameters.size()) x = bg::tanh(x);
    }
    return x;
  }
  // Downhill, a step. Values change here, histories do not: nothing is recorded.
  void descend(double rate) const {
    const bg::no_grad off;
    for (const auto& [name, p] : parameters) {
      bg::subtract_(p, p.grad() * rate);
      p.zero_grad();
    }
  }
};

/// -log of the probability given to what is true, for logits: log(1 + exp(-+z)).
Tensor loss_of(const Tensor& logits, const Tensor& truth) {
  return bg::mean(bg::softplus(bg::where(truth > 0.5, -logits, logits)));
}

double share_right(const Tensor& logits, const Tensor& truth) {
  return bg::mean(bg::astype(bg::equal(logits > 0, truth > 0.5), bg::float32)).item<double>();
}

// Step 3. XOR: the smallest thing that a straight line cannot separate.
bool fit_xor(const char* dot_file) {
  const Tensor x = Tensor::of<float>({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const Tensor truth = Tensor::of<float>({0, 1, 1, 0}, {4, 1});
  const Mlp net({2, 8, 1});
  for (int step = 0; step < 500; ++step) {
    loss_of(net(x), truth).backward();
    net.descend(0.5);
  }
  const Tensor logits = net(x);
  const Tensor loss = loss_of(logits, truth);
  std::cout << "XOR: loss " << loss << ", probabilities of 1:\n" << bg::sigmoid(logits) << "\n\n";
  std::cout << "what one evaluation of the loss recorded:\n" << bg::graph::summary(loss) << "\n";
  if (dot_file != nullptr) {
    bg::graph::GradientRecorder recorder;
    loss.backward();
    std::ofstream(dot_file) << bg::graph::to_dot(loss,
                                                 {.names = net.parameters, .gradients = &recorder});
    std::cout << "drawn in " << dot_file << "; `dot -Tsvg` makes a picture of it\n\n";
  }
  return share_right(logits, truth) == 1.0;
}

// Step 4. Two arms of a spiral, wound around each other.
bool fit_spiral() {
  constexpr std::int64_t kPoints = 200;
  const Tensor t = bg::linspace(0.25, 1.0, kPoints);
  const Tensor angle = t * (3.0 * std::numbers::pi);
  const Tensor arm = bg::stack({bg::cos(angle) * t, bg::sin(angle) * t}, 1);
  const Tensor x = bg::concat({arm, -arm});
  const Tensor truth = bg::concat({bg::zeros({kPoints, 1}), bg::ones({kPoints, 1})});
  const Mlp net({2, 32, 32, 1});
  for (int step = 0; step <= 3000; ++step) {
    const Tensor logits = net(x);
    const Tensor loss = loss_of(logits, truth);
    if (step % 1000 == 0) {
      std::cout << "spiral, step " << step << ": loss " << loss << ", right "
                << 100 * share_right(logits, truth) << " %\n";
    }
    loss.backward();
    net.descend(0.5);
  }
  return share_right(net(x), truth) > 0.99;
}

}  // namespace

int main(int argc, char** argv) {
  bg::manual_seed(3);
  one_number();
  slope_of_a_slope();
  const bool learnt_xor = fit_xor(argc > 1 ? argv[1] : nullptr);
  const bool learnt_spiral = fit_spiral();
  return learnt_xor && learnt_spiral ? 0 : 1;
}
