// Writing zip archives in one pass. The date is always 1980: the same tensors give the same bytes.
#include <algorithm>
#include <memory>

#include <zlib.h>

#include "baregrad/error.h"
#include "core/message.h"
#include "io/zip.h"

namespace baregrad::io {

namespace {

constexpr std::uint32_t kSizeIn64 = 0xFFFFFFFF;
constexpr std::uint16_t kDate = (1 << 5) | 1;  // 1980-01-01
constexpr std::uint16_t kUtf8Name = 1 << 11;
constexpr std::uint16_t kSizesFollow = 1 << 3;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;
constexpr std::uint16_t kZip64Field = 1;
// Versions of the format that a reader must know.
constexpr std::uint16_t kVersionDeflate = 20;
constexpr std::uint16_t kVersionZip64 = 45;

std::uint32_t clipped(std::uint64_t value) {
  return value < kSizeIn64 ? static_cast<std::uint32_t>(value) : kSizeIn64;
}

/// Calls `use(data, bytes)` with pieces that fit zlib's 32-bit counts.
template <class F>
void in_steps(std::string_view part, const F& use) {
  constexpr std::size_t kStep = 1U << 30;
  for (std::size_t i = 0; i < part.size(); i += kStep) {
    const std::string_view step = part.substr(i, kStep);
    use(reinterpret_cast<const Bytef*>(step.data()), static_cast<uInt>(step.size()));
  }
}

/// Deflates its input and passes the result on.
class Deflater {
 public:
  Deflater(Sink sink, const char* who) : sink_(std::move(sink)) {
    if (deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw OutOfMemory(message(who, ": no memory to deflate with"), 1U << 18, 0);
    }
  }
  ~Deflater() { deflateEnd(&z_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void run(const Bytef* data, uInt bytes, int flush) {
    z_.next_in = const_cast<Bytef*>(data);  // zlib only reads there
    z_.avail_in = bytes;
    do {
      z_.next_out = reinterpret_cast<Bytef*>(block_.data());
      z_.avail_out = static_cast<uInt>(block_.size());
      deflate(&z_, flush);
      sink_(std::string_view(block_).substr(0, block_.size() - z_.avail_out));
    } while (z_.avail_out == 0);
  }

 private:
  Sink sink_;
  z_stream z_ = {};
  std::string block_ = std::string(1U << 16, '\0');
};

/// What the headers of a member state about it.
struct ZipEntry {
  const std::string& name;
  bool deflated;
  std::uint64_t bytes;       // unpacked
  std::uint64_t packed = 0;  // in the archive
  std::uint64_t begin = 0;   // of its local header
  std::uint32_t checksum = 0;

  /// Whether the sizes around its data take 64 bits. This is decided before a deflated size is
  /// known: data that does not shrink grows by a few bytes in 16 KB.
  bool needs_zip64() const { return bytes + bytes / 1000 + 1000 >= kSizeIn64; }
};

/// The fields that the local header and the directory share.
void append_common(std::string& out, const ZipEntry& entry, std::uint16_t version) {
  append_little(out, version);
  append_little(out, static_cast<std::uint16_t>(kUtf8Name | (entry.deflated ? kSizesFollow : 0)));
  append_little(out, entry.deflated ? kDeflated : kStored);
  append_little(out, std::uint16_t{0});  // time
  append_little(out, kDate);
}

/// Of a deflated member, the checksum and the sizes are not known yet: they are 0 here and follow
/// the data.
std::string local_header(const ZipEntry& entry) {
  const bool zip64 = entry.needs_zip64();
  const std::uint64_t known = entry.deflated ? 0 : entry.bytes;
  const std::uint32_t size = zip64 ? kSizeIn64 : clipped(known);
  std::string out = "PK\3\4";
  append_common(out, entry, zip64 ? kVersionZip64 : kVersionDeflate);
  append_little(out, entry.checksum);
  append_little(out, size);  // packed
  append_little(out, size);  // unpacked
  append_little(out, static_cast<std::uint16_t>(entry.name.size()));
  append_little(out, static_cast<std::uint16_t>(zip64 ? 20 : 0));
  out += entry.name;
  if (zip64) {
    append_little(out, kZip64Field);
    append_little(out, std::uint16_t{16});
    append_little(out, known);
    append_little(out, known);
  }
  return out;
}

/// What follows the data of a deflated member.
std::string data_descriptor(const ZipEntry& entry) {
  std::string out = "PK\7\10";
  append_little(out, entry.checksum);
  if (entry.needs_zip64()) {
    append_little(out, entry.packed);
    append_little(out, entry.bytes);
  } else {
    append_little(out, clipped(entry.packed));
    append_little(out, clipped(entry.bytes));
  }
  return out;
}

void append_directory_entry(std::string& out, const ZipEntry& entry) {
  std::string zip64;
  for (const std::uint64_t value : {entry.bytes, entry.packed, entry.begin}) {
    if (value >= kSizeIn64) append_little(zip64, value);
  }
  out += "PK\1\2";
  append_little(out, kVersionZip64);  // of the writer
  append_common(out, entry, entry.needs_zip64() ? kVersionZip64 : kVersionDeflate);
  append_little(out, entry.checksum);
  append_little(out, clipped(entry.packed));
  append_little(out, clipped(entry.bytes));
  append_little(out, static_cast<std::uint16_t>(entry.name.size()));
  append_little(out, static_cast<std::uint16_t>(zip64.empty() ? 0 : zip64.size() + 4));
  out.append(10, '\0');  // comment, disk, attributes
  append_little(out, clipped(entry.begin));
  out += entry.name;
  if (zip64.empty()) return;
  append_little(out, kZip64Field);
  append_little(out, static_cast<std::uint16_t>(zip64.size()));
  out += zip64;
}

std::uint32_t checksum_of(const ZipWriter::Contents& contents) {
  std::uint32_t checksum = 0;
  contents([&](std::string_view part) {
    in_steps(part, [&](const Bytef* data, uInt bytes) {
      checksum = static_cast<std::uint32_t>(crc32(checksum, data, bytes));
    });
  });
  return checksum;
}

}  // namespace

void ZipWriter::put(std::string_view part) {
  sink_(part);
  at_ += part.size();
}

std::uint32_t ZipWriter::put_deflated(const Contents& contents) {
  std::uint32_t checksum = 0;
  Deflater deflater([&](std::string_view part) { put(part); }, who_);
  contents([&](std::string_view part) {
    in_steps(part, [&](const Bytef* data, uInt bytes) {
      checksum = static_cast<std::uint32_t>(crc32(checksum, data, bytes));
      deflater.run(data, bytes, Z_NO_FLUSH);
    });
  });
  deflater.run(nullptr, 0, Z_FINISH);
  return checksum;
}

void ZipWriter::add(const std::string& name, std::uint64_t bytes, bool deflate,
                    const Contents& contents) {
  ZipEntry entry{.name = name, .deflated = deflate, .bytes = bytes, .begin = at_};
  if (deflate) {
    put(local_header(entry));
    const std::uint64_t begin = at_;
    entry.checksum = put_deflated(contents);
    entry.packed = at_ - begin;
    put(data_descriptor(entry));
  } else {
    // Read twice, so that the header in front of the data can state the checksum.
    entry.checksum = checksum_of(contents);
    entry.packed = bytes;
    put(local_header(entry));
    contents([&](std::string_view part) { put(part); });
  }
  append_directory_entry(directory_, entry);
  ++count_;
}

void ZipWriter::finish() {
  const std::uint64_t begin = at_;
  const std::uint64_t bytes = directory_.size();
  put(directory_);
  std::string end;
  if (count_ >= 0xFFFF || bytes >= kSizeIn64 || begin >= kSizeIn64) {
    const std::uint64_t record = at_;
    end += "PK\6\6";
    append_little(end, std::uint64_t{44});
    append_little(end, kVersionZip64);  // of the writer
    append_little(end, kVersionZip64);
    end.append(8, '\0');  // disks
    append_little(end, count_);
    append_little(end, count_);
    append_little(end, bytes);
    append_little(end, begin);
    end += "PK\6\7";
    end.append(4, '\0');
    append_little(end, record);
    append_little(end, std::uint32_t{1});
  }
  const auto count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count_, 0xFFFF));
  end += "PK\5\6";
  end.append(4, '\0');
  append_little(end, count);
  append_little(end, count);
  append_little(end, clipped(bytes));
  append_little(end, clipped(begin));
  append_little(end, std::uint16_t{0});
  put(end);
}

}  // namespace baregrad::io
