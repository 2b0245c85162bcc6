// PNG: chunks with checksums, one deflate stream of filtered rows, in one pass or seven.
#include <cstdlib>
#include <cstring>
#include <vector>

#include <zlib.h>

#include "core/integer_math.h"
#include "data/source.h"
#include "parallel/interrupt.h"

namespace baregrad::data {

namespace {

enum Colour : std::uint8_t { Gray = 0, Rgb = 2, Palette = 3, GrayAlpha = 4, Rgba = 6 };

struct Png {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int depth = 0;
  Colour colour = Gray;
  bool interlaced = false;
  int palette_size = 0;
  std::uint8_t palette[256][4];  // red, green, blue, alpha
  bool transparent = false;      // a tRNS chunk
  int key[3] = {};               // the transparent colour, of images without a palette
  std::vector<Bytes> data;
  std::uint64_t data_bytes = 0;

  int samples() const {  // in the file, per pixel
    return colour == Rgb ? 3 : colour == GrayAlpha ? 2 : colour == Rgba ? 4 : 1;
  }
  int channels() const {  // in the result
    const int colours = colour == Palette ? 3 : samples();
    return colours + (transparent ? 1 : 0);
  }
  std::int64_t row_bytes(std::int64_t pixels) const {
    return ceil_div(pixels * samples() * depth, 8);
  }
};

constexpr std::uint32_t tag(const char (&name)[5]) {
  return static_cast<std::uint32_t>(name[0]) << 24 | static_cast<std::uint32_t>(name[1]) << 16 |
         static_cast<std::uint32_t>(name[2]) << 8 | static_cast<std::uint32_t>(name[3]);
}

std::string tag_text(std::uint32_t type) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const auto c = static_cast<char>(type >> shift);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

/// Reads the chunks and checks their lengths and checksums.
class Chunks {
 public:
  Chunks(Bytes bytes, const std::string& who) : bytes_(bytes), who_(who) {}

  std::uint32_t type = 0;
  Bytes body;

  void next() {
    constexpr std::size_t kFrame = 12;  // length, type, checksum
    if (bytes_.size() < kFrame) fail(who_, "ends before the IEND chunk");
    const std::uint32_t length = load_be32(bytes_.data());
    type = load_be32(bytes_.data() + 4);
    if (length > bytes_.size() - kFrame) {
      fail(who_, "has a chunk ", tag_text(type), " of ", length, " bytes, but only ",
           bytes_.size() - kFrame, " are left");
    }
    body = bytes_.subspan(8, length);
    const auto sum = crc32_z(0, bytes_.data() + 4, std::size_t{length} + 4);
    if (sum != load_be32(bytes_.data() + 8 + length)) {
      fail(who_, "has a chunk ", tag_text(type), " with a wrong checksum");
    }
    bytes_ = bytes_.subspan(kFrame + length);
  }

 private:
  Bytes bytes_;
  const std::string& who_;
};

void read_header(Png& png, Bytes body, const std::string& who) {
  if (body.size() != 13) fail(who, "has an IHDR chunk of ", body.size(), " bytes, needs 13");
  png.width = load_be32(body.data());
  png.height = load_be32(body.data() + 4);
  png.depth = body[8];
  png.colour = static_cast<Colour>(body[9]);
  const int d = png.depth;
  bool known = false;
  switch (png.colour) {
    case Gray:
      known = d == 1 || d == 2 || d == 4 || d == 8 || d == 16;
      break;
    case Palette:
      known = d == 1 || d == 2 || d == 4 || d == 8;
      break;
    case Rgb:
    case GrayAlpha:
    case Rgba:
      known = d == 8 || d == 16;
      break;
  }
  if (!known) {
    fail(who, "has ", d, " bits of colour type ", body[9], ", which PNG does not have");
  }
  if (body[10] != 0 || body[11] != 0 || body[12] > 1) {
    fail(who, "uses compression ", body[10], ", filter ", body[11], ", interlace ", body[12],
         ", which PNG does not have");
  }
  png.interlaced = body[12] == 1;
  // Both have 32 bits, so the product does not overflow.
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(png.width) * static_cast<std::uint64_t>(png.height);
  if (pixels == 0 || pixels > static_cast<std::uint64_t>(kMostPixels)) {
    fail(who, "declares ", png.width, " x ", png.height, " pixels; takes 1 to ", kMostPixels);
  }
}

void read_palette(Png& png, Bytes body, const std::string& who) {
  if (png.palette_size != 0 || body.empty() || body.size() % 3 != 0 || body.size() > 768) {
    fail(who, "has a second palette, or one of ", body.size(), " bytes");
  }
  png.palette_size = static_cast<int>(body.size() / 3);
  for (int i = 0; i < png.palette_size; ++i) {
    std::memcpy(png.palette[i], body.data() + 3 * i, 3);
    png.palette[i][3] = 255;
  }
}

void read_transparency(Png& png, Bytes body, const std::string& who) {
  const std::size_t most = png.colour == Palette ? static_cast<std::size_t>(png.palette_size)
                           : png.colour == Gray  ? 2
                           : png.colour == Rgb   ? 6
                                                 : 0;
  const bool fits = png.colour == Palette ? body.size() <= most : body.size() == most;
  if (png.transparent || body.empty() || !fits) {
    fail(who, "has a tRNS chunk of ", body.size(), " bytes that does not fit the colour type");
  }
  png.transparent = true;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (png.colour == Palette) {
      png.palette[i][3] = body[i];
    } else if (i % 2 == 0) {
      png.key[i / 2] = body[i] << 8 | body[i + 1];
    }
  }
}

Png read_chunks(Bytes bytes, const std::string& who) {
  Png png;
  Chunks chunks(bytes, who);
  chunks.next();
  if (chunks.type != tag("IHDR")) fail(who, "does not begin with an IHDR chunk");
  read_header(png, chunks.body, who);
  bool after_data = false;
  for (;;) {
    chunks.next();
    const std::uint32_t type = chunks.type;
    if (type == tag("IEND")) break;
    if (type == tag("IDAT")) {
      if (after_data) fail(who, "has IDAT chunks with others in between");
      png.data.push_back(chunks.body);
      png.data_bytes += chunks.body.size();
      continue;
    }
    after_data = !png.data.empty();
    if (type == tag("PLTE") || type == tag("tRNS")) {
      if (after_data) fail(who, "has a ", tag_text(type), " chunk after the pixels");
      if (type == tag("tRNS")) {
        read_transparency(png, chunks.body, who);
      } else {
        read_palette(png, chunks.body, who);
      }
    } else if ((type >> 24 & 0x20) == 0) {  // a capital letter: a critical chunk
      fail(who, "has a chunk ", tag_text(type), " that is not known");
    }
  }
  if (png.data.empty()) fail(who, "has no IDAT chunk: no pixels");
  if (png.colour == Palette && png.palette_size == 0) fail(who, "has no palette");
  return png;
}

/// One pass of an interlaced image.
struct Pass {
  std::int64_t x0, y0, dx, dy;
};
constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

std::span<const Pass> passes_of(const Png& png) {
  return png.interlaced ? std::span<const Pass>(kAdam7) : std::span<const Pass>(kWhole);
}
/// The number of points first, first + step, ... below size.
std::int64_t points(std::int64_t size, std::int64_t first, std::int64_t step) {
  return size <= first ? 0 : ceil_div(size - first, step);
}

/// Bytes in the deflate stream: each row and its filter byte.
std::uint64_t stream_bytes(const Png& png) {
  std::int64_t bytes = 0;
  for (const Pass& pass : passes_of(png)) {
    const std::int64_t columns = points(png.width, pass.x0, pass.dx);
    // Fewer than 2^28 pixels of 8 bytes: no overflow.
    if (columns > 0) bytes += points(png.height, pass.y0, pass.dy) * (1 + png.row_bytes(columns));
  }
  return static_cast<std::uint64_t>(bytes);
}

int paeth(int left, int up, int corner) {
  const int estimate = left + up - corner;
  const int to_left = std::abs(estimate - left);
  const int to_up = std::abs(estimate - up);
  const int to_corner = std::abs(estimate - corner);
  if (to_left <= to_up && to_left <= to_corner) return left;
  return to_up <= to_corner ? up : corner;
}

/// Reverses the filter of a row. `row` and `above` are preceded by `step` zeros.
void unfilter(int filter, std::uint8_t* row, const std::uint8_t* above, std::int64_t bytes,
              std::int64_t step, const std::string& who) {
  const auto add = [&](auto predict) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      row[i] = static_cast<std::uint8_t>(row[i] + predict(i));
    }
  };
  switch (filter) {
    case 0:
      return;
    case 1:
      return add([=](std::int64_t i) { return int{row[i - step]}; });
    case 2:
      return add([=](std::int64_t i) { return int{above[i]}; });
    case 3:
      return add([=](std::int64_t i) { return (row[i - step] + above[i]) / 2; });
    case 4:
      return add([=](std::int64_t i) { return paeth(row[i - step], above[i], above[i - step]); });
    default:
      fail(who, "has a row with filter ", filter, ", which PNG does not have");
  }
}

/// Sample `index` of a row.
int sample_at(const std::uint8_t* row, std::int64_t index, int depth) {
  if (depth == 8) return row[index];
  if (depth == 16) return row[2 * index] << 8 | row[2 * index + 1];
  const std::int64_t bit = index * depth;
  return row[bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1);
}

/// Copies the pixels of one row to their places in the result.
template <class T>
void spread(const Png& png, const std::uint8_t* row, std::int64_t columns, T* to, std::int64_t dx,
            const std::string& who) {
  const std::int64_t plane = png.width * png.height;
  const int samples = png.samples();
  const int channels = png.channels();
  const int scale = png.depth < 8 ? 255 / ((1 << png.depth) - 1) : 1;
  for (std::int64_t x = 0; x < columns; ++x, to += dx) {
    if (png.colour == Palette) {
      const int entry = sample_at(row, x, png.depth);
      if (entry >= png.palette_size) {
        fail(who, "has colour ", entry, " of a palette of ", png.palette_size);
      }
      for (int c = 0; c < channels; ++c) to[c * plane] = png.palette[entry][c];
      continue;
    }
    bool is_key = png.transparent;
    for (int c = 0; c < samples; ++c) {
      const int value = sample_at(row, x * samples + c, png.depth);
      is_key = is_key && value == png.key[c];
      to[c * plane] = static_cast<T>(value * scale);
    }
    if (png.transparent) to[samples * plane] = is_key ? T{0} : static_cast<T>(-1);
  }
}

template <class T>
void decode_pixels(const Png& png, Source& stream, const Tensor& out) {
  const std::string& who = stream.who();
  const std::int64_t step = std::max(1, png.samples() * png.depth / 8);
  const auto room = static_cast<std::size_t>(step + png.row_bytes(png.width));
  std::vector<std::uint8_t> rows[2];
  for (const Pass& pass : passes_of(png)) {
    const std::int64_t columns = points(png.width, pass.x0, pass.dx);
    if (columns == 0) continue;
    const std::int64_t bytes = png.row_bytes(columns);
    rows[0].assign(room, 0);
    rows[1].assign(room, 0);
    for (std::int64_t y = pass.y0; y < png.height; y += pass.dy) {
      parallel::poll_interrupt();
      std::uint8_t filter = 0;
      stream.read_exactly(&filter, 1, "pixels");
      std::uint8_t* row = rows[1].data() + step;
      stream.read_exactly(row, static_cast<std::size_t>(bytes), "pixels");
      unfilter(filter, row, rows[0].data() + step, bytes, step, who);
      spread(png, row, columns, out.data<T>() + y * png.width + pass.x0, pass.dx, who);
      rows[0].swap(rows[1]);
    }
  }
  if (!stream.at_end()) fail(who, "holds more pixels than it declares");
}

}  // namespace

Tensor decode_png(Bytes bytes, const std::string& who, std::uint64_t limit) {
  constexpr std::uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (bytes.size() < 8 || std::memcmp(bytes.data(), kSignature, 8) != 0) {
    fail(who, "is no PNG image: does not begin with its signature");
  }
  Png png = read_chunks(bytes.subspan(8), who);
  if (stream_bytes(png) > png.data_bytes * kMostInflation) {
    fail(who, "declares ", png.width, " x ", png.height, " pixels, ", stream_bytes(png),
         " bytes, which cannot be compressed to ", png.data_bytes);
  }
  InflateSource stream(std::make_unique<MemorySource>(who, std::move(png.data)), Deflate::Zlib);
  const DType dtype = png.depth == 16 ? DType::UInt16 : DType::UInt8;
  // At most 2^28 pixels of 8 bytes: no overflow.
  const std::uint64_t decoded = static_cast<std::uint64_t>(png.channels()) *
                                static_cast<std::uint64_t>(png.width * png.height) *
                                itemsize(dtype);
  if (decoded > limit) {
    fail_limit(who,
               message("declares ", png.width, " x ", png.height, " pixels, ", decoded,
                       " bytes in memory, more"),
               limit);
  }
  Tensor out = Tensor::allocate({png.channels(), png.height, png.width}, dtype, who.c_str());
  if (dtype == DType::UInt16) {
    decode_pixels<std::uint16_t>(png, stream, out);
  } else {
    decode_pixels<std::uint8_t>(png, stream, out);
  }
  return out;
}

Tensor decode_png(Bytes bytes, std::uint64_t max_bytes) {
  return decode_png(bytes, "decode_png", decoded_limit(bytes.size(), max_bytes));
}

}  // namespace baregrad::data
