// Networks in training: ours in C++ and in Python, and PyTorch's, with one interface.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/allocator.h"
#include "baregrad/nn.h"
#include "baregrad/optim.h"
#include "lab/python_peer.h"
#include "train/step_memory.h"

namespace baregrad::lab {

/// A perceptron with ReLU after every layer but the last; a classifier with cross-entropy loss.
struct Network {
  std::vector<std::int64_t> sizes;
  std::int64_t batch;
};

/// "784-64-32-10, batch 64"
std::string describe(const Network& network);
/// Weights and biases.
std::int64_t count_parameters(const Network& network);

/// A low learning rate on purpose: when a network has memorised its one batch, gradients become
/// denormal, which slows arithmetic down.
inline constexpr double kLearningRate = 1e-5;

/// The demands of one step on the system, averaged over many steps.
struct Demands {
  double minor_faults = 0;
  double major_faults = 0;
  std::optional<double> blocks;        ///< of tensor memory, from any allocator
  std::optional<double> system_calls;  ///< of these, requests to the C library or the kernel
};

class Trainee {
 public:
  Trainee() = default;
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;
  virtual ~Trainee() = default;

  /// The loss on the batch with the current weights.
  virtual double loss() = 0;
  /// Nanoseconds of each of so many steps: forward, backward, AdamW, dropping gradients.
  virtual std::vector<double> step_ns(int steps) = 0;
  virtual Demands demands(int steps) = 0;
};

/// Nanoseconds of the three parts of one step.
struct Phases {
  double forward_ns = 0;
  double backward_ns = 0;
  double update_ns = 0;
};

/// Our trainee. Two of the same network and seed start with the same weights and use the same
/// batch.
class OurTrainee final : public Trainee {
 public:
  /// `memory`: "system", "pool" or "arena", as in train::StepMemory.
  OurTrainee(const Network& network, std::uint64_t seed, const std::string& memory);

  double loss() override;
  std::vector<double> step_ns(int steps) override;
  Demands demands(int steps) override;

  void step();
  std::vector<Phases> phases(int steps);
  /// "x", "y", and the parameters as "0", "1", ...: a weight and a bias per layer.
  NamedTensors tensors() const;

 private:
  using Clock = std::chrono::steady_clock;
  void step_here();

  std::shared_ptr<nn::MLP> model_;
  std::unique_ptr<optim::AdamW> optimizer_;
  Tensor x_;
  Tensor y_;
  train::StepMemory memory_;
  std::array<Clock::time_point, 4> marks_{};  // start, after forward, after backward, end
};

/// The initial loss, computed by plain loops in double precision from the result of tensors().
double reference_loss(const NamedTensors& tensors);

/// A trainee in Python, from the tensors of one of ours. `library`: "torch", "torch, fused" (its
/// AdamW in one kernel, which is not its default) or "baregrad". Throws Error when Python cannot do
/// it. `scratch` names a file that is removed before this returns.
std::unique_ptr<Trainee> python_trainee(PythonPeer& peer, const NamedTensors& tensors,
                                        const std::string& library, const std::string& scratch);

}  // namespace baregrad::lab
