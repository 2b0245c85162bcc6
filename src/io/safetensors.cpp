// safetensors: eight bytes of length, a JSON header, the data.
// https://github.com/huggingface/safetensors
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/json_string.h"
#include "core/message.h"
#include "core/utf8.h"
#include "io/formats.h"
#include "io/input.h"
#include "io/output.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr std::array<std::string_view, kNumDTypes> kNames = {
    "BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64"};

/// One tensor as the header declares it.
struct Entry {
  std::string name;
  Elements elements;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Reads the header: an object of objects with known keys. It does not recurse, so the depth is
/// bounded. Anything else is an IoError.
class Header {
 public:
  Header(const Input& input, std::string_view text) : input_(input), text_(text) {}

  /// A deque: one allocation for all entries could be larger than the file.
  std::deque<Entry> entries;
  Metadata metadata;

  void read() {
    if (!is_utf8(text_)) fail("the header is not UTF-8");
    if (!text_.starts_with('{')) fail("the header does not begin with '{'");
    object([&](std::string key) {
      check_key("tensor", key);
      if (key == kMetadataKey) {
        read_metadata();
      } else {
        entries.emplace_back().name = std::move(key);
        read_entry(entries.back());
      }
    });
    skip_space();
    if (at_ != text_.size()) fail("something follows the header's object");
    check_names();
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw IoError(message(input_.where, ": ", about_, what, " (byte ", at_, " of the header)"));
  }

 private:
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  /// The next character that is no space, 0 at the end.
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void expect(char wanted) {
    if (peek() != wanted) fail(message("expected '", wanted, "'"));
    ++at_;
  }

  /// True after a comma, false at the end of a list.
  bool goes_on(char end) {
    const char c = peek();
    if (c != ',' && c != end) fail(message("expected ',' or '", end, "'"));
    ++at_;
    return c == ',';
  }

  /// Calls `value(key)` at the start of the value of each key.
  template <class F>
  void object(const F& value) {
    expect('{');
    if (peek() == '}') {
      ++at_;
      return;
    }
    do {
      std::string key = string();
      expect(':');
      value(std::move(key));
    } while (goes_on('}'));
  }

  unsigned hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const std::size_t digit = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) fail("\\u without four hexadecimal digits");
      code = code * 16 + static_cast<unsigned>(digit);
      ++at_;
    }
    return code;
  }

  void escape(std::string& out) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (c == 'u') {
      unsigned code = hex4();
      if (code >= 0xD800 && code < 0xE000) {
        const bool paired = code < 0xDC00 && text_.substr(at_).starts_with("\\u");
        if (paired) at_ += 2;
        const unsigned low = paired ? hex4() : 0;
        if (low < 0xDC00 || low >= 0xE000) fail("half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      append_utf8(out, code);
      return;
    }
    const std::size_t which = kEscapes.find(c);
    if (which == std::string_view::npos) fail("unknown escape in a string");
    out += kMeanings[which];
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      const std::size_t stop = text_.find_first_of(kSpecial, at_);
      if (stop == std::string_view::npos) fail("a string does not end");
      out += text_.substr(at_, stop - at_);
      at_ = stop + 1;
      if (text_[stop] == '"') return out;
      if (text_[stop] != '\\') fail("control character in a string");
      escape(out);
    }
  }

  std::int64_t number() {
    if (peek() < '0' || peek() > '9') fail("expected a non-negative integer");
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("an integer of 2^63 or more");
      }
    }
    if (text_[begin] == '0' && at_ - begin > 1) fail("an integer with a leading zero");
    if (at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos) {
      fail("expected an integer, found a fraction or an exponent");
    }
    return value;
  }

  /// Calls `value(number)` for each number of a list.
  template <class F>
  void numbers(const F& value) {
    expect('[');
    if (peek() == ']') {
      ++at_;
      return;
    }
    do {
      value(number());
    } while (goes_on(']'));
  }

  /// The text is valid UTF-8, but an escape may encode a NUL character.
  void check_key(const char* what, std::string_view key) const {
    if (const char* fault = name_fault(key)) fail(message(what, " ", quoted_name(key), " ", fault));
  }

  void read_metadata() {
    if (metadata_seen_) fail("__metadata__ occurs twice");
    metadata_seen_ = true;
    object([&](std::string key) {
      check_key("metadata key", key);
      const auto [where, fresh] = metadata.try_emplace(std::move(key));
      if (!fresh) fail(message("key ", quoted_name(where->first), " of __metadata__ occurs twice"));
      where->second = string();
    });
  }

  void read_entry(Entry& entry) {
    about_ = message("tensor ", quoted_name(entry.name), ": ");
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
    object([&](const std::string& key) {
      bool* seen = key == "dtype"          ? &dtype
                   : key == "shape"        ? &shape
                   : key == "data_offsets" ? &offsets
                                           : nullptr;
      if (seen == nullptr) fail(message("unknown key ", quoted_name(key)));
      if (*seen) fail(message("key ", quoted_name(key), " occurs twice"));
      *seen = true;
      if (seen == &dtype) {
        entry.elements.dtype = read_dtype();
      } else if (seen == &shape) {
        numbers([&](std::int64_t size) {
          if (entry.elements.shape.size() == kMaxDims) {
            fail(message("more than ", kMaxDims, " dimensions"));
          }
          entry.elements.shape.push_back(size);
        });
      } else {
        read_offsets(entry);
      }
    });
    if (!dtype || !shape || !offsets) {
      fail(message("no ", !dtype ? "dtype" : !shape ? "shape" : "data_offsets"));
    }
    about_.clear();
  }

  DType read_dtype() {
    const std::string text = string();
    const auto* found = std::find(kNames.begin(), kNames.end(), text);
    if (found == kNames.end()) fail(message("unknown dtype ", quoted_name(text)));
    return static_cast<DType>(found - kNames.begin());
  }

  void read_offsets(Entry& entry) {
    std::array<std::int64_t, 2> bounds = {};
    std::size_t count = 0;
    numbers([&](std::int64_t bound) {
      if (count < bounds.size()) bounds[count] = bound;
      ++count;
    });
    if (count != bounds.size()) fail(message("data_offsets holds ", count, " numbers, not 2"));
    entry.begin = static_cast<std::size_t>(bounds[0]);
    entry.end = static_cast<std::size_t>(bounds[1]);
  }

  void check_names() const {
    std::vector<std::string_view> names;
    names.reserve(entries.size());
    for (const Entry& entry : entries) names.emplace_back(entry.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) fail(message("tensor ", quoted_name(*twice), " occurs twice"));
  }

  // The characters that end a run of plain characters.
  static constexpr std::string_view kSpecial{
      "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37\""
      "\\",
      34};

  const Input& input_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::string about_;  // "tensor 'a': " while an entry is read
  bool metadata_seen_ = false;
};

/// Checks that every tensor lies inside the data, has the size of its shape, and that together they
/// cover the data exactly once.
void check_offsets(const std::deque<Entry>& entries, std::size_t data_bytes, const Input& input) {
  const auto fail = [&](const Entry& entry, const std::string& what) {
    throw IoError(message(input.where, ": tensor ", quoted_name(entry.name), ": ", what));
  };
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) {
    const std::string offsets = message("data_offsets [", entry.begin, ",", entry.end, "]");
    if (entry.begin > entry.end) fail(entry, message(offsets, " end before they begin"));
    if (entry.end > data_bytes) {
      fail(entry, message(offsets, " reach beyond the ", data_bytes, " bytes of data"));
    }
    const Elements& elements = entry.elements;
    const std::optional<std::size_t> bytes = declared_bytes(elements.shape, elements.dtype);
    if (bytes != entry.end - entry.begin) {
      fail(entry,
           message(offsets, " do not hold ", name(elements.dtype), to_string(elements.shape),
                   ", which takes ", bytes ? std::to_string(*bytes) : "2^63 or more", " bytes"));
    }
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::size_t covered = 0;
  for (const Entry* entry : order) {
    if (entry->begin != covered) {
      fail(*entry, message("its data begins at ", entry->begin, ", ",
                           entry->begin < covered ? "inside of another tensor's"
                                                  : "behind a hole of unused bytes",
                           ", which ends at ", covered));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    throw IoError(
        message(input.where, ": ", data_bytes - covered, " bytes follow the last tensor's data"));
  }
}

/// Reads length and header, and checks both against the data.
Header read_header(Input& input, std::size_t& data_begin) {
  const std::size_t size = input.size;
  if (size < kLengthBytes) {
    throw IoError(message(input.where, ": ", size, " bytes are too few for a safetensors file"));
  }
  load_front(input, kLengthBytes);
  const auto length = load_little<std::uint64_t>(input.bytes.data());
  if (length > kMostHeaderBytes || length > size - kLengthBytes) {
    throw IoError(message(input.where, ": declares a header of ", length, " bytes, but ",
                          length > kMostHeaderBytes ? message("the most is ", kMostHeaderBytes)
                                                    : message("only ", size - 8, " follow")));
  }
  data_begin = kLengthBytes + length;
  load_front(input, data_begin);
  Header header(input, {reinterpret_cast<const char*>(input.bytes.data()) + kLengthBytes, length});
  header.read();
  check_offsets(header.entries, size - data_begin, input);
  return header;
}

SafeTensors read_safetensors(Input input) {
  std::size_t data_begin = 0;
  Header header = read_header(input, data_begin);
  SafeTensors out;
  out.metadata = std::move(header.metadata);
  out.tensors.reserve(header.entries.size());
  for (Entry& entry : header.entries) {
    out.tensors.push_back(
        {std::move(entry.name), tensor_at(input, data_begin + entry.begin, entry.elements)});
  }
  return out;
}

void append_entry(std::string& out, const NamedTensor& entry, std::size_t begin) {
  append_json_string(out, entry.name);
  const Tensor& tensor = entry.tensor;
  out += message(":{\"dtype\":\"", kNames[static_cast<std::size_t>(tensor.dtype())],
                 "\",\"shape\":", to_string(tensor.shape()), ",\"data_offsets\":[", begin, ",",
                 begin + tensor.nbytes(), "]}");
}

void write(const Sink& sink, const NamedTensors& tensors, const Metadata& metadata,
           const char* who) {
  check_named(tensors, who);
  std::string header = "{";
  if (!metadata.empty()) {
    append_json_string(header, kMetadataKey);
    header += ":{";
    for (const auto& [key, value] : metadata) {
      check_name(key, "metadata key", who);
      if (!is_utf8(value)) {
        throw ValueError(message(who, ": metadata value ", quoted_name(value), " is not UTF-8"));
      }
      append_json_string(header, key);
      header += ':';
      append_json_string(header, value);
      header += ',';
    }
    header.back() = '}';
    header += ',';
  }

  // Widest dtype first: every tensor then begins at a multiple of its item size.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto width = [&](std::size_t i) { return itemsize(tensors[i].tensor.dtype()); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return width(a) > width(b); });
  std::vector<std::size_t> begins(tensors.size());
  std::size_t begin = 0;
  for (const std::size_t i : order) {
    begins[i] = begin;
    if (__builtin_add_overflow(begin, tensors[i].tensor.nbytes(), &begin)) {
      throw ValueError(message(who, ": more than 2^64 bytes of data"));
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == kMetadataKey) {
      throw ValueError(message(who, ": a tensor cannot be named ", quoted_name(kMetadataKey)));
    }
    check_name(tensors[i].name, "tensor name", who);
    append_entry(header, tensors[i], begins[i]);
    header += ',';
  }
  if (header.size() > 1) header.pop_back();
  header += '}';
  // Spaces up to the next cache line.
  header.append(kAlignment - 1 - (kLengthBytes + header.size() + kAlignment - 1) % kAlignment, ' ');
  if (header.size() > kMostHeaderBytes) {
    throw ValueError(message(who, ": names and metadata take ", header.size(),
                             " bytes; the format allows ", kMostHeaderBytes));
  }
  std::string length;
  append_little(length, static_cast<std::uint64_t>(header.size()));
  sink(length);
  sink(header);
  for (const std::size_t i : order) write_elements(tensors[i].tensor, sink);
}

}  // namespace

void save_safetensors_as(const std::string& path, const NamedTensors& tensors,
                         const Metadata& metadata, const char* who) {
  write_file(path, who, [&](const Sink& sink) { write(sink, tensors, metadata, who); });
}

SafeTensors load_safetensors_as(const std::string& path, const LoadOptions& options,
                                const char* who) {
  return read_safetensors(open_input(path, options, who));
}

Metadata load_metadata(const std::string& path, const char* who) {
  Input input = open_input(path, {}, who);
  std::size_t data_begin = 0;
  return read_header(input, data_begin).metadata;
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  save_safetensors_as(path, tensors, metadata, "save_safetensors");
}

Bytes safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  return write_bytes(
      [&](const Sink& sink) { write(sink, tensors, metadata, "safetensors_bytes"); });
}

SafeTensors load_safetensors(const std::string& path, const LoadOptions& options) {
  return load_safetensors_as(path, options, "load_safetensors");
}

SafeTensors parse_safetensors(std::span<const std::uint8_t> bytes, const std::string& label) {
  return read_safetensors(buffer(bytes, label, "parse_safetensors"));
}

}  // namespace baregrad::io
