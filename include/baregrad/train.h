// Training a classifier of small images from start to finish: what `baregrad train`, `eval`,
// `predict` and `graph` do, for programs. A run lives in a folder:
//
//   config.json       what was asked for, for people
//   metrics.jsonl     one line per logged step and per epoch
//   events/           the same for TensorBoard
//   checkpoints/      the last few; a run goes on from the newest, to the same bits
//   graph.dot         the network, recorded from one batch
//   lock              held by the process that trains, as long as it lives
//
// A folder holds a run as soon as it holds a checkpoint; the first is written before the first
// step. Reading a run changes nothing on the disk.
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

/// What is trained, and how.
struct BAREGRAD_API Config {
  std::string data = {};         ///< one of data::dataset_names(); "" for the best found
  std::string data_folder = {};  ///< looked into first
  std::string model = "mlp";     ///< "mlp" or "cnn"
  std::vector<std::int64_t> hidden = {512, 256};  ///< sizes of the hidden layers of an mlp
  std::int64_t epochs = 10;
  std::int64_t batch = 64;
  double lr = 1e-3;
  double weight_decay = 0.01;
  double dropout = 0.1;             ///< of hidden layers
  std::string optimizer = "adamw";  ///< sgd, adam, adamw, rmsprop, adagrad, lion
  std::string schedule = "cosine";  ///< constant, cosine, onecycle, step
  std::uint64_t seed = 0;
  std::int64_t items = 0;       ///< train on the first so many images; 0: all
  std::int64_t test_items = 0;  ///< test on the first so many; 0: all
  // What does not change the result.
  int workers = 0;                    ///< threads that prepare batches; 0: none but the caller
  std::string alloc = "pool";         ///< memory of a step: pool, arena or system
  std::int64_t checkpoint_steps = 0;  ///< steps between checkpoints; 0: one per epoch
  int keep = 3;                       ///< checkpoints on disk

  /// What data, model, optimizer, schedule and alloc are chosen from, by the member's name.
  static const std::vector<std::string>& choices(const std::string& member);
  /// Throws ValueError and says what is possible.
  void check() const;
  /// All that decides the result as text that reads back to the same, and the reverse.
  std::map<std::string, std::string> values() const;
  static Config from_values(const std::map<std::string, std::string>& values);
};

/// A dataset as a network sees it.
struct Task {
  std::string name;    ///< "mnist", ...
  std::string source;  ///< the folder it was read from, "" if drawn
  data::DatasetPtr train;
  data::DatasetPtr test;
  Tensor test_images;  ///< uint8 [N, 1, H, W]
  data::Scaling scaling;
  std::vector<std::string> classes;
};
/// Reads or draws what the config names. Throws IoError that lists where it looked.
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
  /// confusion[truth][answer]: how often.
  std::vector<std::vector<std::int64_t>> confusion;
};
/// Over a whole dataset, in eval mode, without recording.
BAREGRAD_API Evaluation evaluate(nn::Module& model, const data::DatasetPtr& dataset, int classes,
                                 std::int64_t batch = 1000);

struct Progress {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;  ///< of this epoch, from 1
  std::int64_t steps = 0;
  std::int64_t total_step = 0;
  double loss = 0;      ///< mean over the epoch so far
  double accuracy = 0;  ///< of the epoch so far
  double lr = 0;
  double samples_per_s = 0;
  double seconds_left = 0;  ///< until the end of the run
};
struct Epoch {
  Progress train;
  double seconds = 0;  ///< of training
  Evaluation test;
};

/// Who is told. Called in the training thread.
class BAREGRAD_API Listener {
 public:
  virtual ~Listener();
  virtual void step(const Progress&) {}
  virtual void epoch(const Epoch&) {}
  virtual void saved(const std::string& /*path*/) {}
  /// Asked after every step: true ends the run after a checkpoint.
  virtual bool wants_stop() { return false; }
};

enum class Outcome { Finished, Stopped };

/// One run in a folder. The weights at its end depend on the config alone: not on the number of
/// threads or workers, on the allocator, or on where it was interrupted. A run has a random
/// generator of its own; the process's is neither used nor changed.
class BAREGRAD_API Run {
 public:
  /// A new run, and its checkpoint of step 0. Throws ValueError when the folder holds one already,
  /// IoError that names the process when another object or process has the folder's lock.
  Run(const Config& config, const std::string& folder);
  /// A new run in a folder of its own: PARENT/DATA-MODEL, or PARENT/DATA-MODEL-2, and so on, the
  /// first that does not exist. Processes that start at the same time get different ones.
  static Run start(const Config& config, const std::string& parent = "runs");
  /// Goes on from the newest checkpoint in the folder; throws IoError where there is none, and when
  /// another object or process has the folder's lock. `given` names members of `changes`: those
  /// that do not change the result are taken over, others must be what the run was begun with
  /// (ValueError).
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
  /// Messages about checkpoints that were passed over as damaged.
  const std::vector<std::string>& damaged() const noexcept;

  Outcome train(Listener& listener);
  Evaluation evaluate();

 private:
  struct Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A trained network, to be used.
struct Trained {
  Config config;
  data::Scaling scaling;
  std::int64_t step = 0;
  std::string checkpoint;  ///< the file it came from
  std::shared_ptr<nn::Module> model;
  std::vector<std::string> classes;
};
/// The newest checkpoint of a run's folder.
BAREGRAD_API Trained load_trained(const std::string& folder);

/// A picture of any size, as data::read_image gives it, as the networks here know theirs: gray, 28
/// by 28, light on dark (`inverted` says that it was turned round). uint8 [1, 1, 28, 28].
struct Picture {
  Tensor pixels;
  bool inverted = false;
};
BAREGRAD_API Picture as_picture(const Tensor& image);
/// Probabilities of the classes for uint8 [N, 1, 28, 28].
BAREGRAD_API Tensor predict(const Trained& trained, const Tensor& pixels);

/// The network's graph of one training step, in Graphviz's language, with gradient norms.
BAREGRAD_API std::string graph_of_step(nn::Module& model, const data::Batch& batch);

}  // namespace baregrad::train
