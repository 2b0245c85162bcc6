// Reads ELF symbol tables and the output of objdump.
#include "lab/flags/disassembly.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <elf.h>

#include "baregrad/error.h"

namespace baregrad::lab {
namespace {

/// The bytes of a file, with bounds checks.
class Image {
 public:
  explicit Image(const std::string& path) : path_(path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw IoError("lab: cannot read '" + path + "'");
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) broken();
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string text(std::uint64_t offset) const {
    const std::size_t end = bytes_.find('\0', offset);
    if (offset >= bytes_.size() || end == std::string::npos) broken();
    return bytes_.substr(offset, end - offset);
  }
  [[noreturn]] void broken() const {
    throw ValueError("lab: '" + path_ + "' is not a whole 64-bit ELF file");
  }

 private:
  std::string path_;
  std::string bytes_;
};

void add_functions(const Image& image, const Elf64_Shdr& table, const Elf64_Shdr& names,
                   std::vector<Function>& functions) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = image.at<Elf64_Sym>(table.sh_offset + at);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) continue;
    functions.push_back({image.text(names.sh_offset + symbol.st_name), symbol.st_size});
  }
}

/// "vfmadd231ps" and what comes before its operands.
std::string_view mnemonic_of(std::string_view line) {
  // "    1130:\t0f 59 c1             \tmulps  %xmm1,%xmm0"; --no-show-raw-insn omits the bytes.
  const std::size_t tab = line.rfind('\t');
  if (tab == std::string_view::npos) return {};
  const std::string_view rest = line.substr(tab + 1);
  return rest.substr(0, rest.find(' '));
}

bool is_fused(std::string_view name) {
  for (const char* start : {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

/// Whether it adds or multiplies floats, one ("ss") or several at once ("ps").
bool is_arithmetic(std::string_view name) {
  if (!name.ends_with("ss") && !name.ends_with("ps")) return false;
  if (is_fused(name)) return true;
  const std::string_view plain = name.starts_with('v') ? name.substr(1) : name;
  return plain.starts_with("mul") || plain.starts_with("add") || plain.starts_with("sub");
}

void count_line(std::string_view line, Arithmetic& counts) {
  const std::string_view name = mnemonic_of(line);
  if (!is_arithmetic(name)) return;
  if (is_fused(name)) ++counts.fused;
  const bool wide = line.find("%zmm") != std::string_view::npos;
  const bool middle = line.find("%ymm") != std::string_view::npos;
  int& count = name.ends_with("ss") ? counts.scalar
               : wide               ? counts.packed512
               : middle             ? counts.packed256
                                    : counts.packed128;
  ++count;
}

}  // namespace

int Arithmetic::widest_bits() const {
  if (packed512 > 0) return 512;
  if (packed256 > 0) return 256;
  return packed128 > 0 ? 128 : 32;
}

std::vector<Function> elf_functions(const std::string& path) {
  const Image image(path);
  const auto header = image.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    image.broken();
  }
  const auto section = [&](std::uint64_t index) {
    if (index >= header.e_shnum) image.broken();
    return image.at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  std::vector<Function> functions;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type == SHT_SYMTAB) add_functions(image, table, section(table.sh_link), functions);
  }
  return functions;
}

Arithmetic count_arithmetic(std::string_view disassembly, std::string_view part) {
  Arithmetic counts;
  bool wanted = false;
  while (!disassembly.empty()) {
    const std::size_t end = std::min(disassembly.find('\n'), disassembly.size());
    const std::string_view line = disassembly.substr(0, end);
    disassembly.remove_prefix(std::min(end + 1, disassembly.size()));
    // "0000000000001120 <_ZN8baregrad3lab14multiply_naiveElPKfS2_Pf>:"
    if (line.ends_with(">:")) {
      wanted = line.find(part) != std::string_view::npos;
    } else if (wanted) {
      count_line(line, counts);
    }
  }
  return counts;
}

}  // namespace baregrad::lab
