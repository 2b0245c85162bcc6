// Helpers for data tests: bytes, gzip, expected errors.
#pragma once

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include <gtest/gtest.h>

#include "baregrad/data_files.h"
#include "baregrad/error.h"

namespace baregrad::test {

using ByteVector = std::vector<std::uint8_t>;

inline ByteVector bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

inline void append(ByteVector& to, const ByteVector& more) {
  to.insert(to.end(), more.begin(), more.end());
}
inline void append_be32(ByteVector& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.push_back(static_cast<std::uint8_t>(value >> shift));
}

inline ByteVector idx(std::uint8_t code, std::initializer_list<std::uint32_t> shape,
                      const ByteVector& elements) {
  ByteVector bytes = {0, 0, code, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint32_t size : shape) append_be32(bytes, size);
  append(bytes, elements);
  return bytes;
}

inline ByteVector gzip(const ByteVector& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ByteVector out(deflateBound(&stream, plain.size()));
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline ByteVector png_chunk(std::string_view type, const ByteVector& body) {
  ByteVector chunk;
  append_be32(chunk, static_cast<std::uint32_t>(body.size()));
  ByteVector summed = bytes_of(type);
  append(summed, body);
  append(chunk, summed);
  append_be32(
      chunk, static_cast<std::uint32_t>(crc32(0, summed.data(), static_cast<uInt>(summed.size()))));
  return chunk;
}

inline ByteVector from_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  ByteVector bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
  }
  return bytes;
}

inline void write_file(const std::string& path, const ByteVector& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// Files of png_cases.txt, which make_png_cases.py writes.
struct PngCase {
  std::string name;
  std::string dtype;
  std::int64_t channels = 0, height = 0, width = 0;
  ByteVector file;
  ByteVector pixels;
};

inline std::vector<PngCase> png_cases() {
  std::ifstream in(BAREGRAD_TEST_DIR "/data/png_cases.txt");
  std::vector<PngCase> cases;
  PngCase c;
  std::string file;
  std::string pixels;
  while (in >> c.name >> c.dtype >> c.channels >> c.height >> c.width >> file >> pixels) {
    c.file = from_hex(file);
    c.pixels = from_hex(pixels);
    cases.push_back(c);
  }
  return cases;
}

/// `act` must throw an E whose message contains `part`.
template <class E, class F>
void expect_error(const F& act, std::string_view part) {
  try {
    act();
    ADD_FAILURE() << "nothing thrown, expected: " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos)
        << "message: " << e.what() << "\nexpected: " << part;
  }
}

}  // namespace baregrad::test
