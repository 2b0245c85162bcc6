// What a compiler made of a function: its size, and the width of its arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// A function of an ELF file.
struct Function {
  std::string name;  ///< as the linker has it
  std::uint64_t bytes = 0;
};

/// Functions with code in a 64-bit ELF file, local ones too. Throws IoError where it cannot be
/// read, ValueError where it is no such file.
std::vector<Function> elf_functions(const std::string& path);

/// Instructions that add or multiply floats, by how many numbers they take at once.
struct Arithmetic {
  int scalar = 0;
  int packed128 = 0;
  int packed256 = 0;
  int packed512 = 0;
  int fused = 0;  ///< of all these, those that multiply and add in one instruction

  int packed() const { return packed128 + packed256 + packed512; }
  /// Of the widest packed ones; 32 where all are scalar.
  int widest_bits() const;
};

/// Counts in what `objdump -d` printed (x86-64, AT&T syntax), in functions whose name holds `part`.
Arithmetic count_arithmetic(std::string_view disassembly, std::string_view part);

}  // namespace baregrad::lab
