// Files changed at random: the result is a tensor or an IoError, never anything else, and memory
// use is bounded by the file's size.
#include <cstdlib>
#include <cstring>
#include <functional>

#include "baregrad/allocator.h"
#include "core/philox.h"
#include "tests/data/support.h"

namespace baregrad {
namespace {

using namespace test;

/// Per format; a hundred times as many with BAREGRAD_TEST_LONG=1.
const int kInputs = std::getenv("BAREGRAD_TEST_LONG") != nullptr ? 2000000 : 20000;

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : key_{seed, 0} {}
  std::uint32_t word() { return philox({counter_++, 0, 0, 0}, key_)[0]; }
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(std::uint64_t{word()} * count >> 32);
  }

 private:
  PhiloxKey key_;
  std::uint32_t counter_ = 0;
};

/// One to four changes: bytes, bits, special words, pieces cut, duplicated or added.
ByteVector mutate(ByteVector bytes, Dice& dice) {
  constexpr std::uint32_t kWords[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff};
  for (std::size_t changes = 1 + dice.below(4); changes > 0; --changes) {
    const std::size_t at = dice.below(bytes.size() + 1);
    const bool inside = at < bytes.size();
    switch (dice.below(7)) {
      case 0:
        if (inside) bytes[at] = static_cast<std::uint8_t>(dice.word());
        break;
      case 1:
        if (inside) bytes[at] ^= static_cast<std::uint8_t>(1U << dice.below(8));
        break;
      case 2: {
        ByteVector word;
        append_be32(word, kWords[dice.below(std::size(kWords))]);
        for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i) bytes[at + i] = word[i];
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4: {
        const std::size_t length = dice.below(std::min<std::size_t>(bytes.size() - at, 64) + 1);
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        break;
      }
      case 5: {
        const std::size_t length = dice.below(std::min<std::size_t>(bytes.size() - at, 64) + 1);
        const ByteVector piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                               bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(dice.below(bytes.size() + 1)),
                     piece.begin(), piece.end());
        break;
      }
      default:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::uint8_t>(dice.word()));
        break;
    }
  }
  return bytes;
}

/// `most(size)`: the tensor bytes that a file of that size may use.
void run(const std::vector<ByteVector>& seeds, const std::function<void(const ByteVector&)>& decode,
         const std::function<std::size_t(std::size_t)>& most,
         const std::function<void(ByteVector&)>& repair = {}) {
  Dice dice(2026);
  // Not the pool: a sanitizer checks the ends of blocks that come from the system.
  Allocator& own = system_allocator();
  const AllocatorScope scope(own);
  const std::size_t before = own.stats().live_bytes;
  int read = 0;
  int refused = 0;
  for (int i = 0; i < kInputs; ++i) {
    ByteVector bytes = mutate(seeds[static_cast<std::size_t>(i) % seeds.size()], dice);
    if (repair && dice.below(4) != 0) repair(bytes);
    bytes.shrink_to_fit();  // so that a sanitizer detects a read past the end
    own.reset_peak();
    try {
      decode(bytes);
      ++read;
    } catch (const IoError&) {
      ++refused;
    }
    ASSERT_LE(own.stats().peak_bytes - before, most(bytes.size())) << "input " << i;
    ASSERT_EQ(own.stats().live_bytes, before) << "input " << i;
  }
  // Neither nearly all refused nor nearly all accepted.
  EXPECT_GT(read, kInputs / 200);
  EXPECT_GT(refused, kInputs / 20);
}

TEST(Mutations, NO_TSAN_Idx) {
  ByteVector floats;
  for (int i = 0; i < 30; ++i) append_be32(floats, 0x3f800000U + static_cast<std::uint32_t>(i));
  run(
      {idx(8, {4, 5, 3}, ByteVector(60, 9)), idx(0x0D, {5, 6}, floats), idx(0x0E, {15}, floats),
       idx(8, {}, {1})},
      [](const ByteVector& bytes) { data::decode_idx(bytes); },
      [](std::size_t size) { return size; });
}

TEST(Mutations, NO_TSAN_IdxGzipped) {
  ByteVector mixed(3000);
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = static_cast<std::uint8_t>(i * i >> 5);
  run(
      {gzip(idx(8, {10, 300}, mixed)), gzip(idx(8, {20000}, ByteVector(20000))),
       gzip(idx(0x0B, {1500}, mixed))},
      [](const ByteVector& bytes) { data::decode_idx(bytes); },
      [](std::size_t size) { return 1032 * size + (std::size_t{1} << 16); });
}

TEST(Mutations, NO_TSAN_Csv) {
  const std::vector<ByteVector> seeds = {
      bytes_of("a,b,c\n1,2.5,3\n-4e3,5,6\n7,8,\"9\"\n"), bytes_of("1,2\r\n3,4\r\n\r\n5,nan\r\n"),
      bytes_of("\"x \"\"y\"\"\",\"l\ni\"\n1,2\n3,4\n"), gzip(bytes_of("1,2,3\n4,5,6\n"))};
  data::CsvOptions options;
  options.dtype = DType::Float64;
  options.missing = 0;
  run(
      seeds, [&](const ByteVector& bytes) { data::decode_csv(bytes, options); },
      // An empty field and its delimiter become eight bytes; these gzip badly here.
      [](std::size_t size) { return 16 * size + 4096; });
  options.label = "-1";
  run(
      seeds, [&](const ByteVector& bytes) { data::decode_csv(bytes, options); },
      [](std::size_t size) { return 16 * size + 4096; });
}

TEST(Mutations, NO_TSAN_Pnm) {
  run(
      {bytes_of("P2\n# c\n3 2\n255\n0 1 2\n253 254 255\n"),
       bytes_of("P5 4 4 255\nabcdefghijklmnop"), bytes_of("P3 2 1 1000 1 2 3 4 5 600"),
       bytes_of("P6 2 2 65535\nabcdefghijklmnopqrstuvwx")},
      [](const ByteVector& bytes) { data::decode_image(bytes); },
      [](std::size_t size) { return size; });
}

/// Corrects checksums, so that changes reach the code behind the checks.
void repair_png(ByteVector& bytes) {
  std::size_t at = 8;
  while (bytes.size() >= at + 12) {
    const std::size_t length = std::size_t{bytes[at]} << 24 | std::size_t{bytes[at + 1]} << 16 |
                               std::size_t{bytes[at + 2]} << 8 | bytes[at + 3];
    if (length > bytes.size() - at - 12) return;
    const auto sum =
        static_cast<std::uint32_t>(crc32(0, &bytes[at + 4], static_cast<uInt>(length + 4)));
    ByteVector word;
    append_be32(word, sum);
    std::copy(word.begin(), word.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(at + 8 + length));
    at += 12 + length;
  }
}

TEST(Mutations, NO_TSAN_Png) {
  std::vector<ByteVector> seeds;
  for (const PngCase& c : png_cases()) seeds.push_back(c.file);
  run(
      seeds, [](const ByteVector& bytes) { data::decode_image(bytes); },
      // A bit of a row may be a pixel of four bytes.
      [](std::size_t size) { return 32 * 1032 * size; }, repair_png);
}

}  // namespace
}  // namespace baregrad
