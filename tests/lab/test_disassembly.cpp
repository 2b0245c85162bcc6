// Reading compiled code: sizes from ELF, widths from the output of objdump.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/child.h"
#include "lab/flags/disassembly.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::lab {
namespace {

// As objdump prints it, with and without the bytes of the code.
constexpr const char* kListing =
    "Disassembly of section .text:\n"
    "\n"
    "0000000000001000 <set_fast_math>:\n"
    "    1000:\tmulps  %xmm1,%xmm0\n"
    "\n"
    "0000000000001120 <_ZN8baregrad3lab14multiply_naiveElPKfS2_Pf>:\n"
    "    1120:\tmovss  (%rsi),%xmm0\n"
    "    1124:\tmulss  (%rdx),%xmm0\n"
    "    1128:\taddss  0xec4(%rip),%xmm1        # 2008 <x+0x8>\n"
    "    112c:\t0f 59 c1             \tmulps  %xmm1,%xmm0\n"
    "    1130:\tvaddps (%rax),%ymm1,%ymm2\n"
    "    1134:\tvfmadd231ps %zmm1,%zmm2,%zmm3\n"
    "    1138:\tvfnmadd132ss %xmm1,%xmm2,%xmm3\n"
    "    113c:\tvmovaps %ymm1,%ymm2\n"
    "    1140:\tvmulpd %ymm1,%ymm2,%ymm3\n"
    "    1144:\tpaddd  %xmm1,%xmm2\n"
    "    1148:\tvsubps %ymm1,%ymm2,%ymm3\n"
    "    114c:\tret\n";

TEST(Disassembly, CountsFloatArithmeticByWidth) {
  const Arithmetic counts = count_arithmetic(kListing, "8baregrad3lab");
  EXPECT_EQ(counts.scalar, 3);
  EXPECT_EQ(counts.packed128, 1);
  EXPECT_EQ(counts.packed256, 2);
  EXPECT_EQ(counts.packed512, 1);
  EXPECT_EQ(counts.fused, 2);
  EXPECT_EQ(counts.packed(), 4);
  EXPECT_EQ(counts.widest_bits(), 512);
}

TEST(Disassembly, CountsOnlyFunctionsAskedFor) {
  const Arithmetic counts = count_arithmetic(kListing, "set_fast");
  EXPECT_EQ(counts.packed128, 1);
  EXPECT_EQ(counts.scalar + counts.packed256 + counts.packed512 + counts.fused, 0);
  EXPECT_EQ(count_arithmetic(kListing, "nobody").widest_bits(), 32);
  EXPECT_EQ(count_arithmetic("", "x").packed(), 0);
}

TEST(Disassembly, FunctionsOfThisProgramAreThoseThatNmLists) {
  bool found = false;
  for (const Function& function : elf_functions(own_path())) {
    found = found || function.name.find("count_arithmetic") != std::string::npos;
    EXPECT_GT(function.bytes, 0U);
  }
  EXPECT_TRUE(found);
}

TEST(Disassembly, SizesAreThoseThatNmPrints) {
  const Outcome nm = run_child({"nm", "-S", own_path()});
  if (nm.status != 0) GTEST_SKIP() << "no nm";
  int compared = 0;
  for (const Function& function : elf_functions(own_path())) {
    if (function.name.find("elf_functions") == std::string::npos) continue;
    // "address size T name"
    const std::size_t at = nm.output.find(" " + function.name + "\n");
    ASSERT_NE(at, std::string::npos) << function.name;
    const std::size_t line = nm.output.rfind('\n', at) + 1;
    EXPECT_EQ(std::stoull(nm.output.substr(line + 17, 16), nullptr, 16), function.bytes);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(Disassembly, FilesThatAreNotElfAreRefused) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(elf_functions(folder.file("none")), IoError);
  for (const std::string& text : {std::string(),
                                  std::string("\x7F"
                                              "ELF\x02\x01"),
                                  std::string(4096, 'x')}) {
    std::ofstream(folder.file("file"), std::ios::binary) << text;
    EXPECT_THROW(elf_functions(folder.file("file")), ValueError);
  }
}

TEST(Disassembly, AnElfFileThatWasCutOffIsRefused) {
  const test::TemporaryFolder folder;
  std::ifstream in(own_path(), std::ios::binary);
  std::string start(4096, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  std::ofstream(folder.file("cut"), std::ios::binary) << start;
  EXPECT_THROW(elf_functions(folder.file("cut")), ValueError);
}

}  // namespace
}  // namespace baregrad::lab
