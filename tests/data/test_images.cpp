// PGM, PPM and PNG: every kind compared with known pixels, and invalid images.
#include <cstring>

#include "tests/data/support.h"
#include "tests/io/temporary_folder.h"

namespace baregrad {
namespace {

using data::decode_image;
using data::decode_png;
using data::decode_pnm;
using namespace test;

std::vector<std::uint8_t> pixels8(const Tensor& image) { return image.to_vector<std::uint8_t>(); }

void expect_image_refused(const ByteVector& bytes, std::string_view part) {
  expect_error<IoError>([&] { decode_image(bytes); }, part);
}
void expect_image_refused(std::string_view text, std::string_view part) {
  expect_image_refused(bytes_of(text), part);
}

// ---- PGM and PPM

TEST(Pnm, TextAndBytesOfGrayAndColour) {
  const Tensor p2 =
      decode_pnm(bytes_of("P2\n# a comment\n3 2 # another\n255\n0 1 2\n253 254 255\n"));
  EXPECT_EQ(p2.shape(), Dims({1, 2, 3}));
  EXPECT_EQ(pixels8(p2), (ByteVector{0, 1, 2, 253, 254, 255}));
  const Tensor p5 = decode_pnm(bytes_of("P5 3 2 255\nabcdef"));
  EXPECT_EQ(pixels8(p5), (ByteVector{'a', 'b', 'c', 'd', 'e', 'f'}));
  const Tensor p3 = decode_pnm(bytes_of("P3\n2 1\n255\n1 2 3 4 5 6"));
  EXPECT_EQ(p3.shape(), Dims({3, 1, 2}));
  EXPECT_EQ(pixels8(p3), (ByteVector{1, 4, 2, 5, 3, 6}));
  const Tensor p6 = decode_pnm(bytes_of("P6\n2 1\n255\nabcdef"));
  EXPECT_EQ(pixels8(p6), (ByteVector{'a', 'd', 'b', 'e', 'c', 'f'}));
}

TEST(Pnm, SamplesAreScaledToTheFullRange) {
  EXPECT_EQ(pixels8(decode_pnm(bytes_of("P2 4 1 15 0 1 8 15"))), (ByteVector{0, 17, 136, 255}));
  EXPECT_EQ(pixels8(decode_pnm(bytes_of("P2 3 1 100 0 50 100"))), (ByteVector{0, 128, 255}));
  ByteVector deep = bytes_of("P5 3 1 65535\n");
  append(deep, {0x01, 0x02, 0xff, 0xff, 0x00, 0x00});
  EXPECT_EQ(decode_pnm(deep).to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{258, 65535, 0}));
  EXPECT_EQ(decode_pnm(bytes_of("P2 3 1 1000 0 500 1000")).to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{0, 32768, 65535}));
}

TEST(Pnm, WhatIsWrongIsNamed) {
  expect_image_refused("P4 1 1 1", "is no PGM or PPM image");
  expect_image_refused("P", "neither PNG nor PGM or PPM");
  expect_error<IoError>([] { decode_pnm({}); }, "decode_pnm: is no PGM or PPM image");
  expect_image_refused("P5", "ends before the width");
  expect_image_refused("P5 3 # no end", "ends before the height");
  expect_image_refused("P5 3 -2 255\nabcdef", "has byte 45 at 5 instead of the height");
  expect_image_refused("P5 99999999999999999999 1 255\n", "has a width above 268435456");
  expect_image_refused("P5 1 1 65536\n", "has a maxval above 65535");
  expect_image_refused("P5 0 1 255\n", "declares 0 x 1 pixels up to 255: none may be 0");
  expect_image_refused("P5 1 1 0\na", "declares 1 x 1 pixels up to 0");
  expect_image_refused("P5 100000 100000 255\n",
                       "declares 100000 x 100000 pixels, more than 268435456");
  expect_image_refused("P5 3 2 255", "has no white space after the header");
  expect_image_refused("P5 3 2 255\nabcde", "take at least 6 bytes, but holds 5");
  expect_image_refused("P5 3 2 256\nabcdefghijk", "take at least 12 bytes, but holds 11");
  expect_image_refused("P2 1000 1000 255\n1 2 3", "take at least 2000000 bytes, but holds 6");
  expect_image_refused("P2 2 1 255 100000", "has a sample above 255");
  expect_image_refused("P2 2 1 255 1  x  ", "instead of the sample");
  expect_image_refused("P2 2 1 255 10    ", "ends before the sample");
  expect_image_refused("P5 1 1 99\nz", "has a sample of 122, above its maxval 99");
}

// ---- PNG

TEST(Png, EveryKindGivesItsPixels) {
  const std::vector<PngCase> cases = png_cases();
  ASSERT_EQ(cases.size(), 40U);
  for (const PngCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor image = decode_png(c.file);
    EXPECT_EQ(name(image.dtype()), c.dtype);
    ASSERT_EQ(image.shape(), Dims({c.channels, c.height, c.width}));
    ASSERT_EQ(image.nbytes(), c.pixels.size());
    EXPECT_EQ(std::memcmp(image.data_ptr(), c.pixels.data(), c.pixels.size()), 0);
  }
}

/// A PNG with the given header and chunks, and IEND.
ByteVector png(const ByteVector& header, const std::vector<ByteVector>& chunks) {
  ByteVector file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append(file, png_chunk("IHDR", header));
  for (const ByteVector& chunk : chunks) append(file, chunk);
  append(file, png_chunk("IEND", {}));
  return file;
}
ByteVector header(std::uint32_t width, std::uint32_t height, std::uint8_t depth = 8,
                  std::uint8_t colour = 0) {
  ByteVector body;
  append_be32(body, width);
  append_be32(body, height);
  append(body, {depth, colour, 0, 0, 0});
  return body;
}
ByteVector idat(const ByteVector& rows) {
  ByteVector packed(compressBound(rows.size()));
  uLongf size = packed.size();
  EXPECT_EQ(compress(packed.data(), &size, rows.data(), rows.size()), Z_OK);
  packed.resize(size);
  return png_chunk("IDAT", packed);
}

TEST(Png, AHandMadeOneIsRead) {
  const Tensor image = decode_image(png(header(2, 2), {idat({0, 1, 2, 0, 3, 4})}));
  EXPECT_EQ(pixels8(image), (ByteVector{1, 2, 3, 4}));
}

TEST(Png, OnlyTheWholeKeyIsTransparent) {
  const ByteVector key = png_chunk("tRNS", {0, 1, 0, 2, 0, 3});
  const ByteVector rows = {0, 1, 2, 3, 9, 2, 3, 1, 9, 3, 1, 2, 9};
  const Tensor image = decode_png(png(header(4, 1, 8, 2), {key, idat(rows)}));
  EXPECT_EQ(pixels8(image[3]), (ByteVector{0, 255, 255, 255}));
}

TEST(Png, WrongHeadersAreNamed) {
  const ByteVector data = idat({0, 1, 2, 0, 3, 4});
  const auto with = [&](std::size_t at, std::uint8_t value) {
    ByteVector body = header(2, 2);
    body[at] = value;
    return png(body, {data});
  };
  expect_image_refused({0x89, 'P', 'N', 'G'}, "is no PNG image");
  expect_image_refused(with(8, 3), "has 3 bits of colour type 0");
  expect_image_refused(with(9, 1), "has 8 bits of colour type 1");
  expect_image_refused(with(9, 7), "has 8 bits of colour type 7");
  expect_image_refused(png(header(2, 2, 16, 3), {data}), "has 16 bits of colour type 3");
  expect_image_refused(png(header(2, 2, 4, 2), {data}), "has 4 bits of colour type 2");
  expect_image_refused(with(10, 1), "uses compression 1");
  expect_image_refused(with(11, 1), "filter 1");
  expect_image_refused(with(12, 2), "interlace 2");
  expect_image_refused(png(header(0, 2), {data}), "declares 0 x 2 pixels");
  expect_image_refused(png(header(~0U, ~0U), {data}),
                       "declares 4294967295 x 4294967295 pixels; takes 1 to");
  expect_image_refused(png(header(16000, 16000), {data}), "which cannot be compressed to");
  ByteVector long_header = header(2, 2);
  long_header.push_back(0);
  expect_image_refused(png(long_header, {data}), "has an IHDR chunk of 14 bytes, needs 13");
}

TEST(Png, WrongChunksAreNamed) {
  const ByteVector data = idat({0, 1, 2, 0, 3, 4});
  const ByteVector good = png(header(2, 2), {data});
  expect_image_refused({good.begin(), good.end() - 1}, "ends before the IEND chunk");
  expect_image_refused({good.begin(), good.end() - 12}, "ends before the IEND chunk");
  ByteVector flipped = good;
  flipped[20] ^= 1U;
  expect_image_refused(flipped, "has a chunk IHDR with a wrong checksum");
  ByteVector endless = good;
  endless[8] = 0xff;
  expect_image_refused(endless, "has a chunk IHDR of 4278190093 bytes, but only");
  ByteVector no_header = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append(no_header, data);
  expect_image_refused(no_header, "does not begin with an IHDR chunk");
  expect_image_refused(png(header(2, 2), {}), "has no IDAT chunk");
  expect_image_refused(png(header(2, 2), {png_chunk("ABCD", {}), data}),
                       "has a chunk ABCD that is not known");
  expect_image_refused(png(header(2, 2), {data, png_chunk("tEXt", {}), data}),
                       "has IDAT chunks with others in between");
  expect_image_refused(png(header(2, 2, 8, 3), {data}), "has no palette");
  const ByteVector palette = png_chunk("PLTE", ByteVector(6, 9));
  expect_image_refused(png(header(2, 2, 8, 3), {png_chunk("PLTE", ByteVector(7, 9)), data}),
                       "has a second palette, or one of 7 bytes");
  expect_image_refused(png(header(2, 2, 8, 3), {png_chunk("PLTE", {}), data}), "or one of 0 bytes");
  expect_image_refused(png(header(2, 2, 8, 3), {png_chunk("PLTE", ByteVector(771, 9)), data}),
                       "or one of 771 bytes");
  expect_image_refused(png(header(2, 2, 8, 3), {palette, palette, data}), "has a second palette");
  expect_image_refused(png(header(2, 2, 8, 3), {palette, data}), "has colour 2 of a palette of 2");
  expect_image_refused(png(header(2, 2), {data, palette}), "has a PLTE chunk after the pixels");
  expect_image_refused(png(header(2, 2), {png_chunk("tRNS", {1}), data}),
                       "has a tRNS chunk of 1 bytes");
  expect_image_refused(png(header(2, 2, 8, 3), {palette, png_chunk("tRNS", {1, 2, 3}), data}),
                       "has a tRNS chunk of 3 bytes");
  expect_image_refused(png(header(1, 1, 8, 4), {png_chunk("tRNS", {1, 2}), data}),
                       "has a tRNS chunk of 2 bytes");
}

TEST(Png, WrongPixelsAreNamed) {
  expect_image_refused(png(header(2, 2), {idat({0, 1, 2, 5, 3, 4})}), "has a row with filter 5");
  expect_image_refused(png(header(2, 2), {idat({0, 1, 2, 0, 3})}),
                       "ends early: 1 of 2 bytes of the pixels");
  expect_image_refused(png(header(2, 2), {idat({0, 1, 2, 0, 3, 4, 5})}),
                       "holds more pixels than it declares");
  ByteVector packed(64);
  uLongf size = packed.size();
  const ByteVector rows = {0, 1, 2, 0, 3, 4};
  ASSERT_EQ(compress(packed.data(), &size, rows.data(), rows.size()), Z_OK);
  packed.resize(size);
  ByteVector wrong_sum = packed;
  wrong_sum.back() ^= 1U;
  expect_image_refused(png(header(2, 2), {png_chunk("IDAT", wrong_sum)}),
                       "is not validly compressed");
  expect_image_refused(png(header(2, 2), {png_chunk("IDAT", {packed.begin(), packed.end() - 4})}),
                       "ends in the middle of the compressed data");
  append(packed, {0x1f, 0x8b});  // not a gzip file, where another member may follow
  expect_image_refused(png(header(2, 2), {png_chunk("IDAT", packed)}),
                       "has other bytes after the compressed data");
}

TEST(Images, FromFilesByTheirContents) {
  const TemporaryFolder folder;
  write_file(folder.file("a.txt"), png(header(1, 1), {idat({0, 77})}));
  write_file(folder.file("b.png"), bytes_of("P2 1 1 255 66"));
  write_file(folder.file("c"), bytes_of("GIF89a"));
  EXPECT_EQ(data::read_image(folder.file("a.txt")).item<int>(), 77);
  EXPECT_EQ(data::read_image(folder.file("b.png")).item<int>(), 66);
  expect_error<IoError>([&] { data::read_image(folder.file("c")); },
                        "read_image: '" + folder.file("c") + "': is no image that can be read");
  expect_error<IoError>([&] { data::read_image(folder.file("d")); }, "cannot be opened");
}

}  // namespace
}  // namespace baregrad
