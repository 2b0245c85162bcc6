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

}  // namespace

void ZipWriter::put(std::string_view part) {
  sink_(part);
  at_ += part.size();
}

void ZipWriter::add(const std::string& name, std::uint64_t bytes, bool deflate,
                    const std::function<void(const Sink&)>& contents) {
  const std::uint64_t local = at_;
  std::uint32_t crc = 0;
  const auto add_crc = [&](const Bytef* data, uInt count) {
    crc = static_cast<std::uint32_t>(crc32(crc, data, count));
  };
  // Stored members are read twice, so that their header can state the checksum. The size of a
  // deflated member is known only at its end: incompressible data grows by a few bytes per 16 KB,
  // and zip64 is chosen by that upper bound.
  if (!deflate) contents([&](std::string_view part) { in_steps(part, add_crc); });
  const bool wide = bytes + bytes / 1000 + 1000 >= kSizeIn64;
  const auto flags = static_cast<std::uint16_t>(kUtf8Name | (deflate ? kSizesFollow : 0));
  const std::uint16_t version = wide ? 45 : 20;
  const std::uint16_t method = deflate ? 8 : 0;
  const auto append_common = [&](std::string& out) {
    append_little(out, version);
    append_little(out, flags);
    append_little(out, method);
    append_little(out, std::uint16_t{0});
    append_little(out, kDate);
  };

  std::string header = "PK\3\4";
  append_common(header);
  append_little(header, crc);
  const std::uint64_t known = deflate ? 0 : bytes;
  append_little(header, wide ? kSizeIn64 : clipped(known));
  append_little(header, wide ? kSizeIn64 : clipped(known));
  append_little(header, static_cast<std::uint16_t>(name.size()));
  append_little(header, static_cast<std::uint16_t>(wide ? 20 : 0));
  header += name;
  if (wide) {
    append_little(header, std::uint16_t{1});
    append_little(header, std::uint16_t{16});
    append_little(header, known);
    append_little(header, known);
  }
  put(header);

  const std::uint64_t data = at_;
  if (deflate) {
    Deflater deflater([&](std::string_view part) { put(part); }, who_);
    contents([&](std::string_view part) {
      in_steps(part, [&](const Bytef* block, uInt count) {
        add_crc(block, count);
        deflater.run(block, count, Z_NO_FLUSH);
      });
    });
    deflater.run(nullptr, 0, Z_FINISH);
  } else {
    contents([&](std::string_view part) { put(part); });
  }
  const std::uint64_t packed = at_ - data;
  if (deflate) {
    std::string sizes = "PK\7\10";
    append_little(sizes, crc);
    if (wide) {
      append_little(sizes, packed);
      append_little(sizes, bytes);
    } else {
      append_little(sizes, clipped(packed));
      append_little(sizes, clipped(bytes));
    }
    put(sizes);
  }

  std::string extra;
  for (const std::uint64_t value : {bytes, packed, local}) {
    if (value >= kSizeIn64) append_little(extra, value);
  }
  directory_ += "PK\1\2";
  append_little(directory_, std::uint16_t{45});
  append_common(directory_);
  append_little(directory_, crc);
  append_little(directory_, clipped(packed));
  append_little(directory_, clipped(bytes));
  append_little(directory_, static_cast<std::uint16_t>(name.size()));
  append_little(directory_, static_cast<std::uint16_t>(extra.empty() ? 0 : extra.size() + 4));
  directory_.append(10, '\0');  // comment, disk, attributes
  append_little(directory_, clipped(local));
  directory_ += name;
  if (!extra.empty()) {
    append_little(directory_, std::uint16_t{1});
    append_little(directory_, static_cast<std::uint16_t>(extra.size()));
    directory_ += extra;
  }
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
    append_little(end, std::uint16_t{45});
    append_little(end, std::uint16_t{45});
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
