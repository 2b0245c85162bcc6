// CSV: fields between delimiters, quoted or not. Read twice: once to count, once to convert.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "data/source.h"

namespace baregrad::data {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string shown(std::string_view field) {
  constexpr std::size_t kMost = 40;
  std::string text;
  for (const char c : field.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return field.size() > kMost ? text + "..." : text;
}

/// Fields one after the other.
class Fields {
 public:
  Fields(std::string_view text, const CsvOptions& options, const std::string& who)
      : text_(text), options_(options), who_(who) {}

  /// Goes to the start of the next line that is not empty; false at the end.
  bool next_line() {
    while (at_ < text_.size() && end_of_line()) skip_end();
    line_ = line_at_;
    return at_ < text_.size();
  }
  /// Once per field of the line; the view holds until the next call.
  std::string_view next() {
    if (at_ < text_.size() && text_[at_] == options_.quote) return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != options_.delimiter && text_[at_] != '\n') ++at_;
    std::size_t end = at_;
    const bool at_line_end = at_ == text_.size() || text_[at_] == '\n';
    if (at_line_end && end > begin && text_[end - 1] == '\r') --end;
    finish();
    return trimmed(text_.substr(begin, end - begin));
  }
  /// Whether the last field was the line's last.
  bool line_done() const { return line_done_; }
  /// The line that the record began in, from 1.
  std::int64_t line() const { return line_; }

 private:
  bool end_of_line() const {
    return text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }
  void skip_end() {
    if (text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_at_;
    }
  }
  /// Past the delimiter or the line's end.
  void finish() {
    line_done_ = at_ == text_.size() || text_[at_] != options_.delimiter;
    if (line_done_ && at_ < text_.size()) {
      skip_end();
    } else if (!line_done_) {
      ++at_;
    }
  }
  std::string_view quoted() {
    const std::int64_t began = line_at_;
    unquoted_.clear();
    for (++at_;; ++at_) {
      const std::size_t close = text_.find(options_.quote, at_);
      if (close == std::string_view::npos) {
        fail(who_, "line ", began, ": a quoted field is not closed");
      }
      const std::string_view part = text_.substr(at_, close - at_);
      line_at_ += std::count(part.begin(), part.end(), '\n');
      unquoted_ += part;
      at_ = close + 1;
      if (at_ >= text_.size() || text_[at_] != options_.quote) break;
      unquoted_ += options_.quote;
    }
    if (at_ < text_.size() && text_[at_] != options_.delimiter && !end_of_line()) {
      fail(who_, "line ", line_at_, ": text after a closing quote");
    }
    finish();
    return unquoted_;
  }

  std::string_view text_;
  const CsvOptions& options_;
  const std::string& who_;
  std::size_t at_ = 0;
  std::int64_t line_at_ = 1;
  std::int64_t line_ = 1;
  bool line_done_ = false;
  std::string unquoted_;
};

template <class T>
bool parse(std::string_view field, T& value) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* end = field.data() + field.size();
  const auto [at, code] = std::from_chars(field.data(), end, value);
  return code == std::errc() && at == end && !field.empty();
}

template <class T>
bool parse_number(std::string_view field, T& value) {
  // Digits alone, as pixels are, need no more than this; up to 7 are exact in a float.
  constexpr std::size_t kShort = 7;
  if (!field.empty() && field.size() <= kShort) {
    int whole = 0;
    std::size_t i = 0;
    for (; i < field.size() && field[i] >= '0' && field[i] <= '9'; ++i) {
      whole = whole * 10 + (field[i] - '0');
    }
    if (i == field.size()) {
      value = static_cast<T>(whole);
      return true;
    }
  }
  if (parse(field, value)) return true;
  // What a float cannot hold becomes infinite or 0, as in a conversion.
  double wide = 0;
  if (!parse(field, wide)) return false;
  value = static_cast<T>(wide);
  return true;
}

bool is_number(std::string_view field) {
  double value = 0;
  return parse_number(field, value);
}

/// What the first pass finds.
struct Form {
  std::int64_t rows = 0;
  std::vector<std::string> names;  // of all columns; empty without a header
  std::int64_t columns = 0;
  std::int64_t label = -1;
};

std::int64_t find_label(const std::vector<std::string>& names, std::int64_t columns,
                        const CsvOptions& options, const std::string& who) {
  if (options.label.empty()) return -1;
  const auto named = std::find(names.begin(), names.end(), options.label);
  if (named != names.end()) return named - names.begin();
  std::int64_t number = 0;
  if (!parse(options.label, number) || number < -columns || number >= columns) {
    fail(who, "has no column '", options.label, "' for the label among its ", columns);
  }
  return number < 0 ? number + columns : number;
}

Form survey(std::string_view text, const CsvOptions& options, const std::string& who) {
  Form form;
  Fields fields(text, options, who);
  std::vector<std::string> first;
  while (fields.next_line()) {
    std::int64_t count = 0;
    do {
      const std::string_view field = fields.next();
      if (form.rows == 0) first.emplace_back(field);
      ++count;
    } while (!fields.line_done());
    if (form.rows == 0) form.columns = count;
    if (count != form.columns) {
      fail(who, "line ", fields.line(), " has ", count, " fields, the first has ", form.columns);
    }
    ++form.rows;
  }
  if (form.rows == 0) return form;
  if (options.header.value_or(true)) form.names = first;
  form.label = find_label(form.names, form.columns, options, who);
  if (!options.header.has_value()) {
    bool has_text = false;
    for (std::int64_t i = 0; i < form.columns; ++i) {
      const std::string& field = first[static_cast<std::size_t>(i)];
      has_text |= i != form.label && !field.empty() && !is_number(field);
    }
    // Where the label's name was what found it, the line is a header whatever else it holds.
    const bool label_named = form.label >= 0 &&
                             first[static_cast<std::size_t>(form.label)] == options.label &&
                             !is_number(options.label);
    if (!has_text && !label_named) {
      form.names.clear();
      form.label = find_label({}, form.columns, options, who);
    }
  }
  if (!form.names.empty()) --form.rows;
  return form;
}

template <class T>
void convert(std::string_view text, const CsvOptions& options, const std::string& who,
             const Form& form, T* values, std::vector<std::string>& labels) {
  Fields fields(text, options, who);
  if (!form.names.empty()) {
    fields.next_line();
    do fields.next();
    while (!fields.line_done());
  }
  for (std::int64_t row = 0; row < form.rows; ++row) {
    fields.next_line();
    for (std::int64_t column = 0; column < form.columns; ++column) {
      const std::string_view field = fields.next();
      if (column == form.label) {
        labels.emplace_back(field);
        continue;
      }
      T value{};
      if (field.empty() && options.missing.has_value()) {
        value = static_cast<T>(*options.missing);
      } else if (field.empty()) {
        fail(who, "line ", fields.line(), ", field ", column + 1,
             " is empty; set `missing` to say what that means");
      } else if (!parse_number(field, value)) {
        fail(who, "line ", fields.line(), ", field ", column + 1, ": '", shown(field),
             "' is no number that ", name(dtype_of<T>), " can hold");
      }
      *values++ = value;
    }
  }
}

/// Whole numbers as they are, else the number of each text among all of them in order.
void set_labels(const std::vector<std::string>& labels, CsvTable& table) {
  table.labels =
      Tensor::allocate({static_cast<std::int64_t>(labels.size())}, DType::Int64, "read_csv");
  auto* out = table.labels.data<std::int64_t>();
  const bool whole =
      std::all_of(labels.begin(), labels.end(),
                  [out](const std::string& text) mutable { return parse(text, *out++); });
  if (whole) return;
  std::map<std::string_view, std::int64_t> numbers;
  for (const std::string& text : labels) numbers.emplace(text, 0);
  for (auto& [text, number] : numbers) {
    number = static_cast<std::int64_t>(table.classes.size());
    table.classes.emplace_back(text);
  }
  for (const std::string& text : labels) *out++ = numbers.at(text);
}

void check_options(const CsvOptions& options, const char* who) {
  const auto is_end = [](char c) { return c == '\n' || c == '\r'; };
  if (options.delimiter == options.quote || is_end(options.delimiter) || is_end(options.quote)) {
    throw ValueError(message(who, ": delimiter and quote must differ, and be no line ends"));
  }
  if (options.dtype != DType::Float32 && options.dtype != DType::Float64) {
    throw DTypeError(message(who, ": gives float32 or float64, not ", name(options.dtype)));
  }
}

CsvTable decode(Bytes bytes, const CsvOptions& options, const std::string& who) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Form form = survey(text, options, who);
  CsvTable table;
  const std::int64_t width = form.columns - (form.label >= 0 ? 1 : 0);
  table.values = Tensor::allocate({form.rows, width}, options.dtype, who.c_str());
  std::vector<std::string> labels;
  if (options.dtype == DType::Float32) {
    convert(text, options, who, form, table.values.data<float>(), labels);
  } else {
    convert(text, options, who, form, table.values.data<double>(), labels);
  }
  if (form.label >= 0) {
    set_labels(labels, table);
    if (!form.names.empty()) form.names.erase(form.names.begin() + form.label);
  }
  table.columns = std::move(form.names);
  return table;
}

}  // namespace

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  check_options(options, "read_csv");
  const std::unique_ptr<Source> source = open_file(path, "read_csv");
  return decode(read_all(*source), options, source->who());
}

CsvTable decode_csv(Bytes bytes, const CsvOptions& options) {
  check_options(options, "decode_csv");
  const std::unique_ptr<Source> source = open_memory(bytes, "decode_csv");
  return decode(read_all(*source), options, source->who());
}

}  // namespace baregrad::data
