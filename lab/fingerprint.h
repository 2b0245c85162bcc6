// Which build of the program is running.
#pragma once

#include <string>

namespace baregrad::lab {

/// 16 hexadecimal digits that follow from the bytes of a file: another build has others. Throws
/// IoError where it cannot be read.
std::string fingerprint(const std::string& path);

}  // namespace baregrad::lab
