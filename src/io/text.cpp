// Checks and quoting of names and paths.
#include "io/text.h"

#include "baregrad/error.h"
#include "core/message.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace baregrad::io {

const char* name_fault(std::string_view name) noexcept {
  if (!is_utf8(name)) return "is not UTF-8";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL character";
  return nullptr;
}

void check_name(std::string_view name, const char* what, const char* who) {
  if (const char* fault = name_fault(name)) {
    throw ValueError(message(who, ": ", what, " ", quoted_name(name), " ", fault));
  }
}

void check_path(std::string_view path, std::string_view who) {
  if (path.find('\0') == std::string_view::npos) return;
  throw ValueError(message(who, ": the path ", quoted_name(path), " holds a NUL character"));
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  return quoted_text(name, kMost);
}

}  // namespace baregrad::io
