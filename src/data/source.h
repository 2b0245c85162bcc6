// The sources of a reader's bytes, with a bound on their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baregrad/data_files.h"
#include "baregrad/dims.h"
#include "baregrad/dtype.h"
#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::data {

/// The most bytes that deflate can write per byte that it reads.
inline constexpr std::uint64_t kMostInflation = 1032;
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

/// The limit of a file's size in memory: `given`, or the default limit if that is 0.
std::uint64_t decoded_limit(std::uint64_t file_bytes, std::uint64_t given) noexcept;

/// Throws an IoError that begins with `who`: the function, and the file if there is one.
template <class... Parts>
[[noreturn]] void fail(const std::string& who, const Parts&... parts) {
  throw IoError(message(who, ": ", parts...));
}

/// Throws the IoError of a file that would decode to more than its limit. `what` describes the
/// size.
[[noreturn]] void fail_limit(const std::string& who, std::string_view what, std::uint64_t limit);

class Source {
 public:
  explicit Source(std::string who) : who_(std::move(who)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source();

  /// Reads up to `count` bytes; fewer only at the end.
  virtual std::size_t read(std::uint8_t* to, std::size_t count) = 0;
  /// An upper bound of the remaining bytes.
  virtual std::uint64_t most_left() const = 0;
  /// Whether most_left() is exact.
  virtual bool is_plain() const noexcept { return true; }

  /// Reads `count` bytes, or throws an IoError that names `what` was truncated.
  void read_exactly(void* to, std::size_t count, std::string_view what);
  bool at_end();  ///< consumes a byte if false
  const std::string& who() const noexcept { return who_; }
  /// The limit of the bytes of the source and of the data decoded from it.
  std::uint64_t limit() const noexcept { return limit_; }
  void set_limit(std::uint64_t limit) noexcept { limit_ = limit; }

 private:
  std::string who_;
  std::uint64_t limit_ = ~std::uint64_t{0};
};

/// Reads several pieces of memory in order.
class MemorySource : public Source {
 public:
  MemorySource(std::string who, std::vector<Bytes> pieces);
  std::size_t read(std::uint8_t* to, std::size_t count) override;
  std::uint64_t most_left() const override { return left_; }

 private:
  std::vector<Bytes> pieces_;
  std::size_t piece_ = 0;
  std::uint64_t left_ = 0;
};

enum class Deflate { Gzip, Zlib };

/// Decompresses another source. Checksums are checked at the end.
class InflateSource : public Source {
 public:
  InflateSource(std::unique_ptr<Source> compressed, Deflate kind);
  ~InflateSource() override;
  std::size_t read(std::uint8_t* to, std::size_t count) override;
  std::uint64_t most_left() const override;
  bool is_plain() const noexcept override { return false; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A file or memory; gzipped contents are decompressed. `max_bytes`: as for decoded_limit.
std::unique_ptr<Source> open_file(const std::string& path, const char* who,
                                  std::uint64_t max_bytes);
std::unique_ptr<Source> open_memory(Bytes bytes, const char* who, std::uint64_t max_bytes);
/// Reads all remaining bytes.
std::vector<std::uint8_t> read_all(Source& source);

/// checked_numel for sizes in a file: an overflow is an IoError.
std::int64_t declared_numel(const Dims& shape, DType dtype, const std::string& who);

inline std::uint32_t load_be32(const std::uint8_t* p) noexcept {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

Tensor decode_pnm(Bytes bytes, const std::string& who, std::uint64_t limit);
Tensor decode_png(Bytes bytes, const std::string& who, std::uint64_t limit);

}  // namespace baregrad::data
