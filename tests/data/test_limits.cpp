// Small files that unpack to large ones, and interrupted reads.
#include <cstdlib>
#include <string>

#include <sys/resource.h>

#include "baregrad/allocator.h"
#include "baregrad/parallel.h"
#include "tests/data/support.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::data {
namespace {

using namespace test;

/// Gzipped zeros, made without holding all of them in memory.
ByteVector gzip_of(const std::string& head, const std::string& unit, std::uint64_t times) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ByteVector out;
  const auto feed = [&](const std::string& text, int flush) {
    stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    do {
      std::uint8_t buffer[1 << 16];
      stream.next_out = buffer;
      stream.avail_out = sizeof buffer;
      deflate(&stream, flush);
      out.insert(out.end(), buffer, buffer + (sizeof buffer - stream.avail_out));
    } while (stream.avail_out == 0);
  };
  feed(head, Z_NO_FLUSH);
  std::string block;
  while (block.size() < (1U << 16)) block += unit;
  const std::uint64_t per_block = block.size() / unit.size();
  for (; times >= per_block; times -= per_block) feed(block, Z_NO_FLUSH);
  for (; times > 0; --times) feed(unit, Z_NO_FLUSH);
  feed("", Z_FINISH);
  deflateEnd(&stream);
  return out;
}

/// A deflate stream of zeros inside a PNG.
ByteVector png_of_zeros(std::uint32_t width, std::uint32_t height, std::uint8_t depth,
                        std::uint8_t colour, std::uint64_t row_bytes) {
  ByteVector header;
  append_be32(header, width);
  append_be32(header, height);
  append(header, {depth, colour, 0, 0, 0});
  const std::uint64_t total = height * (1 + row_bytes);
  z_stream stream{};
  EXPECT_EQ(deflateInit(&stream, 6), Z_OK);
  ByteVector packed;
  const ByteVector zeros(1 << 16);
  for (std::uint64_t left = total; left > 0;) {
    const auto piece = static_cast<uInt>(std::min<std::uint64_t>(left, zeros.size()));
    left -= piece;
    stream.next_in = const_cast<std::uint8_t*>(zeros.data());
    stream.avail_in = piece;
    do {
      std::uint8_t buffer[1 << 14];
      stream.next_out = buffer;
      stream.avail_out = sizeof buffer;
      deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
      packed.insert(packed.end(), buffer, buffer + (sizeof buffer - stream.avail_out));
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  ByteVector file = bytes_of("\x89PNG\r\n\x1a\n");
  append(file, png_chunk("IHDR", header));
  append(file, png_chunk("IDAT", packed));
  append(file, png_chunk("IEND", {}));
  return file;
}

constexpr const char* kLimit = "limit of 67108864 bytes";

TEST(Limits, APngThatDeclaresMore) {
  // 8192 x 8193 one-bit pixels: 8.2 KB of file, slightly more than 64 MiB in memory.
  const ByteVector file = png_of_zeros(8192, 8193, 1, 0, 1024);
  EXPECT_LT(file.size(), 20'000U);
  expect_error<IoError>([&] { decode_png(file); }, kLimit);
  expect_error<IoError>([&] { decode_image(file); }, "max_bytes");
  expect_error<IoError>([&] { decode_png(file, 8192 * 8193 - 1); }, "limit of 67117055 bytes");
  EXPECT_EQ(decode_png(file, 8192 * 8193).shape(), (Dims{1, 8193, 8192}));
  const TemporaryFolder folder;
  write_file(folder.file("x.png"), file);
  expect_error<IoError>([&] { read_image(folder.file("x.png")); }, kLimit);
  EXPECT_EQ(read_image(folder.file("x.png"), 1U << 30).numel(), 8192 * 8193);
}

TEST(Limits, WhatIsWithinThemIsRead) {
  EXPECT_EQ(decode_png(png_of_zeros(8192, 8192, 1, 0, 1024)).numel(), 8192 * 8192);
  EXPECT_EQ(decode_idx(gzip_of(std::string("\0\0\x08\x01\x04\0\0\0", 8), std::string(1, '\0'),
                               std::uint64_t{64} << 20))
                .numel(),
            std::int64_t{64} << 20);
}

TEST(Limits, GzipInsideOfGzipInsideOfAnImage) {
  // The limit depends on the outermost file.
  const ByteVector image = png_of_zeros(8192, 8193, 1, 0, 1024);
  const ByteVector packed = gzip(image);
  EXPECT_LT(packed.size(), image.size());
  const TemporaryFolder folder;
  write_file(folder.file("x.png.gz"), packed);
  expect_error<IoError>([&] { read_image(folder.file("x.png.gz")); }, kLimit);
}

TEST(Limits, AGzipThatUnpacksToMore) {
  const std::uint64_t much = (std::uint64_t{65} << 20) + 1;
  const ByteVector csv = gzip_of("", "1,2\n", much / 4 + 1);
  EXPECT_LT(csv.size(), 200'000U);
  expect_error<IoError>([&] { decode_csv(csv); }, kLimit);
  expect_error<IoError>([&] { decode_csv(csv, {.max_bytes = 100'000}); }, "limit of 100000 bytes");
  const ByteVector small = gzip_of("", "1,2\n", 50'000);
  expect_error<IoError>([&] { decode_csv(small, {.max_bytes = 399'999}); },
                        "holds 50000 x 2 values, 400000 bytes in memory, more than the limit");
  EXPECT_EQ(decode_csv(small, {.max_bytes = 400'000}).values.numel(), 100'000);
  // One line of many fields: names and values would take sixteen times the size of the text.
  expect_error<IoError>([&] { decode_csv(gzip_of("a", ",b", much / 2)); }, kLimit);
  const ByteVector idx =
      gzip_of(std::string("\0\0\x08\x01\x04\x10\0\x01", 8), std::string(1, '\0'), much);
  expect_error<IoError>([&] { decode_idx(idx); }, "declares uint8[68157441], 68157441 bytes, more");
  EXPECT_EQ(decode_idx(idx, much).numel(), static_cast<std::int64_t>(much));
  const ByteVector pnm = gzip_of("P5 68157441 1 255\n", std::string(1, '\0'), much);
  const TemporaryFolder folder;
  write_file(folder.file("x.pgm.gz"), pnm);
  expect_error<IoError>([&] { read_image(folder.file("x.pgm.gz")); }, kLimit);
}

TEST(Paths, EndWhereTheyEnd) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.pgm");
  write_file(path, bytes_of("P5 1 1 255\n1"));
  EXPECT_EQ(read_image(path).numel(), 1);
  const std::string longer = path + std::string("\0.png", 5);
  expect_error<IoError>([&] { read_image(longer); }, "x.pgm\\x00.png': cannot be opened");
  expect_error<IoError>([&] { read_csv(longer); }, "NUL");
  expect_error<IoError>([&] { read_idx(longer); }, "NUL");
}

TEST(Limits, TheFilesOwnSizeCounts) {
  // A plain file is never too large for its own limit: values of float64 are four times the text.
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "1,1,1,1\n";
  EXPECT_EQ(decode_csv(bytes_of(text), {.dtype = DType::Float64}).values.numel(), 400'000);
}

TEST(Limits, NamesOfColumnsAndClassesAreCounted) {
  std::string header(2 << 20, ',');
  for (std::size_t i = 0; i < header.size(); i += 2) header[i] = 'a';
  const std::string names = header + "a";  // 2^20 + 1 of them
  expect_error<IoError>([&] { decode_csv(bytes_of(names + "\n" + names)); }, "1048577 columns");
  header.pop_back();
  EXPECT_EQ(decode_csv(bytes_of(header), {.header = true}).columns.size(), std::size_t{1} << 20);
  std::string numbers = names;
  for (char& c : numbers) c = c == 'a' ? '1' : c;
  EXPECT_EQ(decode_csv(bytes_of(numbers)).values.numel(), (1 << 20) + 1);

  std::string classes;
  for (int i = 0; i <= 1 << 18; ++i) classes += "1,c" + std::to_string(i) + "\n";
  expect_error<IoError>([&] { decode_csv(bytes_of(classes), {.header = false, .label = "1"}); },
                        "line 262145: the label column has more than 262144 different texts");
}

/// The kernel sees the peak of memory from tensors and from `new` together.
std::size_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss);
}

TEST(Limits, MemoryFollowsTheFile) {
  // 8 MiB of text each. Once, labels and names were stored as one string per field: 32 bytes for
  // two.
  std::string rows;
  while (rows.size() < (8U << 20)) rows += "1,a\n";
  std::string line;
  while (line.size() < (8U << 20)) line += "1,";
  line += "1\n";
  const ByteVector tall = bytes_of(rows);
  const ByteVector wide = bytes_of(line);
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kShadow = 3;  // of each byte, and freed memory is kept
#else
  constexpr std::size_t kShadow = 1;
#endif
  constexpr std::size_t kMostKib = kShadow * (2 * 8 + 64) << 10U;  // of one file
  std::size_t before = peak_kib();
  EXPECT_EQ(decode_csv(tall, {.header = false, .label = "1"}).classes.size(), 1U);
  EXPECT_LT(peak_kib() - before, kMostKib);
  before = peak_kib();
  EXPECT_EQ(decode_csv(wide).values.shape()[0], 1);
  EXPECT_LT(peak_kib() - before, kMostKib);
}

struct Stop {};
constinit int g_asked = 0;
void stop_at_second() {
  if (++g_asked == 2) throw Stop();
}

/// Long reads poll for interrupts, and stop when told to.
class Interrupted : public testing::Test {
 protected:
  void TearDown() override { set_interrupt_check(nullptr); }
};

TEST_F(Interrupted, EveryReader) {
  const std::uint64_t much = std::uint64_t{1} << 26;
  const ByteVector csv = gzip_of("", "1.5,2.25\n", much / 9);
  const ByteVector idx =
      gzip_of(std::string("\0\0\x0e\x01\0\x80\0\0", 8), std::string(1, '\0'), much);
  const ByteVector png = png_of_zeros(1 << 12, 1 << 14, 8, 0, 1 << 12);
  const ByteVector pnm = gzip_of("P2 8192 4096 255\n", "0 ", much / 2);
  const TemporaryFolder folder;
  write_file(folder.file("x.pgm.gz"), pnm);
  const auto check = [](const auto& read) {
    g_asked = 0;
    set_interrupt_check(&stop_at_second);
    EXPECT_THROW(read(), Stop);
    EXPECT_EQ(g_asked, 2);
    set_interrupt_check(nullptr);
  };
  check([&] { decode_csv(csv, {.max_bytes = much}); });
  check([&] { decode_idx(idx, 8 * much); });
  check([&] { decode_png(png, much); });
  check([&] { read_image(folder.file("x.pgm.gz"), much); });
}

}  // namespace
}  // namespace baregrad::data
