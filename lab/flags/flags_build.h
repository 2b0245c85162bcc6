// Builds sources that the command carries with the compiler of this machine.
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
  std::string version;  ///< the first line of its version output
};
/// $CXX, else the first of c++, g++, clang++ that builds an empty source in `folder`. Empty, with a
/// line for each in `why`, when none does.
std::optional<Compiler> find_compiler(const ScratchFolder& folder, std::string& why);

/// Whether there is an objdump, and code that count_arithmetic() can read; otherwise `why` has the
/// reason.
bool can_disassemble(std::string& why);

/// Writes the carried sources to `folder`, where the compiler finds them.
void unpack_sources(const ScratchFolder& folder);

/// A shared object, loaded into this process for the lifetime of this object.
class SharedObject {
 public:
  /// Builds `source` (a path that was unpacked) with `flags` and opens it. Throws Error with the
  /// output of the compiler or linker. Its constructors may change MXCSR (crtfastmath does): the
  /// change is undone, and flushes() reports it.
  SharedObject(const Compiler& compiler, const ScratchFolder& folder, std::string_view source,
               const std::vector<std::string>& flags);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Whether loading it made this thread flush denormals to zero.
  bool flushes() const noexcept { return flushes_; }
  /// The first function whose linker name contains `part`. Throws ValueError if there is none.
  void* find(std::string_view part) const;
  /// Code size of all functions whose linker name contains `part`.
  std::uint64_t code_bytes(std::string_view part) const;
  /// Empty if can_disassemble() is false.
  std::optional<Arithmetic> arithmetic(std::string_view part) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
  bool flushes_ = false;
  std::vector<Function> functions_;
};

}  // namespace baregrad::lab
