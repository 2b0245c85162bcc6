// Inputs of commands, tested in this process: pictures for `predict`, checkpoints with a valid
// checksum for `eval`, `predict` and `graph`, whole run folders for `train --resume`. Some thousand
// each (200 resumes), 500,000 (50,000) with BAREGRAD_TEST_LONG=1.
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/data_files.h"
#include "baregrad/error.h"
#include "baregrad/io.h"
#include "baregrad/ops.h"
#include "baregrad/train.h"
#include "io/system_calls.h"
#include "tests/fuzz_files/format.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::fuzz {
namespace {

namespace fs = std::filesystem;

int cases(int usual, int thorough) {
  return std::getenv("BAREGRAD_TEST_LONG") != nullptr ? thorough : usual;
}

/// 1: success; 0: a typed error. Anything else fails the test.
int attempt(int number, const std::function<void()>& call) {
  try {
    call();
    return 1;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "") << "case " << number;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "case " << number << ": " << error.what();
  }
  return 0;
}

/// Temporary files: no fsync is needed.
class QuickFiles {
 public:
  QuickFiles() : before_(io::system_calls) {
    io::system_calls.fsync = [](int) { return 0; };
  }
  ~QuickFiles() { io::system_calls = before_; }
  QuickFiles(const QuickFiles&) = delete;
  QuickFiles& operator=(const QuickFiles&) = delete;

 private:
  io::SystemCalls before_;
};

TEST(HostileCommands, PicturesForPredict) {
  int accepted = 0;
  const int count = cases(5000, 500'000);
  for (int number = 0; number < count; ++number) {
    Random random(static_cast<std::uint64_t>(number));
    const Format& format = number % 2 == 0 ? kPng : kPnm;
    const std::vector<Bytes> seeds = format.seeds();
    Bytes file = seeds[random() % seeds.size()];
    mutate(file, seeds[random() % seeds.size()], format, random);
    file.shrink_to_fit();
    accepted += attempt(number, [&] {
      const train::Picture picture = train::as_picture(data::decode_image(file));
      ASSERT_EQ(picture.pixels.numel(), 28 * 28);
    });
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, count / 200);
  EXPECT_LT(accepted, count * 9 / 10);
}

class StopAtStep : public train::Listener {
 public:
  void step(const train::Progress& now) override { stop_ = now.total_step == 7; }
  bool wants_stop() override { return stop_; }

 private:
  bool stop_ = false;
};

class HostileRuns : public testing::Test {
 protected:
  void SetUp() override {
    train::Config config;
    config.data = "digits";
    config.items = 20;
    config.test_items = 10;
    config.hidden = {2};
    config.batch = 4;
    config.epochs = 2;
    {
      train::Run run(config, run_folder());
      StopAtStep stop;
      ASSERT_EQ(run.train(stop), train::Outcome::Stopped);
    }
    std::optional<io::CheckpointFolder::Found> found =
        io::CheckpointFolder(run_folder() + "/checkpoints").latest();
    ASSERT_TRUE(found.has_value());
    path_ = found->path;
    whole_ = std::move(found->checkpoint);
    for (auto& [name, part] : whole_.parts) {
      for (NamedTensor& entry : part.tensors) entry.tensor = clone(entry.tensor);
    }
    for (const auto& entry : fs::recursive_directory_iterator(run_folder())) {
      if (entry.is_regular_file()) files_.push_back(entry.path().string());
    }
    for (const std::string& file : files_) contents_.push_back(test::contents(file));
  }
  std::string run_folder() const { return folder_.file("run"); }

  /// Restores the original contents of the folder, without other files.
  void restore() const {
    fs::remove_all(run_folder());
    for (std::size_t i = 0; i < files_.size(); ++i) {
      fs::create_directories(fs::path(files_[i]).parent_path());
      std::ofstream(files_[i], std::ios::binary) << contents_[i];
    }
  }

  /// One to three changes of values, names, tensors and parts; the file gets a valid checksum.
  void spoil(io::Checkpoint& c, Random& random) const;

  const QuickFiles quick_;
  test::TemporaryFolder folder_;
  std::string path_;
  io::Checkpoint whole_;
  std::vector<std::string> files_;
  std::vector<std::string> contents_;
};

const Format kText = {
    "text",
    nullptr,
    nullptr,
    {"0",        "1",       "-1",       "nan",    "inf",     "1e999", "9223372036854775807",
     ",",        "mlp",     "cnn",      "digits", "mnist",   "sgd",   "step",
     "onecycle", "\x1b[2J", "\xc2\x9b", "999999", "1000000", "../..", "18446744073709551615"}};

/// Another text, still UTF-8.
std::string changed(const std::string& text, Random& random) {
  Bytes bytes(text.begin(), text.end());
  mutate(bytes, bytes, kText, random);
  std::string out;
  for (const std::uint8_t byte : bytes) {
    if (byte < 0x80) out += static_cast<char>(byte);
  }
  return out.substr(0, 300);
}

Tensor other_tensor(const Tensor& t, Random& random) {
  switch (random() % 6) {
    case 0:
      return reshape(t, {t.numel()});
    case 1:
      return t.to(static_cast<DType>(random() % kNumDTypes));
    case 2:
      return zeros({});
    case 3:
      return zeros({0});
    case 4:
      return full(t.shape(), random() % 2 == 0 ? std::nan("") : 1e30, DType::Float32);
    default:
      return concat({reshape(t, {t.numel()}), zeros({1}, t.dtype())}, 0);
  }
}

void HostileRuns::spoil(io::Checkpoint& c, Random& random) const {
  for (std::uint64_t changes = 1 + random() % 3; changes > 0 && !c.parts.empty(); --changes) {
    auto part = std::next(c.parts.begin(), static_cast<std::ptrdiff_t>(random() % c.parts.size()));
    auto& values = part->second.values;
    NamedTensors& tensors = part->second.tensors;
    const auto any_value = [&] {
      return std::next(values.begin(), static_cast<std::ptrdiff_t>(random() % values.size()));
    };
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        if (!values.empty()) {
          auto value = any_value();
          value->second = changed(value->second, random);
        }
        break;
      case 3:
        if (!values.empty()) values.erase(any_value());
        break;
      case 4:
        if (!values.empty()) values[changed(any_value()->first, random)] = any_value()->second;
        break;
      case 5:
        if (!tensors.empty()) {
          Tensor& t = tensors[random() % tensors.size()].tensor;
          t = other_tensor(t, random);
        }
        break;
      case 6:
        if (!tensors.empty())
          tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(random() % tensors.size()));
        break;
      default:
        if (random() % 8 == 0) {
          c.parts.erase(part);
        } else if (!tensors.empty()) {
          NamedTensor& entry = tensors[random() % tensors.size()];
          entry.name = changed(entry.name, random);
        }
    }
  }
}

TEST_F(HostileRuns, CheckpointsWhoseChecksumFits) {
  int accepted = 0;
  int written = 0;
  const int count = cases(2000, 500'000);
  const Tensor picture = zeros({1, 1, 28, 28}, DType::UInt8);
  for (int number = 0; number < count; ++number) {
    Random random(static_cast<std::uint64_t>(number));
    io::Checkpoint spoilt = whole_;
    spoil(spoilt, random);
    // The writer refuses names that no file may hold.
    if (attempt(number, [&] { io::save_checkpoint(path_, spoilt); }) == 0) continue;
    ++written;
    accepted += attempt(number, [&] {
      const train::Trained trained = train::load_trained(run_folder());
      const Tensor p = train::predict(trained, picture);
      ASSERT_EQ(p.numel(), static_cast<std::int64_t>(trained.classes.size()));
      ASSERT_TRUE(std::isfinite(trained.scaling.mean) && trained.scaling.std > 0);
    });
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(written, count * 9 / 10);
  EXPECT_GT(accepted, count / 200);
  EXPECT_LT(accepted, count * 9 / 10);
}

TEST_F(HostileRuns, FoldersToGoOnWith) {
  int accepted = 0;
  const int count = cases(200, 50'000);
  for (int number = 0; number < count; ++number) {
    Random random(static_cast<std::uint64_t>(number));
    restore();
    if (number % 2 == 0) {
      io::Checkpoint spoilt = whole_;
      spoil(spoilt, random);
      attempt(number, [&] { io::save_checkpoint(path_, spoilt); });
    } else {
      // Any file of the run: the checkpoint, metrics.jsonl, events, config.json, graph.dot.
      const std::size_t which = random() % files_.size();
      Bytes bytes(contents_[which].begin(), contents_[which].end());
      mutate(bytes, bytes, random() % 2 == 0 ? kText : kSafetensors, random);
      std::ofstream(files_[which], std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    accepted += attempt(number, [&] {
      train::Run run = train::Run::resume(run_folder());
      StopAtStep none;
      if (number % 16 == 0) run.train(none);
    });
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, count / 200);
  EXPECT_LT(accepted, count * 9 / 10);
}

}  // namespace
}  // namespace baregrad::fuzz
