// mkdtemp, and remove_all at the end. A signal handler uses only system calls.
#include "lab/scratch_folder.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "baregrad/error.h"

namespace baregrad::lab {
namespace {

constexpr const char* kPrefix = "baregrad-lab-";

/// The folders, where signal handlers find them. `path` is written before mkdtemp creates the
/// folder, so that every existing folder is listed.
struct Place {
  std::atomic<bool> taken{false};
  std::array<char, PATH_MAX> path{};
};
std::array<Place, 4> places;  // more than exist at once

Place* take_place() noexcept {
  for (Place& place : places) {
    if (!place.taken.exchange(true)) return &place;
  }
  return nullptr;
}

/// A signal handler must not see a partial path, which could name another folder: the first
/// character is written last, and a path without it counts as empty.
void write_path(Place& place, const std::string& path) noexcept {
  volatile char* to = place.path.data();
  to[0] = '\0';
  for (std::size_t i = path.size(); i > 0; --i) to[i] = path.c_str()[i];
  std::atomic_signal_fence(std::memory_order_seq_cst);
  to[0] = path[0];
}

/// Whether this is a scratch folder, created or about to be.
bool is_ours(const char* path) noexcept {
  const char* name = std::strrchr(path, '/');
  return name != nullptr && std::strncmp(name + 1, kPrefix, std::strlen(kPrefix)) == 0;
}

void give_back(const std::string& path) noexcept {
  for (Place& place : places) {
    if (path == place.path.data()) {
      place.path[0] = '\0';
      place.taken = false;
      return;
    }
  }
}

bool is_self_or_parent(const char* name) noexcept {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

void remove_tree(int parent, const char* name) noexcept;

/// Replaces readdir, which may allocate.
void remove_entries(int folder) noexcept {
  alignas(dirent64) std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = ::getdents64(folder, buffer.data(), buffer.size());
    if (bytes <= 0) return;
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      if (!is_self_or_parent(entry->d_name)) remove_tree(folder, entry->d_name);
      at += entry->d_reclen;
    }
  }
}

void remove_tree(int parent, const char* name) noexcept {
  if (::unlinkat(parent, name, 0) == 0) return;
  const int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  remove_entries(folder);
  ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& otherwise) {
  const char* chosen = std::getenv("TMPDIR");
  const std::string usual = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  Place* place = take_place();
  if (place == nullptr) throw Error("lab: too many scratch folders at once");
  for (const std::string& parent : {usual, otherwise}) {
    const std::string pattern = parent + "/" + kPrefix + "XXXXXX";
    if (pattern.size() < place->path.size()) {
      write_path(*place, pattern);
      if (::mkdtemp(place->path.data()) != nullptr) {
        path_ = place->path.data();
        return;
      }
    } else {
      errno = ENAMETOOLONG;
    }
    why_ += (why_.empty() ? "" : "; ") + parent + ": " + std::strerror(errno);
  }
  place->path[0] = '\0';
  place->taken = false;
}

ScratchFolder::~ScratchFolder() {
  if (!ok()) return;
  std::error_code ignored;  // errors are ignored: nothing can be done about them in a destructor
  std::filesystem::remove_all(path_, ignored);
  give_back(path_);
}

void ScratchFolder::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw IoError("lab: cannot write '" + path.string() + "'");
}

void remove_scratch_folders() noexcept {
  constexpr int kTries = 100;
  constexpr timespec kPause{0, 10'000'000};
  for (const Place& place : places) {
    const char* path = place.path.data();
    if (path[0] == '\0' || !is_ours(path)) continue;
    for (int i = 0; i < kTries && path[0] != '\0' && ::access(path, F_OK) == 0; ++i) {
      if (i > 0) ::nanosleep(&kPause, nullptr);
      remove_tree(AT_FDCWD, path);
    }
  }
}

}  // namespace baregrad::lab
