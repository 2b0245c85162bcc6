// Straight-line code of any length, made at run time: four-byte instructions without effect, so
// that only fetching and decoding takes time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace baregrad::lab {

class CodeBlock {
 public:
  /// Null, with the reason in `why`, where programs may not make code or the processor is not
  /// supported.
  static std::unique_ptr<CodeBlock> make(std::size_t bytes, std::string& why);
  ~CodeBlock();
  CodeBlock(const CodeBlock&) = delete;
  CodeBlock& operator=(const CodeBlock&) = delete;

  /// Executes all instructions.
  void run() const;
  /// Without the final return.
  std::size_t instructions() const noexcept { return instructions_; }

 private:
  CodeBlock(void* memory, std::size_t mapped, std::size_t instructions) noexcept
      : memory_(memory), mapped_(mapped), instructions_(instructions) {}
  void* memory_;
  std::size_t mapped_;
  std::size_t instructions_;
};

}  // namespace baregrad::lab
