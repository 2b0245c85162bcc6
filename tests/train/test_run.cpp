// Runs: the same weights with and without interruptions.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "baregrad/train.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::train {
namespace {

using test::TemporaryFolder;

Config small() {
  Config config;
  config.data = "digits";
  config.items = 600;
  config.test_items = 300;
  config.hidden = {32};
  config.epochs = 2;
  config.batch = 50;
  config.seed = 7;
  return config;
}

class Quiet : public Listener {
 public:
  explicit Quiet(std::int64_t stop_at = -1) : stop_at_(stop_at) {}
  void step(const Progress& now) override { last = now; }
  void epoch(const Epoch& epoch) override { epochs.push_back(epoch); }
  bool wants_stop() override { return last.total_step == stop_at_; }

  Progress last;
  std::vector<Epoch> epochs;

 private:
  std::int64_t stop_at_;
};

std::vector<float> weights_of(Run& run) {
  std::vector<float> all;
  for (const Tensor& p : run.model().parameters()) {
    const auto values = p.detach().to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> weights_after(const Config& config) {
  const TemporaryFolder folder;
  train::Run run(config, folder.file("run"));
  Quiet quiet;
  EXPECT_EQ(run.train(quiet), Outcome::Finished);
  return weights_of(run);
}

TEST(Run, Learns) {
  const TemporaryFolder folder;
  Config config = small();
  config.items = 4000;
  config.test_items = 2000;
  config.epochs = 5;
  train::Run run(config, folder.file("run"));
  Quiet quiet;
  ASSERT_EQ(run.train(quiet), Outcome::Finished);
  ASSERT_EQ(quiet.epochs.size(), 5U);
  EXPECT_LT(quiet.epochs[4].train.loss, quiet.epochs[0].train.loss);
  EXPECT_GT(quiet.epochs[4].test.accuracy, 0.8);
  EXPECT_EQ(quiet.last.total_step, 400);
  EXPECT_TRUE(run.finished());
  std::int64_t seen = 0;
  for (const auto& row : quiet.epochs[4].test.confusion) {
    for (const std::int64_t count : row) seen += count;
  }
  EXPECT_EQ(seen, quiet.epochs[4].test.items);
}

TEST(Run, BitsDoNotDependOnThreadsWorkersOrMemory) {
  const std::vector<float> truth = weights_after(small());
  for (const int threads : {1, 4}) {
    const int before = get_num_threads();
    set_num_threads(threads);
    for (const int workers : {0, 3}) {
      Config config = small();
      config.workers = workers;
      config.alloc = threads == 1 ? "arena" : "system";
      EXPECT_EQ(weights_after(config), truth) << threads << " threads, " << workers << " workers";
    }
    set_num_threads(before);
  }
}

TEST(Run, TheSeedDecides) {
  Config other = small();
  other.seed = 8;
  EXPECT_NE(weights_after(small()), weights_after(other));
}

TEST(Run, NO_SANITIZER_GoesOnToTheSameBits) {
  for (const std::string model : {"mlp", "cnn"}) {
    Config config = small();
    config.model = model;
    config.dropout = 0.2;  // so that the generator's position matters too
    if (model == "cnn") config.items = 200;
    const std::vector<float> truth = weights_after(config);
    const std::int64_t steps = config.items / config.batch;
    const TemporaryFolder folder;
    const std::string place = folder.file("run");
    // In the first epoch, after its last batch, and in the second.
    Quiet first(steps / 2);
    EXPECT_EQ(train::Run(config, place).train(first), Outcome::Stopped);
    Quiet second(steps);
    EXPECT_EQ(train::Run::resume(place).train(second), Outcome::Stopped);
    EXPECT_TRUE(second.epochs.empty());
    Quiet third(steps + 1);
    EXPECT_EQ(train::Run::resume(place).train(third), Outcome::Stopped);
    EXPECT_EQ(third.epochs.size(), 1U);
    Quiet last;
    train::Run run = train::Run::resume(place);
    EXPECT_EQ(run.train(last), Outcome::Finished);
    EXPECT_EQ(weights_of(run), truth) << model;
  }
}

TEST(Run, MetricsHoldEveryEpochOnce) {
  const TemporaryFolder folder;
  const std::string place = folder.file("run");
  Quiet first(13);  // in the second epoch
  EXPECT_EQ(train::Run(small(), place).train(first), Outcome::Stopped);
  Quiet last;
  EXPECT_EQ(train::Run::resume(place).train(last), Outcome::Finished);
  std::ifstream file(place + "/metrics.jsonl");
  int epochs = 0;
  for (std::string line; std::getline(file, line);) {
    epochs += line.find("\"kind\":\"epoch\"") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(epochs, 2);
}

TEST(Run, RefusesWhatWouldChangeTheResult) {
  const TemporaryFolder folder;
  const std::string place = folder.file("run");
  Quiet first(1);
  EXPECT_EQ(train::Run(small(), place).train(first), Outcome::Stopped);
  EXPECT_THROW(train::Run(small(), place), ValueError);
  Config changed = small();
  changed.lr = 0.5;
  changed.workers = 0;
  EXPECT_THROW(train::Run::resume(place, changed, {"lr"}), ValueError);
  EXPECT_EQ(train::Run::resume(place, changed, {"workers"}).config().workers, 0);
  EXPECT_THROW(train::Run::resume(folder.file("nothing")), IoError);
  EXPECT_THROW(load_trained(folder.file("nothing")), IoError);
}

TEST(Run, HasAFolderToItself) {
  const TemporaryFolder folder;
  const std::string place = folder.file("run");
  const auto in_use = [&](const auto& act) {
    try {
      act();
    } catch (const IoError& error) {
      return std::string(error.what()).find("in use by process ") != std::string::npos;
    }
    return false;
  };
  {
    train::Run run(small(), place);
    EXPECT_EQ(run.folder(), place);
    EXPECT_TRUE(in_use([&] { train::Run(small(), place); }));
    EXPECT_TRUE(in_use([&] { train::Run::resume(place); }));
    EXPECT_EQ(load_trained(place).step, 0) << "readers do not mind";
    train::Run moved = std::move(run);
    EXPECT_TRUE(in_use([&] { train::Run::resume(place); }));
  }
  EXPECT_EQ(train::Run::resume(place).total_step(), 0);
  EXPECT_THROW(train::Run(small(), place), ValueError);
}

TEST(Run, CanBeResumedFromItsFirstMoment) {
  const Config config = small();
  const std::vector<float> truth = weights_after(config);
  const TemporaryFolder folder;
  const std::string place = folder.file("run");
  { const train::Run killed(config, place); }
  train::Run run = train::Run::resume(place);
  Quiet quiet;
  EXPECT_EQ(run.train(quiet), Outcome::Finished);
  EXPECT_EQ(weights_of(run), truth);
  // Files of a process that was killed before its first checkpoint do not prevent a new start.
  std::filesystem::remove_all(folder.file("run/checkpoints"));
  EXPECT_THROW(train::Run::resume(folder.file("run")), IoError);
}

TEST(Run, StartsUnderTheFirstFreeName) {
  const TemporaryFolder folder;
  const std::string parent = folder.file("some/where");
  const train::Run first = train::Run::start(small(), parent);
  EXPECT_EQ(first.folder(), parent + "/digits-mlp");
  std::filesystem::create_directory(parent + "/digits-mlp-2");
  std::ofstream(parent + "/digits-mlp-3") << "not a folder";
  EXPECT_EQ(train::Run::start(small(), parent).folder(), parent + "/digits-mlp-4");
  EXPECT_EQ(train::Run::start(small(), parent).folder(), parent + "/digits-mlp-5");
  EXPECT_EQ(load_trained(parent + "/digits-mlp-5").step, 0);
}

TEST(Trained, PredictsAsItWasEvaluated) {
  const TemporaryFolder folder;
  const std::string place = folder.file("run");
  Quiet quiet;
  train::Run run(small(), place);
  run.train(quiet);
  const Trained trained = load_trained(place);
  EXPECT_EQ(trained.step, 24);
  EXPECT_EQ(trained.classes.size(), 10U);
  const Tensor pixels = slice(run.task().test_images, 0, {0, 100});
  const Tensor p = predict(trained, pixels);
  const auto sums = sum(p, {1}).to_vector<float>();
  for (const float total : sums) EXPECT_NEAR(total, 1.0F, 1e-5F);
  std::int64_t right = 0;
  const auto answers = argmax(p, 1).to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < 100; ++i) {
    right +=
        answers[static_cast<std::size_t>(i)] == run.task().test->item(i).target.item<std::int64_t>()
            ? 1
            : 0;
  }
  EXPECT_NEAR(static_cast<double>(right) / 100, quiet.epochs.back().test.accuracy, 0.15);
}

TEST(Picture, KeepsWhatFitsAlready) {
  const Tensor x = Tensor::of(
      [] {
        std::vector<std::uint8_t> v(784, 0);
        v[400] = 200;
        return v;
      }(),
      {28, 28});
  const Picture picture = as_picture(x);
  EXPECT_FALSE(picture.inverted);
  EXPECT_EQ(picture.pixels.to_vector<std::uint8_t>(), x.to_vector<std::uint8_t>());
}

TEST(Picture, ShrinksByAreaAndTurnsDarkOnLightRound) {
  // Twice the size, white, with one black block of 2 x 2.
  std::vector<std::uint8_t> v(56 * 56, 255);
  for (const int i : {20 * 56 + 10, 20 * 56 + 11, 21 * 56 + 10, 21 * 56 + 11}) {
    v[static_cast<std::size_t>(i)] = 0;
  }
  const Picture picture = as_picture(Tensor::of(v, {1, 56, 56}));
  EXPECT_TRUE(picture.inverted);
  const auto pixels = picture.pixels.to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], i == 10 * 28 + 5 ? 255 : 0);
  EXPECT_THROW(as_picture(Tensor::of<float>({1, 2})), ShapeError);
  EXPECT_THROW(as_picture(Tensor()), ShapeError);
}

TEST(Run, HasRandomNumbersOfItsOwn) {
  Config config = small();
  config.epochs = 1;
  config.dropout = 0.5;
  const TemporaryFolder folder;
  manual_seed(99);
  const Generator::State before = default_generator().state();
  std::vector<float> alone;
  {
    train::Run run(config, folder.file("alone"));
    Quiet quiet;
    run.train(quiet);
    alone = weights_of(run);
    EXPECT_EQ(default_generator().state(), before);
  }
  // Two runs and a program that draw in turns.
  train::Run first(config, folder.file("first"));
  uniform({1000}, 0, 1);
  train::Run second(config, folder.file("second"));
  Quiet stopped(/*stop_at=*/5);
  first.train(stopped);
  uniform({1000}, 0, 1);
  Quiet quiet;
  second.train(quiet);
  first.train(quiet);
  EXPECT_EQ(weights_of(first), alone);
  EXPECT_EQ(weights_of(second), alone);
}

TEST(Graph, NamesTheParameters) {
  Config config = small();
  const auto model = make_model(config);
  const Task task = load_task(config);
  const std::string dot = graph_of_step(*model, task.train->get(std::vector<std::int64_t>{0, 1}));
  EXPECT_NE(dot.find("digraph"), std::string::npos);
  for (const NamedTensor& p : model->named_parameters()) {
    EXPECT_NE(dot.find(p.name), std::string::npos) << p.name;
    EXPECT_FALSE(p.tensor.grad().defined());
  }
}

}  // namespace
}  // namespace baregrad::train
