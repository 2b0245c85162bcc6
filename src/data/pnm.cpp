// PGM and PPM: a header of decimal numbers, then samples as text (P2, P3) or bytes (P5, P6).
#include <cstddef>

#include "data/source.h"
#include "parallel/interrupt.h"

namespace baregrad::data {

namespace {

bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(std::uint8_t c) { return c >= '0' && c <= '9'; }

class Text {
 public:
  Text(Bytes bytes, const std::string& who) : bytes_(bytes), who_(who) {}

  /// The next number, after white space and comments.
  std::int64_t number(std::string_view what, std::int64_t greatest) {
    for (;; ++at_) {
      if (at_ == bytes_.size()) fail(who_, "ends before the ", what);
      if (bytes_[at_] == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
        if (at_ == bytes_.size()) fail(who_, "ends before the ", what);
      } else if (!is_space(bytes_[at_])) {
        break;
      }
    }
    if (!is_digit(bytes_[at_])) {
      fail(who_, "has byte ", bytes_[at_], " at ", at_, " instead of the ", what);
    }
    std::int64_t value = 0;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > greatest) {
        fail(who_, "has a ", what, " above ", greatest, " at byte ", at_);
      }
    }
    return value;
  }
  /// The bytes after the one white-space byte that ends the header.
  Bytes raster() {
    if (at_ == bytes_.size() || !is_space(bytes_[at_])) {
      fail(who_, "has no white space after the header");
    }
    return bytes_.subspan(at_ + 1);
  }
  Bytes rest() const { return bytes_.subspan(at_); }

 private:
  Bytes bytes_;
  const std::string& who_;
  std::size_t at_ = 2;
};

/// Calls sample(channel, row, column) for all samples, in the file's order.
template <class T, class Sample>
void fill(const Tensor& out, std::int64_t maxval, const Sample& sample) {
  constexpr std::int64_t kFull = static_cast<T>(-1);
  const std::int64_t channels = out.shape()[0];
  const std::int64_t pixels = out.shape()[1] * out.shape()[2];
  T* to = out.data<T>();
  constexpr std::int64_t kPiece = std::int64_t{1} << 16;
  for (std::int64_t i = 0; i < pixels; ++i) {
    if (i % kPiece == 0) parallel::poll_interrupt();
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t value = sample();
      to[c * pixels + i] =
          static_cast<T>(maxval == kFull ? value : (value * kFull + maxval / 2) / maxval);
    }
  }
}

}  // namespace

Tensor decode_pnm(Bytes bytes, const std::string& who, std::uint64_t limit) {
  const std::uint8_t kind = bytes.size() >= 2 && bytes[0] == 'P' ? bytes[1] : 0;
  if (kind != '2' && kind != '3' && kind != '5' && kind != '6') {
    fail(who, "is no PGM or PPM image: needs to begin with P2, P3, P5 or P6");
  }
  Text text(bytes, who);
  const std::int64_t width = text.number("width", kMostPixels);
  const std::int64_t height = text.number("height", kMostPixels);
  const std::int64_t maxval = text.number("maxval", 65535);
  if (width == 0 || height == 0 || maxval == 0) {
    fail(who, "declares ", width, " x ", height, " pixels up to ", maxval, ": none may be 0");
  }
  // Both are below 2^28, so the product does not overflow.
  if (width * height > kMostPixels) {
    fail(who, "declares ", width, " x ", height, " pixels, more than ", kMostPixels);
  }
  const bool binary = kind >= '5';
  const std::int64_t channels = kind == '3' || kind == '6' ? 3 : 1;
  const std::int64_t samples = width * height * channels;
  const std::int64_t sample_bytes = maxval > 255 ? 2 : 1;
  const Bytes raster = binary ? text.raster() : text.rest();
  // As text, a sample takes at least a digit and a space.
  const std::int64_t least = binary ? samples * sample_bytes : samples * 2;
  if (static_cast<std::int64_t>(raster.size()) < least) {
    fail(who, "declares ", width, " x ", height, " pixels, which take at least ", least,
         " bytes, but holds ", raster.size());
  }
  const DType dtype = maxval > 255 ? DType::UInt16 : DType::UInt8;
  const auto decoded = static_cast<std::uint64_t>(samples * sample_bytes);
  if (decoded > limit) {
    fail_limit(who,
               message("declares ", width, " x ", height, " pixels, ", decoded, " bytes, more"),
               limit);
  }
  Tensor out = Tensor::allocate({channels, height, width}, dtype, who.c_str());
  const std::uint8_t* at = raster.data();
  const auto from_text = [&] { return text.number("sample", maxval); };
  const auto from_bytes = [&] {
    const std::int64_t value = sample_bytes == 2 ? at[0] << 8 | at[1] : at[0];
    at += sample_bytes;
    if (value > maxval) fail(who, "has a sample of ", value, ", above its maxval ", maxval);
    return value;
  };
  const auto fill_from = [&](const auto& sample) {
    if (dtype == DType::UInt16) {
      fill<std::uint16_t>(out, maxval, sample);
    } else {
      fill<std::uint8_t>(out, maxval, sample);
    }
  };
  if (binary) {
    fill_from(from_bytes);
  } else {
    fill_from(from_text);
  }
  return out;
}

Tensor decode_pnm(Bytes bytes, std::uint64_t max_bytes) {
  return decode_pnm(bytes, "decode_pnm", decoded_limit(bytes.size(), max_bytes));
}

}  // namespace baregrad::data
