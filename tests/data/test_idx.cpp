// IDX files: every dtype, gzip, and every kind of error.
#include <cstring>

#include "tests/data/support.h"
#include "tests/io/temporary_folder.h"

namespace baregrad {
namespace {

using data::decode_idx;
using data::read_idx;
using namespace test;

void expect_idx_refused(const ByteVector& bytes, std::string_view part) {
  expect_error<IoError>([&] { decode_idx(bytes); }, part);
}

TEST(Idx, EveryDtypeIsReadFromBigEndian) {
  // numpy: np.array([...], '>i2').tobytes() and so on.
  const Tensor u8 = decode_idx(idx(0x08, {2, 3}, {0, 1, 2, 253, 254, 255}));
  EXPECT_EQ(u8.shape(), Dims({2, 3}));
  EXPECT_EQ(u8.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 1, 2, 253, 254, 255}));
  const Tensor i8 = decode_idx(idx(0x09, {2}, {0x80, 0x7f}));
  EXPECT_EQ(i8.to_vector<std::int8_t>(), (std::vector<std::int8_t>{-128, 127}));
  const Tensor i16 = decode_idx(idx(0x0B, {3}, {0x80, 0x00, 0x01, 0x02, 0xff, 0xff}));
  EXPECT_EQ(i16.to_vector<std::int16_t>(), (std::vector<std::int16_t>{-32768, 258, -1}));
  const Tensor i32 =
      decode_idx(idx(0x0C, {1, 2}, {0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xfe}));
  EXPECT_EQ(i32.to_vector<std::int32_t>(), (std::vector<std::int32_t>{16909060, -2}));
  const Tensor f32 = decode_idx(idx(0x0D, {2}, {0x3f, 0x80, 0x00, 0x00, 0xc0, 0x49, 0x0f, 0xdb}));
  EXPECT_EQ(f32.to_vector<float>(), (std::vector<float>{1.0F, -3.14159274F}));
  const Tensor f64 = decode_idx(idx(0x0E, {1}, {0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18}));
  EXPECT_EQ(f64.to_vector<double>(), (std::vector<double>{3.141592653589793}));
}

TEST(Idx, NoAxesIsOneElementAndAnEmptyAxisIsNone) {
  EXPECT_EQ(decode_idx(idx(0x08, {}, {7})).item<int>(), 7);
  EXPECT_EQ(decode_idx(idx(0x08, {}, {7})).ndim(), 0);
  EXPECT_EQ(decode_idx(idx(0x0E, {3, 0, 2}, {})).shape(), Dims({3, 0, 2}));
}

TEST(Idx, GzippedInOneOrSeveralMembersAndPadded) {
  const ByteVector plain = idx(0x08, {5}, {1, 2, 3, 4, 5});
  const std::vector<std::uint8_t> expected = {1, 2, 3, 4, 5};
  EXPECT_EQ(decode_idx(gzip(plain)).to_vector<std::uint8_t>(), expected);
  ByteVector members = gzip({plain.begin(), plain.begin() + 6});
  append(members, gzip({plain.begin() + 6, plain.end()}));
  EXPECT_EQ(decode_idx(members).to_vector<std::uint8_t>(), expected);
  append(members, ByteVector(300, 0));
  EXPECT_EQ(decode_idx(members).to_vector<std::uint8_t>(), expected);
}

TEST(Idx, FromAFilePlainAndGzipped) {
  const TemporaryFolder folder;
  // Larger than the buffers of the reader.
  ByteVector elements(300000);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
  }
  const ByteVector plain = idx(0x08, {300, 1000}, elements);
  write_file(folder.file("plain"), plain);
  write_file(folder.file("packed"), gzip(plain));
  EXPECT_EQ(read_idx(folder.file("plain")).to_vector<std::uint8_t>(), elements);
  EXPECT_EQ(read_idx(folder.file("packed")).to_vector<std::uint8_t>(), elements);
}

TEST(Idx, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = folder.file("missing");
  expect_error<IoError>([&] { read_idx(missing); },
                        "read_idx: '" + missing + "': cannot be opened");
  expect_error<IoError>([&] { read_idx(folder.file("")); }, "is a folder");
  expect_error<IoError>([&] { read_idx("/dev/null"); }, "is not a plain file");
  write_file(folder.file("short"), {0, 0, 8});
  expect_error<IoError>([&] { read_idx(folder.file("short")); },
                        "short': ends early: 3 of 4 bytes of the header");
}

TEST(Idx, HostileHeadersAreNamed) {
  expect_idx_refused({}, "decode_idx: ends early: 0 of 4 bytes of the header");
  expect_idx_refused({0, 0, 8, 2, 0, 0, 0, 1}, "ends early: 0 of 4 bytes of the header");
  expect_idx_refused(idx(0x0A, {1}, {0}), "is no IDX file: begins with 0 0 10 1");
  expect_idx_refused({0, 1, 8, 1, 0, 0, 0, 1, 0}, "is no IDX file: begins with 0 1 8 1");
  expect_idx_refused({1, 0, 8, 1, 0, 0, 0, 1, 0}, "is no IDX file: begins with 1 0 8 1");
  ByteVector many = {0, 0, 8, 17};
  for (int i = 0; i < 17; ++i) append_be32(many, 1);
  expect_idx_refused(many, "has 17 axes, at most 16");
  expect_idx_refused(idx(0x08, {1000, 1000}, {1, 2, 3}),
                     "declares uint8[1000,1000], 1000000 bytes, but cannot hold more than 3");
  // 2^32 - 1 four times: the product overflows 64 bits.
  expect_idx_refused(idx(0x0E, {~0U, ~0U, ~0U, ~0U}, {1}), "more bytes than an address can count");
  expect_idx_refused(idx(0x08, {2}, {1}),
                     "declares uint8[2], 2 bytes, but cannot hold more than 1");
  expect_idx_refused(idx(0x08, {2}, {1, 2, 3}), "has bytes after the elements of uint8[2]");
}

TEST(Idx, HostileGzipIsNamed) {
  const ByteVector good = gzip(idx(0x08, {2000}, ByteVector(2000, 9)));
  expect_idx_refused({good.begin(), good.end() - 9}, "ends in the middle of the compressed data");
  ByteVector wrong_sum = good;
  wrong_sum[wrong_sum.size() - 5] ^= 1U;
  expect_idx_refused(wrong_sum, "is not validly compressed: incorrect data check");
  ByteVector trailing = good;
  append(trailing, {1, 2, 3});
  expect_idx_refused(trailing, "has other bytes after the compressed data");
  expect_idx_refused({0x1f, 0x8b, 7, 0}, "is not validly compressed");
  // A header that promises more than 1032 bytes for each byte that follows.
  expect_idx_refused(gzip(idx(0x08, {100000000}, {1})), "declares uint8[100000000]");
  // A valid stream that is shorter than its header says.
  expect_idx_refused(gzip(idx(0x08, {5000}, {1})), "ends early: 1 of 5000 bytes of the elements");
}

}  // namespace
}  // namespace baregrad
