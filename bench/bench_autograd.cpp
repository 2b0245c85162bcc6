// The cost of recording a graph and of its backward: from ten numbers to a training step.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "baregrad/baregrad.h"
#include "bench/benches.h"
#include "bench/peers_libtorch.h"

namespace baregrad::bench {
namespace {

using peers::Libtorch;

Row tiny(const char* name, const char* shape) {
  Row row;
  row.name = name;
  row.dtype = "float32";
  row.shape = shape;
  return row;
}

/// Ten ops on two numbers, as in every first lesson on backpropagation.
Tensor ten_ops(const Tensor& a, const Tensor& b) {
  const Tensor c = a + b;
  const Tensor d = a * b;
  const Tensor e = c * d;
  const Tensor f = tanh(e);
  const Tensor g = f + a;
  const Tensor h = g * b;
  const Tensor i = exp(h);
  const Tensor j = i - c;
  const Tensor k = j * f;
  return relu(k);
}

/// The same by hand: a lower bound for any engine.
std::array<float, 2> ten_ops_by_hand(float a, float b) {
  const float c = a + b;
  const float d = a * b;
  const float e = c * d;
  const float f = std::tanh(e);
  const float g = f + a;
  const float h = g * b;
  const float i = std::exp(h);
  const float j = i - c;
  const float k = j * f;
  const float gk = k > 0 ? 1.0F : 0.0F;
  const float gj = gk * f;
  const float gh = gj * i;
  const float gg = gh * b;
  const float ge = (gk * j + gg) * (1 - f * f);
  const float gc = ge * d - gj;
  const float gd = ge * c;
  return {gg + gd * b + gc, gh * g + gd * a + gc};
}

void measure_scalar_graph(Session& session, Libtorch libtorch) {
  const Tensor a = Tensor::scalar(0.5F, DType::Float32).requires_grad_();
  const Tensor b = Tensor::scalar(0.8F, DType::Float32).requires_grad_();
  ten_ops(a, b).backward();
  const std::array<float, 2> truth = ten_ops_by_hand(0.5F, 0.8F);
  check_same("ten ops", stack({a.grad(), b.grad()}), truth.data(), 1e-5);
  Row row = tiny("ten numbers, forward + backward", "[]");
  row.candidates = {candidate(kOurs,
                              [&] {
                                ten_ops(a, b).backward();
                                a.zero_grad();
                                b.zero_grad();
                              }),
                    candidate("by hand", [] {
                      volatile float x = 0.5F;
                      volatile float y = 0.8F;
                      keep(ten_ops_by_hand(x, y));
                    })};
  if (libtorch != nullptr) {
    std::array<float, 2> gradients{};
    libtorch->ten_ops(0.5F, 0.8F, gradients.data(), 1);
    check_same("ten ops of libtorch", Tensor::of({truth[0], truth[1]}), gradients.data(), 1e-5);
  }
  peers::add_libtorch(row, libtorch, [libtorch](std::int64_t calls) {
    std::array<float, 2> ignored{};
    libtorch->ten_ops(0.5F, 0.8F, ignored.data(), calls);
  });
  session.measure(row);
  Row forward = tiny("ten numbers, nothing recorded", "[]");
  forward.candidates = {candidate(kOurs, [&] {
    const no_grad off;
    keep(ten_ops(a, b));
  })};
  session.measure(forward);
}

/// The time must be linear in the number of nodes.
void measure_chain(Session& session, std::int64_t nodes, Libtorch libtorch) {
  const Tensor x = Tensor::scalar(1.0F, DType::Float32).requires_grad_();
  Row row = tiny("chain of adds", "[]");
  row.shape = std::to_string(nodes) + " nodes";
  row.elements = nodes;
  row.candidates = {candidate(kOurs, [&] {
    Tensor y = x;
    for (std::int64_t i = 0; i < nodes; ++i) y = y + x;
    y.backward();
    x.zero_grad();
  })};
  peers::add_libtorch(row, libtorch,
                      [libtorch, nodes](std::int64_t calls) { libtorch->chain(nodes, calls); });
  session.measure(row);
}

struct Layers {
  std::vector<Tensor> weights;
  std::vector<Tensor> biases;

  explicit Layers(const std::vector<std::int64_t>& sizes) {
    Generator generator(1);
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const double bound = 1 / std::sqrt(static_cast<double>(sizes[i]));
      weights.push_back(uniform({sizes[i + 1], sizes[i]}, -bound, bound, DType::Float32, &generator)
                            .requires_grad_());
      biases.push_back(
          uniform({sizes[i + 1]}, -bound, bound, DType::Float32, &generator).requires_grad_());
    }
  }
  Tensor forward(Tensor x) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      x = linear(x, weights[i], biases[i],
                 i + 1 < weights.size() ? Activation::Relu : Activation::None);
    }
    return x;
  }
  void descend(double rate) const {
    const no_grad off;
    for (const auto* list : {&weights, &biases}) {
      for (const Tensor& p : *list) {
        addcmul_(p, p.grad(), ones({}), -rate);
        p.zero_grad();
      }
    }
  }
};

/// Forward, mean square, backward, gradient descent.
void measure_training(Session& session, const std::vector<std::int64_t>& sizes, std::int64_t batch,
                      Libtorch libtorch) {
  const Layers layers(sizes);
  Generator generator(2);
  const Tensor x = randn({batch, sizes.front()}, DType::Float32, &generator);
  const Tensor y = randn({batch, sizes.back()}, DType::Float32, &generator);
  Row row = tiny("training step, SGD", "");
  for (const std::int64_t size : sizes) {
    if (!row.shape.empty()) row.shape += '-';
    row.shape += std::to_string(size);
  }
  row.shape += ", batch " + std::to_string(batch);
  row.threads = session.threads();
  row.candidates = {candidate(kOurs, [&] {
    mean(square(layers.forward(x) - y)).backward();
    layers.descend(1e-4);
  })};
  peers::add_libtorch(row, libtorch, [&sizes, batch, libtorch](std::int64_t calls) {
    libtorch->step(sizes.data(), static_cast<int>(sizes.size()), batch, calls);
  });
  session.measure(row);
}

/// Fifty layers: peak memory against the memory that must be live.
void show_memory(Session& session) {
  constexpr std::int64_t kLayers = 50;
  constexpr std::int64_t kWidth = 256;
  constexpr std::int64_t kBatch = 512;
  const AllocatorScope scope(pool_allocator());
  const Layers layers(std::vector<std::int64_t>(kLayers + 1, kWidth));
  const Tensor x = ones({kBatch, kWidth});
  Allocator& memory = current_allocator();
  const std::size_t before = memory.stats().live_bytes;
  memory.reset_peak();
  mean(square(layers.forward(x))).backward();
  const std::size_t peak = memory.stats().peak_bytes - before;
  // Every layer's output is kept until its gradient is computed. A layer's weight gradient is
  // computed while the gradient of its output is live.
  const std::size_t activation = kBatch * kWidth * sizeof(float);
  const std::size_t gradients = kLayers * (kWidth * kWidth + kWidth) * sizeof(float);
  const auto mib = [](std::size_t bytes) {
    std::string text = std::to_string(static_cast<double>(bytes) / (1 << 20));
    return text.substr(0, text.find('.') + 3);
  };
  session.note("memory of forward + backward of 50 layers of 256, batch 512: peak " + mib(peak) +
               " MiB; results " + mib(kLayers * activation) + " MiB, gradients of the parameters " +
               mib(gradients) + " MiB");
}

}  // namespace

void bench_autograd(Session& session) {
  constexpr std::int64_t kLongest = 10'000'000;
  for (const std::int64_t nodes : session.options().sizes) {
    if (nodes > kLongest) {
      throw ValueError("bench autograd: --sizes are lengths of a chain here, 1 to " +
                       std::to_string(kLongest) + ", not " + std::to_string(nodes));
    }
  }
  const Libtorch libtorch = peers::libtorch(session);
  measure_scalar_graph(session, libtorch);
  for (const std::int64_t nodes :
       session.sizes(session.options().quick ? std::vector<std::int64_t>{1000, 10000}
                                             : std::vector<std::int64_t>{1000, 100000, 1000000})) {
    measure_chain(session, nodes, libtorch);
  }
  measure_training(session, {2, 16, 16, 1}, 32, libtorch);
  measure_training(session, {784, 512, 10}, 128, libtorch);
  show_memory(session);
}

}  // namespace baregrad::bench
