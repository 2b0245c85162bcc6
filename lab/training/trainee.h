// Networks in training, ours from C++ and from Python and PyTorch's, behind one face.
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

/// A perceptron with ReLU after every layer but the last; classes are told apart by cross entropy.
struct Network {
  std::vector<std::int64_t> sizes;
  std::int64_t batch;
};

/// "784-64-32-10, batch 64"
std::string describe(const Network& network);
/// Weights and biases.
std::int64_t count_parameters(const Network& network);

/// Slow on purpose: gradients of a network that knows its one batch by heart are denormal numbers,
/// which take time of their own.
inline constexpr double kLearningRate = 1e-5;

/// What one step asks of the system, on average of many.
struct Demands {
  double minor_faults = 0;
  double major_faults = 0;
  std::optional<double> blocks;        ///< of tensor memory, whoever hands them out
  std::optional<double> system_calls;  ///< of these, asked of the C library or the kernel
};

class Trainee {
 public:
  Trainee() = default;
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;
  virtual ~Trainee() = default;

  /// Of the batch, with the weights as they are now.
  virtual double loss() = 0;
  /// Nanoseconds of each of so many steps: forward, backward, AdamW, gradients dropped.
  virtual std::vector<double> step_ns(int steps) = 0;
  virtual Demands demands(int steps) = 0;
};

/// Nanoseconds of the three parts of one step.
struct Phases {
  double forward_ns = 0;
  double backward_ns = 0;
  double update_ns = 0;
};

/// Ours. Two of the same network and seed begin with the same weights and see the same batch.
class OurTrainee final : public Trainee {
 public:
  /// `memory`: "system", "pool" or "arena", as train::StepMemory knows them.
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
  std::array<Clock::time_point, 4> marks_{};  // begin, forward done, backward done, all done
};

/// The first loss once more, in plain loops of double precision. Takes what tensors() gives.
double reference_loss(const NamedTensors& tensors);

/// In Python, from the tensors of one of ours. `library`: "torch", "torch, fused" (its AdamW in one
/// kernel, which is not its default) or "baregrad". Throws Error when Python cannot. `scratch`
/// names a file that is gone when this returns.
std::unique_ptr<Trainee> python_trainee(PythonPeer& peer, const NamedTensors& tensors,
                                        const std::string& library, const std::string& scratch);

}  // namespace baregrad::lab
