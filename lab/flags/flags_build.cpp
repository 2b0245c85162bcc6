// Compilers, dlopen, objdump.
#include "lab/flags/flags_build.h"

#include <cstdlib>
#include <sstream>

#include <dlfcn.h>

#include "baregrad/error.h"
#include "lab/child.h"
#include "lab/flags/flags_sources.h"
#include "lab/float_control.h"

namespace baregrad::lab {
namespace {

#if defined(__x86_64__)
constexpr bool kReadable = true;
#else
constexpr bool kReadable = false;
#endif

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// $CXX may contain a launcher and flags ("ccache g++").
std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

std::vector<std::string> candidates() {
  std::vector<std::string> all;
  const char* chosen = std::getenv("CXX");
  if (chosen != nullptr && *chosen != '\0') all.emplace_back(chosen);
  for (const char* name : {"c++", "g++", "clang++"}) all.emplace_back(name);
  return all;
}

/// A file name that identifies a build.
std::string file_name(std::string_view source, const std::vector<std::string>& flags) {
  std::string name(source.substr(source.rfind('/') + 1));
  for (const std::string& flag : flags) name += flag;
  for (char& c : name) {
    if (c == '=' || c == '/') c = '_';
  }
  return name + ".so";
}

Outcome compile(const std::string& program, const ScratchFolder& folder, std::string_view source,
                const std::vector<std::string>& flags, const std::string& output) {
  std::vector<std::string> arguments = words(program);
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (const std::string& word : {std::string("-std=c++20"), std::string("-fPIC"),
                                  std::string("-shared"), "-I" + folder.path(), std::string("-o"),
                                  output, folder.path() + "/" + std::string(source)}) {
    arguments.push_back(word);
  }
  return run_child(arguments, {{"LC_ALL", "C"}, {"TMPDIR", folder.path()}});
}

}  // namespace

std::optional<Compiler> find_compiler(const ScratchFolder& folder, std::string& why) {
  constexpr const char* kEmpty = "empty.cpp";
  folder.write(kEmpty, "int baregrad_lab_empty() { return 0; }\n");
  for (const std::string& program : candidates()) {
    const Outcome outcome = compile(program, folder, kEmpty, {}, folder.path() + "/empty.so");
    if (outcome.status == 0) {
      std::vector<std::string> ask = words(program);
      ask.emplace_back("--version");
      return Compiler{program, first_line(run_child(ask).output)};
    }
    why += (why.empty() ? "" : "; ") + first_line(outcome.output);
  }
  return std::nullopt;
}

bool can_disassemble(std::string& why) {
  const Outcome outcome = run_child({"objdump", "--version"});
  if (outcome.status != 0) why = first_line(outcome.output);
  if (!kReadable) why = "only x86-64 code can be read";
  return kReadable && outcome.status == 0;
}

void unpack_sources(const ScratchFolder& folder) {
  for (const EmbeddedSource& source : embedded_sources()) folder.write(source.path, source.text);
}

SharedObject::SharedObject(const Compiler& compiler, const ScratchFolder& folder,
                           std::string_view source, const std::vector<std::string>& flags)
    : path_(folder.path() + "/" + file_name(source, flags)) {
  const Outcome outcome = compile(compiler.program, folder, source, flags, path_);
  if (outcome.status != 0) {
    throw Error("lab: " + compiler.program + " does not build " + std::string(source) + ": " +
                first_line(outcome.output));
  }
  functions_ = elf_functions(path_);
  const FloatControlScope scope;
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  flushes_ = (float_control() & kFlushBits) != 0 && scope.changed();
  if (handle_ == nullptr) {
    const char* message = ::dlerror();
    throw Error(std::string("lab: cannot open what was built: ") + (message ? message : "?"));
  }
}

SharedObject::~SharedObject() { ::dlclose(handle_); }

void* SharedObject::find(std::string_view part) const {
  for (const Function& function : functions_) {
    if (function.name.find(part) == std::string::npos) continue;
    if (void* address = ::dlsym(handle_, function.name.c_str())) return address;
  }
  throw ValueError("lab: '" + path_ + "' has no function '" + std::string(part) + "'");
}

std::uint64_t SharedObject::code_bytes(std::string_view part) const {
  std::uint64_t bytes = 0;
  for (const Function& function : functions_) {
    if (function.name.find(part) != std::string::npos) bytes += function.bytes;
  }
  return bytes;
}

std::optional<Arithmetic> SharedObject::arithmetic(std::string_view part) const {
  const Outcome outcome = run_child({"objdump", "-d", "--no-show-raw-insn", path_});
  if (!kReadable || outcome.status != 0) return std::nullopt;
  return count_arithmetic(outcome.output, part);
}

}  // namespace baregrad::lab
