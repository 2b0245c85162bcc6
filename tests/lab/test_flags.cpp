// The builds, functions and comparisons of the experiment `flags`.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/compare_bits.h"
#include "lab/flags/flags_build.h"
#include "lab/flags/flags_sources.h"
#include "lab/float_control.h"
#include "lab/ladder/rungs.h"
#include "lab/scratch_folder.h"
#include "tests/io/files.h"

namespace baregrad::lab {
namespace {

/// Sets an environment variable for a scope; null removes it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr) {
      ::setenv(name_, value, 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CompareBits, CountsFloatsBetween) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float next = std::nextafter(1.0F, 2.0F);
  const float least = std::numeric_limits<float>::denorm_min();
  const auto differ = [](float x, float y) {
    return compare_bits(std::vector<float>{x}, std::vector<float>{y});
  };
  EXPECT_EQ(differ(1, 1).elements, 0);
  EXPECT_EQ(differ(1, next).elements, 1);
  EXPECT_EQ(differ(1, next).max_ulps, 1);
  EXPECT_EQ(differ(1, 2).max_ulps, 1 << 23);
  // Two floats with different bits, and no float between them.
  EXPECT_EQ(differ(0.0F, -0.0F).elements, 1);
  EXPECT_EQ(differ(0.0F, -0.0F).max_ulps, 0);
  EXPECT_EQ(differ(least, -least).max_ulps, 2);
  EXPECT_EQ(differ(std::numeric_limits<float>::max(), kInfinity).max_ulps, 1);
  EXPECT_EQ(differ(kNan, kNan).elements, 0);
  EXPECT_EQ(differ(kNan, 1).max_ulps, std::numeric_limits<std::uint32_t>::max());
}

TEST(CompareBits, TakesTheLargestOfAll) {
  const std::vector<float> reference = {1, 2, 3, 4};
  const std::vector<float> result = {1, std::nextafter(2.0F, 0.0F), 3, 8};
  const BitDifference difference = compare_bits(result, reference);
  EXPECT_EQ(difference.elements, 2);
  EXPECT_EQ(difference.max_ulps, 1 << 23);
}

TEST(FloatControl, IsPutBack) {
  if (!kHasFloatControl) GTEST_SKIP() << "no MXCSR";
  const unsigned before = float_control();
  volatile float tiny = std::numeric_limits<float>::min();
  {
    const FloatControlScope scope;
    EXPECT_FALSE(scope.changed());
    FloatControlScope::flush();
    EXPECT_TRUE(scope.changed());
    volatile float half = tiny * 0.5F;
    EXPECT_EQ(half, 0.0F);
  }
  EXPECT_EQ(float_control(), before);
  volatile float half = tiny * 0.5F;
  EXPECT_NE(half, 0.0F);
}

TEST(FlagsSources, AreTheFilesOfTheRungs) {
  for (const Rung& rung : rungs()) {
    bool found = false;
    for (const EmbeddedSource& source : embedded_sources()) {
      if (source.path != "lab/ladder/" + std::string(rung.file)) continue;
      found = true;
      std::ifstream in(std::string(BAREGRAD_TEST_DIR) + "/../" + std::string(source.path));
      EXPECT_EQ(source.text, std::string(std::istreambuf_iterator<char>(in), {})) << source.path;
    }
    EXPECT_TRUE(found) << rung.file;
  }
}

TEST(ScratchFolder, IsGoneAfterwards) {
  std::string path;
  {
    const ScratchFolder folder("/nowhere");
    ASSERT_TRUE(folder.ok()) << folder.why();
    path = folder.path();
    folder.write("a/b.txt", "text");
    EXPECT_TRUE(std::filesystem::exists(path + "/a/b.txt"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolder, AHandlerOfSignalsRemovesAllThatAreThere) {
  const test::TemporaryFolder parent;
  const Variable tmpdir("TMPDIR", parent.file("").c_str());
  const ScratchFolder first("/nowhere");
  const ScratchFolder second("/nowhere");
  first.write("a/b/c.txt", "text");
  first.write("a/.hidden", "text");
  for (int i = 0; i < 300; ++i) second.write("file " + std::to_string(i), "text");
  std::filesystem::create_symlink(parent.file("kept"), first.path() + "/link");
  test::put_file(parent.file("kept"), "not in the folder");
  EXPECT_EQ(parent.files(), 3U);
  remove_scratch_folders();
  EXPECT_EQ(parent.files(), 1U);
  EXPECT_EQ(test::contents(parent.file("kept")), "not in the folder");
}

TEST(ScratchFolder, PlacesAreUsedAgain) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ScratchFolder("/nowhere").ok());
  const Variable tmpdir("TMPDIR", "/nowhere/at/all");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(ScratchFolder("/nowhere").ok());
}

TEST(ScratchFolder, IsElsewhereOrNowhereWhenTmpdirIsMissing) {
  const test::TemporaryFolder otherwise;
  const Variable tmpdir("TMPDIR", "/nowhere/at/all");
  const ScratchFolder second(otherwise.file(""));
  EXPECT_TRUE(second.ok());
  EXPECT_TRUE(second.path().starts_with(otherwise.file("")));
  const ScratchFolder none("/nowhere/either");
  EXPECT_FALSE(none.ok());
  EXPECT_NE(none.why().find("/nowhere/at/all"), std::string::npos);
  EXPECT_NE(none.why().find("/nowhere/either"), std::string::npos);
}

TEST(FlagsBuild, WithoutAnyCompilerSaysSo) {
  const Variable path("PATH", "/nowhere");
  const Variable cxx("CXX", nullptr);
  const ScratchFolder folder("/nowhere");
  std::string why;
  EXPECT_FALSE(find_compiler(folder, why).has_value());
  EXPECT_NE(why.find("g++: No such file"), std::string::npos) << why;
}

/// The tests below need a compiler, as the experiment does.
class FlagsBuildWith : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    compiler_ = find_compiler(folder_, why);
    if (!compiler_) GTEST_SKIP() << why;
    unpack_sources(folder_);
  }
  ScratchFolder folder_{"/nowhere"};
  std::optional<Compiler> compiler_;
};

TEST_F(FlagsBuildWith, ARungMultiplies) {
  const SharedObject object(*compiler_, folder_, "lab/ladder/01_naive.cpp", {"-O1"});
  using Multiply = void (*)(std::int64_t, const float*, const float*, float*);
  const auto multiply = reinterpret_cast<Multiply>(object.find("multiply_naiveE"));
  const std::vector<float> a = {1, 2, 3, 4};
  const std::vector<float> b = {5, 6, 7, 8};
  std::vector<float> c(4);
  multiply(2, a.data(), b.data(), c.data());
  EXPECT_EQ(c, (std::vector<float>{19, 22, 43, 50}));
  EXPECT_GT(object.code_bytes("8baregrad3lab"), 0U);
  EXPECT_EQ(object.code_bytes("nobody"), 0U);
  EXPECT_THROW(object.find("nobody"), ValueError);
}

TEST_F(FlagsBuildWith, WhatTheCompilerSaysIsTold) {
  folder_.write("wrong.cpp", "int f( {}\n");
  try {
    const SharedObject object(*compiler_, folder_, "wrong.cpp", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("does not build wrong.cpp"), std::string::npos);
  }
}

TEST_F(FlagsBuildWith, ObjectsThatFlushDenormalsAreNoticedAndUndone) {
  if (!kHasFloatControl) GTEST_SKIP() << "no MXCSR";
  // Does in source what crtfastmath does: compilers differ in when they link it.
  folder_.write("flushing.cpp",
                "__attribute__((constructor)) static void start() {\n"
                "  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);\n"
                "}\n");
  const unsigned before = float_control();
  const SharedObject object(*compiler_, folder_, "flushing.cpp", {});
  EXPECT_TRUE(object.flushes());
  EXPECT_EQ(float_control(), before);
  const SharedObject plain(*compiler_, folder_, "lab/ladder/01_naive.cpp", {"-O2"});
  EXPECT_FALSE(plain.flushes());
}

}  // namespace
}  // namespace baregrad::lab
