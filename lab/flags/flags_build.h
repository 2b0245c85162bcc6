// Building the command's own sources with the reader's compiler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/flags/disassembly.h"
#include "lab/scratch_folder.h"

namespace baregrad::lab {

struct Compiler {
  std::string program;
  std::string version;  ///< the first line of what it says of itself
};
/// $CXX, else the first of c++, g++, clang++ that builds an empty source in `folder`. Nothing, and
/// `why` has a line for each, when none does.
std::optional<Compiler> find_compiler(const ScratchFolder& folder, std::string& why);

/// Whether there is an objdump, and code that count_arithmetic() can read; else `why` says why not.
bool can_disassemble(std::string& why);

/// Writes the carried sources into `folder`, where the compiler finds them.
void unpack_sources(const ScratchFolder& folder);

/// A shared object in this process, until the end of its life.
class SharedObject {
 public:
  /// Builds `source` (a path that was unpacked) with `flags` and opens it. Throws Error with what
  /// the compiler or the linker said. Its constructors may change MXCSR (crtfastmath does): that is
  /// undone, and flushes() tells of it.
  SharedObject(const Compiler& compiler, const ScratchFolder& folder, std::string_view source,
               const std::vector<std::string>& flags);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Loading it had denormals of this thread taken for zero.
  bool flushes() const noexcept { return flushes_; }
  /// The first function whose linker name holds `part`. Throws ValueError where none does.
  void* find(std::string_view part) const;
  /// Code of all functions whose linker name holds `part`.
  std::uint64_t code_bytes(std::string_view part) const;
  /// Nothing where can_disassemble() is false.
  std::optional<Arithmetic> arithmetic(std::string_view part) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
  bool flushes_ = false;
  std::vector<Function> functions_;
};

}  // namespace baregrad::lab
