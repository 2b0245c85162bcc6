// npz.
#include "baregrad/error.h"
#include "baregrad/io.h"
#include "io/zip.h"
#include "tests/fuzz_files/check.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

namespace {
namespace npz {

constexpr std::size_t kMostRatio = 1032;  // the greatest ratio of deflate

int try_parse(std::span<const std::uint8_t> file) {
  NamedTensors parsed;
  try {
    const MemoryBound bound(memory_for(kMostRatio / 2 * file.size()));
    parsed = io::parse_npz(file);
  } catch (const IoError&) {
    return 0;
  }
  require_same(io::parse_npz(io::npz_bytes(parsed, io::NpzMode::Deflated)), parsed);
  return 1;
}

std::vector<Bytes> seeds() {
  const NamedTensors two = {{"a", Tensor::of<float>({1, 2, 3})},
                            {"folder/b", Tensor::of<std::int64_t>({7, 8})}};
  return {io::npz_bytes({}), io::npz_bytes(two), io::npz_bytes(two, io::NpzMode::Deflated),
          io::npz_bytes(one_of_each(false), io::NpzMode::Deflated)};
}

/// An archive of mutated arrays: a mutation of the archive would not match its checksums.
void repair(Bytes& file, Random& random) {
  const std::vector<Bytes> arrays = kNpy.seeds();
  const auto any = [&]() -> const Bytes& { return arrays[random() % arrays.size()]; };
  Bytes out;
  io::ZipWriter zip(
      [&](std::string_view part) { out.insert(out.end(), part.begin(), part.end()); });
  const std::uint64_t count = random() % 3;
  for (std::uint64_t i = 0; i < count; ++i) {
    Bytes array = any();
    mutate(array, any(), kNpy, random);
    const std::string_view text(reinterpret_cast<const char*>(array.data()), array.size());
    zip.add(std::string(random() % 4, 'a') + ".npy", array.size(), random() % 2 == 0,
            [&](const io::Sink& sink) { sink(text); });
  }
  zip.finish();
  file = std::move(out);
}

}  // namespace npz
}  // namespace

const Format kNpz = {"npz",
                     npz::try_parse,
                     npz::seeds,
                     {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "PK\6\7", "PK\7\10", ".npy", "a.npy",
                      "\xff\xff\xff\xff", std::string_view("\0\0\0\0", 4),
                      std::string_view("\1\0\20\0", 4), std::string_view("\10\0", 2)},
                     npz::repair};

}  // namespace baregrad::fuzz
