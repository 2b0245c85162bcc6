// CSV: fields between delimiters, quoted or not. The text is read twice, to count and to convert; a
// third time if the labels are not integers.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/printable.h"
#include "data/source.h"
#include "parallel/interrupt.h"

namespace baregrad::data {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

constexpr std::size_t kMostShown = 40;
constexpr std::int64_t kMostNamed = std::int64_t{1} << 20;
constexpr std::size_t kMostClasses = std::size_t{1} << 18;

/// Reads field after field.
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
  /// Called once per field of the line. The view is valid until the next call.
  std::string_view next() {
    constexpr std::uint32_t kPiece = 1U << 12;
    if (++count_ % kPiece == 0) parallel::poll_interrupt();
    if (at_ < text_.size() && text_[at_] == options_.quote) return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != options_.delimiter && text_[at_] != '\n') ++at_;
    std::size_t end = at_;
    const bool at_line_end = at_ == text_.size() || text_[at_] == '\n';
    if (at_line_end && end > begin && text_[end - 1] == '\r') --end;
    finish();
    return trimmed(text_.substr(begin, end - begin));
  }
  /// Whether the last field was the last one of its line.
  bool line_done() const { return line_done_; }
  /// The first line of the record, from 1.
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
  /// Moves past the delimiter or the end of the line.
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
  std::uint32_t count_ = 0;
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
  // Fast path for digits alone, as in pixels. Up to 7 digits are exact in a float.
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
  // A value out of the range of a float becomes infinite or 0, as in a conversion.
  double wide = 0;
  if (!parse(field, wide)) return false;
  value = static_cast<T>(wide);
  return true;
}

bool is_number(std::string_view field) {
  double value = 0;
  return parse_number(field, value);
}

/// The result of the first pass.
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
    fail(who, "has no column ", quoted_text(options.label, kMostShown), " for the label among its ",
         columns);
  }
  return number < 0 ? number + columns : number;
}

/// The fields of the first line that is not empty.
template <class Each>
void each_first(std::string_view text, const CsvOptions& options, const std::string& who,
                const Each& each) {
  Fields fields(text, options, who);
  if (!fields.next_line()) return;
  std::int64_t column = 0;
  do each(column++, fields.next());
  while (!fields.line_done());
}

Form survey(std::string_view text, const CsvOptions& options, const std::string& who) {
  Form form;
  Fields fields(text, options, who);
  while (fields.next_line()) {
    std::int64_t count = 0;
    do {
      fields.next();
      ++count;
    } while (!fields.line_done());
    if (form.rows == 0) form.columns = count;
    if (count != form.columns) {
      fail(who, "line ", fields.line(), " has ", count, " fields, the first has ", form.columns);
    }
    ++form.rows;
  }
  if (form.rows == 0) return form;
  // Names take far more memory than their text. Their number is limited.
  const bool named = options.header.value_or(true);
  if (named) {
    each_first(text, options, who, [&](std::int64_t column, std::string_view field) {
      if (column < kMostNamed) form.names.emplace_back(field);
    });
  }
  form.label = find_label(form.names, form.columns, options, who);
  if (!options.header.has_value()) {
    bool has_text = false;
    bool label_named = false;
    each_first(text, options, who, [&](std::int64_t column, std::string_view field) {
      if (column != form.label) {
        has_text |= !field.empty() && !is_number(field);
      } else {
        // If the label column was found by name, the line is a header.
        label_named = field == options.label && !is_number(options.label);
      }
    });
    if (!has_text && !label_named) {
      form.names.clear();
      form.label = find_label({}, form.columns, options, who);
    }
  }
  if (!form.names.empty()) {
    if (form.columns > kMostNamed) {
      fail(who, "has a header of ", form.columns, " columns, at most ", kMostNamed,
           " can be named; take the line away, and set header to false");
    }
    --form.rows;
  }
  return form;
}

/// The kind of labels in a column, detected field by field without storing them.
class LabelColumn {
 public:
  LabelColumn(std::int64_t rows, const char* who)
      : numbers_(Tensor::allocate({rows}, DType::Int64, who)), at_(numbers_.data<std::int64_t>()) {}

  void add(std::string_view field, const CsvOptions& options) {
    if (whole_ && parse(field, *at_)) {
      ++at_;
      return;
    }
    whole_ = false;
    const bool missing = field.empty() && options.missing.has_value();
    real_ = real_ && (missing || is_number(field));
    digits_ = digits_ || field.find_first_of("0123456789") != std::string_view::npos;
  }
  bool is_whole() const noexcept { return whole_; }
  /// If a column holds no other numbers, "nan" and "inf" are names.
  bool is_real() const noexcept {
    return real_ && (digits_ || at_ != numbers_.data<std::int64_t>());
  }
  const Tensor& numbers() const noexcept { return numbers_; }

 private:
  Tensor numbers_;
  std::int64_t* at_;
  bool whole_ = true;
  bool real_ = true;
  bool digits_ = false;
};

void skip_header(Fields& fields, const Form& form) {
  if (form.names.empty()) return;
  fields.next_line();
  do fields.next();
  while (!fields.line_done());
}

template <class T>
void convert(std::string_view text, const CsvOptions& options, const std::string& who,
             const Form& form, T* values, std::optional<LabelColumn>& labels) {
  Fields fields(text, options, who);
  skip_header(fields, form);
  for (std::int64_t row = 0; row < form.rows; ++row) {
    fields.next_line();
    for (std::int64_t column = 0; column < form.columns; ++column) {
      const std::string_view field = fields.next();
      if (column == form.label) {
        labels->add(field, options);
        continue;
      }
      T value{};
      if (field.empty() && options.missing.has_value()) {
        value = static_cast<T>(*options.missing);
      } else if (field.empty()) {
        fail(who, "line ", fields.line(), ", field ", column + 1,
             " is empty; set `missing` to say what that means");
      } else if (!parse_number(field, value)) {
        fail(who, "line ", fields.line(), ", field ", column + 1, ": ",
             quoted_text(field, kMostShown), " is no number that ", name(dtype_of<T>), " can hold");
      }
      *values++ = value;
    }
  }
}

/// The label of every row, in order, with its line.
template <class Each>
void each_label(std::string_view text, const CsvOptions& options, const std::string& who,
                const Form& form, const Each& each) {
  Fields fields(text, options, who);
  skip_header(fields, form);
  for (std::int64_t row = 0; row < form.rows; ++row) {
    fields.next_line();
    for (std::int64_t column = 0; column < form.columns; ++column) {
      const std::string_view field = fields.next();
      if (column == form.label) each(field, fields.line());
    }
  }
}

template <class T>
Tensor real_labels(std::string_view text, const CsvOptions& options, const std::string& who,
                   const Form& form) {
  Tensor out = Tensor::allocate({form.rows}, dtype_of<T>, who.c_str());
  T* at = out.data<T>();
  each_label(text, options, who, form, [&](std::string_view field, std::int64_t line) {
    if (field.empty()) {
      *at++ = static_cast<T>(*options.missing);
      return;
    }
    if (field.find_first_not_of("+-0123456789") == std::string_view::npos) {
      std::int64_t whole = 0;
      if (!parse(field, whole)) {
        fail(who, "line ", line, ": the label ", quoted_text(field, kMostShown),
             " is a whole number that int64 cannot hold");
      }
    }
    parse_number(field, *at++);
  });
  return out;
}

/// The index of each text among all texts in order.
void set_classes(std::string_view text, const CsvOptions& options, const std::string& who,
                 const Form& form, CsvTable& table) {
  auto* out = table.labels.data<std::int64_t>();
  std::map<std::string, std::int64_t, std::less<>> numbers;  // in the order of their first row
  each_label(text, options, who, form, [&](std::string_view field, std::int64_t line) {
    auto found = numbers.find(field);
    if (found == numbers.end()) {
      if (numbers.size() == kMostClasses) {
        fail(who, "line ", line, ": the label column has more than ", kMostClasses,
             " different texts; labels are classes");
      }
      found = numbers.emplace(field, static_cast<std::int64_t>(numbers.size())).first;
    }
    *out++ = found->second;
  });
  std::vector<std::int64_t> order(numbers.size());
  for (const auto& [name, first_seen] : numbers) {
    order[static_cast<std::size_t>(first_seen)] = static_cast<std::int64_t>(table.classes.size());
    table.classes.push_back(name);
  }
  out = table.labels.data<std::int64_t>();
  for (std::int64_t row = 0; row < form.rows; ++row) {
    out[row] = order[static_cast<std::size_t>(out[row])];
  }
}

void set_labels(const LabelColumn& column, std::string_view text, const CsvOptions& options,
                const std::string& who, const Form& form, CsvTable& table) {
  table.labels = column.numbers();
  if (column.is_whole()) return;
  if (!column.is_real()) {
    set_classes(text, options, who, form, table);
  } else if (options.dtype == DType::Float32) {
    table.labels = real_labels<float>(text, options, who, form);
  } else {
    table.labels = real_labels<double>(text, options, who, form);
  }
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

CsvTable decode(Bytes bytes, const CsvOptions& options, const std::string& who,
                std::uint64_t limit) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Form form = survey(text, options, who);
  CsvTable table;
  const std::int64_t width = form.columns - (form.label >= 0 ? 1 : 0);
  // A field takes at least a byte of text, so the product does not overflow.
  const std::uint64_t decoded =
      static_cast<std::uint64_t>(form.rows * width) * itemsize(options.dtype);
  if (decoded > limit) {
    fail_limit(
        who,
        message("holds ", form.rows, " x ", width, " values, ", decoded, " bytes in memory, more"),
        limit);
  }
  table.values = Tensor::allocate({form.rows, width}, options.dtype, who.c_str());
  std::optional<LabelColumn> labels;
  if (form.label >= 0) labels.emplace(form.rows, who.c_str());
  if (options.dtype == DType::Float32) {
    convert(text, options, who, form, table.values.data<float>(), labels);
  } else {
    convert(text, options, who, form, table.values.data<double>(), labels);
  }
  if (labels) {
    set_labels(*labels, text, options, who, form, table);
    if (!form.names.empty()) form.names.erase(form.names.begin() + form.label);
  }
  table.columns = std::move(form.names);
  return table;
}

}  // namespace

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  check_options(options, "read_csv");
  const std::unique_ptr<Source> source = open_file(path, "read_csv", options.max_bytes);
  return decode(read_all(*source), options, source->who(), source->limit());
}

CsvTable decode_csv(Bytes bytes, const CsvOptions& options) {
  check_options(options, "decode_csv");
  const std::unique_ptr<Source> source = open_memory(bytes, "decode_csv", options.max_bytes);
  return decode(read_all(*source), options, source->who(), source->limit());
}

}  // namespace baregrad::data
