// The build of the running program.
#pragma once

#include <string>

namespace baregrad::lab {

/// A hash of a file's bytes, as 16 hexadecimal digits: another build has another hash. Throws
/// IoError if the file cannot be read.
std::string fingerprint(const std::string& path);

}  // namespace baregrad::lab
