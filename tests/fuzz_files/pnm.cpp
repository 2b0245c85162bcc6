// PGM and PPM.
#include "baregrad/data_files.h"
#include "tests/fuzz_files/data_readers.h"

namespace baregrad::fuzz {

namespace {
namespace pnm {

/// A sample in text form takes two bytes and becomes at most two.
int try_parse(std::span<const std::uint8_t> file) {
  return try_decode(file, memory_for(file.size()),
                    [](const auto& bytes) { return data::decode_pnm(bytes); });
}

std::vector<Bytes> seeds() {
  return {bytes_of("P2\n# a comment\n3 2\n255\n0 1 2\n3 4 255\n"),
          bytes_of("P3 1 2 65535 1 2 3 4 5 65535\n"), bytes_of("P5 3 2 255\nabcdef"),
          bytes_of("P6 1 1 1023\n\1\2\1\2\1\2")};
}

}  // namespace pnm
}  // namespace

const Format kPnm = {
    "pnm", pnm::try_parse, pnm::seeds, {"P2", "P3", "P5", "P6", " ", "\n", "#", "65535", "0"}};

}  // namespace baregrad::fuzz
