// Philox against its published vectors; the generator's state, alone and shared by threads.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/generator.h"
#include "core/philox.h"

namespace baregrad {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, BlocksAreTheCountersFromThePositionOn) {
  for (const std::uint64_t position :
       {std::uint64_t{0}, std::uint64_t{0xfffffffd}, kMax - 5, kMax}) {
    const Generator::State state{0x0123456789abcdefULL, position};
    for (std::int64_t count = 0; count <= 20; ++count) {
      for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3}}) {
        std::vector<std::uint32_t> words(static_cast<std::size_t>(4 * count + 1), 42);
        philox_blocks(state, first, count, words.data());
        EXPECT_EQ(words.back(), 42U) << "wrote beyond " << count << " blocks";
        for (std::int64_t b = 0; b < count; ++b) {
          const std::uint64_t block = first + static_cast<std::uint64_t>(b);
          const std::uint64_t low = position + block;
          const std::uint32_t carry = low < position ? 1 : 0;
          const PhiloxCounter want = philox(
              {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), carry, 0},
              {0x89abcdef, 0x01234567});
          for (std::size_t w = 0; w < 4; ++w) {
            ASSERT_EQ(words[static_cast<std::size_t>(4 * b) + w], want[w])
                << "position " << position << " block " << block << " word " << w;
          }
        }
      }
    }
  }
}

TEST(Generator, StateMovesByWhatIsTaken) {
  Generator g(7);
  EXPECT_EQ(g.state(), (Generator::State{7, 0}));
  EXPECT_EQ(g.advance(10), (Generator::State{7, 0}));
  EXPECT_EQ(g.advance(5), (Generator::State{7, 10}));
  EXPECT_EQ(g.advance(0), (Generator::State{7, 15}));
  EXPECT_EQ(g.state(), (Generator::State{7, 15}));
  g.set_state({9, kMax});
  EXPECT_EQ(g.advance(3), (Generator::State{9, kMax}));
  EXPECT_EQ(g.state(), (Generator::State{9, 2}));
  g.manual_seed(11);
  EXPECT_EQ(g.state(), (Generator::State{11, 0}));
}

TEST(Generator, DefaultIsOneForTheProcess) {
  const Generator::State before = default_generator().state();
  manual_seed(123);
  EXPECT_EQ(default_generator().state(), (Generator::State{123, 0}));
  EXPECT_EQ(&default_generator(), &default_generator());
  default_generator().set_state(before);
}

TEST(Generator, ThreadsNeverShareNumbers) {
  Generator g(1);
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  std::vector<std::vector<std::uint64_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        taken[static_cast<std::size_t>(t)].push_back(g.advance(3).position);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& some : taken) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kCalls));
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], 3 * i);
}

}  // namespace
}  // namespace baregrad
