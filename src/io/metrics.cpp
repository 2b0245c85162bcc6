// metrics.jsonl: one JSON object a line.
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/message.h"
#include "core/number_text.h"
#include "io/append_file.h"
#include "io/input.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

constexpr const char* kMetricsWriter = "MetricsWriter";
constexpr std::string_view kStep = "{\"step\":";

/// The step that opens a line of ours.
std::optional<std::int64_t> step_of(std::string_view line) {
  if (!line.starts_with(kStep)) return {};
  line.remove_prefix(kStep.size());
  std::int64_t step = 0;
  const std::from_chars_result end = std::from_chars(line.data(), line.data() + line.size(), step);
  if (end.ec != std::errc()) return {};
  return step;
}

/// How many bytes of the file are whole lines of steps before `resume_step`.
std::uint64_t good_bytes(std::string_view text, std::optional<std::int64_t> resume_step) {
  std::size_t good = 0;
  while (true) {
    const std::size_t end = text.find('\n', good);
    if (end == std::string_view::npos) return good;
    const std::optional<std::int64_t> step = step_of(text.substr(good, end - good));
    if (resume_step && step && *step >= *resume_step) return good;
    good = end + 1;
  }
}

void append_value(std::string& out, const MetricValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out += std::to_string(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    out += std::isfinite(*number) ? number_text(*number) : "null";
  } else {
    append_json_string(out, std::get<std::string>(value));
  }
}

void check_text(std::string_view text) {
  if (is_utf8(text)) return;
  throw ValueError(message(kMetricsWriter, "::write: ", quoted_name(text), " is not UTF-8"));
}

}  // namespace

struct MetricsWriter::Impl {
  explicit Impl(const std::string& path) : file(path, kMetricsWriter, false) {}
  AppendFile file;
};

MetricsWriter::MetricsWriter(const std::string& path, std::optional<std::int64_t> resume_step)
    : impl_(std::make_unique<Impl>(path)) {
  const Input input = map_file(path, kMetricsWriter);
  const auto* text = reinterpret_cast<const char*>(input.bytes.data());
  const std::uint64_t good = good_bytes({text, input.bytes.size()}, resume_step);
  if (good != impl_->file.size()) impl_->file.cut(good);
}

MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(std::int64_t step, const Metrics& metrics) {
  std::string line = message(kStep, step);
  for (const auto& [key, value] : metrics) {
    check_text(key);
    if (const auto* text = std::get_if<std::string>(&value)) check_text(*text);
    line += ',';
    append_json_string(line, key);
    line += ':';
    append_value(line, value);
  }
  line += "}\n";
  impl_->file.append(line);
}

void MetricsWriter::flush() { impl_->file.flush(); }

}  // namespace baregrad::io
