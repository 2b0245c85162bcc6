// The machine code of a function: its size, and the width of its arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// A function of an ELF file.
struct Function {
  std::string name;  ///< the linker's name
  std::uint64_t bytes = 0;
};

/// Functions with code in a 64-bit ELF file, including local ones. Throws IoError if it cannot be
/// read, ValueError for another kind of file.
std::vector<Function> elf_functions(const std::string& path);

/// Instructions that add or multiply floats, by the number of values per instruction.
struct Arithmetic {
  int scalar = 0;
  int packed128 = 0;
  int packed256 = 0;
  int packed512 = 0;
  int fused = 0;  ///< of all these: instructions that multiply and add

  int packed() const { return packed128 + packed256 + packed512; }
  /// The width of the widest packed ones; 32 if all are scalar.
  int widest_bits() const;
};

/// Counts the instructions in the output of `objdump -d` (x86-64, AT&T syntax), in functions whose
/// name contains `part`.
Arithmetic count_arithmetic(std::string_view disassembly, std::string_view part);

}  // namespace baregrad::lab
