// Changes to files that keep enough of their structure to pass the first check.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

namespace {

/// 0 to count - 1.
std::size_t below(Random& random, std::size_t count) {
  return count == 0 ? 0 : static_cast<std::size_t>(random() % count);
}

std::uint64_t odd_number(Random& random, std::size_t file_bytes) {
  const std::uint64_t values[] = {0,
                                  1,
                                  2,
                                  4,
                                  16,
                                  17,
                                  127,
                                  255,
                                  0xFFFF,
                                  0x7FFFFFFF,
                                  0x80000000,
                                  0xFFFFFFFF,
                                  0x100000000,
                                  0x3FFFFFFFFFFFFFFF,
                                  0x7FFFFFFFFFFFFFFF,
                                  0x8000000000000000,
                                  0xFFFFFFFFFFFFFFFF,
                                  100'000'000,
                                  100'000'001,
                                  file_bytes,
                                  file_bytes - 8,
                                  file_bytes / 2,
                                  random()};
  return values[below(random, std::size(values))] + below(random, 3) - 1;
}

void insert(Bytes& file, std::size_t at, std::string_view text) {
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), text.begin(), text.end());
}

void erase(Bytes& file, std::size_t at, std::size_t count) {
  const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
  file.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, file.size() - at)));
}

/// Replaces a number written in digits.
void change_digits(Bytes& file, Random& random) {
  const std::size_t start = below(random, file.size());
  const auto is_digit = [](std::uint8_t c) { return std::isdigit(c) != 0; };
  const auto begin =
      std::find_if(file.begin() + static_cast<std::ptrdiff_t>(start), file.end(), is_digit);
  if (begin == file.end()) return;
  const auto end = std::find_if_not(begin, file.end(), is_digit);
  const auto at = static_cast<std::size_t>(begin - file.begin());
  const std::string number = std::to_string(odd_number(random, file.size()));
  file.erase(begin, end);
  insert(file, at, number);
}

void change(Bytes& file, const Bytes& other, const Format& format, Random& random) {
  if (file.empty()) file.push_back(0);
  const std::size_t at = below(random, file.size());
  const std::size_t length = 1 + below(random, std::min<std::size_t>(file.size() - at, 64));
  const auto word = [&]() -> std::string_view {
    return format.words.empty() ? "0" : format.words[below(random, format.words.size())];
  };
  switch (random() % 12) {
    case 0:
      file[at] = static_cast<std::uint8_t>(file[at] ^ (1U << (random() % 8)));
      break;
    case 1:
      file[at] = static_cast<std::uint8_t>(random());
      break;
    case 2: {  // a little-endian number
      const std::size_t width = std::size_t{1} << (random() % 4);
      const std::uint64_t value = odd_number(random, file.size());
      for (std::size_t i = 0; i < width && at + i < file.size(); ++i) {
        file[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
      }
      break;
    }
    case 3:
    case 4:
      change_digits(file, random);
      break;
    case 5:
      insert(file, at, word());
      break;
    case 6: {  // one word replaced by another
      const std::string_view from = word();
      const auto found = std::search(file.begin() + static_cast<std::ptrdiff_t>(at), file.end(),
                                     from.begin(), from.end());
      if (found == file.end()) break;
      const auto where = static_cast<std::size_t>(found - file.begin());
      erase(file, where, from.size());
      insert(file, where, word());
      break;
    }
    case 7:
      erase(file, at, length);
      break;
    case 8:
      file.resize(at);
      break;
    case 9: {  // a piece of the file, copied to another place
      const Bytes piece(file.begin() + static_cast<std::ptrdiff_t>(at),
                        file.begin() + static_cast<std::ptrdiff_t>(at + length));
      const std::size_t to = below(random, file.size() + 1);
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(to), piece.begin(), piece.end());
      break;
    }
    case 10:  // the end of another file
      file.resize(at);
      if (!other.empty()) {
        const auto cut = static_cast<std::ptrdiff_t>(std::min(at, other.size()));
        file.insert(file.end(), other.begin() + cut, other.end());
      }
      break;
    default:
      insert(file, file.size(), std::string(length, static_cast<char>(random())));
      break;
  }
}

}  // namespace

void mutate(Bytes& file, const Bytes& other, const Format& format, Random& random) {
  const std::size_t changes = 1 + below(random, 3);
  for (std::size_t i = 0; i < changes; ++i) change(file, other, format, random);
  constexpr std::size_t kMost = 1U << 16;
  if (file.size() > kMost) file.resize(kMost);
  if (format.repair != nullptr && random() % 2 == 0) format.repair(file, random);
}

}  // namespace baregrad::fuzz
