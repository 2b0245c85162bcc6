// IDX, the format of MNIST.
#include "baregrad/data_files.h"
#include "tests/fuzz_files/data_readers.h"

namespace baregrad::fuzz {

namespace {
namespace idx {

int try_parse(std::span<const std::uint8_t> file) {
  return try_decode(file, kDeflate * file.size() + (64U << 10),
                    [](const auto& bytes) { return data::decode_idx(bytes); });
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> out;
  // Two axes of 2 and 3, in every dtype of the format.
  constexpr std::uint8_t kTypes[][2] = {{8, 1}, {9, 1}, {11, 2}, {12, 4}, {13, 4}, {14, 8}};
  for (const auto& [type, width] : kTypes) {
    Bytes file = {0, 0, type, 2, 0, 0, 0, 2, 0, 0, 0, 3};
    for (int i = 0; i < 6 * width; ++i) file.push_back(static_cast<std::uint8_t>(i));
    out.push_back(std::move(file));
  }
  return out;
}

}  // namespace idx
}  // namespace

const Format kIdx = {"idx", idx::try_parse, idx::seeds, {"\x1f\x8b", "\x08", "\x0d", "\x0e"}};

}  // namespace baregrad::fuzz
