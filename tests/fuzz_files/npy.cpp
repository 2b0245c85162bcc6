// npy.
#include "baregrad/error.h"
#include "baregrad/io.h"
#include "tests/fuzz_files/check.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

namespace {
namespace npy {

int try_parse(std::span<const std::uint8_t> file) {
  Tensor parsed;
  try {
    const MemoryBound bound(memory_for(file.size()));
    parsed = io::parse_npy(file);
  } catch (const IoError&) {
    return 0;
  }
  require_same(io::parse_npy(io::npy_bytes(parsed)), parsed);
  return 1;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> out;
  for (const auto& [name, tensor] : one_of_each(false)) out.push_back(io::npy_bytes(tensor));
  out.push_back(io::npy_bytes(Tensor::scalar(1.5)));
  const std::string_view fortran =
      "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n"
      "abcdefghijkl";
  for (const int major : {1, 2, 3}) {
    Bytes file = {0x93,
                  'N',
                  'U',
                  'M',
                  'P',
                  'Y',
                  static_cast<std::uint8_t>(major),
                  0,
                  static_cast<std::uint8_t>(fortran.size() - 12)};
    file.resize(major == 1 ? 10 : 12);
    file.insert(file.end(), fortran.begin(), fortran.end());
    out.push_back(std::move(file));
  }
  return out;
}

/// The header's length, up to the last '}' of the file.
void repair(Bytes& file, Random&) {
  if (file.size() < 13) return;
  const std::size_t begin = file[6] == 1 ? 10 : 12;
  std::size_t end = file.size();
  while (end > begin && file[end - 1] != '}') --end;
  for (std::size_t i = 8; i < begin; ++i) {
    file[i] = static_cast<std::uint8_t>((end - begin) >> (8 * (i - 8)));
  }
}

}  // namespace npy
}  // namespace

const Format kNpy = {"npy",
                     npy::try_parse,
                     npy::seeds,
                     {"{",
                      "}",
                      "(",
                      ")",
                      ":",
                      ",",
                      "'",
                      "'descr'",
                      "'fortran_order'",
                      "'shape'",
                      "True",
                      "False",
                      "'<f4'",
                      "'>f8'",
                      "'|b1'",
                      "'|O'",
                      "'<U4'",
                      "'>i2'",
                      "(0,)",
                      "()",
                      "(1,)",
                      "[('a', '<f4')]",
                      " ",
                      "\x93NUMPY",
                      "-1"},
                     npy::repair};

}  // namespace baregrad::fuzz
