// metrics.jsonl: one JSON object per line.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/json_string.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/utf8.h"
#include "io/append_file.h"
#include "io/input.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

constexpr const char* kMetricsWriter = "MetricsWriter";
constexpr std::string_view kStep = "{\"step\":";

/// The step of a complete line written by MetricsWriter. Empty for any other line.
std::optional<std::int64_t> step_of(std::string_view line) {
  if (!line.starts_with(kStep) || !line.ends_with('}')) return {};
  line.remove_prefix(kStep.size());
  std::int64_t step = 0;
  const std::from_chars_result end = std::from_chars(line.data(), line.data() + line.size(), step);
  if (end.ec != std::errc() || (*end.ptr != ',' && *end.ptr != '}')) return {};
  return step;
}

/// Whether `tail` may be the incomplete end of such a line. `first`: no line stands before it.
/// After a power failure some file systems leave zeros in place of the end.
bool may_be_torn(std::string_view tail, bool first) {
  const std::size_t last = tail.find_last_not_of('\0');
  if (last == std::string_view::npos) return true;
  tail = tail.substr(0, last + 1);
  return tail.starts_with(kStep) || (!first && kStep.starts_with(tail));
}

/// The part of a file that is kept: whole lines of steps before `resume_step`.
struct Good {
  std::size_t bytes = 0;
  bool ends = true;  ///< the last line ends with a newline
};
/// Throws IoError for a file that another program wrote.
Good good_part(std::string_view text, std::optional<std::int64_t> resume_step,
               const std::string& path) {
  Good good;
  bool cut = false;
  int number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::optional<std::int64_t> step = step_of(line);
    if (!step && end == text.size() && may_be_torn(line, number == 1)) break;
    if (!step) {
      throw IoError(message(kMetricsWriter, ": line ", number, " of '", path,
                            "' is not a line of metrics; the file is left as it is: move it away, "
                            "or take another path"));
    }
    cut = cut || (resume_step && *step >= *resume_step);
    begin = end + 1;
    if (!cut) good = {std::min(begin, text.size()), begin <= text.size()};
  }
  return good;
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

constexpr const char* kWrite = "MetricsWriter::write";

/// A JSON object has each name once.
void check_names(const Metrics& metrics) {
  std::vector<std::string_view> names = {"step"};
  for (const auto& [name, value] : metrics) {
    check_name(name, "the name", kWrite);
    names.emplace_back(name);
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && !is_utf8(*text)) {
      throw ValueError(message(kWrite, ": the text ", quoted_name(*text), " is not UTF-8"));
    }
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw ValueError(message(kWrite, ": the name ", quoted_name(*twice), " occurs twice",
                           *twice == "step" ? "; the step is the first argument" : ""));
}

}  // namespace

struct MetricsWriter::Impl {
  explicit Impl(const std::string& path) : file(path, kMetricsWriter, false) {}
  AppendFile file;
};

MetricsWriter::MetricsWriter(const std::string& path, std::optional<std::int64_t> resume_step)
    : impl_(std::make_unique<Impl>(path)) {
  const Good good = good_part(read_text(path, kMetricsWriter), resume_step, path);
  if (good.bytes != impl_->file.size()) impl_->file.cut(good.bytes);
  if (!good.ends) impl_->file.append("\n");
}

MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(std::int64_t step, const Metrics& metrics) {
  check_names(metrics);
  std::string line = message(kStep, step);
  for (const auto& [key, value] : metrics) {
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
