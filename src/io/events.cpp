// Event files of TensorBoard: records with checksums around Event messages in protobuf's encoding.
//   record:  length (8 bytes), its checksum (4), the message, its checksum (4)
//   message: event.proto, summary.proto, tensor.proto of TensorFlow; the few fields used are below
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>

#include <unistd.h>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/message.h"
#include "io/append_file.h"
#include "io/atomic_file.h"
#include "io/output.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);  // Castagnoli, reversed
    }
    table[i] = value;
  }
  return table;
}

/// CRC-32C, rotated and offset: a plain checksum is weak for data that contains checksums.
std::uint32_t masked_crc(std::string_view data) {
  static constexpr auto kTable = crc32c_table();
  std::uint32_t crc = ~0U;
  for (const char c : data) crc = kTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  crc = ~crc;
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

// ---- The four kinds of protobuf fields used

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_tag(std::string& out, int field, int kind) {
  append_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(kind));
}

void append_integer(std::string& out, int field, std::int64_t value) {
  append_tag(out, field, 0);
  append_varint(out, static_cast<std::uint64_t>(value));
}

void append_double(std::string& out, int field, double value) {
  append_tag(out, field, 1);
  append_little(out, std::bit_cast<std::uint64_t>(value));
}

void append_float(std::string& out, int field, float value) {
  append_tag(out, field, 5);
  append_little(out, std::bit_cast<std::uint32_t>(value));
}

/// A string or a message.
void append_bytes(std::string& out, int field, std::string_view value) {
  append_tag(out, field, 2);
  append_varint(out, value.size());
  out += value;
}

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// Event: wall_time = 1, step = 2, then one of file_version = 3, summary = 5, session_log = 7.
std::string event(double wall_time, std::int64_t step, int field, std::string_view what) {
  std::string out;
  append_double(out, 1, wall_time);
  append_integer(out, 2, step);
  append_bytes(out, field, what);
  return out;
}

/// Summary: value = 1; in it tag = 1.
std::string summary(const std::string& tag, std::string_view rest, const char* who) {
  check_name(tag, "the tag", who);
  std::string value;
  append_bytes(value, 1, tag);
  value += rest;
  std::string out;
  append_bytes(out, 1, value);
  return out;
}

constexpr const char* kEventWriter = "EventWriter";
constexpr std::string_view kFilePrefix = "events.out.tfevents.";

/// The greatest time, in seconds, in the names of the existing files. 0 when there is none.
std::int64_t newest_time(const std::string& folder) {
  constexpr std::size_t kMostDigits = 10;
  std::int64_t newest = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kFilePrefix)) continue;
    const std::string_view rest = std::string_view(file).substr(kFilePrefix.size());
    const std::string_view digits = rest.substr(0, std::min(rest.find('.'), rest.size()));
    std::int64_t time = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), time);
    if (end.ec == std::errc() && digits.size() <= kMostDigits) newest = std::max(newest, time);
  }
  return newest;
}

/// A name that TensorBoard finds. TensorBoard reads files in the order of their names, and the last
/// one counts for a step. So each name sorts after the existing ones, even when the clock was set
/// back, or when a container starts twice within a second with the same process number.
std::string file_name(const std::string& folder) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = 'x';
  std::replace(host, host + sizeof host, '/', '_');
  const std::int64_t time = std::max(static_cast<std::int64_t>(now()), newest_time(folder) + 1);
  return message(kFilePrefix, time, ".", static_cast<const char*>(host), ".", ::getpid(), ".0");
}

std::unique_ptr<AppendFile> fresh_file(const std::string& folder) {
  make_folder(folder, kEventWriter);
  constexpr int kTries = 1000;  // other processes may take names at the same time
  for (int i = 0;; ++i) {
    const std::string path = (std::filesystem::path(folder) / file_name(folder)).string();
    try {
      return std::make_unique<AppendFile>(path, kEventWriter, true);
    } catch (const FileExists&) {
      if (i == kTries) throw;
    }
  }
}

}  // namespace

struct EventWriter::Impl {
  explicit Impl(const std::string& folder) : file(fresh_file(folder)) {}

  void append(std::string_view event) {
    std::string record;
    append_little(record, static_cast<std::uint64_t>(event.size()));
    append_little(record, masked_crc(record));
    record += event;
    append_little(record, masked_crc(event));
    file->append(record);
  }

  std::unique_ptr<AppendFile> file;
};

EventWriter::EventWriter(const std::string& folder, std::optional<std::int64_t> resume_step)
    : impl_(std::make_unique<Impl>(folder)) {
  impl_->append(event(now(), 0, 3, "brain.Event:2"));
  if (resume_step.has_value()) {
    std::string start;
    append_integer(start, 1, 1);  // SessionLog: status = 1, START = 1
    impl_->append(event(now(), *resume_step, 7, start));
  }
}

EventWriter::~EventWriter() = default;
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;

void EventWriter::add_scalar(const std::string& tag, double value, std::int64_t step,
                             std::optional<double> wall_time) {
  std::string simple;
  append_float(simple, 2, static_cast<float>(value));  // Value: simple_value = 2
  impl_->append(
      event(wall_time.value_or(now()), step, 5, summary(tag, simple, "EventWriter::add_scalar")));
}

void EventWriter::add_text(const std::string& tag, const std::string& text, std::int64_t step,
                           std::optional<double> wall_time) {
  // Value: tensor = 8, metadata = 9. TensorProto: dtype = 1 (7 is a string), tensor_shape = 2,
  // string_val = 8. TensorShapeProto: dim = 2; in it size = 1. SummaryMetadata: plugin_data = 1; in
  // it plugin_name = 1.
  std::string size;
  append_integer(size, 1, 1);
  std::string shape;
  append_bytes(shape, 2, size);
  std::string tensor;
  append_integer(tensor, 1, 7);
  append_bytes(tensor, 2, shape);
  append_bytes(tensor, 8, text);
  std::string plugin;
  append_bytes(plugin, 1, "text");
  std::string metadata;
  append_bytes(metadata, 1, plugin);
  std::string rest;
  append_bytes(rest, 8, tensor);
  append_bytes(rest, 9, metadata);
  impl_->append(
      event(wall_time.value_or(now()), step, 5, summary(tag, rest, "EventWriter::add_text")));
}

void EventWriter::flush() { impl_->file->flush(); }
const std::string& EventWriter::path() const noexcept { return impl_->file->path(); }

}  // namespace baregrad::io
