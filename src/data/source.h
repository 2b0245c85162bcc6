// Where a reader's bytes come from, with a bound on how many there can be.
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

/// Deflate writes at most so many bytes for one that it reads.
inline constexpr std::uint64_t kMostInflation = 1032;
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

/// What a file may become in memory: `given`, or where that is 0 the usual limit.
std::uint64_t decoded_limit(std::uint64_t file_bytes, std::uint64_t given) noexcept;

/// Throws an IoError that opens with `who`: the function, and the file where there is one.
template <class... Parts>
[[noreturn]] void fail(const std::string& who, const Parts&... parts) {
  throw IoError(message(who, ": ", parts...));
}

/// Throws the IoError of a file that would decode to more than its limit. `what`: how it says so.
[[noreturn]] void fail_limit(const std::string& who, std::string_view what, std::uint64_t limit);

class Source {
 public:
  explicit Source(std::string who) : who_(std::move(who)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source();

  /// Up to `count` bytes; fewer only at the end.
  virtual std::size_t read(std::uint8_t* to, std::size_t count) = 0;
  /// No more than this can still come.
  virtual std::uint64_t most_left() const = 0;
  /// Whether most_left() is exact.
  virtual bool is_plain() const noexcept { return true; }

  /// All of `count` bytes, or an IoError naming `what` was cut short.
  void read_exactly(void* to, std::size_t count, std::string_view what);
  bool at_end();  ///< consumes a byte when false
  const std::string& who() const noexcept { return who_; }
  /// The most bytes that all of it, and what is made of it, may take.
  std::uint64_t limit() const noexcept { return limit_; }
  void set_limit(std::uint64_t limit) noexcept { limit_ = limit; }

 private:
  std::string who_;
  std::uint64_t limit_ = ~std::uint64_t{0};
};

/// Pieces of memory, one after the other.
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

/// What another source holds compressed. Checksums are checked when the end is reached.
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

/// A plain file or memory; a gzipped one is inflated on the way. `max_bytes`: as for decoded_limit.
std::unique_ptr<Source> open_file(const std::string& path, const char* who,
                                  std::uint64_t max_bytes);
std::unique_ptr<Source> open_memory(Bytes bytes, const char* who, std::uint64_t max_bytes);
/// All that is left.
std::vector<std::uint8_t> read_all(Source& source);

/// checked_numel for sizes that come from a file: an overflow is the file's fault.
std::int64_t declared_numel(const Dims& shape, DType dtype, const std::string& who);

inline std::uint32_t load_be32(const std::uint8_t* p) noexcept {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

Tensor decode_pnm(Bytes bytes, const std::string& who, std::uint64_t limit);
Tensor decode_png(Bytes bytes, const std::string& who, std::uint64_t limit);

}  // namespace baregrad::data
