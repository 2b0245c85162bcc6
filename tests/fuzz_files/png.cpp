// PNG.
#include <zlib.h>

#include "baregrad/data_files.h"
#include "tests/fuzz_files/data_readers.h"

namespace baregrad::fuzz {

namespace {
namespace png {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

/// 1-bit samples become bytes, and palette entries three or four: up to 32 times what deflate can
/// hold.
int try_parse(std::span<const std::uint8_t> file) {
  return try_decode(file, 32 * kDeflate * file.size() + (256U << 10),
                    [](const auto& bytes) { return data::decode_png(bytes); });
}

void append_number(Bytes& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

void append_chunk(Bytes& out, std::string_view kind, const Bytes& content) {
  append_number(out, content.size());
  const std::size_t begin = out.size();
  out.insert(out.end(), kind.begin(), kind.end());
  out.insert(out.end(), content.begin(), content.end());
  append_number(out, crc32(0, out.data() + begin, static_cast<uInt>(out.size() - begin)));
}

Bytes image(std::uint8_t depth, std::uint8_t colour, bool interlaced) {
  Bytes header;
  append_number(header, 5);
  append_number(header, 4);
  header.insert(header.end(), {depth, colour, 0, 0, static_cast<std::uint8_t>(interlaced)});
  // Rows with one filter byte and one-byte pixels, an upper bound for every kind.
  Bytes raw(512, 1);
  constexpr int kChannels[] = {1, 0, 3, 1, 2, 0, 4};
  const std::size_t row = 1 + static_cast<std::size_t>((5 * depth * kChannels[colour] + 7) / 8);
  if (!interlaced) raw.resize(4 * row);
  uLongf length = compressBound(static_cast<uLong>(raw.size()));
  Bytes packed(length);
  compress(packed.data(), &length, raw.data(), static_cast<uLong>(raw.size()));
  packed.resize(length);
  Bytes file = bytes_of(kSignature);
  append_chunk(file, "IHDR", header);
  if (colour == 3) append_chunk(file, "PLTE", {0, 0, 0, 255, 0, 0});
  append_chunk(file, "IDAT", packed);
  append_chunk(file, "IEND", {});
  return file;
}

std::vector<Bytes> seeds() {
  return {image(8, 0, false), image(1, 0, false), image(16, 2, false),
          image(8, 6, false), image(2, 3, false), image(8, 4, false)};
}

/// Corrects the checksums of all chunks.
void repair(Bytes& file, Random&) {
  std::size_t at = kSignature.size();
  while (at + 12 <= file.size()) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | file[at + i];
    if (length > file.size() - at - 12) return;
    const uLong sum = crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i) {
      file[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    }
    at += 12 + length;
  }
}

}  // namespace png
}  // namespace

const Format kPng = {
    "png", png::try_parse, png::seeds, {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}, png::repair};

}  // namespace baregrad::fuzz
