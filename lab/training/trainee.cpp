// Our trainee in the training experiment.
#include "lab/training/trainee.h"

#include <algorithm>
#include <cmath>

#include "baregrad/autograd.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "bench/step_cost.h"

namespace baregrad::lab {
namespace {

double ns_between(std::chrono::steady_clock::time_point from,
                  std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

struct Served {
  std::uint64_t blocks = 0;
  std::uint64_t system_calls = 0;
};

/// Sums over all allocators that a step may use.
Served served_so_far() {
  Served served;
  const auto add = [&](const Allocator& allocator) {
    const AllocatorStats stats = allocator.stats();
    served.blocks += stats.allocations;
    served.system_calls += stats.system_allocations;
  };
  add(system_allocator());
  add(pool_allocator());
  const Allocator& current = current_allocator();
  if (&current != &system_allocator() && &current != &pool_allocator()) add(current);
  return served;
}

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = astype(reshape(tensor, {-1}), DType::Float64);
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

}  // namespace

std::string describe(const Network& network) {
  std::string text;
  for (const std::int64_t size : network.sizes) {
    if (!text.empty()) text += '-';
    text += std::to_string(size);
  }
  return text + ", batch " + std::to_string(network.batch);
}

std::int64_t count_parameters(const Network& network) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i + 1 < network.sizes.size(); ++i) {
    count += (network.sizes[i] + 1) * network.sizes[i + 1];
  }
  return count;
}

OurTrainee::OurTrainee(const Network& network, std::uint64_t seed, const std::string& memory)
    : memory_(memory) {
  Generator generator(seed);
  model_ = nn::make<nn::MLP>(network.sizes, nn::MLPOptions{.generator = &generator});
  optimizer_ = std::make_unique<optim::AdamW>(model_->parameters(),
                                              optim::AdamWOptions{.lr = kLearningRate});
  x_ = randn({network.batch, network.sizes.front()}, kDefaultFloat, &generator);
  y_ = randint(0, network.sizes.back(), {network.batch}, DType::Int64, &generator);
}

void OurTrainee::step_here() {
  marks_[0] = Clock::now();
  const Tensor loss = cross_entropy((*model_)(x_), y_);
  marks_[1] = Clock::now();
  loss.backward();
  marks_[2] = Clock::now();
  optimizer_->step();
  optimizer_->zero_grad();
  marks_[3] = Clock::now();
}

void OurTrainee::step() {
  memory_.run([this] { step_here(); });
}

double OurTrainee::loss() {
  const no_grad scope;
  return cross_entropy((*model_)(x_), y_).item<double>();
}

std::vector<double> OurTrainee::step_ns(int steps) {
  std::vector<double> samples(static_cast<std::size_t>(steps));
  for (double& sample : samples) {
    const Clock::time_point start = Clock::now();
    step();
    sample = ns_between(start, Clock::now());
  }
  return samples;
}

Demands OurTrainee::demands(int steps) {
  Served before;
  Served after;
  const bench::PageFaults faults_before = bench::page_faults();
  for (int i = 0; i < steps; ++i) {
    // Measured inside a step, where the arena is the current allocator.
    memory_.run([&] {
      if (i == 0) before = served_so_far();
      step_here();
      if (i == steps - 1) after = served_so_far();
    });
  }
  const bench::PageFaults faults = bench::page_faults();
  const auto per_step = [steps](auto count) { return static_cast<double>(count) / steps; };
  return {per_step(faults.minor - faults_before.minor),
          per_step(faults.major - faults_before.major), per_step(after.blocks - before.blocks),
          per_step(after.system_calls - before.system_calls)};
}

std::vector<Phases> OurTrainee::phases(int steps) {
  std::vector<Phases> samples;
  for (int i = 0; i < steps; ++i) {
    step();
    samples.push_back({ns_between(marks_[0], marks_[1]), ns_between(marks_[1], marks_[2]),
                       ns_between(marks_[2], marks_[3])});
  }
  return samples;
}

NamedTensors OurTrainee::tensors() const {
  NamedTensors tensors = {{"x", x_}, {"y", y_}};
  for (const Tensor& parameter : model_->parameters()) {
    tensors.push_back({std::to_string(tensors.size() - 2), parameter.detach()});
  }
  return tensors;
}

double reference_loss(const NamedTensors& tensors) {
  std::vector<double> values = values_of(tensors.at(0).tensor);
  const std::vector<double> classes = values_of(tensors.at(1).tensor);
  const std::size_t batch = classes.size();
  for (std::size_t at = 2; at < tensors.size(); at += 2) {
    const std::vector<double> weight = values_of(tensors[at].tensor);
    const std::vector<double> bias = values_of(tensors[at + 1].tensor);
    const std::size_t out = bias.size();
    const std::size_t in = weight.size() / out;
    const bool last = at + 2 == tensors.size();
    std::vector<double> next(batch * out);
    for (std::size_t row = 0; row < batch; ++row) {
      for (std::size_t column = 0; column < out; ++column) {
        double sum = bias[column];
        for (std::size_t k = 0; k < in; ++k) sum += values[row * in + k] * weight[column * in + k];
        next[row * out + column] = last ? sum : std::max(sum, 0.0);
      }
    }
    values = std::move(next);
  }
  const std::size_t kinds = values.size() / batch;
  double total = 0;
  for (std::size_t row = 0; row < batch; ++row) {
    const double* logits = &values[row * kinds];
    double sum = 0;
    for (std::size_t k = 0; k < kinds; ++k) sum += std::exp(logits[k]);
    total += std::log(sum) - logits[static_cast<std::size_t>(classes[row])];
  }
  return total / static_cast<double>(batch);
}

}  // namespace baregrad::lab
