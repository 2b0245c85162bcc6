// The memory is first writable, then executable, never both.
#include "lab/branches/code_block.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace baregrad::lab {
namespace {

using Instruction = std::array<std::uint8_t, 4>;
#if defined(__x86_64__)
constexpr bool kKnown = true;
constexpr Instruction kNothing = {0x0f, 0x1f, 0x40, 0x00};  // nopl 0(%rax)
constexpr Instruction kReturn = {0xc3, 0xcc, 0xcc, 0xcc};
#elif defined(__aarch64__)
constexpr bool kKnown = true;
constexpr Instruction kNothing = {0x1f, 0x20, 0x03, 0xd5};
constexpr Instruction kReturn = {0xc0, 0x03, 0x5f, 0xd6};
#else
constexpr bool kKnown = false;
constexpr Instruction kNothing = {};
constexpr Instruction kReturn = {};
#endif

}  // namespace

std::unique_ptr<CodeBlock> CodeBlock::make(std::size_t bytes, std::string& why) {
  if (!kKnown) {
    why = "the lab knows no instructions of this processor";
    return nullptr;
  }
  const std::size_t instructions = bytes / sizeof(Instruction);
  const std::size_t mapped = (instructions + 1) * sizeof(Instruction);
  void* const memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    why = std::string("no memory for code: ") + std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<CodeBlock> block(new CodeBlock(memory, mapped, instructions));
  auto* at = static_cast<std::uint8_t*>(memory);
  for (std::size_t i = 0; i < instructions; ++i, at += sizeof(Instruction)) {
    std::memcpy(at, kNothing.data(), sizeof(Instruction));
  }
  std::memcpy(at, kReturn.data(), sizeof(Instruction));
  if (::mprotect(memory, mapped, PROT_READ | PROT_EXEC) != 0) {
    why = std::string("memory may not become code here: ") + std::strerror(errno);
    return nullptr;
  }
  char* const begin = static_cast<char*>(memory);
  __builtin___clear_cache(begin, begin + mapped);
  return block;
}

CodeBlock::~CodeBlock() { ::munmap(memory_, mapped_); }

void CodeBlock::run() const { reinterpret_cast<void (*)()>(memory_)(); }

}  // namespace baregrad::lab
