// Sources: files, memory, and compressed data in them.
#include "data/source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/checked.h"
#include "core/printable.h"
#include "parallel/interrupt.h"

namespace baregrad::data {

namespace {

bool starts_gzip(const std::uint8_t* p, std::size_t count) {
  return count >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

/// A file of known length.
class FileSource : public Source {
 public:
  FileSource(const std::string& path, std::string who) : Source(std::move(who)) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) fail(this->who(), "cannot be opened: ", std::strerror(errno));
    struct stat about {};
    const bool known = ::fstat(descriptor_, &about) == 0;
    if (!known || !S_ISREG(about.st_mode)) {
      ::close(descriptor_);
      fail(this->who(), S_ISDIR(about.st_mode) ? "is a folder" : "is not a plain file");
    }
    left_ = static_cast<std::uint64_t>(about.st_size);
  }
  ~FileSource() override { ::close(descriptor_); }

  std::size_t read(std::uint8_t* to, std::size_t count) override {
    std::size_t done = 0;
    // Does not read beyond the length that the sizes were checked against.
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, left_));
    constexpr std::size_t kPiece = std::size_t{1} << 24;
    while (done < count) {
      parallel::poll_interrupt();
      const ssize_t got = ::read(descriptor_, to + done, std::min(count - done, kPiece));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(who(), "cannot be read: ", std::strerror(errno));
      if (got == 0) fail(who(), "became shorter while it was read");
      done += static_cast<std::size_t>(got);
    }
    left_ -= done;
    return done;
  }
  std::uint64_t most_left() const override { return left_; }

  bool is_gzip() const {
    std::uint8_t magic[2];
    return ::pread(descriptor_, magic, 2, 0) == 2 && starts_gzip(magic, 2);
  }

 private:
  int descriptor_ = -1;
  std::uint64_t left_ = 0;
};

}  // namespace

Source::~Source() = default;

void Source::read_exactly(void* to, std::size_t count, std::string_view what) {
  const std::size_t got = count == 0 ? 0 : read(static_cast<std::uint8_t*>(to), count);
  if (got != count) {
    fail(who_, "ends early: ", got, " of ", count, " bytes of the ", what);
  }
}

bool Source::at_end() {
  std::uint8_t byte = 0;
  return read(&byte, 1) == 0;
}

MemorySource::MemorySource(std::string who, std::vector<Bytes> pieces)
    : Source(std::move(who)), pieces_(std::move(pieces)) {
  for (const Bytes piece : pieces_) left_ += piece.size();
}

std::size_t MemorySource::read(std::uint8_t* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count && piece_ < pieces_.size()) {
    Bytes& piece = pieces_[piece_];
    const std::size_t part = std::min(count - done, piece.size());
    if (part > 0) std::memcpy(to + done, piece.data(), part);
    piece = piece.subspan(part);
    done += part;
    if (piece.empty()) ++piece_;
  }
  left_ -= done;
  return done;
}

struct InflateSource::Impl {
  std::unique_ptr<Source> compressed;
  Deflate kind;
  z_stream stream{};
  bool ended = false;
  std::uint64_t produced = 0;
  std::uint8_t buffer[std::size_t{1} << 16];

  bool refill() {
    stream.next_in = buffer;
    stream.avail_in = static_cast<uInt>(compressed->read(buffer, sizeof buffer));
    return stream.avail_in > 0;
  }

  /// A gzip file may have several members and zero padding at the end.
  void begin_next_member() {
    for (;;) {
      while (stream.avail_in > 0 && *stream.next_in == 0) {
        ++stream.next_in;
        --stream.avail_in;
      }
      if (stream.avail_in > 0) break;
      if (!refill()) {
        ended = true;
        return;
      }
    }
    if (kind == Deflate::Zlib || *stream.next_in != 0x1f || inflateReset(&stream) != Z_OK) {
      fail(compressed->who(), "has other bytes after the compressed data");
    }
  }
};

InflateSource::InflateSource(std::unique_ptr<Source> compressed, Deflate kind)
    : Source(compressed->who()), impl_(std::make_unique<Impl>()) {
  impl_->compressed = std::move(compressed);
  impl_->kind = kind;
  constexpr int kGzip = 16;
  const int window = MAX_WBITS + (kind == Deflate::Gzip ? kGzip : 0);
  if (inflateInit2(&impl_->stream, window) != Z_OK) {
    throw OutOfMemory(message(who(), ": no memory to decompress"), sizeof(Impl), 0);
  }
}

InflateSource::~InflateSource() { inflateEnd(&impl_->stream); }

std::size_t InflateSource::read(std::uint8_t* to, std::size_t count) {
  z_stream& stream = impl_->stream;
  std::size_t done = 0;
  while (done < count && !impl_->ended) {
    if (stream.avail_in == 0 && !impl_->refill()) {
      fail(who(), "ends in the middle of the compressed data");
    }
    parallel::poll_interrupt();
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const auto room = static_cast<uInt>(std::min(count - done, kPiece));
    stream.next_out = to + done;
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    impl_->produced += room - stream.avail_out;
    // The decoded data has no header.
    constexpr std::uint64_t kHeader = std::uint64_t{1} << 16;
    if (impl_->produced > kHeader && impl_->produced - kHeader > limit())
      fail_limit(who(), "unpacks to more", limit());
    if (result == Z_STREAM_END) {
      impl_->begin_next_member();
    } else if (result == Z_MEM_ERROR) {
      throw OutOfMemory(message(who(), ": no memory to decompress"), std::size_t{1} << 15, 0);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(who(), "is not validly compressed: ",
           stream.msg != nullptr ? stream.msg : "a dictionary is asked for");
    }
  }
  return done;
}

std::uint64_t InflateSource::most_left() const {
  if (impl_->ended) return 0;
  // Plus the data in the internal buffers of the decompressor.
  constexpr std::uint64_t kInFlight = std::uint64_t{1} << 16;
  const std::uint64_t left = impl_->compressed->most_left() + impl_->stream.avail_in;
  return left > (std::uint64_t{1} << 50) ? ~std::uint64_t{0} : left * kMostInflation + kInFlight;
}

std::uint64_t decoded_limit(std::uint64_t file_bytes, std::uint64_t given) noexcept {
  if (given != 0) return given;
  return std::max(kUsualMaxBytes,
                  std::min(file_bytes, ~std::uint64_t{0} / kUsualMaxRatio) * kUsualMaxRatio);
}

void fail_limit(const std::string& who, std::string_view what, std::uint64_t limit) {
  fail(who, what, " than the limit of ", limit, " bytes (max_bytes; if not set, ", kUsualMaxBytes,
       " or ", kUsualMaxRatio, " times the file); set a larger max_bytes if you trust the file");
}

std::unique_ptr<Source> open_file(const std::string& path, const char* who,
                                  std::uint64_t max_bytes) {
  // The system would cut the name at the NUL and open another file.
  if (path.find('\0') != std::string::npos) {
    fail(message(who, ": ", quoted_text(path)), "cannot be opened: the name holds a NUL");
  }
  auto file = std::make_unique<FileSource>(path, message(who, ": ", quoted_text(path)));
  const std::uint64_t limit = decoded_limit(file->most_left(), max_bytes);
  std::unique_ptr<Source> source;
  if (file->is_gzip()) {
    source = std::make_unique<InflateSource>(std::move(file), Deflate::Gzip);
  } else {
    source = std::move(file);
  }
  source->set_limit(limit);
  return source;
}

std::unique_ptr<Source> open_memory(Bytes bytes, const char* who, std::uint64_t max_bytes) {
  std::unique_ptr<Source> source = std::make_unique<MemorySource>(who, std::vector<Bytes>{bytes});
  if (starts_gzip(bytes.data(), bytes.size())) {
    source = std::make_unique<InflateSource>(std::move(source), Deflate::Gzip);
  }
  source->set_limit(decoded_limit(bytes.size(), max_bytes));
  return source;
}

std::vector<std::uint8_t> read_all(Source& source) {
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t kFirst = std::size_t{1} << 16;
  try {
    for (;;) {
      // Grows with the decoded size, not with the possible size: memory is used only for data that
      // the file holds.
      const std::size_t before = bytes.size();
      const std::size_t wanted = source.is_plain() ? SIZE_MAX : std::max(before, kFirst);
      const auto step =
          static_cast<std::size_t>(std::min<std::uint64_t>(wanted, source.most_left()));
      bytes.resize(before + step);
      const std::size_t got = step == 0 ? 0 : source.read(bytes.data() + before, step);
      bytes.resize(before + got);
      if (got < step || step == 0) return bytes;
    }
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(message(source.who(), ": no memory for the file's contents"), bytes.size(),
                      0);
  }
}

std::int64_t declared_numel(const Dims& shape, DType dtype, const std::string& who) {
  try {
    return checked_numel(shape, dtype, who.c_str());
  } catch (const ShapeError& e) {
    throw IoError(e.what());
  }
}

}  // namespace baregrad::data
