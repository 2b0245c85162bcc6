// Gzipped IDX and CSV files, which their readers unpack.
#include <zlib.h>

#include "baregrad/data_files.h"
#include "tests/fuzz_files/data_readers.h"

namespace baregrad::fuzz {

namespace {
namespace gzip {

Bytes packed(const Bytes& plain) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  require(deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no memory");
  Bytes out(deflateBound(&stream, static_cast<uLong>(plain.size())));
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "cannot compress");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

int try_parse(std::span<const std::uint8_t> file) {
  // The decompressor's window and buffers come on top.
  const std::size_t most = kDeflate * 16 * file.size() + (128U << 10);
  const int idx = try_decode(file, most, [](const auto& bytes) { return data::decode_idx(bytes); });
  const int csv = try_decode(file, most, [](const auto& bytes) {
    return data::decode_csv(bytes, {.missing = 0.0, .label = "-1"}).values;
  });
  return idx != 0 || csv != 0 ? 1 : 0;
}

std::vector<Bytes> plain_seeds() {
  std::vector<Bytes> all = kIdx.seeds();
  for (Bytes& text : kCsv.seeds()) all.push_back(std::move(text));
  return all;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> out;
  for (const Bytes& plain : plain_seeds()) out.push_back(packed(plain));
  // Two members, as `cat a.gz b.gz` makes them, and padding.
  Bytes two = packed(bytes_of("1,2\n"));
  const Bytes more = packed(bytes_of("3,4\n"));
  two.insert(two.end(), more.begin(), more.end());
  two.resize(two.size() + 7);
  out.push_back(std::move(two));
  return out;
}

/// Gzips mutated contents: a mutation of the gzip file would not match its checksum.
void repair(Bytes& file, Random& random) {
  const std::vector<Bytes> plain = plain_seeds();
  const bool is_csv = random() % 2 == 0;
  const std::size_t first = is_csv ? kIdx.seeds().size() : 0;
  const std::size_t count = is_csv ? plain.size() - first : kIdx.seeds().size();
  Bytes inner = plain[first + random() % count];
  mutate(inner, plain[first + random() % count], is_csv ? kCsv : kIdx, random);
  file = packed(inner);
}

}  // namespace gzip
}  // namespace

const Format kGzip = {
    "gzip", gzip::try_parse, gzip::seeds, {"\x1f\x8b\x08", "\x03", "\xff\xff"}, gzip::repair};

}  // namespace baregrad::fuzz
