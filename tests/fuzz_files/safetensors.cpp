// safetensors.
#include "baregrad/error.h"
#include "baregrad/io.h"
#include "tests/fuzz_files/check.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

namespace {
namespace safetensors {

int try_parse(std::span<const std::uint8_t> file) {
  io::SafeTensors parsed;
  try {
    const MemoryBound bound(memory_for(file.size()));
    parsed = io::parse_safetensors(file);
  } catch (const IoError&) {
    return 0;
  }
  const io::SafeTensors again =
      io::parse_safetensors(io::safetensors_bytes(parsed.tensors, parsed.metadata));
  require(again.metadata == parsed.metadata, "the metadata changed when written and read again");
  require_same(again.tensors, parsed.tensors);
  return 1;
}

std::vector<Bytes> seeds() {
  return {io::safetensors_bytes({}),
          io::safetensors_bytes(one_of_each(true), {{"key", "value"}, {"\xc3\xa9", "\n"}}),
          io::safetensors_bytes(
              {{"model.weight", Tensor::of<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3})},
               {"model.bias", Tensor::of<float>({1, 2})},
               {"empty", Tensor::allocate({0, 4}, float16, "seeds")}})};
}

/// The header's length, up to the last '}' of the file.
void repair(Bytes& file, Random&) {
  std::size_t end = file.size();
  while (end > 8 && file[end - 1] != '}') --end;
  if (end <= 8) return;
  for (std::size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(end - 8) >> (8 * i));
  }
}

}  // namespace safetensors
}  // namespace

const Format kSafetensors = {"safetensors",
                             safetensors::try_parse,
                             safetensors::seeds,
                             {"{",
                              "}",
                              "[",
                              "]",
                              ":",
                              ",",
                              "\"",
                              "\"dtype\"",
                              "\"shape\"",
                              "\"F32\"",
                              "\"BF16\"",
                              "\"I8\"",
                              "\"U64\"",
                              "\"BOOL\"",
                              "\\u0041",
                              "\\ud83d\\ude00",
                              "\\n",
                              "__metadata__",
                              "\"data_offsets\"",
                              "[0,0]",
                              "[0,4]",
                              "null",
                              "1e9",
                              "-1",
                              " ",
                              "\xc3\xa9",
                              "\xff"},
                             safetensors::repair};

}  // namespace baregrad::fuzz
