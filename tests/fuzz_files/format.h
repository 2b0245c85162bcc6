// Hostile files: one source file per format, driven by libFuzzer (fuzz_main.cpp, through
// scripts/fuzz_files.sh) and by seeded mutations in a test (test_formats.cpp).
//
// To add a format, write a file like npy.cpp that defines its Format, and a line in formats.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace baregrad::fuzz {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

struct Format {
  std::string_view name;
  /// Parses the file, reads every byte of the result, and checks that it survives a round trip
  /// where there is a writer. 1: accepted; 0: refused with an IoError. Any other exception is a
  /// bug.
  int (*try_parse)(std::span<const std::uint8_t> file);
  /// Small valid files to start from.
  std::vector<Bytes> (*seeds)();
  /// Words of the format, which mutations insert and swap.
  std::vector<std::string_view> words;
  /// Corrects lengths and checksums of a mutated file, so that mutations reach the code behind
  /// their checks. May be null.
  void (*repair)(Bytes& file, Random& random) = nullptr;
};

const std::vector<Format>& formats();
extern const Format kSafetensors;
extern const Format kNpy;
extern const Format kNpz;
extern const Format kIdx;
extern const Format kCsv;
extern const Format kPnm;
extern const Format kPng;
extern const Format kGzip;

/// While alive, an allocation of this thread beyond `bytes`, from operator new or for a tensor,
/// throws OverBound.
class MemoryBound {
 public:
  explicit MemoryBound(std::size_t bytes);
  ~MemoryBound();
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

 private:
  struct Impl;
  Impl* impl_;
};

/// The allocation limit of a loader for a file of this size.
constexpr std::size_t memory_for(std::size_t file_bytes) { return 2 * file_bytes + (64U << 10); }

/// One to a few random changes: bits, numbers, words, pieces cut, copied or taken from `other`.
void mutate(Bytes& file, const Bytes& other, const Format& format, Random& random);

/// Ends the program with a message and the reason; for checks inside try_parse.
void require(bool condition, const char* what);

}  // namespace baregrad::fuzz
