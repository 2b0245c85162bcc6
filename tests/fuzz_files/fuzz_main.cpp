// libFuzzer's entry point for the format BAREGRAD_FUZZ_FORMAT; `--seeds FOLDER` writes its seeds.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "baregrad/tensor.h"
#include "tests/fuzz_files/format.h"

// The readers are linked without ops, and read to the CPU alone.
namespace baregrad {
Tensor Tensor::to(Device) const { return *this; }
}  // namespace baregrad

namespace {

using namespace baregrad::fuzz;

const Format& format() {
  for (const Format& candidate : formats()) {
    if (candidate.name == BAREGRAD_FUZZ_FORMAT) return candidate;
  }
  std::fprintf(stderr, "no format " BAREGRAD_FUZZ_FORMAT "\n");
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(const int* argc, char*** argv) {
  if (*argc != 3 || std::strcmp((*argv)[1], "--seeds") != 0) return 0;
  const std::string folder = (*argv)[2];
  int count = 0;
  for (const Bytes& seed : format().seeds()) {
    std::ofstream out(folder + "/seed-" + std::to_string(count++), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()),
              static_cast<std::streamsize>(seed.size()));
  }
  std::ofstream words(folder + ".dict");
  for (const std::string_view word : format().words) {
    words << '"';
    for (const char c : word) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      words << code;
    }
    words << "\"\n";
  }
  words.close();
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const Format& chosen = format();
  chosen.try_parse({data, bytes});
  return 0;
}
