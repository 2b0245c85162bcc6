# cmake -D OUTPUT=... -D ROOT=... -P embed.cmake FILE...: writes files as string literals, so that
# the command can build them on another machine without this repository.
math(EXPR last "${CMAKE_ARGC} - 1")
set(rows "")
set(after_script FALSE)
foreach(index RANGE ${last})
  set(argument "${CMAKE_ARGV${index}}")
  if(after_script)
    file(READ "${ROOT}/${argument}" text)
    string(APPEND rows "    {\"${argument}\", R\"~~~~(${text})~~~~\"},\n")
  elseif(argument MATCHES "embed.cmake$")
    set(after_script TRUE)
  endif()
endforeach()
file(WRITE "${OUTPUT}" "// Written by lab/embed.cmake.
#include \"lab/flags/flags_sources.h\"

namespace baregrad::lab {
namespace {

constexpr EmbeddedSource kSources[] = {
${rows}};

}  // namespace

std::span<const EmbeddedSource> embedded_sources() { return kSources; }

}  // namespace baregrad::lab
")
