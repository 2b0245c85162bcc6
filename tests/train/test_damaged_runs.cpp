// Checkpoints with valid checksums whose parts contradict each other.
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "baregrad/ops.h"
#include "baregrad/train.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::train {
namespace {

using test::TemporaryFolder;

Config tiny_config() {
  Config config;
  config.data = "digits";
  config.items = 50;
  config.test_items = 20;
  config.hidden = {3};
  config.epochs = 3;
  config.batch = 10;
  return config;
}

class StopAt : public Listener {
 public:
  explicit StopAt(std::int64_t step) : step_(step) {}
  void step(const Progress& now) override { last_ = now.total_step; }
  bool wants_stop() override { return last_ == step_; }

 private:
  std::int64_t step_;
  std::int64_t last_ = 0;
};

/// A run that was stopped in the middle of its second epoch, and a checkpoint of it to damage.
class DamagedRuns : public testing::Test {
 protected:
  void SetUp() override {
    train::Run run(tiny_config(), run_folder());
    StopAt stop(7);
    ASSERT_EQ(run.train(stop), Outcome::Stopped);
    auto found = io::CheckpointFolder(checkpoints()).latest();
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->step, 7);
    path_ = found->path;
    whole_ = std::move(found->checkpoint);
    // Copies, as the file is about to be overwritten.
    for (auto& [name, part] : whole_.parts) {
      for (NamedTensor& entry : part.tensors) entry.tensor = clone(entry.tensor);
    }
  }
  std::string run_folder() const { return folder_.file("run"); }
  std::string checkpoints() const { return run_folder() + "/checkpoints"; }

  using Change = std::function<void(io::Checkpoint&)>;
  void save(const Change& change) {
    io::Checkpoint spoilt = whole_;
    change(spoilt);
    io::save_checkpoint(path_, spoilt);
  }
  /// The message of a typed error; empty if there is none.
  template <class Call>
  static std::string error_of(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::string load_error() {
    return error_of([&] {
      const Trained trained = load_trained(run_folder());
      // Runs the command on it.
      const Tensor p = predict(trained, zeros({1, 1, 28, 28}, DType::UInt8));
      ASSERT_EQ(p.numel(), static_cast<std::int64_t>(trained.classes.size()));
    });
  }
  std::string resume_error() {
    return error_of([&] { train::Run::resume(run_folder()); });
  }

  TemporaryFolder folder_;
  std::string path_;
  io::Checkpoint whole_;
};

TEST_F(DamagedRuns, TheWholeOneLoads) {
  save([](io::Checkpoint&) {});
  EXPECT_EQ(load_error(), "");
  EXPECT_EQ(resume_error(), "");
}

TEST_F(DamagedRuns, NetworkClassesAndScalingFitTheConfig) {
  const auto value = [](const char* part, const char* key, const char* text) {
    return Change([=](io::Checkpoint& c) { c.parts[part].values[key] = text; });
  };
  const struct {
    const char* what;
    Change change;
    const char* word;
  } cases[] = {
      {"no class", [](auto& c) { c.parts["classes"].values.clear(); }, "classes"},
      {"a class less", [](auto& c) { c.parts["classes"].values.erase("9"); }, "9 classes"},
      {"a class more", value("classes", "10", "ten"), "11 classes"},
      {"a class besides", value("classes", "x", "y"), "classes"},
      {"a hole", [](auto& c) { c.parts["classes"].values.erase("4"); }, "4 classes"},
      {"the same name twice", value("classes", "3", "4"), "same name"},
      {"deviation 0", value("scaling", "std", "0"), "deviation 0"},
      {"negative deviation", value("scaling", "std", "-1"), "deviation -1"},
      {"no number", value("scaling", "std", "nan"), "deviation nan"},
      {"too large for a float", value("scaling", "mean", "1e300"), "mean inf"},
      {"infinite mean", value("scaling", "mean", "inf"), "mean inf"},
      {"text for a number", value("scaling", "mean", "33.3x"), "mean"},
      {"a larger network", value("config", "hidden", "4"), "numbers"},
      {"a terabyte", value("config", "hidden", "1000000,1000000"), "numbers"},
      {"many terabytes", value("config", "hidden", "1000000,1000000,1000000,1000000"), "numbers"},
      {"no hidden layer", value("config", "hidden", ""), "numbers"},
      {"text for sizes", value("config", "hidden", "3;3"), "hidden"},
      {"a comma too much", value("config", "hidden", "3,"), "hidden"},
      {"a size of 0", value("config", "hidden", "0"), "hidden"},
      {"a negative size", value("config", "hidden", "-3"), "hidden"},
      {"another model", value("config", "model", "cnn"), "numbers"},
      {"a model there is not", value("config", "model", "\x1b[2J"), "\\x1b[2J"},
      {"a missing value", [](auto& c) { c.parts["config"].values.erase("lr"); }, "lr"},
      {"a learning rate that is none", value("config", "lr", "nan"), "learning rate"},
      {"epochs that are none", value("config", "epochs", "9223372036854775808"), "epochs"},
      {"a data folder with NUL", value("config", "data_folder", "a\\x00b"), "NUL"},
      {"a tensor less", [](auto& c) { c.parts["model"].tensors.pop_back(); }, "numbers"},
      {"a tensor of another shape",
       [](auto& c) {
         Tensor& t = c.parts["model"].tensors[0].tensor;
         t = reshape(t, {1, t.numel()});
       },
       "wrong shape"},
      {"a tensor of integers",
       [](auto& c) {
         Tensor& t = c.parts["model"].tensors[0].tensor;
         t = t.to(DType::Int64);
       },
       "wrong shape or kind"},
      {"a tensor of another name", [](auto& c) { c.parts["model"].tensors[0].name = "w"; },
       "unexpected"},
      {"no model", [](auto& c) { c.parts.erase("model"); }, "no part 'model'"},
      {"no config", [](auto& c) { c.parts.erase("config"); }, "no part 'config'"},
      {"no scaling", [](auto& c) { c.parts.erase("scaling"); }, "no part 'scaling'"},
      {"no classes", [](auto& c) { c.parts.erase("classes"); }, "no part 'classes'"},
  };
  for (const auto& row : cases) {
    save(row.change);
    EXPECT_NE(load_error().find(row.word), std::string::npos) << row.what << ": " << load_error();
    EXPECT_NE(resume_error(), "") << row.what;
  }
}

TEST_F(DamagedRuns, ARunGoesOnOnlyFromWhereAllPartsSayThatItStands) {
  const auto value = [](const char* part, const char* key, const char* text) {
    return Change([=](io::Checkpoint& c) { c.parts[part].values[key] = text; });
  };
  const struct {
    const char* what;
    Change change;
    const char* word;
  } cases[] = {
      {"another epoch", value("loader", "epoch", "0"), "step"},
      {"an epoch beyond the last", value("loader", "epoch", "4"), "epoch 4 of 3"},
      {"an epoch that wraps", value("loader", "epoch", "4611686018427387904"), "of 3"},
      {"an epoch above that", value("loader", "epoch", "4611686018427387905"), "epoch"},
      {"a negative epoch", value("loader", "epoch", "-1"), "epoch"},
      {"another position", value("loader", "position", "3"), "step"},
      {"a position beyond the last", value("loader", "position", "6"), "position"},
      {"another seed", value("loader", "seed", "9"), "seed"},
      {"another number of images", value("loader", "items", "49"), "items"},
      {"another batch size", value("loader", "batch_size", "11"), "batch_size"},
      {"another step of the schedule", value("schedule", "step", "8"), "schedule"},
      {"no step of the schedule", value("schedule", "step", "-1"), "step"},
      {"another schedule", value("schedule", "schedule", "OneCycleLR"), "schedule"},
      {"more right than seen", value("epoch", "right", "21"), "right"},
      {"fewer than none right", value("epoch", "right", "-1"), "right"},
      {"more seen than there are", value("epoch", "items", "21"), "seen"},
      {"text for a sum", value("epoch", "loss", "low"), "loss"},
      {"text for a generator", value("generator", "position", "-1"), "position"},
      {"another optimizer", value("optimizer", "optimizer", "SGD"), "SGD"},
      {"another number of groups", value("optimizer", "groups", "2"), "groups"},
      {"moments of another shape",
       [](auto& c) {
         for (NamedTensor& entry : c.parts["optimizer"].tensors) {
           entry.tensor = zeros({entry.tensor.numel() + 1});
         }
       },
       "float32["},
      {"no moments", [](auto& c) { c.parts["optimizer"].tensors.clear(); }, "missing"},
      {"a moment too many",
       [](auto& c) {
         c.parts["optimizer"].tensors.push_back({"more", zeros({3})});
       },
       "more"},
      {"no optimizer", [](auto& c) { c.parts.erase("optimizer"); }, "no part 'optimizer'"},
      {"no loader", [](auto& c) { c.parts.erase("loader"); }, "no part 'loader'"},
      {"no generator", [](auto& c) { c.parts.erase("generator"); }, "no part 'generator'"},
      {"no epoch", [](auto& c) { c.parts.erase("epoch"); }, "no part 'epoch'"},
      {"no schedule", [](auto& c) { c.parts.erase("schedule"); }, "no part 'schedule'"},
  };
  for (const auto& row : cases) {
    save(row.change);
    const std::string error = resume_error();
    EXPECT_NE(error.find(row.word), std::string::npos) << row.what << ": " << error;
    // None of this is needed to use the network.
    EXPECT_EQ(load_error(), "") << row.what;
  }
}

TEST_F(DamagedRuns, ACheckpointUnderTheNameOfAnotherStep) {
  io::save_checkpoint(checkpoints() + "/step-000000009.safetensors", whole_);
  EXPECT_NE(resume_error().find("step 9"), std::string::npos) << resume_error();
}

TEST(Evaluate, ClassesThatDoNotFit) {
  Config config = tiny_config();
  const Task task = load_task(config);
  const auto model = make_model(config);
  EXPECT_NO_THROW(evaluate(*model, task.test, 10));
  EXPECT_THROW(evaluate(*model, task.test, 1), ValueError);
  EXPECT_THROW(evaluate(*model, task.test, 0), ValueError);
  EXPECT_THROW(evaluate(*model, task.test, -1), ValueError);
}

}  // namespace
}  // namespace baregrad::train
