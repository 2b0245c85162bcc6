// Our benchmark rows in libtorch. Built by bench/libtorch/build.py against the library and headers
// of a PyTorch wheel, opened by bench/peers_libtorch.cpp.
#include "peer.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace {

const char* version() { return TORCH_VERSION; }

void set_threads(int threads) { at::set_num_threads(threads); }

void add(int64_t n, int64_t calls) {
  const torch::NoGradGuard off;
  static std::map<int64_t, std::pair<at::Tensor, at::Tensor>> inputs;
  auto found = inputs.find(n);
  if (found == inputs.end()) {
    found = inputs.emplace(n, std::pair(at::arange(n, at::kFloat), at::ones({n}))).first;
  }
  const auto& [x, y] = found->second;
  for (int64_t i = 0; i < calls; ++i) at::add(x, y);
}

void allocate(int64_t bytes, int touch, int64_t calls) {
  constexpr int64_t kPage = 4096;
  for (int64_t i = 0; i < calls; ++i) {
    const at::Tensor block = at::empty({bytes}, at::kByte);
    auto* p = static_cast<volatile uint8_t*>(block.data_ptr());
    for (int64_t k = 0; touch != 0 && k < bytes; k += kPage) p[k] = 1;
  }
}

at::Tensor ten_ops_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor c = a + b;
  const at::Tensor d = a * b;
  const at::Tensor e = c * d;
  const at::Tensor f = tanh(e);
  const at::Tensor g = f + a;
  const at::Tensor h = g * b;
  const at::Tensor i = exp(h);
  const at::Tensor j = i - c;
  const at::Tensor k = j * f;
  return relu(k);
}

/// The gradient is dropped, not set to zero, as in our rows.
void drop_grad(at::Tensor& t) { t.mutable_grad() = at::Tensor(); }

void ten_ops(float first, float second, float* grads, int64_t calls) {
  at::Tensor a = torch::tensor(first, torch::requires_grad());
  at::Tensor b = torch::tensor(second, torch::requires_grad());
  for (int64_t i = 0; i < calls; ++i) {
    ten_ops_of(a, b).backward();
    if (i + 1 == calls) {
      grads[0] = a.grad().item<float>();
      grads[1] = b.grad().item<float>();
    }
    drop_grad(a);
    drop_grad(b);
  }
}

void chain(int64_t nodes, int64_t calls) {
  at::Tensor x = torch::tensor(1.0F, torch::requires_grad());
  for (int64_t i = 0; i < calls; ++i) {
    at::Tensor y = x;
    for (int64_t k = 0; k < nodes; ++k) y = y + x;
    y.backward();
    drop_grad(x);
  }
}

/// Weights, biases and data of one network, made once.
struct Network {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  at::Tensor x;
  at::Tensor y;

  Network(const std::vector<int64_t>& sizes, int64_t batch)
      : x(at::randn({batch, sizes.front()})), y(at::randn({batch, sizes.back()})) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const double bound = 1 / std::sqrt(static_cast<double>(sizes[i]));
      weights.push_back(at::empty({sizes[i + 1], sizes[i]}).uniform_(-bound, bound));
      biases.push_back(at::empty({sizes[i + 1]}).uniform_(-bound, bound));
      weights.back().requires_grad_();
      biases.back().requires_grad_();
    }
  }

  void step() {
    at::Tensor h = x;
    for (size_t i = 0; i < weights.size(); ++i) {
      h = at::linear(h, weights[i], biases[i]);
      if (i + 1 < weights.size()) h = relu(h);
    }
    (h - y).square().mean().backward();
    const torch::NoGradGuard off;
    for (auto* list : {&weights, &biases}) {
      for (at::Tensor& p : *list) {
        p.sub_(p.grad(), 1e-4);
        drop_grad(p);
      }
    }
  }
};

void step(const int64_t* sizes, int count, int64_t batch, int64_t calls) {
  static std::map<std::pair<std::vector<int64_t>, int64_t>, Network> networks;
  const std::vector<int64_t> list(sizes, sizes + count);
  const auto key = std::pair(list, batch);
  auto found = networks.find(key);
  if (found == networks.end()) found = networks.emplace(key, Network(list, batch)).first;
  for (int64_t i = 0; i < calls; ++i) found->second.step();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const BaregradLibtorchPeer*
baregrad_libtorch_peer(void) {
  static const BaregradLibtorchPeer peer{version, set_threads, add, allocate, ten_ops, chain, step};
  return &peer;
}
