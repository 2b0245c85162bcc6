// npy: magic, version, a Python literal with dtype, order and shape, the data.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "io/npy.h"

#include <algorithm>
#include <array>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/message.h"
#include "io/formats.h"
#include "io/output.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// NumPy's letters, without the byte order; bfloat16 has none.
constexpr std::array<std::string_view, kNumDTypes> kCodes = {
    "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "", "f4", "f8"};

/// Reads the literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Elements read() {
    Elements out;
    bool descr = false;
    bool order = false;
    bool shape = false;
    const auto once = [&](bool& seen, std::string_view key) {
      if (seen) fail(message("key ", quoted_name(key), " occurs twice"));
      seen = true;
    };
    expect('{');
    while (peek() != '}') {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        once(descr, key);
        read_dtype(out);
      } else if (key == "fortran_order") {
        once(order, key);
        out.fortran_order = boolean();
      } else if (key == "shape") {
        once(shape, key);
        out.shape = tuple();
      } else {
        fail(message("unknown key ", quoted_name(key)));
      }
      if (peek() != '}') expect(',');
    }
    expect('}');
    if (peek() != '\0') fail("something follows the header's dictionary");
    if (!descr || !order || !shape) {
      fail(message("no ", !descr ? "descr" : !order ? "fortran_order" : "shape"));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw IoError(message(where_, ": ", what, " (byte ", at_, " of the header)"));
  }

  /// The next character that is no space, 0 at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void expect(char wanted) {
    if (peek() != wanted) fail(message("expected '", wanted, "'"));
    ++at_;
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("a string does not end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    peek();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("expected True or False");
  }

  std::int64_t number() {
    if (peek() < '0' || peek() > '9') fail("expected a non-negative integer");
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("an integer of 2^63 or more");
      }
    }
    return value;
  }

  Dims tuple() {
    Dims out;
    expect('(');
    bool comma = true;
    while (peek() != ')') {
      if (!comma) fail("expected ',' or ')'");
      if (out.size() == kMaxDims) fail(message("more than ", kMaxDims, " dimensions"));
      out.push_back(number());
      comma = peek() == ',';
      if (comma) ++at_;
    }
    // (3) is the number 3.
    if (out.size() == 1 && !comma) fail("the shape is a number, not a tuple");
    ++at_;
    return out;
  }

  void read_dtype(Elements& out) {
    if (peek() == '[') fail("arrays of structures are not supported");
    const std::string_view descr = string();
    std::string_view code = descr;
    const char order = code.empty() ? '\0' : code.front();
    const bool stated = order == '<' || order == '>' || order == '=' || order == '|';
    if (stated) code.remove_prefix(1);
    if (code.starts_with('O')) {
      fail("object arrays are refused: they hold pickles, which are programs");
    }
    if (code == "?") code = "b1";
    for (int i = 0; i < kNumDTypes; ++i) {
      if (code != kCodes[static_cast<std::size_t>(i)] || code.empty()) continue;
      out.dtype = static_cast<DType>(i);
      out.swapped = order == '>' && itemsize(out.dtype) > 1;
      return;
    }
    fail(message("dtype ", quoted_name(descr), " is none of ours",
                 code == "V2" ? "; if it was bfloat16, save it as safetensors" : ""));
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

Tensor read_npy(Input input) {
  load_front(input, std::min(input.size, kNpyPreamble));
  const std::size_t begin = npy_data_offset(input.bytes, input.where);
  if (begin > input.size) {
    throw IoError(message(input.where, ": declares a header up to byte ", begin, ", but has only ",
                          input.size));
  }
  load_front(input, begin);
  const Elements elements = npy_elements(input.bytes.first(begin), input.where);
  check_npy_bytes(elements, input.size - begin, input.where);
  return tensor_at(input, begin, elements);
}

void write(const Sink& sink, const Tensor& tensor, const char* who) {
  if (!tensor.defined()) throw ValueError(message(who, ": the tensor is undefined"));
  sink(npy_header(tensor, who));
  write_elements(tensor, sink);
}

}  // namespace

std::size_t npy_data_offset(std::span<const std::uint8_t> start, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(kMagic)) throw IoError(message(where, ": not an npy file"));
  const auto short_file = [&](std::size_t needed) {
    if (text.size() < needed) throw IoError(message(where, ": ends within the header"));
  };
  short_file(kMagic.size() + 2);
  const int major = start[kMagic.size()];
  const int minor = start[kMagic.size() + 1];
  if (major < 1 || major > 3 || minor != 0) {
    throw IoError(message(where, ": npy version ", major, ".", minor, "; known are 1.0 to 3.0"));
  }
  const std::size_t length_at = kMagic.size() + 2;
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  short_file(length_at + length_bytes);
  const std::uint8_t* at = start.data() + length_at;
  const std::size_t length =
      major == 1 ? load_little<std::uint16_t>(at) : load_little<std::uint32_t>(at);
  if (length > kMostNpyHeader) {
    throw IoError(
        message(where, ": declares a header of ", length, " bytes; the most is ", kMostNpyHeader));
  }
  return length_at + length_bytes + length;
}

Elements npy_elements(std::span<const std::uint8_t> header, const std::string& where) {
  const std::size_t begin = header[kMagic.size()] == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  return Literal(text.substr(begin), where).read();
}

void check_npy_bytes(const Elements& elements, std::uint64_t available, const std::string& where) {
  const std::optional<std::size_t> bytes = declared_bytes(elements.shape, elements.dtype);
  if (bytes == available) return;
  throw IoError(message(where, ": ", name(elements.dtype), to_string(elements.shape), " takes ",
                        bytes ? std::to_string(*bytes) : "2^63 or more", " bytes, but ", available,
                        " follow the header"));
}

std::string npy_header(const Tensor& tensor, const std::string& where) {
  if (tensor.dtype() == DType::BFloat16) {
    throw DTypeError(message(where, ": npy has no bfloat16 (", describe(tensor),
                             "); save it as safetensors or as float32"));
  }
  std::string literal = message("{'descr': '", itemsize(tensor.dtype()) == 1 ? '|' : '<',
                                kCodes[static_cast<std::size_t>(tensor.dtype())],
                                "', 'fortran_order': False, 'shape': (");
  for (const std::int64_t size : tensor.shape()) literal += message(size, ", ");
  // "(3, 4)", "(3,)" and "()", as NumPy writes them.
  if (tensor.ndim() > 0) literal.pop_back();
  if (tensor.ndim() > 1) literal.pop_back();
  literal += "), }";
  constexpr std::size_t kFixed = 10;
  literal.append(kAlignment - 1 - (kFixed + literal.size()) % kAlignment, ' ');
  literal += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  append_little(out, static_cast<std::uint16_t>(literal.size()));
  return out + literal;
}

void save_npy_as(const std::string& path, const Tensor& tensor, const char* who) {
  write_file(path, who, [&](const Sink& sink) { write(sink, tensor, who); });
}

Tensor load_npy_as(const std::string& path, const LoadOptions& options, const char* who) {
  return read_npy(open_input(path, options, who));
}

void save_npy(const std::string& path, const Tensor& tensor) {
  save_npy_as(path, tensor, "save_npy");
}

Bytes npy_bytes(const Tensor& tensor) {
  return write_bytes([&](const Sink& sink) { write(sink, tensor, "npy_bytes"); });
}

Tensor load_npy(const std::string& path, const LoadOptions& options) {
  return load_npy_as(path, options, "load_npy");
}

Tensor parse_npy(std::span<const std::uint8_t> bytes, const std::string& label) {
  return read_npy(buffer(bytes, label, "parse_npy"));
}

}  // namespace baregrad::io
