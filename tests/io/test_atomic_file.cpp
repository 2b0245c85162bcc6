// AtomicFile: whole or not at all, links followed, modes kept, errors that name the file.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using io::AtomicFile;
using test::contents;
using test::error_of;
using test::TemporaryFolder;

void write_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path, "test");
  file.open();
  file.write(text);
  file.commit();
}

TEST(AtomicFile, ReplacesTheTargetAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_atomically(path, "one");
  EXPECT_EQ(contents(path), "one");
  write_atomically(path, "two, longer");
  EXPECT_EQ(contents(path), "two, longer");
  write_atomically(path, "");
  EXPECT_EQ(contents(path), "");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, UncommittedContentsAreThrownAway) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_atomically(path, "before");
  {
    AtomicFile file(path, "test");
    EXPECT_EQ(folder.files(), 1U) << "nothing is left behind before open()";
    file.open();
    file.write("half");
    EXPECT_EQ(contents(path), "before");
  }
  EXPECT_EQ(contents(path), "before");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, TwoAtOnceDoNotMeet) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  AtomicFile first(path, "test");
  AtomicFile second(path, "test");
  first.open();
  second.open();
  first.write("first");
  second.write("second");
  first.commit();
  EXPECT_EQ(contents(path), "first");
  second.commit();
  EXPECT_EQ(contents(path), "second");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(AtomicFile, KeepsTheModeAndTheLink) {
  const TemporaryFolder folder;
  const std::string path = folder.file("real");
  write_atomically(path, "x");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  fs::create_symlink("real", folder.file("link"));
  write_atomically(folder.file("link"), "through");
  EXPECT_EQ(contents(path), "through");
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(fs::status(path).permissions(), static_cast<fs::perms>(0640));
}

TEST(AtomicFile, WritesIntoADevice) {
  EXPECT_NO_THROW(write_atomically("/dev/null", "gone"));
  const std::string full = error_of<IoError>([] { write_atomically("/dev/full", "gone"); });
  EXPECT_EQ(full, "test: cannot write '/dev/full': No space left on device");
}

TEST(AtomicFile, ErrorsComeBeforeTheWork) {
  const TemporaryFolder folder;
  const std::string missing = folder.file("no/such/folder");
  EXPECT_EQ(error_of<IoError>([&] { AtomicFile(missing, "who"); }),
            "who: cannot write '" + missing + "': No such file or directory");
  EXPECT_EQ(error_of<IoError>([&] { AtomicFile(folder.file(""), "who"); }),
            "who: cannot write '" + folder.file("") + "': Is a directory");
  EXPECT_EQ(error_of<IoError>([] { AtomicFile("", "who"); }),
            "who: cannot write '': No such file or directory");
  fs::create_symlink("loop", folder.file("loop"));
  EXPECT_NE(error_of<IoError>([&] { AtomicFile(folder.file("loop"), "who"); }), "");
}

}  // namespace
}  // namespace baregrad
