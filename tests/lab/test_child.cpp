// Child processes: output, exit status, and no leftover processes.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include <sys/types.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/child.h"
#include "tests/message_of.h"

namespace baregrad::lab {
namespace {

TEST(RunChild, TellsStatusAndBothOutputs) {
  const Outcome outcome = run_child({"sh", "-c", "echo out; echo error >&2; exit 3"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.output, "out\nerror\n");
}

TEST(RunChild, TakesArgumentsAsTheyAre) {
  const Outcome outcome = run_child({"printf", "%s|%s", "two words", "$HOME"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "two words|$HOME");
}

TEST(RunChild, SaysWhenThereIsNoSuchProgram) {
  const Outcome outcome = run_child({"no-such-program-of-baregrad"});
  EXPECT_EQ(outcome.status, 127);
  EXPECT_EQ(outcome.output, "no-such-program-of-baregrad: No such file or directory");
}

TEST(RunChild, TellsASignal) {
  EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
}

TEST(RunChild, ReadsMoreThanAPipeHolds) {
  constexpr int kBytes = 3'000'000;
  const Outcome outcome =
      run_child({"sh", "-c", "head -c " + std::to_string(kBytes) + " /dev/zero"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, std::string(kBytes, '\0'));
}

TEST(RunChild, AddsToTheEnvironmentAndKeepsTheRest) {
  ::setenv("BAREGRAD_TEST_KEPT", "kept", 1);
  ::setenv("BAREGRAD_TEST_CHANGED", "before", 1);
  const Outcome outcome =
      run_child({"sh", "-c", "echo $BAREGRAD_TEST_KEPT $BAREGRAD_TEST_CHANGED $BAREGRAD_TEST_NEW"},
                {{"BAREGRAD_TEST_CHANGED", "after"}, {"BAREGRAD_TEST_NEW", "a = b"}});
  EXPECT_EQ(outcome.output, "kept after a = b\n");
}

TEST(RunChild, SaysItsLastLine) {
  EXPECT_EQ(run_child({"printf", "one\\ntwo\\n\\n"}).last_line(), "two");
  EXPECT_EQ(run_child({"printf", "one"}).last_line(), "one");
  EXPECT_EQ(run_child({"true"}).last_line(), "");
}

TEST(RunChild, HasNoInput) { EXPECT_EQ(run_child({"cat"}).output, ""); }

TEST(StartChild, AnswersThroughPipes) {
  const Piped child = start_child({"cat"});
  ASSERT_EQ(::write(child.to, "hello", 5), 5);
  ::close(child.to);
  char answer[16] = {};
  ASSERT_EQ(::read(child.from, answer, sizeof answer), 5);
  EXPECT_STREQ(answer, "hello");
  ::close(child.from);
  EXPECT_EQ(wait_for(child.process), 0);
}

TEST(StartChild, ThrowsWhenThereIsNoSuchProgram) {
  EXPECT_EQ(message_of<IoError>([] { start_child({"no-such-program-of-baregrad"}); }),
            "lab: cannot run 'no-such-program-of-baregrad': No such file or directory");
}

TEST(EndChildren, EndsWhoeverRunsAndTheirChildren) {
  // The shell prints the number of its own child, then waits for it.
  const Piped child = start_child({"sh", "-c", "sleep 600 & echo $!; wait"});
  char number[32] = {};
  ASSERT_GT(::read(child.from, number, sizeof number - 1), 0);
  const auto grandchild = static_cast<pid_t>(std::stol(number));
  EXPECT_EQ(::kill(grandchild, 0), 0);
  end_children();
  EXPECT_EQ(wait_for(child.process), 128 + SIGTERM);
  // The pipe is closed when the grandchild has ended too.
  EXPECT_EQ(::read(child.from, number, sizeof number), 0);
  ::close(child.to);
  ::close(child.from);
}

TEST(OwnPath, IsThisProgram) {
  EXPECT_EQ(std::filesystem::path(own_path()).filename(), "test_lab");
}

}  // namespace
}  // namespace baregrad::lab
