// Training of a classifier of small images: the functions behind `baregrad train`, `eval`,
// `predict` and `graph`. A run is a folder:
//
//   config.json       the configuration, for people
//   metrics.jsonl     one line per logged step and per epoch
//   events/           the same for TensorBoard
//   checkpoints/      the newest few; a resumed run has the same bits as an uninterrupted one
//   graph.dot         the network's graph, recorded from one batch
//   lock              locked by the training process while it runs
//
// A folder is a run if it holds a checkpoint. The first checkpoint is written before the first
// step. Reading a run does not write to the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/dataset.h"
#include "baregrad/export.h"
#include "baregrad/generator.h"
#include "baregrad/nn/module.h"
#include "baregrad/tensor.h"

namespace baregrad::train {

/// The configuration of a run.
struct BAREGRAD_API Config {
  std::string data = {};         ///< one of data::dataset_names(); "" for the best found
  std::string data_folder = {};  ///< the first folder that is searched
  std::string model = "mlp";     ///< "mlp" or "cnn"
  std::vector<std::int64_t> hidden = {512, 256};  ///< sizes of the hidden layers of "mlp"
  std::int64_t epochs = 10;
  std::int64_t batch = 64;
  double lr = 1e-3;
  double weight_decay = 0.01;
  double dropout = 0.1;             ///< of hidden layers
  std::string optimizer = "adamw";  ///< the name of one of optim::AllOptimizers, in small letters
  std::string schedule = "cosine";  ///< constant, cosine, onecycle, step
  std::uint64_t seed = 0;
  std::int64_t items = 0;       ///< the number of training images, from the first; 0: all
  std::int64_t test_items = 0;  ///< the number of test images, from the first; 0: all
  // These members do not change the result.
  int workers = 0;                    ///< threads that prepare batches; 0: the caller prepares them
  std::string alloc = "pool";         ///< the allocator of a step: pool, arena or system
  std::int64_t checkpoint_steps = 0;  ///< steps between checkpoints; 0: one per epoch
  int keep = 3;                       ///< checkpoints kept on disk

  /// The valid values of a member: data, model, optimizer, schedule or alloc.
  static const std::vector<std::string>& choices(const std::string& member);
  /// Throws ValueError for a value that is not valid and lists the valid ones.
  void check() const;
  /// All members as text, under their names, and a config from such text. Reading gives equal
  /// values.
  std::map<std::string, std::string> values() const;
  static Config from_values(const std::map<std::string, std::string>& values);
};

/// A dataset in the form that the networks take.
struct Task {
  std::string name;    ///< "mnist", ...
  std::string source;  ///< the folder it was read from; "" for generated data
  data::DatasetPtr train;
  data::DatasetPtr test;
  Tensor test_images;  ///< uint8 [N, 1, H, W]
  data::Scaling scaling;
  std::vector<std::string> classes;
};
/// Reads or generates the config's data set. Throws IoError that lists the searched folders.
BAREGRAD_API Task load_task(const Config& config);

/// The network of the config, freshly initialised, for [N, 1, 28, 28]. First weights and dropout
/// take random numbers from `generator`, which must live as long as the network, or from the
/// process's own when it is null.
BAREGRAD_API std::shared_ptr<nn::Module> make_model(const Config& config,
                                                    Generator* generator = nullptr);

struct Evaluation {
  double loss = 0;
  double accuracy = 0;
  std::int64_t items = 0;
  /// confusion[truth][answer]: the number of images.
  std::vector<std::vector<std::int64_t>> confusion;
};
/// Evaluates a whole dataset in eval mode, without recording.
BAREGRAD_API Evaluation evaluate(nn::Module& model, const data::DatasetPtr& dataset, int classes,
                                 std::int64_t batch = 1000);

struct Progress {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;  ///< of this epoch, from 1
  std::int64_t steps = 0;
  std::int64_t total_step = 0;
  double loss = 0;      ///< the mean over the current epoch
  double accuracy = 0;  ///< over the current epoch
  double lr = 0;
  double samples_per_s = 0;
  double seconds_left = 0;  ///< until the end of the run
};
struct Epoch {
  Progress train;
  double seconds = 0;  ///< of training
  Evaluation test;
};

/// Receives the progress of a run. Its functions are called in the training thread.
class BAREGRAD_API Listener {
 public:
  virtual ~Listener();
  virtual void step(const Progress&) {}
  virtual void epoch(const Epoch&) {}
  virtual void saved(const std::string& /*path*/) {}
  /// Called after every step. True stops the run, which writes a checkpoint first.
  virtual bool wants_stop() { return false; }
};

enum class Outcome { Finished, Stopped };

/// One run in a folder. Its final weights depend only on the config. They do not depend on the
/// number of threads or workers, on the allocator, or on interruptions. A run has its own random
/// generator and neither uses nor changes the process's.
class BAREGRAD_API Run {
 public:
  /// Starts a run and writes its checkpoint of step 0. Throws ValueError if the folder already
  /// holds a run, and IoError that names the process if another object or process has locked the
  /// folder.
  Run(const Config& config, const std::string& folder);
  /// Starts a run in a new folder: PARENT/DATA-MODEL, PARENT/DATA-MODEL-2 and so on, the first that
  /// does not exist. Processes that start at the same time get different folders.
  static Run start(const Config& config, const std::string& parent = "runs");
  /// Resumes from the newest checkpoint in the folder. Throws IoError if there is none, or if
  /// another object or process has locked the folder. `given` names members of `changes`. Members
  /// that do not change the result replace those of the run; the others must be equal (ValueError).
  static Run resume(const std::string& folder, const Config& changes = {},
                    const std::vector<std::string>& given = {});
  Run(Run&&) noexcept;
  ~Run();

  const Config& config() const noexcept;
  const std::string& folder() const noexcept;
  const Task& task() const noexcept;
  nn::Module& model() noexcept;
  std::int64_t total_step() const noexcept;
  bool finished() const noexcept;
  /// Messages about damaged checkpoints that were skipped.
  const std::vector<std::string>& damaged() const noexcept;

  Outcome train(Listener& listener);
  Evaluation evaluate();

 private:
  struct Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A trained network.
struct Trained {
  Config config;
  data::Scaling scaling;
  std::int64_t step = 0;
  std::string checkpoint;  ///< the file it came from
  std::shared_ptr<nn::Module> model;
  std::vector<std::string> classes;
};
/// The network of the newest checkpoint in a run's folder.
BAREGRAD_API Trained load_trained(const std::string& folder);

/// A picture in the form that the networks take: gray, 28 by 28, light on dark, uint8 [1, 1, 28,
/// 28]. `inverted`: it was dark on light and was inverted.
struct Picture {
  Tensor pixels;
  bool inverted = false;
};
/// From a picture of any size, as data::read_image returns it.
BAREGRAD_API Picture as_picture(const Tensor& image);
/// Probabilities of the classes, for uint8 [N, 1, 28, 28].
BAREGRAD_API Tensor predict(const Trained& trained, const Tensor& pixels);

/// The graph of one training step in Graphviz's language, with gradient norms.
BAREGRAD_API std::string graph_of_step(nn::Module& model, const data::Batch& batch);

}  // namespace baregrad::train
