// Every format against mutated files: 20,000 each, 2,000,000 with BAREGRAD_TEST_LONG=1.
#include <cstdlib>
#include <exception>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {
namespace {

class HostileFiles : public testing::TestWithParam<Format> {};

TEST_P(HostileFiles, SeedsAreAccepted) {
  for (const Bytes& seed : GetParam().seeds()) EXPECT_EQ(GetParam().try_parse(seed), 1);
}

TEST_P(HostileFiles, AreRefusedOrReadAndNothingElse) {
  const Format& format = GetParam();
  const std::vector<Bytes> seeds = format.seeds();
  const int cases = std::getenv("BAREGRAD_TEST_LONG") != nullptr ? 2'000'000 : 20'000;
  int accepted = 0;
  for (int number = 0; number < cases; ++number) {
    Random random(static_cast<std::uint64_t>(number));
    Bytes file = seeds[random() % seeds.size()];
    mutate(file, seeds[random() % seeds.size()], format, random);
    file.shrink_to_fit();  // so that a sanitizer checks the end
    try {
      accepted += format.try_parse(file);
    } catch (const std::exception& error) {
      const std::string path =
          testing::TempDir() + std::string(format.name) + "-" + std::to_string(number);
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()),
                 static_cast<std::streamsize>(file.size()));
      FAIL() << "case " << number << ", kept as " << path << ": " << error.what();
    }
  }
  // If nearly all mutations are refused, or hardly any, only one half is tested.
  EXPECT_GT(accepted, cases / 200);
  EXPECT_LT(accepted, cases * 9 / 10);
  RecordProperty("accepted", accepted);
}

INSTANTIATE_TEST_SUITE_P(Formats, HostileFiles, testing::ValuesIn(formats()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(MemoryBound, IsNoticed) {
  const MemoryBound bound(1000);
  EXPECT_NO_THROW(Bytes(1000));
  EXPECT_THROW(Bytes(1001), std::bad_alloc);
}

}  // namespace
}  // namespace baregrad::fuzz
