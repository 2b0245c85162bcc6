// Every system call of a save fails, or the process dies there: afterwards a checkpoint can always
// be loaded.
#include <cerrno>
#include <csignal>

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/append_file.h"
#include "io/atomic_file.h"
#include "io/system_calls.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

using io::Checkpoint;
using io::CheckpointFolder;
using io::system_calls;
using io::SystemCalls;
using test::error_of;
using test::pattern;
using test::TemporaryFolder;

enum class Fault { None, Error, Kill, KillAfter };

/// The fault of each call, counted from 0. Static, since the table holds plain functions.
struct Plan {
  SystemCalls real;
  Fault fault = Fault::None;
  int at = 0;
  bool and_after = false;
  int error = 0;
  bool short_writes = false;
  int calls = 0;
  std::vector<std::string> names;
};
Plan plan;

template <class F>
auto run(const char* name, const F& call) -> decltype(call()) {
  const int number = plan.calls++;
  plan.names.emplace_back(name);
  const bool hit = number == plan.at || (plan.and_after && number > plan.at);
  if (plan.fault == Fault::None || !hit) return call();
  if (plan.fault == Fault::Kill) ::kill(::getpid(), SIGKILL);
  if (plan.fault == Fault::KillAfter) {
    call();
    ::kill(::getpid(), SIGKILL);
  }
  errno = plan.error;
  return -1;
}

/// Installs the counting table for a scope.
class Faults {
 public:
  Faults() {
    plan = Plan{};
    plan.real = system_calls;
    system_calls.open = [](const char* path, int flags, mode_t mode) {
      return run("open", [&] { return plan.real.open(path, flags, mode); });
    };
    system_calls.write = [](int descriptor, const void* data, std::size_t bytes) {
      if (plan.short_writes && bytes > 1) bytes = (bytes + 1) / 2;
      return run("write", [&] { return plan.real.write(descriptor, data, bytes); });
    };
    system_calls.fsync = [](int descriptor) {
      return run("fsync", [&] { return plan.real.fsync(descriptor); });
    };
    system_calls.ftruncate = [](int descriptor, off_t bytes) {
      return run("ftruncate", [&] { return plan.real.ftruncate(descriptor, bytes); });
    };
    system_calls.close = [](int descriptor) {
      // Linux closes the descriptor even when it reports an error.
      const int result = run("close", [&] { return 0; });
      plan.real.close(descriptor);
      return result;
    };
    system_calls.rename = [](const char* from, const char* to) {
      return run("rename", [&] { return plan.real.rename(from, to); });
    };
    system_calls.unlink = [](const char* path) {
      return run("unlink", [&] { return plan.real.unlink(path); });
    };
  }
  ~Faults() { system_calls = plan.real; }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
};

Checkpoint large_checkpoint(int number) {
  Checkpoint out;
  out.parts["model"].tensors = {{"w", pattern({40, 50}, float32, number)},
                                {"turned", pattern({100, 200}, float64, number).permute({1, 0})}};
  out.parts["loader"].values = {{"number", std::to_string(number)}};
  return out;
}

int checked_number_of(const Checkpoint& checkpoint) {
  const int number = std::stoi(checkpoint.parts.at("loader").values.at("number"));
  const NamedTensors expected = large_checkpoint(number).parts.at("model").tensors;
  test::expect_same(checkpoint.parts.at("model").tensors, expected);
  return number;
}

/// The system calls of one save, so that the tests can fail each of them.
std::vector<std::string> calls_of_a_save(const std::string& folder, int keep) {
  CheckpointFolder checkpoints(folder, keep);
  for (int step = 1; step <= keep; ++step) checkpoints.save(step, large_checkpoint(step));
  const Faults faults;
  checkpoints.save(keep + 1, large_checkpoint(keep + 1));
  return plan.names;
}

TEST(IoFaults, TheOrderOfASave) {
  const TemporaryFolder folder;
  std::vector<std::string> names = calls_of_a_save(folder.file(""), 1);
  // First the probe, then the file; the old file is removed last.
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (once.empty() || once.back() != name) once.push_back(name);
  }
  EXPECT_EQ(once,
            (std::vector<std::string>{"open", "close", "unlink", "open", "write", "fsync", "rename",
                                      "close", "open", "fsync", "close", "unlink"}));
}

/// The parameter: how many checkpoints are kept. Without fsync: the order of calls is tested, and
/// the kernel keeps the data of a killed process.
class EveryCall : public testing::TestWithParam<int> {
 public:
  EveryCall() {
    system_calls.fsync = [](int) { return 0; };
  }
  ~EveryCall() override { system_calls = real_; }

 private:
  SystemCalls real_ = system_calls;
};

TEST_P(EveryCall, FailsWithAnError) {
  const int keep = GetParam();
  const TemporaryFolder scratch;
  const auto calls = static_cast<int>(calls_of_a_save(scratch.file("count"), keep).size());
  ASSERT_GT(calls, 10);
  for (const int error : {EIO, ENOSPC}) {
    for (const bool and_after : {false, true}) {
      for (int at = 0; at < calls; ++at) {
        const TemporaryFolder folder;
        CheckpointFolder checkpoints(folder.file(""), keep);
        for (int step = 1; step <= keep; ++step) checkpoints.save(step, large_checkpoint(step));
        bool failed = false;
        {
          const Faults faults;
          plan.fault = Fault::Error;
          plan.at = at;
          plan.and_after = and_after;
          plan.error = error;
          try {
            checkpoints.save(keep + 1, large_checkpoint(keep + 1));
          } catch (const IoError& e) {
            failed = true;
            EXPECT_NE(std::string(e.what()).find(std::strerror(error)), std::string::npos)
                << e.what();
          }
        }
        const auto found = CheckpointFolder(folder.file(""), keep).latest();
        ASSERT_TRUE(found.has_value()) << at;
        EXPECT_TRUE(found->damaged.empty()) << at;
        const int number = checked_number_of(found->checkpoint);
        // A save without an error is complete.
        if (failed) {
          EXPECT_TRUE(number == keep || number == keep + 1) << number << " after call " << at;
        } else {
          EXPECT_EQ(number, keep + 1) << at;
        }
        // The next save succeeds.
        checkpoints.save(keep + 2, large_checkpoint(keep + 2));
        EXPECT_EQ(checked_number_of(checkpoints.latest()->checkpoint), keep + 2);
        EXPECT_EQ(folder.files(), static_cast<std::size_t>(keep));
      }
    }
  }
}

TEST_P(EveryCall, NO_TSAN_IsTheLastOfTheProcess) {
  const int keep = GetParam();
  const TemporaryFolder scratch;
  const auto calls = static_cast<int>(calls_of_a_save(scratch.file("count"), keep).size());
  for (const Fault fault : {Fault::Kill, Fault::KillAfter}) {
    for (int at = 0; at < calls; ++at) {
      const TemporaryFolder folder;
      CheckpointFolder checkpoints(folder.file(""), keep);
      for (int step = 1; step <= keep; ++step) checkpoints.save(step, large_checkpoint(step));
      const pid_t child = ::fork();
      if (child == 0) {
        const Faults faults;
        plan.fault = fault;
        plan.at = at;
        checkpoints.save(keep + 1, large_checkpoint(keep + 1));
        ::_exit(3);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << at;
      CheckpointFolder resumed(folder.file(""), keep);
      const auto found = resumed.latest();
      ASSERT_TRUE(found.has_value()) << at;
      EXPECT_TRUE(found->damaged.empty()) << at;
      const int number = checked_number_of(found->checkpoint);
      EXPECT_TRUE(number == keep || number == keep + 1) << number << " after call " << at;
      resumed.save(keep + 2, large_checkpoint(keep + 2));
      EXPECT_EQ(folder.files(), static_cast<std::size_t>(keep)) << "temporaries are gone";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kept, EveryCall, testing::Values(1, 3));

TEST(IoFaults, ShortWritesAndInterruptions) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c");
  {
    const Faults faults;
    plan.short_writes = true;
    plan.fault = Fault::Error;
    plan.at = 5;
    plan.error = EINTR;  // a write; the save continues
    io::save_checkpoint(path, large_checkpoint(1));
    EXPECT_EQ(plan.names[5], "write");
    EXPECT_GT(std::count(plan.names.begin(), plan.names.end(), "write"), 10);
  }
  EXPECT_EQ(checked_number_of(io::load_checkpoint(path)), 1);
  {
    const Faults faults;
    system_calls.write = [](int, const void*, std::size_t) -> ssize_t { return 0; };
    EXPECT_NE(error_of<IoError>([&] { io::save_checkpoint(path, large_checkpoint(2)); }), "")
        << "a write that writes nothing does not go on for ever";
  }
  EXPECT_EQ(checked_number_of(io::load_checkpoint(path)), 1);
}

TEST(IoFaults, FoldersThatCannotBeSynced) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c");
  const Faults faults;
  // A file system without this call, or a folder that may not be read: nothing more can be done.
  system_calls.fsync = [](int) {
    errno = EINVAL;
    return -1;
  };
  EXPECT_EQ(io::sync_folder(folder.file("")), 0);
  EXPECT_EQ(io::sync_folder(folder.file("none")), ENOENT);
  system_calls.open = [](const char*, int, mode_t) {
    errno = EACCES;
    return -1;
  };
  EXPECT_EQ(io::sync_folder(folder.file("")), 0);
  system_calls.open = plan.real.open;
  system_calls.fsync = [](int) {
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(io::sync_folder(folder.file("")), EIO);
  EXPECT_NE(error_of<IoError>([&] { io::make_folder(folder.file("new/folder"), "test"); }), "");
}

TEST(IoFaults, ATemporaryIsNotRemovedBeforeItIsLocked) {
  // Another process cleans up between the creation of a temporary file and its lock.
  static std::string place;
  static int cleaned;
  const TemporaryFolder folder;
  place = folder.file("");
  cleaned = 0;
  const SystemCalls real = system_calls;
  system_calls.flock = [](int descriptor, int operation) {
    if (cleaned < 5) {
      for (const auto& entry : std::filesystem::directory_iterator(place)) {
        const std::string path = entry.path().string();
        if (!path.ends_with(".tmp")) continue;
        std::filesystem::remove(path);
        ++cleaned;
      }
    }
    return ::flock(descriptor, operation);
  };
  io::save_checkpoint(folder.file("c"), large_checkpoint(1));
  system_calls = real;
  EXPECT_EQ(cleaned, 5);
  EXPECT_EQ(checked_number_of(io::load_checkpoint(folder.file("c"))), 1);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(IoFaults, WithoutLocksNothingIsRemoved) {
  const TemporaryFolder folder;
  test::put_file(folder.file("step-000000001.safetensors.7.7.tmp"), "half");
  const SystemCalls real = system_calls;
  system_calls.flock = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  CheckpointFolder(folder.file("")).save(1, large_checkpoint(1));
  EXPECT_EQ(folder.files(), 2U);
  system_calls = real;
  CheckpointFolder(folder.file("")).save(2, large_checkpoint(2));
  EXPECT_EQ(folder.files(), 2U);
}

TEST(IoFaults, ARecordIsAppendedWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string path = folder.file("log");
  io::AppendFile file(path, "test", true);
  file.append("first\n");
  {
    const Faults faults;
    plan.short_writes = true;
    plan.fault = Fault::Error;
    plan.at = 1;  // after half of the record
    plan.error = ENOSPC;
    EXPECT_EQ(error_of<IoError>([&] { file.append("second\n"); }),
              "test: cannot write '" + path + "': No space left on device");
    EXPECT_EQ(plan.names, (std::vector<std::string>{"write", "write", "ftruncate"}));
  }
  EXPECT_EQ(test::contents(path), "first\n");
  file.append("third\n");
  EXPECT_EQ(test::contents(path), "first\nthird\n");
  {
    const Faults faults;
    plan.fault = Fault::Error;
    plan.error = EINTR;
    file.append("fourth\n");
    plan.at = plan.calls;
    plan.error = EIO;
    EXPECT_NE(error_of<IoError>([&] { file.flush(); }), "");
    plan.at = plan.calls;
    EXPECT_NE(error_of<IoError>([&] { file.cut(0); }), "");
    system_calls.write = [](int, const void*, std::size_t) -> ssize_t { return 0; };
    EXPECT_NE(error_of<IoError>([&] { file.append("x"); }), "");
  }
  EXPECT_EQ(test::contents(path), "first\nthird\nfourth\n");
  EXPECT_NE(error_of<IoError>([&] { io::AppendFile(path, "test", true); }), "") << "not fresh";
  EXPECT_NE(error_of<IoError>([&] { io::AppendFile("/dev/null", "test", false); }), "");
  EXPECT_NE(error_of<IoError>([&] { io::AppendFile(folder.file("a/b"), "test", false); }), "");
}

}  // namespace
}  // namespace baregrad
