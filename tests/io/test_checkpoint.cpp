// Checkpoints: all parts are restored; damage is detected; the folder keeps the latest and finds
// them.
#include <atomic>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/any_device.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using io::Checkpoint;
using io::CheckpointFolder;
using test::error_of;
using test::expect_same;
using test::pattern;
using test::TemporaryFolder;

void expect_same_parts(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (const auto& [part, state] : a.parts) {
    ASSERT_TRUE(b.parts.contains(part)) << part;
    EXPECT_EQ(state.values, b.parts.at(part).values) << part;
    expect_same(state.tensors, b.parts.at(part).tensors);
  }
}

Checkpoint small_checkpoint(int number) {
  Checkpoint out;
  out.parts["model"].tensors = {{"w", pattern({2, 3}, float32, number)}};
  out.parts["loader"].values = {{"number", std::to_string(number)}};
  return out;
}

int number_of(const CheckpointFolder::Found& found) {
  return std::stoi(found.checkpoint.parts.at("loader").values.at("number"));
}

TEST(Checkpoint, AllPartsComeBack) {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.parts["model"] = {test::varied(), {{"epoch", "7"}, {"", "empty key"}}};
  checkpoint.parts["optimizer"].values = {{"lr", "0x1.8p-3"}, {"a/b", "\n\xc3\xa9"}};
  checkpoint.parts["holds nothing"];
  // Names that would collide if they were joined without escaping.
  checkpoint.parts["a"].tensors = {{"b/c", pattern({1}, int8)}, {"", pattern({2}, int8)}};
  checkpoint.parts["a/b"].tensors = {{"c", pattern({3}, int8)}};
  checkpoint.parts["a%2Fb"].tensors = {{"c", pattern({4}, int8)}};
  checkpoint.parts[""].tensors = {{"c", pattern({5}, int8)}};
  checkpoint.parts[""].values = {{"format", "mine"}, {"parts", "mine"}};
  checkpoint.parts["%00"].values = {{"format", "also mine"}};
  checkpoint.parts["%"].tensors = {{"%", pattern({6}, int8)}};
  io::save_checkpoint(folder.file("c"), checkpoint);
  expect_same_parts(io::load_checkpoint(folder.file("c")), checkpoint);
  io::save_checkpoint(folder.file("none"), {});
  EXPECT_TRUE(io::load_checkpoint(folder.file("none")).parts.empty());
}

TEST(Checkpoint, NamesInTheFile) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint(1);
  checkpoint.parts["a/b%"].tensors = {{"c/d", pattern({1}, int8)}};
  io::save_checkpoint(folder.file("c"), checkpoint);
  const io::SafeTensors file = io::load_safetensors(folder.file("c"));
  EXPECT_EQ(file.tensors.at(0).name, "a%2Fb%25/c/d");
  EXPECT_EQ(file.tensors.at(1).name, "model/w");
  EXPECT_EQ(file.metadata.at("loader/number"), "1");
  EXPECT_EQ(file.metadata.at("/format"), "baregrad checkpoint 1");
  EXPECT_EQ(file.metadata.at("/parts"), "a%2Fb%25/loader/model/");
}

TEST(Checkpoint, WhatCannotBeSaved) {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.parts["model"].tensors = {{"w", Tensor()}};
  EXPECT_EQ(error_of<ValueError>([&] { io::save_checkpoint(folder.file("c"), checkpoint); }),
            "save_checkpoint: tensor 'model/w' is undefined");
  const Tensor one = pattern({1}, int8);
  checkpoint.parts["model"].tensors = {{"w", one}, {"w", one}};
  EXPECT_EQ(error_of<ValueError>([&] { io::save_checkpoint(folder.file("c"), checkpoint); }),
            "save_checkpoint: two tensors are named 'model/w'");
  // Errors name the function that was called, not the functions it calls.
  EXPECT_EQ(
      error_of<IoError>([&] { io::save_checkpoint(folder.file("no/c"), small_checkpoint(1)); }),
      "save_checkpoint: cannot write '" + folder.file("no/c") + "': No such file or directory");
  EXPECT_EQ(error_of<IoError>([&] { io::load_checkpoint(folder.file("no")); }),
            "load_checkpoint: cannot read '" + folder.file("no") + "': No such file or directory");
  const std::string nul("m\0x", 3);
  Checkpoint two = small_checkpoint(1);
  two.parts[nul] = {};
  const auto save = [&] { io::save_checkpoint(folder.file("c"), two); };
  EXPECT_TRUE(test::refuses_nul<ValueError>("save_checkpoint", save));
  two.parts.erase(nul);
  two.parts["loader"].values[nul] = "v";
  EXPECT_TRUE(test::refuses_nul<ValueError>("save_checkpoint", save));
  EXPECT_EQ(folder.files(), 0U);
}

TEST(Checkpoint, EveryFlippedBitIsNoticed) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c");
  io::save_checkpoint(path, small_checkpoint(3));
  const std::string good = test::contents(path);
  int undetected = 0;
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << (byte % 8)));
    test::put_file(path, bad);
    if (!error_of<IoError>([&] { io::load_checkpoint(path); }).empty()) continue;
    // A space of the padding may be replaced by another whitespace character.
    EXPECT_EQ(good[byte], ' ') << byte;
    ++undetected;
  }
  EXPECT_LT(undetected, 16);
}

TEST(Checkpoint, FilesThatAreNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c");
  io::save_safetensors(path, {{"w", pattern({1}, int8)}});
  EXPECT_EQ(error_of<IoError>([&] { io::load_checkpoint(path); }),
            "load_checkpoint: '" + path +
                "': not a checkpoint: its metadata has no 'baregrad checkpoint 1'");

  io::save_safetensors(path, {{"model/w", pattern({1}, int8)}},
                       {{"/format", "baregrad checkpoint 1"}, {"/parts", "model/"}});
  EXPECT_EQ(error_of<IoError>([&] { io::load_checkpoint(path); }),
            "load_checkpoint: '" + path + "': its checksum does not fit: the file is damaged");
}

TEST(Checkpoint, NamesThatBelongToNoPart) {
  // With a valid checksum, as another program might write them.
  const TemporaryFolder folder;
  const std::string path = folder.file("c");
  const auto with_checksum = [&](const NamedTensors& tensors, io::Metadata metadata) {
    metadata["/format"] = "baregrad checkpoint 1";
    std::string text;
    for (const auto& [key, value] : metadata) {
      text += std::to_string(key.size()) + ":" + key + std::to_string(value.size()) + ":" + value;
    }
    for (const auto& [name, tensor] : tensors) {
      const std::string about = describe(tensor);
      text += std::to_string(name.size()) + ":" + name + std::to_string(about.size()) + ":" +
              about + test::raw(tensor);
    }
    std::uint32_t crc = ~0U;  // CRC-32 bit by bit
    for (const char c : text) {
      crc ^= static_cast<std::uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
    }
    metadata["/crc32"] = std::to_string(~crc);
    io::save_safetensors(path, tensors, metadata);
    return error_of<IoError>([&] { io::load_checkpoint(path); });
  };
  const Tensor one = pattern({1}, int8);
  EXPECT_EQ(with_checksum({{"model/w", one}}, {{"/parts", "model/"}, {"model/k", "v"}}), "");
  EXPECT_EQ(with_checksum({{"model/w", one}}, {{"/parts", "model"}}), "");
  for (const char* name : {"other/w", "w", "/w", "%/w", "%41/w"}) {
    EXPECT_NE(with_checksum({{name, one}}, {{"/parts", "model/"}})
                  .find("' belongs to no part of the checkpoint"),
              std::string::npos);
    EXPECT_NE(with_checksum({}, {{"/parts", "model/"}, {name, ""}})
                  .find("' belongs to no part of the checkpoint"),
              std::string::npos);
  }
  EXPECT_NE(with_checksum({}, {{"/parts", "%41/"}}).find("damaged list of parts"),
            std::string::npos);
  EXPECT_NE(with_checksum({}, {{"/parts", "//"}}).find("damaged list of parts"), std::string::npos);
}

TEST(CheckpointFolder, KeepsTheLast) {
  const TemporaryFolder folder;
  const std::string where = folder.file("runs/a/checkpoints");
  CheckpointFolder checkpoints(where, 3);
  EXPECT_FALSE(checkpoints.latest().has_value());
  for (int step = 1; step <= 5; ++step) {
    const std::string path = checkpoints.save(step * 10, small_checkpoint(step));
    EXPECT_EQ(path, where + "/step-0000000" + std::to_string(step) + "0.safetensors");
  }
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>{30, 40, 50}));
  const auto found = CheckpointFolder(where).latest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 50);
  EXPECT_EQ(found->path, checkpoints.path_of(50));
  EXPECT_TRUE(found->damaged.empty());
  expect_same_parts(found->checkpoint, small_checkpoint(5));

  // Saving the same step again replaces its file.
  checkpoints.save(50, small_checkpoint(9));
  EXPECT_EQ(number_of(*checkpoints.latest()), 9);

  CheckpointFolder one(where, 1);
  one.save(60, small_checkpoint(6));
  EXPECT_EQ(one.steps(), (std::vector<std::int64_t>{60}));
}

TEST(CheckpointFolder, StepsOfAnyLength) {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.file(""), 9);
  const std::int64_t steps[] = {0, 999'999'999, 1'000'000'000, 9'223'372'036'854'775'807};
  for (const std::int64_t step : steps) checkpoints.save(step, small_checkpoint(1));
  EXPECT_EQ(checkpoints.steps(), (std::vector<std::int64_t>(std::begin(steps), std::end(steps))));
  EXPECT_EQ(checkpoints.latest()->step, steps[3]);
  for (const char* other :
       {"step-12.safetensors", "step-0000000012.safetensors", "step--00000012.safetensors",
        "step-00000001x.safetensors", "step-99999999999999999999.safetensors", "step-.safetensors",
        "step-000000012", "model.safetensors", "step-safetensors", "notes.txt"}) {
    test::put_file(folder.file(other), "not ours");
  }
  EXPECT_EQ(checkpoints.steps().size(), 4U);
  EXPECT_THROW(checkpoints.save(-1, small_checkpoint(1)), ValueError);
}

TEST(CheckpointFolder, WhatWasSavedLastIsTheNewest) {
  const TemporaryFolder folder;
  const auto steps = [&] { return CheckpointFolder(folder.file("")).steps(); };
  for (const bool restarts : {false, true}) {
    for (const auto& entry : fs::directory_iterator(folder.file(""))) fs::remove(entry.path());
    CheckpointFolder old(folder.file(""), 3);
    for (const int step : {100, 200, 300}) old.save(step, small_checkpoint(step));
    CheckpointFolder run(folder.file(""), 3);
    for (int step = 1; step <= 4; ++step) {
      // One object for all saves, or one per save, as when processes are restarted.
      if (restarts) run = CheckpointFolder(folder.file(""), 3);
      run.save(step, small_checkpoint(step));
      const auto found = CheckpointFolder(folder.file("")).latest();
      EXPECT_EQ(found->step, step);
      EXPECT_EQ(number_of(*found), step);
    }
    EXPECT_EQ(steps(), (std::vector<std::int64_t>{2, 3, 4}));
    // Back once more, to a step that exists.
    run.save(2, small_checkpoint(22));
    EXPECT_EQ(number_of(*CheckpointFolder(folder.file("")).latest()), 22);
    EXPECT_EQ(steps(), (std::vector<std::int64_t>{2, 3, 4}));
    run.save(3, small_checkpoint(33));
    run.save(5, small_checkpoint(55));
    EXPECT_EQ(steps(), (std::vector<std::int64_t>{2, 3, 5}));
    EXPECT_EQ(number_of(*CheckpointFolder(folder.file("")).latest()), 55);
    // A damaged newest file is reported, and the previous one is loaded.
    fs::resize_file(run.path_of(5), 7);
    const auto found = CheckpointFolder(folder.file("")).latest();
    EXPECT_EQ(number_of(*found), 33);
    EXPECT_EQ(found->damaged.size(), 1U);
  }
}

TEST(CheckpointFolder, ARunThatNeverWentBackKnowsNoGenerations) {
  // The bytes of a checkpoint depend only on its contents.
  const TemporaryFolder folder;
  CheckpointFolder run(folder.file("a"), 2);
  for (int step = 0; step < 5; ++step) run.save(step, small_checkpoint(step));
  io::save_checkpoint(folder.file("alone"), small_checkpoint(4));
  EXPECT_EQ(test::contents(run.path_of(4)), test::contents(folder.file("alone")));
  run.save(3, small_checkpoint(3));
  EXPECT_EQ(io::load_safetensors(run.path_of(3)).metadata.at("/generation"), "1");
  EXPECT_EQ(io::load_checkpoint(run.path_of(3)).parts.size(), 2U);
}

TEST(CheckpointFolder, ReadingChangesNothing) {
  const TemporaryFolder folder;
  const std::string left = folder.file("step-000000001.safetensors.123.0.tmp");
  test::put_file(left, "half");
  const CheckpointFolder checkpoints(folder.file(""));
  EXPECT_FALSE(checkpoints.latest().has_value());
  EXPECT_TRUE(checkpoints.steps().empty());
  EXPECT_TRUE(fs::exists(left));
  const CheckpointFolder absent(folder.file("no/such"));
  EXPECT_FALSE(absent.latest().has_value());
  EXPECT_TRUE(absent.steps().empty());
  EXPECT_FALSE(fs::exists(folder.file("no")));
}

TEST(CheckpointFolder, IsReadWhileItIsWritten) {
  const TemporaryFolder folder;
  CheckpointFolder(folder.file(""), 1).save(0, small_checkpoint(0));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    CheckpointFolder checkpoints(folder.file(""), 1);
    for (int step = 1; step <= 150; ++step) checkpoints.save(step, small_checkpoint(step));
    done = true;
  });
  int last = 0;
  while (!done) {
    const auto found = CheckpointFolder(folder.file("")).latest();
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(found->damaged.empty());
    EXPECT_EQ(number_of(*found), found->step);
    EXPECT_GE(found->step, last);
    last = static_cast<int>(found->step);
  }
  writer.join();
  EXPECT_EQ(CheckpointFolder(folder.file("")).latest()->step, 150);
}

TEST(CheckpointFolder, FallsBackWhenTheNewestIsDamaged) {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.file(""), 3);
  for (int step = 1; step <= 3; ++step) checkpoints.save(step, small_checkpoint(step));
  fs::resize_file(checkpoints.path_of(3), fs::file_size(checkpoints.path_of(3)) - 1);
  auto found = checkpoints.latest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(number_of(*found), 2);
  ASSERT_EQ(found->damaged.size(), 1U);
  EXPECT_NE(found->damaged[0].find(checkpoints.path_of(3)), std::string::npos);

  fs::resize_file(checkpoints.path_of(2), 0);
  EXPECT_EQ(checkpoints.latest()->damaged.size(), 2U);
  fs::resize_file(checkpoints.path_of(1), 10);
  const std::string error = error_of<IoError>([&] { checkpoints.latest(); });
  EXPECT_NE(error.find("no checkpoint in '"), std::string::npos);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_NE(error.find(checkpoints.path_of(step)), std::string::npos);
  }
}

TEST(CheckpointFolder, RemovesWhatACutOffSaveLeft) {
  const TemporaryFolder folder;
  const std::string left = folder.file("step-000000001.safetensors.123.0.tmp");
  const std::string busy = folder.file("step-000000002.safetensors.123.1.tmp");
  test::put_file(left, "half");
  test::put_file(busy, "half");
  for (const char* other :
       {"a.123.0.tmp", "step-000000001.safetensors.tmp", "step-000000001.safetensors.123.x.tmp",
        "step-1.safetensors.123.0.tmp", "step-000000001.safetensors.123.0.tmp2"}) {
    test::put_file(folder.file(other), "not ours");
  }
  const int descriptor = ::open(busy.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);  // like a process that is still writing it
  CheckpointFolder checkpoints(folder.file(""));
  checkpoints.save(1, small_checkpoint(1));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(busy));
  EXPECT_EQ(folder.files(), 7U);
  ::close(descriptor);
  checkpoints.save(1, small_checkpoint(1));
  EXPECT_FALSE(fs::exists(busy));
}

TEST(Checkpoint, TensorsComeFromAnyDeviceAndGoToAny) {
  const TemporaryFolder folder;
  const Device there = test::any_device();
  const Tensor x = pattern({2, 3}, float32, 1).to(there);
  for (const Tensor& written : {x, x.mT()}) {
    const NamedTensors named = {{"x", written}};
    Checkpoint checkpoint;
    checkpoint.parts["model"].tensors = named;
    io::save_checkpoint(folder.file("c"), checkpoint);
    io::save_safetensors(folder.file("s"), named);
    io::save_npz(folder.file("z"), named);
    io::save_npy(folder.file("y"), written);
    for (const Device device : {Device(), there}) {
      const io::LoadOptions options{.mmap = false, .device = device};
      for (const Tensor& found :
           {io::load_checkpoint(folder.file("c"), options).parts.at("model").tensors[0].tensor,
            io::load_safetensors(folder.file("s"), options).tensors[0].tensor,
            io::load_npz(folder.file("z"), options)[0].tensor,
            io::load_npy(folder.file("y"), options),
            io::load_npy(folder.file("y"), {.mmap = true, .device = device})}) {
        EXPECT_EQ(found.device(), device);
        EXPECT_EQ(found.to_vector<float>(), written.to_vector<float>());
      }
    }
  }
  const Device none(DeviceType::Cuda, 63);
  EXPECT_NE(error_of<ValueError>([&] {
              io::load_npy(folder.file("y"), {.mmap = false, .device = none});
            }).find("load_npy: "),
            std::string::npos);
  EXPECT_NE(error_of<ValueError>([&] { io::load_npz(folder.file("z"), {.mmap = true}); }), "");
}

TEST(CheckpointFolder, FoldersThatCannotBe) {
  const TemporaryFolder folder;
  test::put_file(folder.file("file"), "");
  EXPECT_NE(error_of<IoError>([&] { CheckpointFolder(folder.file("file")); }), "");
  EXPECT_NE(error_of<IoError>([&] { CheckpointFolder(folder.file("file/below")); }), "");
  EXPECT_NE(error_of<IoError>([&] { CheckpointFolder(""); }), "");
  EXPECT_EQ(error_of<ValueError>([&] { CheckpointFolder(folder.file("a"), 0); }),
            "CheckpointFolder: keep must be at least 1, is 0");
  CheckpointFolder gone(folder.file("gone"));
  gone.save(1, small_checkpoint(1));
  fs::remove_all(folder.file("gone"));
  EXPECT_EQ(
      error_of<IoError>([&] { gone.save(2, small_checkpoint(1)); }),
      "CheckpointFolder::save: cannot write '" + gone.path_of(2) + "': No such file or directory");
  EXPECT_FALSE(fs::exists(folder.file("gone")));
  fs::create_directory(folder.file("real"));
  fs::create_symlink("real", folder.file("link"));
  CheckpointFolder(folder.file("link/")).save(1, small_checkpoint(1));
  EXPECT_TRUE(CheckpointFolder(folder.file("real")).latest().has_value());
}

}  // namespace
}  // namespace baregrad
