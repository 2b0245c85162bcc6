// A hash of a file's bytes.
#include "lab/fingerprint.h"

#include <array>
#include <cstdint>
#include <fstream>

#include <fmt/format.h>

#include "baregrad/error.h"

namespace baregrad::lab {

std::string fingerprint(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError("lab: cannot read '" + path + "'");
  // FNV-1a: not cryptographic, since nobody forges these files.
  std::uint64_t hash = 0xcbf29ce484222325;
  std::array<char, 1 << 16> buffer{};
  do {
    in.read(buffer.data(), buffer.size());
    for (std::streamsize i = 0; i < in.gcount(); ++i) {
      const auto byte = static_cast<unsigned char>(buffer[static_cast<std::size_t>(i)]);
      hash = (hash ^ byte) * 0x100000001b3;
    }
  } while (in);
  return fmt::format("{:016x}", hash);
}

}  // namespace baregrad::lab
