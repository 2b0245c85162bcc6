// The kernel table in use: names, switching, and the environment variable.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"

namespace baregrad::kernels {
namespace {

constexpr Isa kAll[] = {Isa::Reference, Isa::Scalar, Isa::Sse4, Isa::Avx2, Isa::Avx512};

TEST(KernelTables, HaveNames) {
  for (const Isa isa : kAll) EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  try {
    isa_from_name("avx1024");
    FAIL() << "no error";
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'avx1024'"), std::string::npos) << text;
    EXPECT_NE(text.find("choices are reference, scalar, sse4, avx2, avx512"), std::string::npos)
        << text;
  }
}

TEST(KernelTables, ListWhatTheMachineRunsFromTheWorst) {
  const std::vector<Isa>& isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::Scalar);
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  for (const Isa isa : {Isa::Sse4, Isa::Avx2, Isa::Avx512}) {
    if (std::count(isas.begin(), isas.end(), isa) != 0) continue;
    EXPECT_THROW(set_active_isa(isa), ValueError);
    EXPECT_THROW(table(isa), ValueError);
  }
}

TEST(KernelTables, AreOneEachAndSwitchable) {
  const Isa before = active_isa();
  std::vector<Isa> isas = available_isas();
  isas.push_back(Isa::Reference);
  for (const Isa isa : isas) {
    set_active_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    EXPECT_EQ(&active_table(), &table(isa));
    std::thread([isa] { EXPECT_EQ(&active_table(), &table(isa)); }).join();
  }
  set_active_isa(before);
}

// These run in a new process, which has not chosen a table yet.
class Environment : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { unsetenv("BAREGRAD_ISA"); }

  /// Writes the choice, or the error, and exits with 0.
  static void report() {
    try {
      const Isa isa = active_isa();
      std::cerr << "runs " << isa_name(isa) << (&active_table() == &table(isa) ? "." : "?");
    } catch (const ValueError& error) {
      std::cerr << error.what();
      // An op reports the same error; it does not fall back to another instruction set.
      try {
        add(ones({2}), 1.0);
      } catch (const ValueError& same) {
        std::cerr << (std::string(same.what()) == error.what() ? " twice." : "?");
      }
    }
    std::_Exit(0);
  }
};

TEST_F(Environment, ChoosesTheTable) {
  for (const char* name : {"scalar", "reference"}) {
    setenv("BAREGRAD_ISA", name, 1);
    EXPECT_EXIT(report(), testing::ExitedWithCode(0), std::string("runs ") + name + "\\.");
  }
  setenv("BAREGRAD_ISA", "", 1);
  const std::string best(isa_name(available_isas().back()));
  EXPECT_EXIT(report(), testing::ExitedWithCode(0), "runs " + best + "\\.");
}

TEST_F(Environment, WithAnUnknownNameIsAnError) {
  setenv("BAREGRAD_ISA", "AVX2", 1);
  EXPECT_EXIT(report(), testing::ExitedWithCode(0),
              "BAREGRAD_ISA: unknown instruction set 'AVX2'; choices are .*this machine can run "
              "reference, scalar.* twice\\.");
}

}  // namespace
}  // namespace baregrad::kernels
