// Zip archives as far as npz needs them: stored and deflated members, zip64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/input.h"
#include "io/output.h"

namespace baregrad::io {

struct ZipMember {
  std::string name;
  std::uint64_t bytes = 0;  // unpacked, as declared
  std::uint32_t crc = 0;    // of the unpacked bytes
  bool deflated = false;
  std::span<const std::uint8_t> packed;  // inside the input
};

/// Reads the directory, in its order. The members lie inside the input, do not overlap, and declare
/// no more bytes than their data can unpack to. Throws IoError.
std::vector<ZipMember> zip_members(const Input& input);

/// Unpacks a member piece by piece, up to its declared size.
class ZipReader {
 public:
  /// `where` opens the messages.
  ZipReader(const ZipMember& member, std::string where);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// Reads the next `bytes` of the member. The caller asks for no more than are left. Throws
  /// IoError when the packed data ends early or is damaged.
  void read(void* out, std::size_t bytes);
  /// Throws IoError unless all of it was read and the checksum matches.
  void finish();

 private:
  struct Stream;
  [[noreturn]] void fail(const char* what) const;

  const ZipMember& member_;
  std::string where_;
  std::uint64_t done_ = 0;
  std::uint32_t crc_ = 0;
  std::unique_ptr<Stream> stream_;  // of a deflated member
};

/// Writes members one after the other, then the directory.
class ZipWriter {
 public:
  /// Passes a member's bytes to the sink, the same ones each time it is called.
  using Contents = std::function<void(const Sink&)>;

  /// `who` opens messages.
  explicit ZipWriter(Sink sink, const char* who = "save_npz") : sink_(std::move(sink)), who_(who) {}

  /// `contents` has `bytes` bytes.
  void add(const std::string& name, std::uint64_t bytes, bool deflate, const Contents& contents);
  void finish();

 private:
  void put(std::string_view part);
  /// The checksum of the contents.
  std::uint32_t put_deflated(const Contents& contents);

  Sink sink_;
  const char* who_;
  std::uint64_t at_ = 0;
  std::uint64_t count_ = 0;
  std::string directory_;
};

}  // namespace baregrad::io
