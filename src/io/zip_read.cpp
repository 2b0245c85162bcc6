// Reading zip archives. The whole directory is checked before any data is unpacked.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#include <algorithm>
#include <cstring>

#include <zlib.h>

#include "baregrad/error.h"
#include "core/message.h"
#include "io/text.h"
#include "io/zip.h"
#include "parallel/interrupt.h"

namespace baregrad::io {

namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::uint32_t kEntrySignature = 0x02014b50;
constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the value is in the zip64 field
constexpr std::uint64_t kMostRatio = 1032;   // deflate packs at most 258 bytes into two bits

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t count = 0;
};

class Reader {
 public:
  explicit Reader(const Input& input) : input_(input), size_(input.bytes.size()) {}

  std::vector<ZipMember> members() {
    const Directory directory = find_directory();
    // An entry takes at least kEntryBytes: a false count cannot cause a large allocation.
    if (directory.count > (directory.end - directory.begin) / kEntryBytes) {
      fail(message("declares ", directory.count, " members, more than its directory can hold"));
    }
    std::vector<ZipMember> out;
    out.reserve(directory.count);
    ranges_.reserve(directory.count);
    std::uint64_t at = directory.begin;
    for (std::uint64_t i = 0; i < directory.count; ++i) at = entry(at, directory, out);
    if (at != directory.end) fail("bytes between the directory and its end");
    check_overlap(out);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(message(input_.where, ": ", what));
  }

  const std::uint8_t* at(std::uint64_t offset) const { return input_.bytes.data() + offset; }
  std::uint16_t u16(std::uint64_t offset) const { return load_little<std::uint16_t>(at(offset)); }
  std::uint32_t u32(std::uint64_t offset) const { return load_little<std::uint32_t>(at(offset)); }
  std::uint64_t u64(std::uint64_t offset) const { return load_little<std::uint64_t>(at(offset)); }

  Directory find_directory() const {
    // The end record is followed by a comment of at most 65535 bytes, up to the file's end.
    if (size_ < kEndBytes) fail("not a zip archive: too short");
    const std::uint64_t farthest = std::min<std::uint64_t>(size_, kEndBytes + 0xFFFF);
    std::uint64_t end = size_ - kEndBytes;
    while (u32(end) != kEndSignature || u16(end + 20) != size_ - end - kEndBytes) {
      if (end == size_ - farthest) fail("not a zip archive, or cut short: it has no end record");
      --end;
    }
    Directory out;
    out.count = u16(end + 10);
    std::uint64_t bytes = u32(end + 12);
    out.begin = u32(end + 16);
    out.end = end;
    std::uint64_t disks = u16(end + 4) | u16(end + 6);
    std::uint64_t count_here = u16(end + 8);
    const bool in64 = out.count == 0xFFFF || bytes == kIn64 || out.begin == kIn64;
    if (in64 && end >= kLocator64Bytes && u32(end - kLocator64Bytes) == kLocator64Signature) {
      const std::uint64_t locator = end - kLocator64Bytes;
      const std::uint64_t record = u64(locator + 8);
      if (locator < kEnd64Bytes || record > locator - kEnd64Bytes ||
          u32(record) != kEnd64Signature || u64(record + 4) != locator - record - 12) {
        fail("its zip64 end record is not where it should be");
      }
      disks = u32(record + 16) | u32(record + 20);
      count_here = u64(record + 24);
      out.count = u64(record + 32);
      bytes = u64(record + 40);
      out.begin = u64(record + 48);
      out.end = record;
    }
    if (disks != 0 || count_here != out.count) fail("archives in several parts are not supported");
    if (bytes > out.end || out.begin != out.end - bytes) {
      fail("its directory is not where the end record says");
    }
    return out;
  }

  /// Reads one entry of the directory and returns the start of the next.
  std::uint64_t entry(std::uint64_t begin, const Directory& directory,
                      std::vector<ZipMember>& out) {
    if (directory.end - begin < kEntryBytes || u32(begin) != kEntrySignature) {
      fail("damaged directory");
    }
    const std::uint64_t name_bytes = u16(begin + 28);
    const std::uint64_t extra_bytes = u16(begin + 30);
    const std::uint64_t rest = name_bytes + extra_bytes + u16(begin + 32);
    if (directory.end - begin - kEntryBytes < rest) fail("damaged directory");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(at(begin + kEntryBytes)), name_bytes);
    const std::string about = message("member ", quoted_name(member.name), ": ");

    const unsigned flags = u16(begin + 8);
    const unsigned method = u16(begin + 10);
    if ((flags & 0x2041) != 0) fail(about + "encrypted members are not supported");
    if (method != 0 && method != 8) {
      fail(message(about, "packed by method ", method, "; known are stored (0) and deflated (8)"));
    }
    if (u16(begin + 34) != 0) fail("archives in several parts are not supported");
    member.deflated = method == 8;
    member.crc = u32(begin + 16);
    member.bytes = u32(begin + 24);
    std::uint64_t packed = u32(begin + 20);
    std::uint64_t local = u32(begin + 42);
    read_extra64(begin + kEntryBytes + name_bytes, extra_bytes, {&member.bytes, &packed, &local},
                 about);

    // The data follows the local header, which repeats the fields read here.
    if (local > directory.begin || directory.begin - local < kLocalBytes) {
      fail(about + "lies outside of the archive");
    }
    if (u32(local) != kLocalSignature || u16(local + 8) != method ||
        u16(local + 26) != name_bytes || directory.begin - local - kLocalBytes < name_bytes ||
        std::memcmp(at(local + kLocalBytes), member.name.data(), name_bytes) != 0) {
      fail(about + "its local header is not that of the directory");
    }
    const std::uint64_t data = local + kLocalBytes + name_bytes + u16(local + 28);
    if (data > directory.begin || directory.begin - data < packed) {
      fail(about + "lies outside of the archive");
    }
    if (member.deflated ? member.bytes / kMostRatio > packed : member.bytes != packed) {
      fail(message(about, "declares ", member.bytes, " bytes, which ", packed,
                   member.deflated ? " deflated" : " stored", " bytes cannot be"));
    }
    member.packed = input_.bytes.subspan(data, packed);
    ranges_.push_back({local, data + packed, out.size()});
    out.push_back(std::move(member));
    return begin + kEntryBytes + rest;
  }

  /// Replaces values marked kIn64 by those of the zip64 field.
  void read_extra64(std::uint64_t begin, std::uint64_t bytes,
                    std::initializer_list<std::uint64_t*> values, const std::string& about) const {
    if (std::none_of(values.begin(), values.end(), [](const auto* v) { return *v == kIn64; })) {
      return;
    }
    const std::uint64_t end = begin + bytes;
    while (end - begin >= 4) {
      const std::uint64_t length = u16(begin + 2);
      if (end - begin - 4 < length) break;
      if (u16(begin) != 1) {
        begin += 4 + length;
        continue;
      }
      std::uint64_t field = begin + 4;
      for (std::uint64_t* value : values) {
        if (*value != kIn64) continue;
        if (begin + 4 + length - field < 8) fail(about + "its zip64 field is too short");
        *value = u64(field);
        field += 8;
      }
      return;
    }
    // Without a zip64 field the values stay; later checks refuse them if the archive is smaller.
  }

  void check_overlap(const std::vector<ZipMember>& members) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < ranges_.size(); ++i) {
      if (ranges_[i].begin < ranges_[i - 1].end) {
        fail(message("members ", quoted_name(members[ranges_[i - 1].member].name), " and ",
                     quoted_name(members[ranges_[i].member].name), " share bytes"));
      }
    }
  }

  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t member;
  };

  const Input& input_;
  std::uint64_t size_;
  std::vector<Range> ranges_;
};

}  // namespace

std::vector<ZipMember> zip_members(const Input& input) { return Reader(input).members(); }

struct ZipReader::Stream {
  z_stream z = {};
  std::size_t taken = 0;  // of the packed bytes
};

ZipReader::ZipReader(const ZipMember& member, std::string where)
    : member_(member), where_(std::move(where)) {
  if (!member.deflated) return;
  stream_ = std::make_unique<Stream>();
  if (inflateInit2(&stream_->z, -MAX_WBITS) != Z_OK) {
    throw OutOfMemory(message(where_, ": no memory to unpack with"), 1U << 16, 0);
  }
}

ZipReader::~ZipReader() {
  if (stream_ != nullptr) inflateEnd(&stream_->z);
}

void ZipReader::fail(const char* what) const { throw IoError(message(where_, ": ", what)); }

void ZipReader::read(void* out, std::size_t bytes) {
  constexpr std::size_t kStep = 1U << 20;    // bytes unpacked between two polls for interrupts
  constexpr std::size_t kMostIn = 1U << 30;  // zlib counts in 32 bits
  auto* to = static_cast<std::uint8_t*>(out);
  while (bytes > 0) {
    parallel::poll_interrupt();
    const std::size_t step = std::min(bytes, kStep);
    std::size_t got = step;
    if (stream_ == nullptr) {
      std::memcpy(to, member_.packed.data() + done_, step);
    } else {
      z_stream& z = stream_->z;
      const auto rest = member_.packed.subspan(stream_->taken);
      z.next_in = const_cast<std::uint8_t*>(rest.data());  // zlib only reads there
      z.avail_in = static_cast<uInt>(std::min(rest.size(), kMostIn));
      const std::size_t given = z.avail_in;
      z.next_out = to;
      z.avail_out = static_cast<uInt>(step);
      const int result = inflate(&z, Z_NO_FLUSH);
      stream_->taken += given - z.avail_in;
      got = step - z.avail_out;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        fail("damaged deflated data");
      }
      if (got < step && (result == Z_STREAM_END || (got == 0 && given == z.avail_in))) {
        fail("unpacks to fewer bytes than it declares");
      }
    }
    crc_ = static_cast<std::uint32_t>(crc32(crc_, to, static_cast<uInt>(got)));
    done_ += got;
    to += got;
    bytes -= got;
  }
}

void ZipReader::finish() {
  if (stream_ != nullptr) {
    // One more byte distinguishes the end of the stream from data beyond the declared size.
    z_stream& z = stream_->z;
    const auto rest = member_.packed.subspan(stream_->taken);
    std::uint8_t beyond = 0;
    z.next_in = const_cast<std::uint8_t*>(rest.data());
    z.avail_in = static_cast<uInt>(std::min<std::size_t>(rest.size(), 1U << 30));
    z.next_out = &beyond;
    z.avail_out = 1;
    const bool ended = inflate(&z, Z_NO_FLUSH) == Z_STREAM_END;
    if (z.avail_out == 0) fail("unpacks to more bytes than it declares");
    if (!ended || z.avail_in != 0) fail("damaged deflated data");
  }
  if (crc_ != member_.crc) fail("its checksum does not fit: the data is damaged");
}

}  // namespace baregrad::io
