// The PyTorch trainee of the training experiment. The handlers are in
// python/baregrad/lab/peer_training.py.
#include <cstdio>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "lab/training/trainee.h"

namespace baregrad::lab {
namespace {

class PythonTrainee final : public Trainee {
 public:
  PythonTrainee(PythonPeer& peer, std::int64_t number) : peer_(peer), number_(number) {}
  ~PythonTrainee() override {
    try {
      ask("train_forget");
    } catch (const Error&) {
      // The process has ended, and its resources with it.
    }
  }

  double loss() override { return ask("train_loss").at("loss").get<double>(); }

  std::vector<double> step_ns(int steps) override {
    return ask("train_steps", steps).at("step_ns").get<std::vector<double>>();
  }

  Demands demands(int steps) override {
    const Json answer = ask("train_steps", steps);
    return {answer.at("minor_faults").get<double>() / steps,
            answer.at("major_faults").get<double>() / steps,
            {},
            {}};
  }

 private:
  Json ask(const char* what, int steps = 0) {
    return peer_.ask({{"do", what}, {"trainee", number_}, {"steps", steps}});
  }

  PythonPeer& peer_;
  std::int64_t number_;
};

}  // namespace

std::unique_ptr<Trainee> python_trainee(PythonPeer& peer, const NamedTensors& tensors,
                                        const std::string& library, const std::string& scratch) {
  struct File {
    std::string path;
    ~File() { std::remove(path.c_str()); }
  };
  const File file{scratch};
  io::save_npz(file.path, tensors);
  const Json answer = peer.ask(
      {{"do", "train_make"}, {"file", file.path}, {"rate", kLearningRate}, {"library", library}});
  return std::make_unique<PythonTrainee>(peer, answer.at("trainee").get<std::int64_t>());
}

}  // namespace baregrad::lab
