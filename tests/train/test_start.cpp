// A run whose process dies at any system call of its start can always be resumed or started again.
#include <csignal>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/train.h"
#include "io/system_calls.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::train {
namespace {

using io::system_calls;
using io::SystemCalls;

Config start_config() {
  Config config;
  config.data = "digits";
  config.items = 100;
  config.test_items = 50;
  config.hidden = {4};
  config.epochs = 1;
  config.batch = 50;
  return config;
}

// Static, since the table holds plain functions.
SystemCalls real_calls;
int calls_left = 0;

void count_call() {
  if (calls_left-- == 0) ::kill(::getpid(), SIGKILL);
}

/// Dies instead of making call number `calls`. Without fsync: the kernel keeps the data of a killed
/// process.
void die_after(int calls) {
  real_calls = system_calls;
  calls_left = calls;
  system_calls.open = [](const char* path, int flags, mode_t mode) {
    count_call();
    return real_calls.open(path, flags, mode);
  };
  system_calls.write = [](int descriptor, const void* data, std::size_t bytes) {
    count_call();
    return real_calls.write(descriptor, data, bytes);
  };
  system_calls.fsync = [](int) { return 0; };
  system_calls.ftruncate = [](int descriptor, off_t bytes) {
    count_call();
    return real_calls.ftruncate(descriptor, bytes);
  };
  system_calls.rename = [](const char* from, const char* to) {
    count_call();
    return real_calls.rename(from, to);
  };
  system_calls.unlink = [](const char* path) {
    count_call();
    return real_calls.unlink(path);
  };
  system_calls.flock = [](int descriptor, int operation) {
    count_call();
    return real_calls.flock(descriptor, operation);
  };
}

TEST(Fork, ARunKilledAtAnyCallOfItsStart) {
  std::vector<float> truth;
  int begun_again = 0;
  int resumed = 0;
  for (int calls = 0;; ++calls) {
    const test::TemporaryFolder folder;
    const std::string place = folder.file("run");
    const pid_t child = ::fork();
    if (child == 0) {
      die_after(calls);
      const train::Run run(start_config(), place);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ASSERT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;

    // One of the two commands works, and the other one's error names it.
    std::optional<train::Run> run;
    std::string advice;
    try {
      run.emplace(train::Run::resume(place));
      ++resumed;
      run.reset();
      train::Run refused(start_config(), place);
    } catch (const ValueError& error) {
      advice = error.what();
      EXPECT_NE(advice.find("--resume --out " + place), std::string::npos) << advice;
      run.emplace(train::Run::resume(place));
    } catch (const IoError& error) {
      advice = error.what();
      EXPECT_NE(advice.find("`baregrad train --out " + place), std::string::npos) << advice;
      run.emplace(start_config(), place);
      ++begun_again;
    }
    ASSERT_FALSE(advice.empty());
    Listener quiet;
    EXPECT_EQ(run->train(quiet), Outcome::Finished);
    std::vector<float> weights;
    for (const Tensor& p : run->model().parameters()) {
      const auto values = p.detach().to_vector<float>();
      weights.insert(weights.end(), values.begin(), values.end());
    }
    if (truth.empty()) truth = weights;
    EXPECT_EQ(weights, truth) << "killed at call " << calls;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path() << " at call " << calls;
    }
    if (!killed) break;
  }
  EXPECT_GT(begun_again, 15);
  EXPECT_GT(resumed, 1);
}

}  // namespace
}  // namespace baregrad::train
