// Common to all formats: invalid names, copies and mappings, errors with the caller's name.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "io/input.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_same;
using test::pattern;
using test::TemporaryFolder;

const std::string kNul("w\0evil", 6);

TEST(Names, WithNulAreNotWritten) {
  const TemporaryFolder folder;
  const Tensor one = pattern({1}, int8);
  const NamedTensors evil = {{"w", one}, {kNul, one}};
  EXPECT_TRUE(test::refuses_nul<ValueError>("save_safetensors",
                                            [&] { io::save_safetensors(folder.file("s"), evil); }));
  EXPECT_NE(error_of<ValueError>([&] { io::safetensors_bytes(evil); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::safetensors_bytes({}, {{kNul, ""}}); }), "");
  EXPECT_TRUE(
      test::refuses_nul<ValueError>("save_npz", [&] { io::save_npz(folder.file("z"), evil); }));
  EXPECT_NE(error_of<ValueError>([&] { io::npz_bytes(evil); }), "");
  EXPECT_EQ(folder.files(), 0U);
}

TEST(Names, WithNulAreNotRead) {
  io::Bytes file = io::safetensors_bytes(
      {{"w", pattern({1}, int8)}, {"w@evil", pattern({1}, int8)}}, {{"k@", "v"}});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = test::text_of(file);
    text.replace(text.find(from), from.size(), to);
    // The header is padded: its length can stay if as many spaces are removed.
    text.erase(text.find("  "), to.size() - from.size());
    return error_of<IoError>([&] { io::parse_safetensors(test::bytes_of(text)); });
  };
  EXPECT_NE(with("w@evil", "w\\u0000evil").find("holds a NUL character"), std::string::npos);
  EXPECT_NE(with("k@", "k\\u0000").find("holds a NUL character"), std::string::npos);
  // Values may be any text.
  io::Bytes value = io::safetensors_bytes({}, {{"k", kNul}});
  EXPECT_EQ(io::parse_safetensors(value).metadata.at("k"), kNul);

  io::Bytes zip = io::npz_bytes({{"w", pattern({1}, int8)}, {"w@evil", pattern({1}, int8)}});
  std::replace(zip.begin(), zip.end(), static_cast<std::uint8_t>('@'), std::uint8_t{0});
  EXPECT_NE(error_of<IoError>([&] { io::parse_npz(zip); }).find("holds a NUL character"),
            std::string::npos);
}

TEST(Names, PathsWithNulOpenNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file(kNul);
  const Tensor one = pattern({1}, int8);
  test::put_file(folder.file("w"), "mine");
  EXPECT_NE(error_of<ValueError>([&] { io::save_npy(path, one); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::load_npy(path); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::load_npy(path, {.mmap = true}); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::save_checkpoint(path, {}); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::CheckpointFolder(path, 1); }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::MetricsWriter{path}; }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::EventWriter{path}; }), "");
  EXPECT_NE(error_of<ValueError>([&] { io::make_folder(path, "test"); }), "");
  EXPECT_EQ(test::contents(folder.file("w")), "mine");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Names, TheLongestNameOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file(std::string(255, 'x'));
  io::save_npy(path, pattern({3}, int8));
  expect_same(io::load_npy(path), pattern({3}, int8));
  EXPECT_EQ(folder.files(), 1U);
}

void write_into(const std::string& path, std::size_t at, char byte) {
  const int descriptor = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(at)), 1);
  ::close(descriptor);
}

TEST(Loading, CopiesAreTheirOwn) {
  const TemporaryFolder folder;
  const Tensor truth = pattern({100'000}, float64);
  io::save_safetensors(folder.file("s"), {{"x", truth}});
  io::save_npy(folder.file("n"), truth);
  io::save_npz(folder.file("z"), {{"x", truth}});
  io::Checkpoint checkpoint;
  checkpoint.parts["p"].tensors = {{"x", truth}};
  io::save_checkpoint(folder.file("c"), checkpoint);
  const std::vector<Tensor> loaded = {
      io::load_safetensors(folder.file("s")).tensors[0].tensor, io::load_npy(folder.file("n")),
      io::load_npz(folder.file("z"))[0].tensor,
      io::load_checkpoint(folder.file("c")).parts["p"].tensors[0].tensor};
  for (const char* name : {"s", "n", "z", "c"}) fs::resize_file(folder.file(name), 0);
  for (const Tensor& tensor : loaded) expect_same(tensor, truth);
}

TEST(Loading, AMappingFollowsItsFileButNeverChangesIt) {
  const TemporaryFolder folder;
  const Tensor truth = pattern({100'000}, uint8);
  io::save_npy(folder.file("n"), truth);
  io::save_safetensors(folder.file("s"), {{"x", truth}});
  for (const char* name : {"n", "s"}) {
    const std::string path = folder.file(name);
    const std::string before = test::contents(path);
    const Tensor mapped = name[0] == 'n'
                              ? io::load_npy(path, {.mmap = true})
                              : io::load_safetensors(path, {.mmap = true}).tensors[0].tensor;
    expect_same(mapped, truth);
    write_into(path, before.size() - 1, 'Z');
    EXPECT_EQ(mapped.data<std::uint8_t>()[99'999], 'Z') << "it is a mapping";
    mapped.data<std::uint8_t>()[50'000] = 77;
    std::string expected = before;
    expected.back() = 'Z';
    EXPECT_EQ(test::contents(path), expected);
  }
}

TEST(Loading, AFileThatShrinksIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.file("n");
  io::save_npy(path, pattern({1000}, uint8));
  const io::OpenFile file(path, "load_npy");
  std::vector<char> room(file.size());
  file.read(room.data(), room.size(), 0);
  fs::resize_file(path, 500);
  EXPECT_EQ(error_of<IoError>([&] { file.read(room.data(), room.size(), 0); }),
            "load_npy: '" + path + "' became shorter while it was read: 500 of " +
                std::to_string(file.size()) + " bytes are left");
}

TEST(Loading, EveryFormatBothWays) {
  const TemporaryFolder folder;
  const NamedTensors tensors = test::varied();
  io::save_safetensors(folder.file("s"), tensors);
  for (const bool mmap : {false, true}) {
    expect_same(io::load_safetensors(folder.file("s"), {.mmap = mmap}).tensors, tensors);
    for (const NamedTensor& entry : tensors) {
      if (entry.tensor.dtype() == DType::BFloat16) continue;
      io::save_npy(folder.file("n"), entry.tensor);
      expect_same(io::load_npy(folder.file("n"), {.mmap = mmap}), entry.tensor);
    }
    // Too short for any format.
    for (const std::size_t size : {0, 4, 7, 8, 11}) {
      test::put_file(folder.file("short"), std::string(size, '\x93'));
      EXPECT_NE(error_of<IoError>([&] { io::load_npy(folder.file("short"), {.mmap = mmap}); }), "");
      EXPECT_NE(
          error_of<IoError>([&] { io::load_safetensors(folder.file("short"), {.mmap = mmap}); }),
          "");
      EXPECT_NE(error_of<IoError>([&] { io::load_npz(folder.file("short")); }), "");
    }
  }
}

}  // namespace
}  // namespace baregrad
