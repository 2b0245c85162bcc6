// mkdtemp, and remove_all at the end.
#include "lab/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "baregrad/error.h"

namespace baregrad::lab {

ScratchFolder::ScratchFolder(const std::string& otherwise) {
  const char* chosen = std::getenv("TMPDIR");
  const std::string usual = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  for (const std::string& parent : {usual, otherwise}) {
    std::string pattern = parent + "/baregrad-lab-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
      return;
    }
    why_ += (why_.empty() ? "" : "; ") + parent + ": " + std::strerror(errno);
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what cannot be removed stays: there is nobody left to tell
  if (ok()) std::filesystem::remove_all(path_, ignored);
}

void ScratchFolder::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw IoError("lab: cannot write '" + path.string() + "'");
}

}  // namespace baregrad::lab
