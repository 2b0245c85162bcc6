// Straight-line code of any length, made at run time: instructions of four bytes that do nothing,
// so that only fetching and decoding them takes time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace baregrad::lab {

class CodeBlock {
 public:
  /// Null, and `why` says why, where programs may not make code or the processor is not known.
  static std::unique_ptr<CodeBlock> make(std::size_t bytes, std::string& why);
  ~CodeBlock();
  CodeBlock(const CodeBlock&) = delete;
  CodeBlock& operator=(const CodeBlock&) = delete;

  /// From the first instruction to the last.
  void run() const;
  /// Without the return at the end.
  std::size_t instructions() const noexcept { return instructions_; }

 private:
  CodeBlock(void* memory, std::size_t mapped, std::size_t instructions) noexcept
      : memory_(memory), mapped_(mapped), instructions_(instructions) {}
  void* memory_;
  std::size_t mapped_;
  std::size_t instructions_;
};

}  // namespace baregrad::lab
