// FolderLock: one holder at a time, with its name in messages; released by the kernel; folders that
// disappear.
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/folder_lock.h"
#include "io/system_calls.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using io::FolderInUse;
using io::FolderLock;
using io::system_calls;
using io::SystemCalls;
using test::error_of;
using test::TemporaryFolder;

/// The parameter: whether the file system has flock.
class Lock : public testing::TestWithParam<bool> {
 public:
  Lock() {
    if (GetParam()) return;
    system_calls.flock = [](int, int) {
      errno = ENOLCK;
      return -1;
    };
  }
  ~Lock() override { system_calls = real_; }

 protected:
  TemporaryFolder folder_;

 private:
  SystemCalls real_ = system_calls;
};

TEST_P(Lock, HasOneHolderWhoIsNamed) {
  const std::string where = folder_.file("");
  const std::string process = "is in use by process " + std::to_string(::getpid()) + " on '";
  {
    FolderLock first(where, "test");
    const std::string error = error_of<FolderInUse>([&] { FolderLock(where, "who"); });
    EXPECT_EQ(error.rfind("who: the folder '" + where + "' ", 0), 0U) << error;
    EXPECT_NE(error.find(process), std::string::npos) << error;
    FolderLock second = std::move(first);
    EXPECT_NE(error_of<FolderInUse>([&] { FolderLock(where, "who"); }), "");
    second.check();
  }
  const FolderLock again(where, "test");
  const TemporaryFolder other;
  const FolderLock elsewhere(other.file(""), "test");
}

TEST_P(Lock, EndsWithItsProcess) {
  const std::string where = folder_.file("");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(where, "test");
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(error_of<FolderInUse>([&] {
              FolderLock(where, "test");
            }).find("process " + std::to_string(child) + " on "),
            std::string::npos);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  FolderLock mine(where, "test");
  mine.check();
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_P(Lock, NoticesAFolderThatIsGone) {
  const std::string where = folder_.file("run");
  fs::create_directory(where);
  FolderLock lock(where, "test");
  lock.check();
  fs::remove(where + "/lock");
  lock.check();
  EXPECT_TRUE(fs::exists(where + "/lock")) << "taken anew";
  EXPECT_NE(error_of<FolderInUse>([&] { FolderLock(where, "test"); }), "");
  fs::rename(where, folder_.file("away"));
  const std::string gone = "test: the folder '" + where + "' was removed";
  EXPECT_EQ(error_of<IoError>([&] { lock.check(); }).rfind(gone, 0), 0U);
  fs::create_directory(where);
  EXPECT_EQ(error_of<IoError>([&] { lock.check(); }).rfind(gone, 0), 0U);
  EXPECT_TRUE(fs::is_empty(where));
}

TEST(FolderLockCheck, LooksWithoutATrace) {
  const TemporaryFolder folder;
  FolderLock::check_free(folder.file("none"), "test");
  FolderLock::check_free(folder.file(""), "test");
  EXPECT_EQ(folder.files(), 0U);
  {
    const FolderLock lock(folder.file(""), "test");
    EXPECT_NE(error_of<FolderInUse>([&] {
                FolderLock::check_free(folder.file(""), "who");
              }).find("who: the folder '"),
              std::string::npos);
  }
  FolderLock::check_free(folder.file(""), "test");
}

INSTANTIATE_TEST_SUITE_P(Flock, Lock, testing::Bool());

TEST(FolderLockErrors, WhereThereCanBeNone) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of<IoError>([&] { FolderLock(folder.file("none"), "test"); }), "");
  fs::create_directories(folder.file("a/lock"));
  EXPECT_NE(error_of<IoError>([&] { FolderLock(folder.file("a"), "test"); }), "");
  const std::string nul = folder.file(std::string("a\0b", 3));
  EXPECT_NE(error_of<ValueError>([&] { FolderLock(nul, "test"); }), "");
  // The signature in the file is not trusted.
  fs::create_directory(folder.file("b"));
  for (const char* text :
       {"", "nonsense\n", "process x on y\n", "process 1", "process 1 on \x1b[31m\n"}) {
    test::put_file(folder.file("b/lock"), text);
    const int descriptor = ::open(folder.file("b/lock").c_str(), O_RDONLY);
    ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
    const std::string error = error_of<FolderInUse>([&] { FolderLock(folder.file("b"), "test"); });
    EXPECT_NE(error.find("in use by "), std::string::npos);
    EXPECT_EQ(error.find('\x1b'), std::string::npos);
    ::close(descriptor);
  }
}

}  // namespace
}  // namespace baregrad
