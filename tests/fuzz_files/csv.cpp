// Comma-separated numbers.
#include "baregrad/data_files.h"
#include "tests/fuzz_files/data_readers.h"

namespace baregrad::fuzz {

namespace {
namespace csv {

/// A field takes at least two bytes and becomes at most eight; names and labels come on top.
int try_parse(std::span<const std::uint8_t> file) {
  const std::size_t most = kDeflate * 16 * file.size() + (64U << 10);
  const int plain =
      try_decode(file, most, [](const auto& bytes) { return data::decode_csv(bytes).values; });
  const int labelled = try_decode(file, most, [](const auto& bytes) {
    return data::decode_csv(bytes, {.missing = 0.0, .label = "-1"}).values;
  });
  return plain != 0 || labelled != 0 ? 1 : 0;
}

std::vector<Bytes> seeds() {
  return {bytes_of("a,b,c\n1,2,3\n4.5,-6e3,7\n"), bytes_of("1,2,x\r\n3,4,\"y, z\"\r\n"),
          bytes_of("\"say \"\"hi\"\"\",2\n\n1,2\n"), bytes_of("0.1,,nan\n-inf,3,1e-300\n")};
}

}  // namespace csv
}  // namespace

const Format kCsv = {"csv",
                     csv::try_parse,
                     csv::seeds,
                     {",", "\n", "\r\n", "\"", "\"\"", "nan", "-inf", "1e999", "0x1p3", "-"}};

}  // namespace baregrad::fuzz
